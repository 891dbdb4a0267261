// Commands that give one graph to the engine without its program: replay and numerics.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "app/cli/commands.h"
#include "app/cli/open_input.h"
#include "app/cli/python_choice.h"
#include "app/cli/script_process.h"
#include "app/cli/session_path.h"
#include "profiler/query/saved_graphs.h"

namespace fusebox::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

/// A folder of its own for what goes to the engine and comes back.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::error_code error;
    std::string name = (fs::temp_directory_path(error) / "fusebox-replay-XXXXXX").string();
    if (mkdtemp(name.data())) path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  bool exists() const { return !path_.empty(); }
  std::string file(const char* name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

/// A program that PyTorch itself loads, not a session.
bool isProgram(const std::string& file) {
  return file.ends_with(".pt2") || file.ends_with(".pt") || file.ends_with(".pth");
}

bool isAbout(const std::string& rule, const query::RecordedRule& recorded) {
  return rule == recorded.a + "," + recorded.b || rule == recorded.b + "," + recorded.a;
}

/// The original is compiled by the rules that were in force when it was recorded, and what-if by these and those that were asked for.
Result<void> addRecordedRules(const std::vector<query::RecordedRule>& recorded, ReplayOptions& options, std::vector<std::string>& words) {
  for (const std::string& rule : options.allow)
    if (std::none_of(recorded.begin(), recorded.end(), [&](const auto& r) { return isAbout(rule, r); }))
      return fail(ErrorCode::InvalidArgument, "--allow: no rule on " + rule + " was in force when this graph was recorded");
  const bool isChanged = !options.forbid.empty() || !options.force.empty() || !options.allow.empty() || !options.skipPass.empty();
  const std::vector<std::string> forbid = options.forbid, force = options.force;
  for (const query::RecordedRule& rule : recorded) {
    const std::string pair = rule.a + "," + rule.b;
    words.push_back((rule.force ? "--base-force=" : "--base-forbid=") + pair);
    const auto names = [&](const std::vector<std::string>& asked) {
      return std::any_of(asked.begin(), asked.end(), [&](const std::string& text) { return isAbout(text, rule); });
    };
    if (isChanged && !names(options.allow) && !names(forbid) && !names(force)) (rule.force ? options.force : options.forbid).push_back(pair);
  }
  if (isChanged) words.push_back("--changed");
  return {};
}

Result<void> writeText(const std::string& path, const std::string& text) {
  std::ofstream out(path, std::ios::binary);
  out << text;
  out.close();
  if (!out) return fail(ErrorCode::Io, std::string("cannot be written: ") + std::strerror(errno), path);
  return {};
}

/// What the sizes of a graph must be to each other, and which line asked: a list that the engine reads (--relations).
Result<Json> relationsOf(const session::Reader& reader, int64_t graph) {
  Json relations = Json::array();
  auto read = reader.each("SELECT r.relation, r.file, r.line FROM graphs g JOIN compiles c ON c.compile_id = g.compile_id JOIN relations r "
                          "ON r.compile_id IN (c.compile_id, c.parent_compile_id) WHERE g.graph_id = ? ORDER BY r.relation_id",
                          {graph}, [&](const session::Statement& row) {
                            const std::string file = row.string("file");
                            relations.push_back({{"relation", row.string("relation")},
                                                 {"place", file.empty() ? "" : fmt::format("{}:{}", file, row.integer("line"))}});
                          });
  if (!read) return tl::unexpected(read.error());
  return relations;
}

/// "--graph FILE --direction D" or "--program FILE".
Result<std::vector<std::string>> subjectOf(ReplayOptions& options, const TemporaryFolder& folder, std::string& function) {
  if (isProgram(options.file)) {
    if (access(options.file.c_str(), R_OK) != 0) return fail(ErrorCode::Io, std::strerror(errno), options.file);
    return std::vector<std::string>{"--program", options.file};
  }
  auto reader = openInput(options.file);
  if (!reader) return tl::unexpected(reader.error());
  auto graph = query::savedGraph(**reader, options.graph);
  if (!graph) return tl::unexpected(graph.error());
  (void)(*reader)->each("SELECT coalesce(f.qualname, f.name) AS function FROM graphs g JOIN frames f ON f.frame_id = g.frame_id WHERE g.graph_id = ?", {graph->graph},
                        [&](const session::Statement& row) { function = row.string("function"); });
  const std::string path = folder.file("graph.json");
  if (auto written = writeText(path, graph->text); !written) return tl::unexpected(written.error());
  auto relations = relationsOf(**reader, graph->graph);
  if (!relations) return tl::unexpected(relations.error());
  const std::string relationsPath = folder.file("relations.json");
  if (auto written = writeText(relationsPath, relations->dump(-1, ' ', false, Json::error_handler_t::replace)); !written)
    return tl::unexpected(written.error());
  std::vector<std::string> words{"--graph", path, "--direction", graph->direction, "--relations", relationsPath};
  auto recorded = query::recordedRules(**reader, graph->graph);
  if (!recorded) return tl::unexpected(recorded.error());
  if (auto added = addRecordedRules(*recorded, options, words); !added) return tl::unexpected(added.error());
  // A backward graph's symbols are those of the compilation that it belongs to.
  (void)(*reader)->each("SELECT DISTINCT s.name, s.hint FROM graphs g JOIN compiles c ON c.compile_id = g.compile_id JOIN symbols s "
                        "ON s.compile_id IN (c.compile_id, c.parent_compile_id) WHERE g.graph_id = ? AND s.hint IS NOT NULL AND (s.kind = 'float' OR s.hint >= 0)",
                        {graph->graph}, [&](const session::Statement& row) {
                          words.push_back(fmt::format("--hint={}={}", row.string("name"), row.string("hint")));
                        });
  return words;
}

void addOptions(std::vector<std::string>& command, const ReplayOptions& options) {
  const auto each = [&](const char* flag, const std::vector<std::string>& values) {
    for (const std::string& value : values) command.push_back(fmt::format("{}={}", flag, value));
  };
  each("--forbid", options.forbid);
  each("--force", options.force);
  each("--skip-pass", options.skipPass);
  each("--size", options.sizes);
  each("--shape", options.shapes);
  if (!options.inputs.empty()) command.insert(command.end(), {"--inputs", options.inputs});
  command.insert(command.end(), {"--seed", std::to_string(options.seed)});
}

/// Starts the engine with `module` and returns its report. `exitCode` is set where there is none.
Result<Json> askEngine(const char* module, const ReplayOptions& options, const std::vector<std::string>& more,
                       int* exitCode) {
  auto python = choosePython(options.python);
  if (!python) return tl::unexpected(python.error());
  const std::string package = packageFolder();
  if (package.empty())
    return fail(ErrorCode::InvalidArgument,
                "this build has no engine; configure with -DFUSEBOX_PYTHON=<interpreter with PyTorch>");
  const std::string session = options.session.empty()
                                  ? timedSessionName(fs::path(options.file).stem().string() + "-" + module)
                                  : options.session;
  if (auto writable = checkSessionPath(session); !writable) return tl::unexpected(writable.error());
  std::error_code same;
  if (fs::equivalent(session, options.file, same))
    return fail(ErrorCode::InvalidArgument, "the new session must be another file than the one that it is made from",
                session);
  TemporaryFolder folder;
  if (!folder.exists())
    return fail(ErrorCode::Io, "no temporary folder can be made", fs::temp_directory_path(same).string());
  ReplayOptions asked = options;
  std::string function;
  auto subject = subjectOf(asked, folder, function);
  if (!subject) return tl::unexpected(subject.error());
  const std::string report = folder.file("report.json");
  std::vector<std::string> command{python->interpreter, "-m", std::string("fusebox.") + module};
  command.insert(command.end(), subject->begin(), subject->end());
  addOptions(command, asked);
  command.insert(command.end(), more.begin(), more.end());
  command.insert(command.end(), {"--session", fs::absolute(session).string(), "--out", report});
  auto end = runScriptProcess(command, {{"PYTHONPATH", pythonPathWith(package)}});
  if (!end) return tl::unexpected(end.error());
  *exitCode = end->exitCode;
  if (end->signal)
    return fail(ErrorCode::Io,
                fmt::format("the engine was killed by signal {} ({})", end->signal, strsignal(end->signal)));
  if (end->exitCode != 0) return Json();
  std::ifstream in(report);
  Json made = Json::parse(in, nullptr, false);
  if (!made.is_object()) return fail(ErrorCode::Io, "the engine ended without a report");
  if (!function.empty()) made["function"] = function;
  return made;
}

std::string number(double value) {
  if (value == 0) return "0";
  return std::abs(value) < 1e-3 || std::abs(value) >= 1e6 ? fmt::format("{:.2e}", value) : fmt::format("{:.4g}", value);
}

std::string counted(int64_t count, const char* one, const char* many) { return fmt::format("{} {}", count, count == 1 ? one : many); }

void printRun(const Json& run, const Json& report) {
  const Json times = run.value("times_ms", Json::object());
  fmt::print("  {:10} {:8} median {} ms, min {} ms, max {} ms over {} runs; compiled in {} ms\n",
             run.value("label", ""), run.value("engine", ""), number(times.value("median", 0.0)),
             number(times.value("min", 0.0)), number(times.value("max", 0.0)), times.value("count", 0),
             number(run.value("compile_ms", 0.0)));
  if (run.contains("bytes"))
    fmt::print("  {:10} {:8} {}, {}, {}\n", "", "", counted(run.value("launches", 0), "launch", "launches"),
               counted(run.value("extern_calls", 0), "extern call", "extern calls"), counted(run.value("bytes", int64_t{0}), "byte moved", "bytes moved"));
  const Json exact = report.value("against_eager", Json::object()).value(run.value("label", ""), Json::object());
  if (!exact.empty())
    fmt::print("  {:10} {:8} results differ from eager's by at most {} of the largest value{}\n", "", "",
               number(exact.value("max_relative", 0.0)), exact.value("agrees", true) ? "" : ": TOO MUCH");
  for (const Json& d : run.value("decisions", Json::array()))
    fmt::print("  {:10} {:8} {} with {}: {}\n", "", "", d.value("a", ""), d.value("b", ""), d.value("reason", ""));
}

/// One row a size: what it took, and how far its results are from eager's.
void printSweep(const Json& report) {
  size_t width = 4;
  for (const Json& point : report["sweep"]) width = std::max(width, point.value("label", "").size());
  fmt::print("  {:{}} {:>12} {:>12} {:>12}  {}\n", "size", width, "median ms", "min ms", "max ms", "from eager");
  for (const Json& point : report["sweep"]) {
    if (point.contains("left_out")) {
      fmt::print("  left out: {}\n", point.value("left_out", ""));
      continue;
    }
    const Json times = point.value("times_ms", Json::object());
    const Json exact = point.contains("against_eager") && point["against_eager"].is_object() ? point["against_eager"] : Json::object();
    fmt::print("  {:{}} {:>12} {:>12} {:>12}  {}{}\n", point.value("label", ""), width, number(times.value("median", 0.0)),
               number(times.value("min", 0.0)), number(times.value("max", 0.0)),
               exact.contains("max_relative") && exact["max_relative"].is_number() ? number(exact["max_relative"].get<double>()) : "not compared",
               exact.value("agrees", true) ? "" : ": TOO MUCH");
  }
  fmt::print("  {}\n", report.value("fixed", false) ? "compiled for each size with its numbers" : "compiled once for all sizes");
}

int printJson(const Json& report) {
  fmt::print("{}\n", report.dump(2, ' ', false, Json::error_handler_t::replace));
  return kOk;
}

void printNumerics(const Json& report) {
  const Json rows = report.value("rows", Json::array());
  fmt::print("{}: {} nodes, {} values compared, {} divergent\n", report.value("graph", ""), report.value("nodes", 0),
             rows.size(), report.value("divergent", 0));
  std::vector<const Json*> worst;
  for (const Json& row : rows)
    if (row.contains("compiled_rel") && row["compiled_rel"].is_number()) worst.push_back(&row);
  std::stable_sort(worst.begin(), worst.end(), [](const Json* a, const Json* b) {
    return (*a)["compiled_rel"].get<double>() > (*b)["compiled_rel"].get<double>();
  });
  if (worst.size() > 10) worst.resize(10);
  if (!worst.empty())
    fmt::print("  {:24} {:>12} {:>12} {:>12}  (against float64, relative to the largest value)\n", "least exact",
               "compiled", "eager", "alone");
  for (const Json* row : worst) {
    const double magnitude = row->value("magnitude", 0.0);
    const bool hasLocal = row->contains("local_abs") && (*row)["local_abs"].is_number() && magnitude > 0;
    fmt::print("  {:24} {:>12} {:>12} {:>12}{}\n", row->value("name", ""), number((*row)["compiled_rel"].get<double>()),
               (*row)["eager_rel"].is_number() ? number((*row)["eager_rel"].get<double>()) : "not finite",
               hasLocal ? number((*row)["local_abs"].get<double>() / magnitude) : "",
               row->value("is_divergent", false) ? "  divergent" : "");
  }
  if (!report.contains("first_divergence") || report["first_divergence"].is_null()) {
    fmt::print("no divergence: compiled is as exact as eager\n");
    return;
  }
  const Json& first = report["first_divergence"];
  fmt::print("first divergence: {} ({})\n", first.value("name", ""), first.value("op", ""));
  if (report.contains("bisect"))
    fmt::print("  cause: {}: {}\n", report["bisect"].value("cause", ""), report["bisect"].value("detail", ""));
}

}  // namespace

