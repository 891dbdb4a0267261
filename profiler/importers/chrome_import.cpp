#include "profiler/importers/chrome_import.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "engine/support/bounded_json.h"
#include "profiler/importers/json_slices.h"
#include "profiler/importers/trace_names.h"

namespace fusebox::importing {

/// What the categories of Kineto mean for a session. Everything else is a span of its own category on a thread.
struct CategoryMeaning {
  std::string_view category;
  std::string_view deviceKind;  ///< of gpu_events; empty: on a CPU thread
  bool launch = false;          ///< a launch with a kernel of its name
  bool deviceCall = false, driver = false;
};

namespace {

constexpr size_t kMostOpenSpans = 1'000'000, kMostNames = 200'000;
constexpr std::ptrdiff_t kMostSearched = 1000;
constexpr size_t kMostDetailBytes = 64 << 10;

constexpr CategoryMeaning kCategories[] = {
    {"kernel", "kernel", true},
    {"Kernel", "kernel", true},
    {"gpu_memcpy", "memcpy", true},
    {"gpu_memset", "memset", true},
    {"cuda_sync", "sync"},
    {"gpu_user_annotation", "annotation"},
    {"Memcpy", "memcpy", true},
    {"Memset", "memset", true},
    {"concurrent_kernel", "kernel", true},
    {"cuda_runtime", "", false, true},
    {"cuda_driver", "", false, true, true},
    {"xpu_runtime", "", false, true},
    {"hip_runtime", "", false, true},
};
const CategoryMeaning* meaningOf(std::string_view category) {
  for (const auto& c : kCategories) {
    if (c.category == category) return &c;
  }
  return nullptr;
}

/// "[32, 1, 1]" as a session writes it: "32", "[2, 6, 1]": "2 x 6 x 1"; empty for what is no short list of numbers.
std::string sizesOf(std::string_view json) {
  std::string out;
  while (!json.empty() && json.back() != ']') json.remove_suffix(1);
  if (json.size() < 3 || json.size() > 64 || json.front() != '[') return out;
  for (const char c : json.substr(1, json.size() - 2)) {
    if (c >= '0' && c <= '9') out += c;
    else if (c == ',') out += " x ";
    else if (c != ' ' && c != '\n') return {};
  }
  constexpr std::string_view kFlat = " x 1 x 1";
  if (out.ends_with(kFlat)) out.resize(out.size() - kFlat.size());
  return out;
}

std::string_view bare(std::string_view token) { return token.size() > 200 ? token.substr(0, 200) : token; }

}  // namespace

const ChromeImport::Phase ChromeImport::kPhases[] = {
    {'X', &ChromeImport::complete},        {'B', &ChromeImport::begin},    {'E', &ChromeImport::end},
    {'b', &ChromeImport::asyncBegin},      {'e', &ChromeImport::asyncEnd}, {'n', &ChromeImport::instant},
    {'S', &ChromeImport::asyncBegin},      {'F', &ChromeImport::asyncEnd}, {'i', &ChromeImport::instant},
    {'I', &ChromeImport::instant},         {'R', &ChromeImport::instant},  {'C', &ChromeImport::counter},
    {'s', &ChromeImport::arrow},           {'f', &ChromeImport::arrow},    {'t', &ChromeImport::arrow},
    {'M', &ChromeImport::metadata, false},
};

void ChromeImport::event(const ChromeEvent& e) {
  for (const auto& phase : kPhases) {
    if (phase.phase != e.phase) continue;
    if (phase.timed && !e.timeNs)
      return session_.loss("events_without_time", 1, fmt::format("an event of phase {} has no readable ts", e.phase));
    return (this->*phase.take)(e);
  }
  session_.loss(
      "unknown_events", 1,
      e.phase ? fmt::format("events of phase \"{}\" have no place in a session", e.phase) : "events without a phase");
}

ChromeImport::Row& ChromeImport::row(const ChromeEvent& e) {
  std::string key = fmt::format("{}\n{}", bare(e.process), bare(e.thread));
  auto found = rows_.find(key);
  if (found != rows_.end()) return found->second;
  int64_t osTid = 0;
  std::from_chars(e.thread.data(), e.thread.data() + e.thread.size(), osTid);
  Row made{session_.thread(key, fmt::format("{} {}", bare(e.process), bare(e.thread)), osTid),
           std::string(bare(e.process)),
           std::string(bare(e.thread)),
           false,
           {}};
  return rows_.emplace(std::move(key), std::move(made)).first->second;
}

void ChromeImport::span(Row& row, std::string_view category, std::string_view name, int64_t start, int64_t duration,
                        std::string_view detail) {
  if (detail.size() > kMostDetailBytes) {
    session_.loss("arguments", 1, "arguments longer than 64 kB were left out");
    detail = {};
  }
  if (const auto region = compiledRegion(name)) {
    session_.call(row.thread, regionCompile(*region), start, duration);
    return;
  }
  std::string file;
  int64_t line = 0;
  if (category == "python_function") {
    if (const auto place = pythonFunction(name)) file = place->file, line = place->line;
  }
  const int64_t event = session_.cpuSpan(category.empty() ? "span" : category, name, start, duration, row.thread,
                                         static_cast<int64_t>(row.open.size()), detail, file, line);
  const auto* meaning = meaningOf(category);
  const bool call = meaning && meaning->deviceCall;
  if (!call && category != "cpu_op") return;
  ChromeArguments arguments;
  parser.parseArguments(detail, arguments);
  if (call && arguments.correlation)
    links_.deviceCall(*arguments.correlation, event, row.thread, start, duration, meaning->driver);
  if (!call && arguments.externalId) links_.operatorSpan(*arguments.externalId, event, name);
  if (!call && arguments.sequence) links_.sequence(event, *arguments.sequence, arguments.forwardThread.value_or(0) != 0);
}

void ChromeImport::complete(const ChromeEvent& e) {
  const auto* meaning = meaningOf(e.category);
  if (meaning && !meaning->deviceKind.empty()) return deviceWork(e, *meaning);
  if (!e.durationNs)
    session_.loss("events_without_duration", 1, "complete events without a readable dur are shown without length");
  span(row(e), e.category, e.name, session_.time(*e.timeNs), std::max<int64_t>(0, e.durationNs.value_or(0)),
       e.arguments);
}

void ChromeImport::deviceWork(const ChromeEvent& e, const CategoryMeaning& meaning) {
  Row& where = row(e);
  where.device = true;
  ChromeArguments arguments;
  parser.parseArguments(e.arguments, arguments);
  DeviceSpan span{
      meaning.deviceKind,    e.name,          arguments.device,         arguments.stream,
      arguments.correlation, arguments.bytes, session_.time(*e.timeNs), std::max<int64_t>(0, e.durationNs.value_or(0))};
  span.registers = arguments.registers;
  span.sharedBytes = arguments.sharedBytes;
  if (arguments.occupancyPercent) span.occupancy = static_cast<double>(*arguments.occupancyPercent) / 100;
  span.grid = sizesOf(arguments.grid);
  span.block = sizesOf(arguments.block);
  int64_t kernel = 0;
  if (meaning.launch) {
    const bool copy = meaning.deviceKind != "kernel";
    kernel = session_.kernel(e.name, copy ? "extern" : kernelKind(e.name), copy ? meaning.deviceKind : "",
                             arguments.device ? fmt::format("cuda:{}", *arguments.device) : "cuda");
    if (!copy && arguments.externalId) links_.kernelOf(kernel, *arguments.externalId);
    span.operatorId = arguments.externalId;
  }
  session_.deviceSpan(where.thread, kernel, span);
}

int64_t ChromeImport::regionCompile(std::string_view region) {
  const auto found = regions_.find(std::string(region));
  if (found != regions_.end()) return found->second;
  if (regions_.size() >= kMostNames) return 0;
  const int64_t frame = session_.newId(RowKind::Frame), compile = session_.newId(RowKind::Compile);
  session_.put(rows::Frame{.id = frame, .name = fmt::format("compiled region {}", region), .status = std::string("compiled")});
  const bool isId = region.find_first_not_of("0123456789/_!-") == std::string_view::npos;
  session_.put(rows::Compile{.id = compile, .frame_id = frame, .kind = std::string("frame"), .status = std::string("ok"),
      .log_id = isId ? Cell{fmt::format("[{}]", region)} : Cell{}});
  regions_.emplace(region, compile);
  return compile;
}

void ChromeImport::begin(const ChromeEvent& e) {
  Row& where = row(e);
  if (openSpans_ >= kMostOpenSpans) return session_.loss("spans", 1, "more than a million spans are open at once");
  ++openSpans_;
  where.open.push_back(
      {std::string(e.name), std::string(e.category), std::string(e.arguments), session_.time(*e.timeNs)});
}

void ChromeImport::end(const ChromeEvent& e) {
  Row& where = row(e);
  if (where.open.empty()) return session_.loss("unmatched_ends", 1, "ends of spans whose begin is not in the file");
  // Compile workers share one thread number in TORCH_TRACE's events: the innermost span of that name is meant.
  auto it = where.open.end() - 1;
  if (!e.name.empty() && it->name != e.name) {
    const auto deepest = where.open.rbegin() + std::min<std::ptrdiff_t>(kMostSearched, std::ssize(where.open));
    const auto named = std::find_if(where.open.rbegin(), deepest, [&](const OpenSpan& s) { return s.name == e.name; });
    if (named != deepest) it = named.base() - 1;
  }
  OpenSpan open = std::move(*it);
  where.open.erase(it);
  --openSpans_;
  open.detail.append(JsonSlices::kPadding, '\0');
  const std::string_view detail(open.detail.data(), open.detail.size() - JsonSlices::kPadding);
  span(where, open.category, open.name, open.startNs, std::max<int64_t>(0, session_.time(*e.timeNs) - open.startNs),
       detail.empty() ? e.arguments : detail);
}

void ChromeImport::asyncBegin(const ChromeEvent& e) {
  if (async_.size() >= kMostOpenSpans) return session_.loss("spans", 1, "more than a million spans are open at once");
  async_[fmt::format("{}\n{}\n{}", bare(e.category), bare(e.id), bare(e.name))] = {
      std::string(e.name), std::string(e.category), std::string(e.arguments), session_.time(*e.timeNs)};
}

void ChromeImport::asyncEnd(const ChromeEvent& e) {
  const auto found = async_.find(fmt::format("{}\n{}\n{}", bare(e.category), bare(e.id), bare(e.name)));
  if (found == async_.end()) return session_.loss("unmatched_ends", 1, "ends of spans whose begin is not in the file");
  OpenSpan open = std::move(found->second);
  async_.erase(found);
  open.detail.append(JsonSlices::kPadding, '\0');
  span(row(e), open.category, open.name, open.startNs, std::max<int64_t>(0, session_.time(*e.timeNs) - open.startNs),
       std::string_view(open.detail.data(), open.detail.size() - JsonSlices::kPadding));
}

void ChromeImport::instant(const ChromeEvent& e) {
  span(row(e), e.category.empty() ? "instant" : e.category, e.name, session_.time(*e.timeNs), 0, e.arguments);
}

void ChromeImport::counter(const ChromeEvent& e) {
  span(row(e), "counter", e.name, session_.time(*e.timeNs), 0, e.arguments);
}

void ChromeImport::arrow(const ChromeEvent& e) {
  if (e.category == "ac2g") return;  // the correlation in the arguments says the same, and more
  const std::string key = fmt::format("{}\n{}\n{}", bare(e.category), bare(e.id), bare(e.name));
  const Row& where = row(e);
  const int64_t at = session_.time(*e.timeNs);
  if (e.phase != 'f') links_.arrow(key, e.category, e.name, true, where.thread, at);
  if (e.phase != 's') links_.arrow(key, e.category, e.name, false, where.thread, at);
}

void ChromeImport::metadata(const ChromeEvent& e) {
  if (names_.size() >= kMostNames) return session_.loss("names", 1, "more names of threads than threads can be");
  ChromeArguments arguments;
  parser.parseArguments(e.arguments, arguments);
  if (e.name == "process_name") names_[fmt::format("p\n{}", bare(e.process))] = bare(arguments.name);
  if (e.name == "process_labels") names_[fmt::format("l\n{}", bare(e.process))] = bare(arguments.labels);
  if (e.name == "thread_name") names_[fmt::format("t\n{}\n{}", bare(e.process), bare(e.thread))] = bare(arguments.name);
}

void ChromeImport::member(const std::string& key, std::string_view json) {
  const auto value = parseBounded(json);
  if (value.is_discarded())
    return session_.loss("members", 1, fmt::format("\"{}\" beside the events cannot be read", key));
  if (key == "baseTimeNanoseconds" && value.is_number_integer()) session_.setUnixBase(value.get<int64_t>());
  if (key == "otherData" && value.is_object() && value.contains("program") && value["program"] == "fusebox") {
    if (value.contains("engine") && value["engine"].is_string())
      session_.info("engine", value["engine"].get<std::string>());
    if (value.contains("start_unix_ns") && value["start_unix_ns"].is_number_integer())
      session_.setUnixBase(value["start_unix_ns"].get<int64_t>());
  }
  if (key == "deviceProperties" && value.is_array() && !value.empty() && value[0].is_object()) {
    const auto name = value[0].find("name");
    if (name != value[0].end() && name->is_string()) session_.info("device", name->get<std::string>());
    session_.info("imported_format", std::string("Kineto trace (PyTorch profiler)"));
  }
  if (key == "schemaVersion") session_.info("imported_format", std::string("Kineto trace (PyTorch profiler)"));
  if (json.size() < 8192) session_.info("imported." + key.substr(0, 100), std::string(json));
}

void ChromeImport::finish() {
  for (auto& [key, row] : rows_) {
    for (const OpenSpan& open : row.open) {
      session_.loss("unfinished_spans", 1, "spans whose end is not in the file are shown without length");
      session_.cpuSpan(open.category.empty() ? "span" : open.category, open.name, open.startNs, 0, row.thread, 0,
                       open.detail);
    }
    const auto name = [&](const std::string& of) {
      const auto found = names_.find(of);
      return found == names_.end() ? std::string() : found->second;
    };
    const std::string process = name("p\n" + row.process), thread = name("t\n" + row.process + "\n" + row.name);
    const std::string label = name("l\n" + row.process), own = name("r\n" + row.process + "\n" + row.name);
    if (!own.empty()) {
      session_.nameThread(row.thread, own);
    } else if (row.device) {
      session_.nameThread(row.thread, fmt::format("{} {}", label.empty() ? "GPU " + row.process : label,
                                                  thread.empty() ? "stream " + row.name : thread));
    } else if (!process.empty() || !thread.empty()) {
      session_.nameThread(row.thread, thread.empty()
                                          ? fmt::format("{} {} · {}", process, row.process, row.name)
                                          : fmt::format("{} · {}", process.empty() ? row.process : process, thread));
    }
  }
  if (!async_.empty()) {
    session_.loss("unfinished_spans", static_cast<int64_t>(async_.size()),
                  "spans whose end is not in the file are left out");
  }
}

void ChromeImport::nameRow(std::string_view process, std::string_view thread, std::string_view name) {
  if (names_.size() < kMostNames) names_[fmt::format("r\n{}\n{}", bare(process), bare(thread))] = bare(name);
}

}  // namespace fusebox::importing
