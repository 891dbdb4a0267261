// Commands that say why and where: recompiles, shapes, breaks, find.
#include <fmt/format.h>

#include <iostream>

#include "app/cli/colour.h"
#include "app/cli/commands.h"
#include "app/cli/open_input.h"
#include "profiler/query/breaks.h"
#include "profiler/query/recompiles.h"
#include "profiler/query/search.h"
#include "profiler/query/shapes.h"
#include "profiler/session/reader.h"

namespace fusebox::cli {
namespace {

int print(const nlohmann::json& report) {
  std::cout << report.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << "\n" << std::flush;
  return kOk;
}

int print(const std::string& text) {
  std::cout << printable(text) << std::flush;
  return kOk;
}

int showGuards(const session::Reader& reader, const RecompilesOptions& options) {
  const auto known = [&](int64_t compile) {
    bool found = false;
    (void)reader.each("SELECT 1 FROM compiles WHERE compile_id = ?", {compile},
                      [&](const session::Statement&) { found = true; });
    return found;
  };
  for (const int64_t compile : options.guards) {
    if (!known(compile))
      return complainUsage(
          fmt::format("--guards: the session has no compile_id {}; see `fusebox recompiles FILE --json`", compile));
  }
  auto rows = query::compareGuards(reader, options.guards[0], options.guards.size() > 1 ? options.guards[1] : 0);
  if (!rows) return complain(rows.error());
  return options.json ? print(query::toJson(*rows)) : print(query::toText(*rows));
}

}  // namespace

int showRecompiles(const RecompilesOptions& options) {
  auto reader = openInput(options.file);
  if (!reader) return complain(reader.error());
  if (!options.guards.empty()) return showGuards(**reader, options);
  auto chains = query::recompileChains(**reader, options.all);
  if (!chains) return complain(chains.error());
  return options.json ? print(query::toJson(**reader, *chains)) : print(query::toText(**reader, *chains));
}

int showShapes(const ShapesOptions& options) {
  auto reader = openInput(options.file);
  if (!reader) return complain(reader.error());
  auto frames = query::shapeFrames(**reader, options.all);
  if (!frames) return complain(frames.error());
  return options.json ? print(query::toJson(**reader, *frames)) : print(query::toText(**reader, *frames));
}

int showBreaks(const BreaksOptions& options) {
  auto reader = openInput(options.file);
  if (!reader) return complain(reader.error());
  auto breaks = query::breakSummaries(**reader);
  if (!breaks) return complain(breaks.error());
  auto coverage = query::coverageOf(**reader);
  if (!coverage) return complain(coverage.error());
  if (options.json) return print(query::toJson(**reader, *breaks, coverage->uncompiled));
  std::string text = query::toText(**reader, *breaks, coverage->uncompiled);
  if (options.bytecode) {
    for (const auto& b : *breaks) {
      if (b.code.empty()) continue;
      text += fmt::format("{}:{}\n{}\n{}\n", b.file, b.line, query::bytecodeText(b), query::bytecodeAfterText(b));
    }
  }
  return print(text);
}

int findInSession(const FindOptions& options) {
  auto reader = openInput(options.file);
  if (!reader) return complain(reader.error());
  std::vector<query::SearchGroup> groups;
  for (const auto& subject : query::searchSubjects()) {
    auto group = query::searchIn(**reader, subject.kind, options.text, options.limit);
    if (!group) return complain(group.error());
    groups.push_back(std::move(*group));
  }
  return options.json ? print(query::toJson(groups)) : print(query::toText(groups));
}

}  // namespace fusebox::cli