int replayGraph(const ReplayOptions& options) {
  int exitCode = kOk;
  std::vector<std::string> more{"--engine", options.engine, "--repeat", std::to_string(options.repeat)};
  if (options.fixed) more.emplace_back("--fixed");
  auto report = askEngine("replay", options, more, &exitCode);
  if (!report) return complain(report.error());
  if (exitCode != 0) return exitCode;
  if (options.json) return printJson(*report);
  std::string sizes;
  if (!report->contains("sweep")) {
    const Json given = report->value("sizes", Json::object());
    for (const auto& [name, value] : given.items()) sizes += fmt::format("{}{}={}", sizes.empty() ? ", " : " ", name, value.dump());
  }
  const std::string function = report->value("function", "");
  fmt::print("{}{}, inputs: {}{}\n", function.empty() ? "" : function + ", ", report->value("graph", ""), report->value("inputs", ""), sizes);
  if (report->contains("sweep")) printSweep(*report);
  for (const Json& run : report->value("runs", Json::array())) printRun(run, *report);
  if (report->contains("change")) {
    const Json& change = (*report)["change"];
    const double sure = 100 * change.value("time_percent_confidence", 0.95);
    fmt::print("  change: {:+.1f} % time ({:.0f} % sure: {:+.1f} to {:+.1f}{}), {:+} bytes, {:+} {}\n", change.value("time_percent", 0.0), sure,
               change.value("time_percent_from", 0.0), change.value("time_percent_to", 0.0), sure < 95 ? "; more runs tell more" : "",
               change.value("bytes", int64_t{0}), change.value("launches", 0), std::abs(change.value("launches", 0)) == 1 ? "launch" : "launches");
  }
  fmt::print("session: {}\n", report->value("session", ""));
  return kOk;
}

int measureNumerics(const ReplayOptions& options) {
  int exitCode = kOk;
  std::vector<std::string> more;
  if (options.noBisect) more.emplace_back("--no-bisect");
  auto report = askEngine("numerics", options, more, &exitCode);
  if (!report) return complain(report.error());
  if (exitCode != 0) return exitCode;
  if (options.json) return printJson(*report);
  printNumerics(*report);
  fmt::print("session: {}\n", report->value("session", ""));
  return kOk;
}

}  // namespace fusebox::cli
