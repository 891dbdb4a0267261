#include "profiler/query/holdings.h"

#include <algorithm>
#include <initializer_list>
#include <iterator>

#include "profiler/session/reader.h"

namespace fusebox::query {
namespace {

constexpr uint32_t all(std::initializer_list<Holding> list) {
  uint32_t held = 0;
  for (const Holding what : list) held |= 1U << static_cast<uint32_t>(what);
  return held;
}

using enum Holding;

constexpr uint32_t kProfile = all({RunTimes, Launches});
/// PyTorch's own log of compiling.
constexpr uint32_t kCompileLog = all({Breaks, Recompiles, Guards, Graphs, Kernels, CompileTimes});

struct Source {
  std::string_view name;  ///< a part of imported_format
  uint32_t held;
};
constexpr Source kFormats[] = {{"TORCH_TRACE", kCompileLog},
                               {"TORCH_COMPILE_DEBUG", all({Graphs, Kernels})},
                               {".pt2", all({Graphs})},
                               {"TorchScript", all({Graphs})},
                               {"Kineto", kProfile},
                               {"Chrome", kProfile},
                               {"Perfetto", kProfile},
                               {"Nsight", kProfile}};

bool any(const session::Reader& reader, const char* sql) {
  bool any = false;
  (void)reader.each(sql, {}, [&](const session::Statement& s) { any = s.integer("any") != 0; });
  return any;
}

/// A recording of PyTorch's own compiler has its log only where `fusebox run` has added it.
bool hasCompiles(const session::Reader& reader) { return any(reader, "SELECT EXISTS(SELECT 1 FROM t_compile) AS any"); }
bool hasKernels(const session::Reader& reader) { return any(reader, "SELECT EXISTS(SELECT 1 FROM t_kernel) AS any"); }

uint32_t heldBy(const session::Reader& reader, const std::string& engine, const std::string& format) {
  if (!format.empty()) {
    const auto known = std::find_if(std::begin(kFormats), std::end(kFormats), [&](const Source& s) { return format.find(s.name) != std::string::npos; });
    const uint32_t held = known == std::end(kFormats) ? ~0U : known->held;
    // Profilers see kernels of devices; those that a compiler made for the processor run inside of its calls, unseen.
    return held == kProfile && !hasKernels(reader) ? held & ~all({Launches}) : held;
  }
  if (engine == "eager") return kProfile;
  if (engine == "stock") return hasCompiles(reader) ? kProfile | kCompileLog : kProfile;
  return ~0U;
}

}  // namespace

Holdings holdingsOf(const session::Reader& reader) {
  std::string engine = reader.info("engine"), format = reader.info("imported_format");
  const uint32_t held = heldBy(reader, engine, format);
  // One without a process is only just being made.
  const bool isBegun = !reader.info("pid").empty() || !format.empty() || reader.info("state") == "finished";
  const bool isOver = isBegun && reader.info("state") != "importing" && reader.state() != session::Reader::State::Recording;
  return {format.empty() ? std::move(engine) : std::move(format), held, isOver, hasCompiles(reader)};
}

}  // namespace fusebox::query
