#include "profiler/query/holdings.h"

#include <initializer_list>

#include "profiler/session/reader.h"

namespace fusebox::query {
namespace {

constexpr uint32_t all(std::initializer_list<Holding> list) {
  uint32_t held = 0;
  for (const Holding what : list) held |= 1U << static_cast<uint32_t>(what);
  return held;
}

using enum Holding;

constexpr uint32_t kProfile = all({RunTimes});
/// PyTorch's own log of compiling.
constexpr uint32_t kCompileLog = all({Breaks, Recompiles, Guards, Graphs, CompileTimes});

struct Source {
  std::string_view name;  ///< a part of imported_format
  uint32_t held;
};
constexpr Source kFormats[] = {{"TORCH_TRACE", kCompileLog},
                               {"TORCH_COMPILE_DEBUG", all({Graphs})},
                               {".pt2", all({Graphs})},
                               {"TorchScript", all({Graphs})},
                               {"Kineto", kProfile},
                               {"Chrome", kProfile},
                               {"Perfetto", kProfile},
                               {"Nsight", kProfile}};

/// A recording of PyTorch's own compiler has its log only where `fusebox run` has added it.
bool hasCompiles(const session::Reader& reader) {
  bool any = false;
  (void)reader.each("SELECT EXISTS(SELECT 1 FROM compiles)", {}, [&](const session::Statement& s) { any = s.integer(0) != 0; });
  return any;
}

}  // namespace

Holdings holdingsOf(const session::Reader& reader) {
  const std::string engine = reader.info("engine");
  if (std::string format = reader.info("imported_format"); !format.empty()) {
    for (const Source& source : kFormats) {
      if (format.find(source.name) != std::string::npos) return {std::move(format), source.held};
    }
    return {std::move(format), ~0U};
  }
  if (engine == "eager") return {engine, kProfile};
  if (engine == "stock") return {engine, hasCompiles(reader) ? kProfile | kCompileLog : kProfile};
  return {engine, ~0U};
}

}  // namespace fusebox::query
