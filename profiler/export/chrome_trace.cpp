#include "profiler/export/chrome_trace.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace fusebox::exporting {
namespace {

using nlohmann::json;
using session::Statement;

constexpr int kCompilerProcess = 1, kKernelProcess = 2;

std::string text(std::string_view value) {
  return json(value).dump(-1, ' ', false, json::error_handler_t::replace);
}

// Writes events one by one with the commas between them.
class EventList {
 public:
  explicit EventList(std::ostream& out) : out_(out) {}
  void add(const std::string& event) {
    out_ << (count_++ ? ",\n" : "\n") << event;
  }
  int64_t count() const { return count_; }

 private:
  std::ostream& out_;
  int64_t count_ = 0;
};

std::string span(std::string_view name, std::string_view category, int process, const Statement& row, int64_t origin,
                 const std::string& args) {
  return fmt::format(R"({{"ph":"X","name":{},"cat":{},"pid":{},"tid":{},"ts":{:.3f},"dur":{:.3f},"args":{{{}}}}})", text(name),
                     text(category), process, row.integer("thread"), static_cast<double>(row.integer("start_ns") - origin) / 1e3,
                     static_cast<double>(row.integer("dur_ns")) / 1e3, args);
}

std::string place(const Statement& row) {
  if (row.isNull("file")) return {};
  return fmt::format(R"(,"file":{},"line":{})", text(row.text("file")), row.integer("line"));
}

}  // namespace

Result<int64_t> writeChromeTrace(const session::Reader& reader, std::ostream& out) {
  const int64_t origin = reader.infoInteger("start_ns");
  out << R"({"displayTimeUnit":"ns","otherData":{"program":"fusebox","engine":)" << text(reader.info("engine"))
      << R"(,"start_unix_ns":)" << reader.infoInteger("start_unix_ns") << R"(},"traceEvents":[)";
  EventList events(out);
  for (const auto& [process, name] : {std::pair{kCompilerProcess, "compiler"}, std::pair{kKernelProcess, "kernels"}}) {
    events.add(fmt::format(R"({{"ph":"M","name":"process_name","pid":{},"args":{{"name":"{}"}}}})", process, name));
  }
  auto threads = reader.each("SELECT thread, name FROM threads", {}, [&](const Statement& row) {
    for (const int process : {kCompilerProcess, kKernelProcess}) {
      events.add(fmt::format(R"({{"ph":"M","name":"thread_name","pid":{},"tid":{},"args":{{"name":{}}}}})", process,
                             row.integer("thread"), text(row.text("name"))));
    }
  });
  if (!threads) return tl::unexpected(threads.error());
  auto cpu = reader.each(
      "SELECT start_ns, dur_ns, thread, name, kind, compile_id, detail, file, line FROM cpu_events WHERE dur_ns IS NOT NULL",
      {}, [&](const Statement& row) {
        events.add(span(row.text("name"), row.text("kind"), kCompilerProcess, row, origin,
                        fmt::format(R"("compile":{},"detail":{}{})", row.integer("compile_id"), text(row.text("detail")), place(row))));
      });
  if (!cpu) return tl::unexpected(cpu.error());
  auto launches = reader.each(
      "SELECT start_ns, dur_ns, thread, kernel, kernel_id, group_id, bytes, file, line FROM launches", {},
      [&](const Statement& row) {
        events.add(span(row.text("kernel"), "kernel", kKernelProcess, row, origin,
                        fmt::format(R"("kernel":{},"group":{},"bytes":{}{})", row.integer("kernel_id"), row.integer("group_id"), row.integer("bytes"),
                                    place(row))));
      });
  if (!launches) return tl::unexpected(launches.error());
  out << "\n]}\n";
  return events.count();
}

}  // namespace fusebox::exporting
