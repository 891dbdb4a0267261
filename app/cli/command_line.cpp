#include "app/cli/command_line.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "app/cli/commands.h"
#include "app/cli/run_preparation.h"
#include "profiler/importers/open.h"
#include "profiler/session/schema.h"

namespace fusebox::cli {
namespace {

constexpr const char* kDescription =
    "Fusebox: a debugger and profiler for compiled PyTorch programs.\n\n"
    "  fusebox                                   the window\n"
    "  fusebox run train.py --epochs 1           run a script under Fusebox's engine, record a session, print a summary\n"
    "  fusebox debug train.py                    stop and step through the compiler (--console: at the terminal)\n"
    "  fusebox open train-20260101-120000.fusebox\n"
    "  fusebox query SESSION 'SELECT file, line, reason FROM graph_breaks'\n"
    "  fusebox diagram SESSION -o graph.svg\n"
    "  fusebox compare before.fusebox after.fusebox\n\n"
    "Exit codes: 0, the script's own for run (128 + signal when killed), 2 for wrong usage, 3 for input that cannot be read.";

constexpr const char* kRunFooter =
    "fusebox run [OPTIONS] (script.py | -m MODULE | -c CODE) [arguments of the script ...]\n\n"
    "The script form is Python's: a file, -m MODULE or -c CODE; everything after it belongs to the script.\n"
    "stdin, stdout and signals stay the script's own; Fusebox's words go to stderr. The session is\n"
    "<script>-<time>.fusebox in the working directory unless --session names it.\n\n"
    "  fusebox run train.py --lr 0.1\n"
    "  fusebox run --engine stock --session stock.fusebox train.py     PyTorch's own torch.compile, for comparison\n"
    "  fusebox run --summary out.json -m package.module\n\n"
    "The interpreter: --python, FUSEBOX_PYTHON, an active virtual environment with the engine's PyTorch version,\n"
    "the interpreter that Fusebox was built for, python3.";

/// A whole number from `least` on.
CLI::Validator atLeast(int64_t least) {
  return {[least](const std::string& text) {
            int64_t number = 0;
            if (CLI::detail::lexical_cast(text, number) && number >= least) return std::string();
            return fmt::format("{} is no whole number from {} on", text, least);
          },
          {}};
}

std::string queryFooter() {
  std::string text = "Views:", line;
  for (const auto& view : session::publicViews()) {
    if (line.size() + view.name.size() > 110) text += line + "\n", line.clear();
    line += " " + std::string(view.name);
  }
  return text + line +
         ".\nTheir columns are in profiler/session/SCHEMA.md. Times are integer nanoseconds.\n\n"
         "  fusebox query S 'SELECT name, launches, total_ns FROM kernels ORDER BY total_ns DESC LIMIT 10'\n"
         "  fusebox query S --format csv 'SELECT * FROM guard_failures'\n"
         "  fusebox query S \"SELECT a, b, reason FROM fusion_decisions WHERE NOT fused\"";
}

constexpr const char* kCompareFooter =
    "fusebox compare A B                              A before, B after\n"
    "fusebox compare --run [OPTIONS] (script.py | -m MODULE | -c CODE) [arguments of the script ...]\n\n"
    "Functions, graphs, nodes, kernels, guards and graph breaks are aligned by where they are in the program, whatever\n"
    "engine or tool made the sessions. Times are medians with their deviation; a difference within noise is called so.\n\n"
    "Exit codes: 0 when the sessions were compared; 1 with --exit-code if they differ; 2, 3 as everywhere; with --run the\n"
    "script's own if it fails.";

constexpr const char* kFileHelp =
    "Session, or a file that another program wrote (it is imported into the cache first): TORCH_TRACE log or folder, tlparse's "
    "raw.jsonl, Kineto or Chrome trace, Perfetto trace, Nsight Systems SQLite export, TORCH_COMPILE_DEBUG folder, exported "
    "program (.pt2), TorchScript program (.pt)";

/// Everything that parsing fills in.
struct Parsed {
  RunOptions run;
  DebugOptions debug;
  SummaryOptions summary;
  QueryOptions query;
  DiagramOptions diagram;
  ExportOptions exporting;
  GpuOptions gpu;
  RecompilesOptions recompiles;
  ShapesOptions shapes;
  BreaksOptions breaks;
  FindOptions find;
  DoctorOptions doctor;
  CompareOptions compare;
  WhyOptions why;
  MemoryOptions memory;
  ReplayOptions replay, numerics;
  CompileProgramOptions compile;
  ConfigOptions config;
  CacheOptions cache;
  std::string openFile;
};

void addJson(CLI::App* command, bool& json) { command->add_flag("--json", json, "Write the report as JSON"); }

void addRun(CLI::App& app, RunOptions& o) {
  auto* run = app.add_subcommand("run", "Run a script under an engine and record a session");
  run->add_option("--session", o.session, "Write the session here")->type_name("FILE");
  run->add_option("--engine", o.engine, "fusebox: this engine; stock: PyTorch's own; eager: no compilation")
      ->check(CLI::IsMember({"fusebox", "stock", "eager"}))
      ->capture_default_str();
  run->add_option("--python", o.python, "Interpreter that runs the script")->type_name("PROGRAM");
  run->add_flag("--no-record", o.noRecord, "Run without recording");
  run->add_option("--summary", o.summary, "Write the summary as JSON to this file too")->type_name("OUT.json");
  run->add_flag("--json", o.json, "Print the summary (to stderr) as JSON");
  run->add_flag("--operators", o.operators, "Record the operators that torch runs outside compiled code too, with their lines (other engines: always); about a microsecond each");
  run->add_flag("--gpu-counters{default}", o.gpuCounters,
                "Read hardware counters around every kernel of the GPU: bytes of its memory, achieved occupancy and others, or "
                "--gpu-counters=METRIC,METRIC by CUPTI's names. Kernels run one after another meanwhile, CUDA graphs are not used");
  run->add_flag("--gpu-sampling{200}", o.gpuSampling,
                "Sample hardware counters of the GPU every 200 microseconds, or --gpu-sampling=MICROSECONDS, while kernels run as they would: how "
                "busy multiprocessors, memory, cache and tensor cores are, as lanes of the timeline");
  run->add_option("--gpu-sampling-metrics", o.gpuSamplingMetrics, "What to sample, by CUPTI's names; default: those above")->type_name("METRIC,METRIC");
  run->footer(kRunFooter);
}

void addDebug(CLI::App& app, DebugOptions& o) {
  auto* debug = app.add_subcommand("debug", "Run a script stopped before its first compile: stop, look and step through the compiler");
  debug->add_flag("--console", o.console, "At the terminal instead of the window");
  debug->add_flag("--json", o.run.json, "Console: every stop and answer as a line of JSON on stdout; the script prints to stderr");
  debug->add_option("--break", o.breakpoints, "Stop there too, as the console's break takes it: model.py:12, graph_break, \"pass decompose\"")
      ->type_name("PLACE")
      ->allow_extra_args(false);
  debug->add_flag("--go", o.go, "Do not stop before the first compile");
  debug->add_option("--session", o.run.session, "Write the session here")->type_name("FILE");
  debug->add_option("--python", o.run.python, "Interpreter that runs the script")->type_name("PROGRAM");
  debug->add_flag("--no-record", o.run.noRecord, "Console: run without recording");
  debug->footer("fusebox debug [OPTIONS] (script.py | -m MODULE | -c CODE) [arguments of the script ...]\n\n"
                "  fusebox debug train.py\n"
                "  fusebox debug --console --break 'fusion add*' train.py\n"
                "  printf 'until recompile\\nlocals\\nkill\\n' | fusebox debug --console --json train.py\n\n"
                "`help` at the console lists its commands. When its input ends the script goes on undebugged.");
}

void addReports(CLI::App& app, Parsed& p) {
  auto* summary = app.add_subcommand("summary", "Print what run prints at the end");
  summary->add_option("FILE", p.summary.files, std::string(kFileHelp) + ". Several: sessions of the ranks of one run, side by side")->required();
  addJson(summary, p.summary.json);

  auto* query = app.add_subcommand("query", "Run a SELECT over a session");
  query->add_option("FILE", p.query.file, kFileHelp)->required();
  query->add_option("SQL", p.query.sql, "One SELECT over the public views")->required();
  query->add_option("--format", p.query.format, "table, csv or json")
      ->check(CLI::IsMember({"table", "csv", "json"}))
      ->capture_default_str();
  query->add_option("--limit", p.query.limit, "At most this many rows")->check(atLeast(1));
  addJson(query, p.query.json);
  query->footer(queryFooter());

  auto* why = app.add_subcommand("why", "Say where the time of a step goes, and what each part of it is");
  why->add_option("FILE", p.why.file, kFileHelp)->required();
  why->add_flag("--run", p.why.wholeRun, "Split the whole recording instead of a step of its loop");
  addJson(why, p.why.json);
  why->footer("A step is one turn of the program's loop: marked by a profiler, or the pattern of calls that repeats. The rows sum up\n"
              "to it; what the session does not hold is \"outside compiled code\".");

  auto* memory = app.add_subcommand("memory", "Say what memory compiled graphs plan, what they keep for backward, and what was measured");
  memory->add_option("FILE", p.memory.file, kFileHelp)->required();
  memory->add_option("--graph", p.memory.graph, "The buffers of this graph and their lifetimes")->check(atLeast(1));
  addJson(memory, p.memory.json);

  auto* diagram = app.add_subcommand("diagram", "Draw a graph as SVG, PNG, PDF or DOT");
  diagram->add_option("FILE", p.diagram.file, kFileHelp)->required();
  diagram->add_option("-o,--output", p.diagram.output, "Picture; the ending chooses the format")->required();
  diagram->add_option("--graph", p.diagram.graph, "graph_id of the graphs view (default: the first)")->check(atLeast(1));
  diagram->add_option("--stage", p.diagram.stage, "captured, joint, forward, backward, post_grad or post_fusion (default)")
      ->check(CLI::IsMember({"captured", "joint", "forward", "backward", "post_grad", "post_fusion"}));
  addJson(diagram, p.diagram.json);
  diagram->footer("Drawn by Graphviz' dot; graphs that are too large for it, or where it is missing, by Fusebox' own layout.");

  auto* exporting = app.add_subcommand("export", "Write a session in another format");
  exporting->add_option("FILE", p.exporting.file, kFileHelp)->required();
  exporting->add_option("-o,--output", p.exporting.output, ".json: Chrome trace; .pftrace: Perfetto trace; .html: report in one file; .csv: all launches; .fusebox: a session")->required();
  exporting->add_flag("--redact", p.exporting.redact, "With .fusebox: without names, paths, sources and values of the program");
  addJson(exporting, p.exporting.json);

  auto* gpu = app.add_subcommand("gpu", "Say how busy GPUs were, why not more, how near kernels come to the device's roof, and what became of CUDA graphs");
  gpu->add_option("FILE", p.gpu.file, kFileHelp)->required();
  gpu->add_option("--gaps", p.gpu.gaps, "Explain at most this many gaps of each device, the longest first")->check(atLeast(0))->capture_default_str();
  gpu->add_option("--code", p.gpu.code, "Show the loop IR, PTX and machine code of this kernel instead")->check(atLeast(1))->type_name("KERNEL");
  gpu->add_flag("--counters", p.gpu.counters, "List the hardware counters of every kernel (run --gpu-counters or --gpu-sampling reads them)");
  addJson(gpu, p.gpu.json);
  auto* recompiles = app.add_subcommand("recompiles", "Say which code was compiled again, because of which guard, and what to do about it");
  recompiles->add_option("FILE", p.recompiles.file, kFileHelp)->required();
  recompiles->add_flag("--all", p.recompiles.all, "Also code that was compiled once");
  recompiles->add_option("--guards", p.recompiles.guards, "COMPILE [COMPILE]: the guard tree of an entry, or of two side by side, by compile_id")->expected(1, 2)->check(atLeast(1));
  addJson(recompiles, p.recompiles.json);
  auto* shapes = app.add_subcommand("shapes", "Say which sizes and numbers are symbolic, within which ranges and relations, which became constants at which line, and what that cost");
  shapes->add_option("FILE", p.shapes.file, kFileHelp)->required();
  shapes->add_flag("--all", p.shapes.all, "Also code in which nothing is symbolic or differed");
  addJson(shapes, p.shapes.json);

  auto* breaks = app.add_subcommand("breaks", "Say where graphs broke, why, what it costs, and what to do about it");
  breaks->add_option("FILE", p.breaks.file, kFileHelp)->required();
  breaks->add_flag("--bytecode", p.breaks.bytecode, "Also the instructions around each break, before and after");
  addJson(breaks, p.breaks.json);

  auto* find = app.add_subcommand("find", "Find a text in functions, breaks, guards, kernels, graph nodes, passes, source lines and records");
  find->add_option("FILE", p.find.file, kFileHelp)->required();
  find->add_option("TEXT", p.find.text, "Letters match in both cases")->required();
  find->add_option("--limit", p.find.limit, "At most this many of each kind")->check(atLeast(1));
  addJson(find, p.find.json);

  auto* doctor = app.add_subcommand("doctor", "Say what works on this machine, and how to mend what does not");
  doctor->add_option("--python", p.doctor.python, "Interpreter to look at");
  addJson(doctor, p.doctor.json);
}

void addCompare(CLI::App& app, CompareOptions& o) {
  auto* compare = app.add_subcommand("compare", "Compare two sessions, and name the first difference that explains the rest");
  compare->add_option("A", o.a, kFileHelp);
  compare->add_option("B", o.b, "The other one");
  compare->add_flag("--run", o.run, "Run a script once under each engine and compare the two sessions");
  compare->add_option("--engines", o.engines, "With --run: two of fusebox, stock and eager")->capture_default_str();
  compare->add_option("--python", o.python, "With --run: interpreter that runs the script")->type_name("PROGRAM");
  compare->add_option("--html", o.html, "Write the comparison as a page too")->type_name("OUT.html");
  compare->add_flag("--window", o.window, "Show it in the window");
  compare->add_flag("--exit-code", o.exitCode, "Exit with 1 if what was compiled or how long it took differs beyond noise");
  addJson(compare, o.json);
  compare->footer(kCompareFooter);
}

constexpr const char* kCacheFooter =
    "Entries are named by the first digits of their key. Programs leave them in the folder fusebox of TORCHINDUCTOR_CACHE_DIR (default:\n"
    "torchinductor_USER in the folder for temporary files).\n\n"
    "  fusebox cache list\n"
    "  fusebox cache why 3f2a 9c01                           in what two compiled graphs differ that are no hit for one another\n"
    "  fusebox cache export graphs.fbxbundle                 all of them in one file, which `fusebox cache import` takes elsewhere\n\n"
    "A bundle holds machine code: import only what you trust, or set FUSEBOX_CACHE_KEY on both sides.";

void addCache(CLI::App& app, CacheOptions& o) {
  auto* cache = app.add_subcommand("cache", "Look at the compiled graphs that are kept on this machine, check, carry and remove them");
  cache->require_subcommand(1);
  cache->footer(kCacheFooter);
  const auto add = [&](const char* name, const char* help) {
    auto* command = cache->add_subcommand(name, help);
    command->add_option("--dir", o.directory, "Cache directory, as TORCHINDUCTOR_CACHE_DIR")->type_name("FOLDER");
    addJson(command, o.json);
    return command;
  };
  add("list", "Say which graphs there are, most recently used first");
  add("show", "Say what an entry was made from and holds")->add_option("ENTRY", o.a, "First digits of its key")->required();
  add("verify", "Check every entry; exit code 1 if one is damaged or refused");
  auto* why = add("why", "Say in what two entries differ");
  why->add_option("A", o.a, "First digits of a key")->required();
  why->add_option("B", o.b, "Those of the other one")->required();
  add("prune", "Remove what was used least recently")
      ->add_option("--to", o.megabytes, "Megabytes that may stay (default: FUSEBOX_CACHE_SIZE, or 4096)")
      ->check(CLI::NonNegativeNumber);
  auto* exporting = add("export", "Write entries into one file");
  exporting->add_option("OUT", o.file, "The file")->required();
  exporting->add_option("ENTRIES", o.ids, "First digits of keys (default: all)");
  add("import", "Take the entries of such a file")->add_option("FILE", o.file, "What `fusebox cache export` or save_cache_artifacts() wrote")->required();
}

int runCache(const CLI::App& cache, const CacheOptions& o) {
  static constexpr std::pair<const char*, int (*)(const CacheOptions&)> kActions[] = {
      {"list", listCache},   {"show", showCacheEntry}, {"verify", verifyCache}, {"why", compareCacheEntries},
      {"prune", pruneCache}, {"export", exportCache},  {"import", importCache}};
  for (const auto& [name, action] : kActions)
    if (cache.got_subcommand(name)) return action(o);
  return kUsage;
}

constexpr const char* kReplayFooter =
    "The graph comes out of a session (--graph: a graph_id of the graphs view), or FILE is a .pt2 or TorchScript .pt, which\n"
    "PyTorch then loads: that runs code of the file, so only for files that you trust.\n\n"
    "  fusebox replay S --graph 3                            compile and time that graph with inputs of its recorded shapes\n"
    "  fusebox replay S --graph 3 --forbid mul_4,add_5       what if these were not fused: both ways, by turns\n"
    "  fusebox replay S --graph 3 --size s0=1:512:x2         its time over a size that is a symbol in it\n"
    "  fusebox replay S --engine stock                       the same graph under PyTorch's own compiler\n"
    "  fusebox replay model.pt2\n\n"
    "Names are those of fusion_decisions (a, b) or of post_grad nodes.";

void addReplayOptions(CLI::App* command, ReplayOptions& o) {
  command->add_option("--graph", o.graph, "graph_id of the graphs view (default: the first that can be compiled)")->check(atLeast(1));
  command->add_option("--inputs", o.inputs, "Inputs, as torch.save wrote them: a list in order or a dict by name (default: random)")->type_name("FILE");
  command->add_option("--seed", o.seed, "Of random inputs")->capture_default_str();
  command->add_option("--size", o.sizes, "Value of a size symbol or of a float: s0=32, f0=0.5; of replay also several: s0=8,37, s0=8:64:8, s0=1:512:x2")->type_name("NAME=N")->allow_extra_args(false);
  command->add_option("--forbid", o.forbid, "Do not fuse A with B (A alone: with anything)")->type_name("A,B")->allow_extra_args(false);
  command->add_option("--force", o.force, "Fuse A with B, whatever it saves")->type_name("A,B")->allow_extra_args(false);
  command->add_option("--allow", o.allow, "Take back a rule on A and B that was in force when the graph was recorded")->type_name("A,B")->allow_extra_args(false);
  command->add_option("--skip-pass", o.skipPass, "Leave a graph pass out")->type_name("PASS")->allow_extra_args(false);
  command->add_option("--session", o.session, "Write the session here")->type_name("OUT");
  command->add_option("--python", o.python, "Interpreter with the engine's PyTorch")->type_name("PROGRAM");
  addJson(command, o.json);
}

void addGraphCommands(CLI::App& app, Parsed& p) {
  auto* replay = app.add_subcommand("replay", "Compile and time one graph without its program");
  replay->add_option("FILE", p.replay.file, "Session, .pt2 or TorchScript .pt")->required();
  replay->add_option("--engine", p.replay.engine, "fusebox, stock (PyTorch's compiler) or eager")
      ->check(CLI::IsMember({"fusebox", "stock", "eager"}))
      ->capture_default_str();
  replay->add_flag("--fixed", p.replay.fixed, "Compile for the sizes of --size with numbers, not with symbols");
  replay->add_option("--repeat", p.replay.repeat, "Runs to time")->check(CLI::Range(1, 1'000'000))->capture_default_str();
  replay->add_option("--shape", p.replay.shapes, "An input of a program that does not say its own, in order: float32[2,3]")
      ->type_name("SHAPE")->allow_extra_args(false);
  addReplayOptions(replay, p.replay);
  replay->footer(kReplayFooter);

  auto* compile = app.add_subcommand("compile", "Compile an exported program into one file, for Python and C++");
  compile->add_option("FILE", p.compile.file, "Exported program (.pt2); loading it runs code that it brings")->required();
  compile->add_option("-o,--output", p.compile.output, "The compiled program (.fbx)")->required();
  compile->add_option("--python", p.compile.python, "Interpreter with PyTorch")->type_name("PROGRAM");
  addJson(compile, p.compile.json);
  compile->footer("  fusebox compile model.pt2 -o model.fbx\n\n"
                  "fusebox.load_program(\"model.fbx\") runs it in Python, fusebox::StoredProgram::open in C++ (engine/example/run_program.cpp).");

  auto* config = app.add_subcommand("config", "Print all settings with value, default, source and meaning, and what they do here");
  config->add_option("NAME", p.config.names, "Only settings with this in their names, told in full; * stands for anything");
  config->add_flag("--changed", p.config.changed, "Only those that the environment sets");
  config->add_option("--python", p.config.python, "Interpreter with PyTorch")->type_name("PROGRAM");
  addJson(config, p.config.json);
  config->footer("  fusebox config                     fusebox.config, torch.compiler.config, torch._dynamo.config, torch._functorch.config,\n"
                 "                                     torch.fx.experimental._config and torch._inductor.config\n"
                 "  fusebox config recompile_limit     what it means, where it comes from, and whether it acts");

  auto* numerics = app.add_subcommand("numerics", "Errors of a graph's values, eager and compiled, against float64");
  numerics->add_option("FILE", p.numerics.file, "Session")->required();
  numerics->add_flag("--no-bisect", p.numerics.noBisect, "Do not look for the fusion or pass behind the first divergence");
  addReplayOptions(numerics, p.numerics);
}

void addWindows(CLI::App& app, Parsed& p) {
  auto* open = app.add_subcommand("open", "Show a session, or what PyTorch and its tools wrote, in the window");
  open->add_option("FILE", p.openFile, kFileHelp)->required();
}

/// A file, or a folder that cannot be meant as a command.
bool openable(const std::string& word) {
  std::error_code error;
  return std::filesystem::is_regular_file(word, error) ||
         (word.find('/') != std::string::npos && std::filesystem::is_directory(word, error));
}

bool isCommand(const CLI::App& app, const std::string& word) {
  return !app.get_subcommands([&](const CLI::App* command) { return command->check_name(word); }).empty();
}

int showWindow(const OpenWindow& openWindow, const WindowWish& wish) {
  const char* platform = std::getenv("QT_QPA_PLATFORM");
  if (!platform && !std::getenv("DISPLAY") && !std::getenv("WAYLAND_DISPLAY")) {
    return complainUsage("there is no display for the window; `fusebox summary`, `query` and `diagram` work without one "
                         "(see fusebox --help)");
  }
  if (!wish.file.empty()) {
    // Said here, where the user looks, rather than in a window about nothing.
    if (auto known = importing::canOpen(wish.file); !known) return complain(known.error());
  }
  return openWindow(wish);
}

int showComparison(CompareOptions options, const OpenWindow& openWindow) {
  if (!options.window) return compareFiles(std::move(options));
  if (options.run) {
    if (const int code = runForComparison(options); code != kOk) return code;
  } else if (options.a.empty() || options.b.empty()) {
    return complainUsage("--window needs two sessions, or --run and a script");
  }
  if (auto known = importing::canOpen(options.b); !known) return complain(known.error());
  return showWindow(openWindow, {.file = options.a, .compareWith = options.b, .runCommand = {}});
}

int debugScript(const DebugOptions& options, const OpenWindow& openWindow) {
  if (options.console) return debugAtConsole(options);
  if (options.run.json) return complainUsage("--json goes with --console");
  auto breakpoints = firstBreakpoints(options);
  if (!breakpoints) return complainUsage("--break: " + breakpoints.error().message);
  WindowWish wish;
  wish.debug = true;
  wish.breakpoints = breakpoints->dump();
  if (!options.run.session.empty()) wish.runCommand.insert(wish.runCommand.end(), {"--session", options.run.session});
  if (!options.run.python.empty()) wish.runCommand.insert(wish.runCommand.end(), {"--python", options.run.python});
  if (auto usable = prepareRun(options.run); !usable) return complain(usable.error());
  wish.runCommand.insert(wish.runCommand.end(), options.run.script.begin(), options.run.script.end());
  return showWindow(openWindow, wish);
}

int dispatch(const CLI::App& app, const Parsed& p, const OpenWindow& openWindow) {
  if (app.got_subcommand("run")) return runScript(p.run);
  if (app.got_subcommand("summary")) return showSummary(p.summary);
  if (app.got_subcommand("query")) return runQuery(p.query);
  if (app.got_subcommand("diagram")) return drawDiagram(p.diagram);
  if (app.got_subcommand("export")) return exportSession(p.exporting);
  if (app.got_subcommand("replay")) return replayGraph(p.replay);
  if (app.got_subcommand("compile")) return compileProgram(p.compile);
  if (app.got_subcommand("config")) return showConfig(p.config);
  if (app.got_subcommand("numerics")) return measureNumerics(p.numerics);
  if (app.got_subcommand("gpu")) return p.gpu.code != 0 ? showGpuCode(p.gpu) : showGpu(p.gpu);
  if (app.got_subcommand("recompiles")) return showRecompiles(p.recompiles);
  if (app.got_subcommand("shapes")) return showShapes(p.shapes);
  if (app.got_subcommand("breaks")) return showBreaks(p.breaks);
  if (app.got_subcommand("find")) return findInSession(p.find);
  if (app.got_subcommand("cache")) return runCache(*app.get_subcommand("cache"), p.cache);
  if (app.got_subcommand("doctor")) return runDoctor(p.doctor);
  if (app.got_subcommand("open")) return showWindow(openWindow, {.file = p.openFile, .compareWith = {}, .runCommand = {}});
  if (app.got_subcommand("memory")) return explainMemory(p.memory);
  if (app.got_subcommand("why")) return explainTime(p.why);
  if (app.got_subcommand("debug")) return debugScript(p.debug, openWindow);
  if (app.got_subcommand("compare")) return showComparison(p.compare, openWindow);
  return showWindow(openWindow, {});
}

/// Cuts the script form off `words`, looking for it from `from` on, and returns it.
std::vector<std::string> takeScriptForm(std::vector<std::string>& words, size_t from) {
  const std::vector<std::string> after(words.begin() + static_cast<std::ptrdiff_t>(from), words.end());
  const size_t start = scriptFormStart(after);
  words.resize(from + start);
  if (words.size() > from && words.back() == "--") words.pop_back();
  return {after.begin() + static_cast<std::ptrdiff_t>(start), after.end()};
}

}  // namespace

int runCommandLine(int argc, char** argv, const OpenWindow& openWindow) {
  std::vector<std::string> words(argv + 1, argv + argc);
  Parsed parsed;
  if (!words.empty() && words[0] == "run") {
    parsed.run.script = takeScriptForm(words, 1);
  } else if (!words.empty() && words[0] == "debug") {
    parsed.debug.run.script = takeScriptForm(words, 1);
  } else if (!words.empty() && words[0] == "compare") {
    const auto run = std::find(words.begin(), words.end(), "--run");
    if (run != words.end()) parsed.compare.script = takeScriptForm(words, static_cast<size_t>(run - words.begin()) + 1);
  }
  CLI::App app{kDescription, "fusebox"};
  app.set_version_flag("--version", "fusebox " FUSEBOX_VERSION);
  app.require_subcommand(0, 1);
  addRun(app, parsed.run);
  addDebug(app, parsed.debug);
  addWindows(app, parsed);
  addReports(app, parsed);
  addCompare(app, parsed.compare);
  addGraphCommands(app, parsed);
  addCache(app, parsed.cache);
  // A session or trace dropped on the program, or double-clicked. A command stays one where a file has its name.
  if (words.size() == 1 && !words[0].starts_with('-') && !isCommand(app, words[0]) && openable(words[0])) {
    return showWindow(openWindow, {.file = words[0], .compareWith = {}, .runCommand = {}});
  }
  if (!words.empty() && !words[0].starts_with('-') && !isCommand(app, words[0]))
    return complainUsage(fmt::format("there is no command '{}', and no recording of that name that can be opened; `fusebox --help` lists the commands", words[0]));
  std::reverse(words.begin(), words.end());  // CLI11 takes them last first
  try {
    app.parse(words);
  } catch (const CLI::ParseError& problem) {
    return app.exit(problem) == 0 ? kOk : kUsage;
  }
  return dispatch(app, parsed, openWindow);
}

}  // namespace fusebox::cli
