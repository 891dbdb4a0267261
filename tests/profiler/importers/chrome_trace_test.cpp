// Chrome and Kineto traces: what real ones hold, what damaged ones lose, times to the nanosecond.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "profiler/importers/chrome_event.h"
#include "profiler/importers/stack_sources.h"
#include "profiler/importers/trace_names.h"
#include "profiler/query/gpu_gaps.h"
#include "profiler/query/operators.h"
#include "profiler/query/slices.h"
#include "profiler/query/source.h"
#include "profiler/query/summary.h"
#include "tests/profiler/chrome_trace_file.h"
#include "tests/profiler/importers/imported.h"

using namespace fusebox;
using test::Imported;

namespace {
// JSON with single quotes, to be read here.
std::string quoted(std::string text) {
  std::replace(text.begin(), text.end(), '\'', '"');
  return text;
}
}  // namespace

class ChromeTraceTest : public QObject {
  Q_OBJECT
  Imported in_;

 private slots:
  // Counts by Python's json module over the same file: 47 kernels, 1 copy, 58 calls of the CUDA interfaces, 166
  // operators, of which one is the call of a compiled region.
  void compiledStepOnAGpu() {
    QVERIFY2(in_.open(Imported::data("compiled_plain.json.gz")), in_.error().text().c_str());
    COMPARE_ROWS(in_, "SELECT kind, count(*) FROM gpu_events GROUP BY kind ORDER BY kind",
                 "annotation,3;kernel,47;memcpy,1");
    COMPARE_ROWS(in_, "SELECT count(*), count(DISTINCT launch_id) FROM gpu_events WHERE kind <> 'annotation'", "48,48");
    QCOMPARE(in_.number("SELECT count(*) FROM launches"), int64_t{48});
    COMPARE_ROWS(in_,
                 "SELECT kind, count(*) FROM cpu_events WHERE kind IN ('cpu_op', 'cuda_runtime', 'cuda_driver') "
                 "GROUP BY kind ORDER BY kind",
                 "cpu_op,165;cuda_driver,23;cuda_runtime,35");
    QCOMPARE(in_.number("SELECT count(*) FROM losses"), int64_t{0});
    COMPARE_ROWS(in_, "SELECT value FROM session_info WHERE key = 'device'", "NVIDIA H200");
    QCOMPARE(in_.number("SELECT value FROM session_info WHERE key = 'start_unix_ns'"),
             int64_t{1790857026000000000 + 4395614560126409});
  }

  void kernelsKnowTheCallThatStartedThem() {
    QVERIFY(in_.open(Imported::data("compiled_plain.json.gz")));
    COMPARE_ROWS(
        in_,
        "SELECT g.start_ns, g.dur_ns, g.correlation, e.name, e.start_ns, f.to_thread = l.thread FROM gpu_events g "
        "JOIN flows f ON f.to_event_id = g.event_id JOIN cpu_events e ON e.event_id = f.from_event_id "
        "JOIN launches l ON l.launch_id = g.launch_id WHERE g.correlation = 179252",
        "4395614562798261,865,179252,cuLaunchKernel,4395614562769341,1");
    COMPARE_ROWS(in_, "SELECT called_ns, call_dur_ns > 0, thread = (SELECT thread FROM cpu_events WHERE name = 'cuLaunchKernel' AND start_ns = called_ns) FROM gpu_events "
                      "WHERE correlation = 179252", "4395614562769341,1,1");
    QCOMPARE(in_.number("SELECT count(*) FROM flows WHERE kind = 'launch'"), in_.number("SELECT count(*) FROM gpu_events WHERE called_ns IS NOT NULL"));
    // Whoever asked for a kernel is known, so what held the device up is too.
    auto idle = query::gpuIdle(in_.reader(), 10);
    QVERIFY(idle && idle->size() == 1 && !idle->front().longest.empty());
    for (const auto& gap : idle->front().longest) QVERIFY(gap.cause != query::GapCause::Unknown);
    COMPARE_ROWS(in_, "SELECT name, kind, launches FROM kernels WHERE name = 'triton_poi_fused_clone_transpose_0'",
                 "triton_poi_fused_clone_transpose_0,generated,1");
    QVERIFY(in_.number("SELECT count(*) FROM kernels WHERE kind = 'extern' AND op = 'aten::mm'") > 0);
    COMPARE_ROWS(in_, "SELECT name FROM threads t WHERE EXISTS(SELECT 1 FROM launches l WHERE l.thread = t.thread)",
                 "GPU 0 stream 7 ");
  }

  /// The stacks say in which function of the user's a kernel was first launched; those of backward passes by the operator whose gradient they are.
  void kernelsHaveThePlaceOfTheirStack() {
    QVERIFY(in_.open(Imported::data("gpu_compiled.json.gz")));
    COMPARE_ROWS(in_, "SELECT file, line, count(*) > 20 FROM kernels WHERE kind IN ('generated', 'extern') AND op IS NOT 'memcpy' GROUP BY file, line", "profile_step.py,16,1");
    const std::string head = "{'ph':'X','pid':1,'tid':1,", other = "{'ph':'X','pid':1,'tid':2,", device = "{'ph':'X','cat':'kernel','pid':0,'tid':7,";
    QVERIFY(in_.open(in_.write("stacks.json", quoted("[" + head + "'cat':'python_function','name':'/home/me/train.py(50): <module>','ts':0,'dur':1000}," +
        head + "'cat':'python_function','name':'torch/nn/modules/module.py(1783): _call_impl','ts':5,'dur':300}," +
        head + "'cat':'python_function','name':'model.py(12): forward','ts':10,'dur':200}," +
        head + "'cat':'python_function','name':'contextlib.py(78): inner','ts':15,'dur':190}," +
        head + "'cat':'cpu_op','name':'aten::mm','ts':20,'dur':50,'args':{'Sequence number':7,'Fwd thread id':0}}," +
        head + "'cat':'cuda_runtime','name':'cudaLaunchKernel','ts':30,'dur':5,'args':{'correlation':1}}," +
        head + "'cat':'python_function','name':'/x/torchinductor/4n/c4nupohkg5flbfyginxrtyeohgxd6l2r6rspfojscd54ab5uapyd.py(5): call','ts':100,'dur':50}," +
        head + "'cat':'cuda_runtime','name':'cudaLaunchKernel','ts':110,'dur':5,'args':{'correlation':2}}," +
        head + "'cat':'cuda_runtime','name':'cudaLaunchKernel','ts':400,'dur':5,'args':{'correlation':3}}," +
        other + "'cat':'cpu_op','name':'autograd::engine::evaluate_function: MmBackward0','ts':500,'dur':90,'args':{'Sequence number':7,'Fwd thread id':1}}," +
        other + "'cat':'cuda_runtime','name':'cudaLaunchKernel','ts':510,'dur':5,'args':{'correlation':4}}," +
        other + "'cat':'cuda_runtime','name':'cudaLaunchKernel','ts':700,'dur':5,'args':{'correlation':5}}," +
        device + "'name':'gemm','ts':40,'dur':5,'args':{'correlation':1}}," + device + "'name':'triton_poi','ts':120,'dur':5,'args':{'correlation':2}}," +
        device + "'name':'adam','ts':410,'dur':5,'args':{'correlation':3}}," + device + "'name':'gemm_backward','ts':520,'dur':5,'args':{'correlation':4}}," +
        device + "'name':'lonely','ts':710,'dur':5,'args':{'correlation':5}}]"))));
    COMPARE_ROWS(in_, "SELECT name, file, line FROM kernels ORDER BY kernel_id", "gemm,model.py,12;triton_poi,model.py,12;adam,/home/me/train.py,50;gemm_backward,model.py,12;lonely,,");
  }

  /// The user's files of the stacks are listed; one that lies beside the trace is shown if its functions begin where the stacks say.
  void filesOfStacksAreShown() {
    QVERIFY(in_.open(Imported::data("gpu_compiled.json.gz")));
    COMPARE_ROWS(in_, "SELECT file, text IS NULL FROM source_files", "profile_step.py,1");
    const std::string text = "import torch\n\n@torch.no_grad()\ndef forward(x):\n    return x @ x\n";
    const std::string head = "{'ph':'X','pid':1,'tid':1,'cat':'python_function',";
    const auto trace = [&](const std::string& line) {
      return quoted("{'schemaVersion':1,'traceEvents':[" + head + "'name':'model.py(9): <module>','ts':0,'dur':90}," + head + "'name':'model.py(" + line + "): forward','ts':10,'dur':50}," +
                    "{'ph':'X','pid':1,'tid':1,'cat':'cuda_runtime','name':'cudaLaunchKernel','ts':30,'dur':5,'args':{'correlation':1}},"
                    "{'ph':'X','cat':'kernel','pid':0,'tid':7,'name':'gemm','ts':40,'dur':5,'args':{'correlation':1}}]}");
    };
    (void)in_.write("model.py", text + "\n\n\nforward(torch.ones(2, 2))\n");
    QVERIFY(in_.open(in_.write("here.json", trace("3"))));
    COMPARE_ROWS(in_, "SELECT file, length(text) > 60 FROM source_files", "model.py,1");
    const auto notes = query::lineNotes(in_.reader(), "model.py");
    QVERIFY(notes && notes->at(3).timeNs == 5000 && notes->at(3).launches == 1 && notes->at(3).kernels == 1);
    const auto files = query::sourceFiles(in_.reader());
    QVERIFY(files && files->size() == 1 && files->front().timeNs == 5000);
    QVERIFY(in_.open(in_.write("changed.json", trace("5"))));  // line 5 defines nothing
    COMPARE_ROWS(in_, "SELECT file, text IS NULL FROM source_files", "model.py,1");
    for (const auto& [line, name] : {std::pair{3, "forward"}, {4, "forward"}, {1, "<module>"}}) QVERIFY(importing::beginsAt(text, line, name));
    for (const auto& [line, name] : {std::pair{1, "forward"}, {4, "forwards"}, {4, "for"}, {40, "<module>"}, {0, "<module>"}}) QVERIFY(!importing::beginsAt(text, line, name));
  }

  void usersFilesAreTold() {
    for (const char* file : {"train.py", "/home/me/torch/train.py", "transformers/models/gpt2/modeling_gpt2.py", "/x/lib/python3.12/site-packages/timm/layers/mlp.py"})
      QVERIFY2(importing::isUsersFile(file), file);
    for (const char* file : {"torch/nn/functional.py", "/x/lib/python3.12/site-packages/torch/nn/functional.py", "/usr/lib/python3.11/contextlib.py", "<string>",
                             "cache_profile/4n/c4nupohkg5flbfyginxrtyeohgxd6l2r6rspfojscd54ab5uapyd.py", "concurrent/futures/thread.py"})
      QVERIFY2(!importing::isUsersFile(file), file);
  }

  /// Launch geometry, registers, shared memory and occupancy, as the events of the file have them.
  void kernelsHaveTheirLaunchShapes() {
    QVERIFY(in_.open(Imported::data("compiled_plain.json.gz")));
    QCOMPARE(in_.number("SELECT count(*) FROM gpu_events WHERE kind = 'kernel' AND (grid IS NULL OR block IS NULL OR registers IS NULL OR occupancy IS NULL)"), int64_t{0});
    COMPARE_ROWS(in_, "SELECT grid, block, registers, shared_bytes FROM gpu_events WHERE correlation = 179252", "32,128,16,0");
    COMPARE_ROWS(in_, "SELECT grid, block, registers FROM kernels WHERE name = 'triton_poi_fused_clone_transpose_0'", "32,128,16");
  }

  /// Own times by another way: of each event that of all events which lie in it and in none between.
  void operatorsAreThoseOfKeyAverages() {
    for (const char* name : {"cpu_compiled.json.gz", "compiled_plain.json.gz"}) {
      const std::string path = in_.inflated(name, "plain.json");
      struct Event {
        std::string name;
        int64_t thread, start, end;
      };
      std::vector<Event> events;
      const nlohmann::json trace = nlohmann::json::parse(Imported::read(path));
      std::map<int64_t, int64_t> device;  // time by correlation
      for (const auto& e : trace["traceEvents"]) {
        const std::string kind = e.value("cat", "");
        if (kind == "kernel" || kind == "gpu_memcpy" || kind == "gpu_memset") device[e["args"].value("correlation", 0)] += std::llround(e["dur"].get<double>() * 1000);
        if (e.value("ph", "") != "X" || (kind != "cpu_op" && kind != "user_annotation" && kind != "cuda_runtime" && kind != "cuda_driver" && kind != "overhead")) continue;
        const auto ns = [](const nlohmann::json& us) { return std::llround(us.get<long double>() * 1000); };
        events.push_back({e["name"], e["tid"].get<int64_t>(), ns(e["ts"]), ns(e["ts"]) + ns(e["dur"])});
      }
      const auto holds = [](const Event& a, const Event& b) { return &a != &b && a.thread == b.thread && a.start <= b.start && b.end <= a.end && (a.start < b.start || b.end < a.end || &a < &b); };
      // What holds one event of its own name and nothing else is one call with it, as torch.autograd.profiler_util has it.
      const auto innermost = [&](const Event& e) {
        const Event* parent = nullptr;
        for (const Event& other : events)
          if (holds(other, e) && (!parent || holds(*parent, other))) parent = &other;
        return parent;
      };
      for (bool again = true; again;) {
        again = false;
        std::map<const Event*, std::vector<size_t>> children;
        for (size_t i = 0; i < events.size(); ++i)
          if (const Event* parent = innermost(events[i])) children[parent].push_back(i);
        for (const auto& [parent, inside] : children) {
          if (inside.size() != 1 || events[inside[0]].name != parent->name) continue;
          events.erase(events.begin() + static_cast<std::ptrdiff_t>(inside[0]));
          again = true;
          break;
        }
      }
      std::map<std::string, std::array<int64_t, 3>> expected;  // calls, total, own
      for (const Event& e : events) {
        int64_t own = e.end - e.start;
        for (const Event& inner : events)
          if (holds(e, inner) && std::none_of(events.begin(), events.end(), [&](const Event& between) { return holds(e, between) && holds(between, inner); }))
            own -= inner.end - inner.start;
        auto& row = expected[e.name];
        ++row[0], row[1] += e.end - e.start, row[2] += own;
      }
      QVERIFY(in_.open(Imported::data(name)));
      QVERIFY(query::hasOperators(in_.reader()));
      const auto totals = query::operatorTotals(in_.reader());
      QVERIFY(totals);
      std::map<std::string, std::array<int64_t, 3>> found;
      for (const auto& o : *totals) {
        auto& row = found[o.name];
        row[0] += o.calls, row[1] += o.totalNs, row[2] += o.selfNs;
        if (o.name == "aten::mm") QCOMPARE(o.shapes > 0, std::string(name) == "cpu_compiled.json.gz");  // the other has no shapes
      }
      for (const auto& [op, row] : expected) {
        QVERIFY2(found.contains(op), op.c_str());
        QVERIFY2(found[op][0] == row[0] && std::abs(found[op][1] - row[1]) <= 2 * row[0] && std::abs(found[op][2] - row[2]) <= 20 * row[0],
                 (op + ": " + std::to_string(found[op][2]) + " instead of " + std::to_string(row[2])).c_str());
      }
      QCOMPARE(found.size(), expected.size());
    }
  }

  /// A profile says nothing of compiling; what is not in it is not none.
  void whatAProfileDoesNotTellIsNotNone() {
    QVERIFY(in_.open(Imported::data("cpu_compiled.json.gz")));
    const auto summary = query::summarize(in_.reader());
    QVERIFY(summary);
    const std::string text = query::toText(*summary);
    for (const char* line : {"  compile   not recorded\n", "  cache     not recorded\n", "  breaks    not recorded\n", "  recompiles not recorded\n"}) QVERIFY2(text.find(line) != text.npos, text.c_str());
  }

  /// Each event is one slice, on whatever rows it lies.
  void aSliceIsFoundOnce() {
    const nlohmann::json trace = nlohmann::json::parse(Imported::read(in_.inflated("gpu_compiled.json.gz", "plain.json")));
    QVERIFY(in_.open(Imported::data("gpu_compiled.json.gz")));
    for (const char* text : {"Memcpy", "triton", "addmm"}) {
      int64_t expected = 0;
      for (const auto& e : trace["traceEvents"]) {
        std::string name = e.value("name", ""), wanted = text;
        for (std::string* s : {&name, &wanted}) std::transform(s->begin(), s->end(), s->begin(), [](unsigned char c) { return std::tolower(c); });
        expected += e.value("ph", "") == "X" && name.find(wanted) != std::string::npos;
      }
      const auto found = query::findSlice(in_.reader(), text, {}, query::SliceDirection::From);
      QVERIFY(found && expected > 0);
      QCOMPARE(found->count, expected);
    }
  }

  /// Work on the device counts for the operator whose number it carries.
  void operatorsHaveTheirTimeOnTheDevice() {
    for (const char* name : {"gpu_compiled.json.gz", "compiled_plain.json.gz", "cudagraphs.json.gz"}) {
      const nlohmann::json trace = nlohmann::json::parse(Imported::read(in_.inflated(name, "plain.json")));
      std::map<int64_t, std::string> names;
      std::map<std::string, int64_t> expected, found;
      for (const auto& e : trace["traceEvents"])
        // What a replayed graph launches carries the number of the compiled region.
        if (e.value("cat", "") == "cpu_op" && e.contains("args") && e["args"].contains("External id")) names[e["args"]["External id"]] = e["name"];
      for (const auto& e : trace["traceEvents"]) {
        const std::string kind = e.value("cat", "");
        if (kind != "kernel" && kind != "gpu_memcpy" && kind != "gpu_memset") continue;
        const auto owner = e["args"].contains("External id") ? names.find(e["args"]["External id"]) : names.end();
        if (owner != names.end()) expected[owner->second] += std::llround(e["dur"].get<long double>() * 1000);
      }
      QVERIFY(!expected.empty());
      QVERIFY(in_.open(Imported::data(name)));
      const auto totals = query::operatorTotals(in_.reader());
      QVERIFY(totals);
      for (const auto& o : *totals)
        if (o.deviceNs > 0) found[o.name] += o.deviceNs;
      for (const auto& [op, ns] : expected) QVERIFY2(std::abs(found[op] - ns) <= 50, (op + ": " + std::to_string(found[op]) + " instead of " + std::to_string(ns)).c_str());
      QCOMPARE(found.size(), expected.size());
    }
  }

  /// The table that PyTorch 2.11 printed when it wrote this trace: key_averages() of five steps. sum calls sum.dim, whose name is sum too.
  void operatorsAreThoseThatPyTorchPrinted() {
    QVERIFY(in_.open(Imported::data("cpu_sums.json.gz")));
    const auto totals = query::operatorTotals(in_.reader());
    QVERIFY(totals);
    const struct {
      const char* name;
      int64_t calls;
      double ownUs, totalUs;
    } printed[] = {{"aten::mm", 15, 16230.009, 16240.616}, {"aten::gelu", 15, 12147.493, 12147.493}, {"aten::sum", 5, 164.674, 190.244},
                   {"aten::matmul", 15, 52.777, 16293.393}, {"aten::as_strided", 5, 15.706, 15.706}, {"aten::resolve_conj", 45, 10.607, 10.607}};
    for (const auto& p : printed) {
      const auto found = std::find_if(totals->begin(), totals->end(), [&](const auto& o) { return o.name == p.name; });
      QVERIFY2(found != totals->end(), p.name);
      QVERIFY2(found->calls == p.calls && std::abs(static_cast<double>(found->selfNs) / 1e3 - p.ownUs) < 0.01 && std::abs(static_cast<double>(found->totalNs) / 1e3 - p.totalUs) < 0.01,
               (std::string(p.name) + " " + std::to_string(found->calls) + " " + std::to_string(found->selfNs) + " " + std::to_string(found->totalNs)).c_str());
    }
  }

  /// key_averages() of every operator of every profile, reckoned here from the events: calls, own and total time, shortest and longest.
  void operatorsAreThoseOfTheirEvents() {
    struct Event {
      std::string name, kind;
      int64_t start = 0, end = 0;
      size_t parent = SIZE_MAX;
      int64_t correlation = 0, device = 0;
      std::vector<size_t> children = {};
    };
    struct Sum {
      int64_t calls = 0, own = 0, total = 0, least = INT64_MAX, most = 0, device = 0;
    };
    for (const char* name : {"cpu_sums.json.gz", "cpu_compiled.json.gz", "gpu_compiled.json.gz", "compiled_plain.json.gz", "cudagraphs.json.gz"}) {
      const nlohmann::json trace = nlohmann::json::parse(Imported::read(in_.inflated(name, "plain.json")));
      std::map<std::pair<int64_t, int64_t>, std::vector<Event>> threads;
      std::map<int64_t, int64_t> device;  // time by correlation
      for (const auto& e : trace["traceEvents"]) {
        const std::string kind = e.value("cat", "");
        if (kind == "kernel" || kind == "gpu_memcpy" || kind == "gpu_memset") device[e["args"].value("correlation", 0)] += std::llround(e["dur"].get<double>() * 1000);
        if (e.value("ph", "") != "X" || (kind != "cpu_op" && kind != "user_annotation" && kind != "cuda_runtime" && kind != "cuda_driver" && kind != "overhead")) continue;
        const auto ns = [&](const char* key) { return std::llround(e[key].get<long double>() * 1000); };
        if (e["tid"].is_number()) threads[{e["pid"], e["tid"]}].push_back({e["name"], kind, ns("ts"), ns("ts") + ns("dur"), SIZE_MAX, kind.starts_with("cuda_") ? e["args"].value("correlation", int64_t{0}) : 0});
      }
      std::map<std::string, Sum> expected;
      for (auto& [thread, events] : threads) {
        std::stable_sort(events.begin(), events.end(), [](const Event& a, const Event& b) { return a.start != b.start ? a.start < b.start : a.end > b.end; });
        std::vector<size_t> open;
        for (size_t i = 0; i < events.size(); ++i) {
          while (!open.empty() && events[open.back()].end <= events[i].start) open.pop_back();
          if (!open.empty()) events[i].parent = open.back(), events[open.back()].children.push_back(i);
          open.push_back(i);
          if (const auto asked = device.find(events[i].correlation); events[i].correlation != 0 && asked != device.end()) {
            for (const size_t around : open) events[around].device += asked->second;
          }
        }
        for (const Event& e : events) {
          if (e.kind != "cpu_op") continue;
          Sum& sum = expected[e.name];
          const int64_t took = e.end - e.start;
          sum.own += took;
          for (const size_t child : e.children) sum.own -= std::min(events[child].end, e.end) - events[child].start;
          // The only event below one of its own name is the same call.
          const bool isRepeated = e.parent != SIZE_MAX && events[e.parent].name == e.name && events[e.parent].kind == e.kind && events[e.parent].children.size() == 1;
          if (isRepeated) continue;
          ++sum.calls;
          sum.total += took;
          sum.device += e.device;
          sum.least = std::min(sum.least, took);
          sum.most = std::max(sum.most, took);
        }
      }
      QVERIFY(in_.open(Imported::data(name)));
      const auto totals = query::operatorTotals(in_.reader());
      QVERIFY(totals);
      size_t compared = 0;
      for (const auto& o : *totals) {
        if (o.kind != "cpu_op" && o.kind != "call") continue;  // compiled regions are calls here
        const Sum& e = expected[o.name];
        const auto near = [&](int64_t a, int64_t b) { return std::abs(a - b) <= 2 * std::max<int64_t>(1, o.calls); };  // the trace's decimals are rounded once
        QVERIFY2(o.calls == e.calls && near(o.selfNs, e.own) && near(o.totalNs, e.total) && std::abs(o.leastNs - e.least) <= 2 && std::abs(o.mostNs - e.most) <= 2 && near(o.deviceTotalNs, e.device),
                 qPrintable(QStringLiteral("%1 %2: %3 %4 %5 instead of %6 %7 %8").arg(name, QString::fromStdString(o.name)).arg(o.calls).arg(o.selfNs).arg(o.totalNs).arg(e.calls).arg(e.own).arg(e.total)));
        ++compared;
      }
      QVERIFY(compared > 3);
      for (const auto& [op, sum] : expected)
        QVERIFY2(std::any_of(totals->begin(), totals->end(), [&](const auto& o) { return o.name == op; }), (std::string(name) + ": " + op).c_str());
      QCOMPARE(compared, expected.size());
    }
  }

  // What PyTorch's own key_averages() printed when the profile was made: every row and column but flops, which are not in the file.
  void operatorsAreThoseOfPyTorchsTable() {
    QVERIFY(in_.open(Imported::data("memory_sums.json.gz")));
    const auto totals = query::operatorTotals(in_.reader());
    QVERIFY(totals);
    const nlohmann::json expected = nlohmann::json::parse(Imported::read(Imported::data("memory_sums.expected.json")));
    QCOMPARE(totals->size(), expected.size());
    for (const auto& e : expected) {
      const auto o = std::find_if(totals->begin(), totals->end(), [&](const auto& row) { return row.name == e["name"]; });
      QVERIFY2(o != totals->end(), e["name"].get<std::string>().c_str());
      const auto near = [&](int64_t ns, double us) { return std::abs(static_cast<double>(ns) - us * 1000) <= 2.0 * static_cast<double>(o->calls); };
      QVERIFY2(o->calls == e["calls"] && near(o->selfNs, e["own_us"]) && near(o->totalNs, e["total_us"]) && o->cpu.ownBytes == e["own_bytes"] && o->cpu.bytes == e["bytes"] &&
                   o->deviceNs == 0 && o->deviceTotalNs == 0 && o->device.bytes == 0,
               qPrintable(QStringLiteral("%1: %2 %3 %4 %5 %6, expected %7").arg(QString::fromStdString(o->name)).arg(o->calls).arg(o->selfNs).arg(o->totalNs).arg(o->cpu.ownBytes).arg(o->cpu.bytes).arg(QString::fromStdString(e.dump()))));
    }
  }

  // Forward ones and, on autograd's thread by their sequence numbers, backward ones; there is one function of the program in the trace.
  void operatorsHaveTheFunctionThatCalledThem() {
    QVERIFY(in_.open(Imported::data("cpu_compiled.json.gz")));
    COMPARE_ROWS(in_, "SELECT DISTINCT file, line FROM cpu_events WHERE kind = 'cpu_op'", "profile_step.py,16");
    const auto totals = query::operatorTotals(in_.reader());
    QVERIFY(totals);
    for (const auto& o : *totals) {
      QCOMPARE(o.places.size(), size_t{o.kind == "cpu_op"});
      if (!o.places.empty()) QVERIFY(o.places[0].calls >= o.calls && o.places[0].selfNs == o.selfNs);
    }
    QVERIFY(in_.open(Imported::data("gpu_compiled.json.gz")));  // autograd's thread; what hands gradients to parameters is the gradient of no operator
    COMPARE_ROWS(in_, "SELECT thread, file, line, count(*) FROM cpu_events WHERE kind = 'cpu_op' GROUP BY 1, 2, 3", "0,,,48;0,profile_step.py,16,72;1,profile_step.py,16,43");
    COMPARE_ROWS(in_, "SELECT DISTINCT name FROM cpu_events WHERE kind = 'cpu_op' AND file IS NULL AND name LIKE '%evaluate_function%'",
                 "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad");
    QVERIFY(in_.open(Imported::data("compiled_plain.json.gz")));  // without stacks
    QCOMPARE(in_.number("SELECT count(file) FROM cpu_events WHERE kind = 'cpu_op'"), int64_t{0});
  }

  void oneGraphLaunchHasManyKernels() {
    QVERIFY(in_.open(Imported::data("cudagraphs.json.gz")));
    COMPARE_ROWS(
        in_,
        "SELECT e.name, count(*) FROM flows f JOIN cpu_events e ON e.event_id = f.from_event_id GROUP BY e.event_id "
        "ORDER BY count(*) DESC LIMIT 1",
        "cudaGraphLaunch,21");
  }

  void compiledRegionsAreCalls() {
    QVERIFY(in_.open(Imported::data("cpu_compiled.json.gz")));
    COMPARE_ROWS(in_, "SELECT frame, calls FROM calls", "compiled region 0/0,1");
    QVERIFY(
        in_.number("SELECT count(*) FROM cpu_events WHERE kind = 'python_function' AND line > 0 AND file LIKE '%.py'") >
        100);
    QVERIFY(in_.number("SELECT count(*) FROM flows WHERE kind = 'fwdbwd'") > 0);
  }

  void spansOfEveryPhase() {
    QVERIFY(in_.open(Imported::data("phases.json")));
    COMPARE_ROWS(in_, "SELECT kind, name, start_ns, dur_ns, depth, detail FROM cpu_events ORDER BY start_ns",
                 "span,outer,1000,9000,0,;c,inner,2500,500,1,{\"a\":1};io,read,4000,5000,0,;instant,mark,5000,0,0,;"
                 "counter,memory,6000,0,0,{\"bytes\":7};span,open,12000,0,0,");
    COMPARE_ROWS(in_, "SELECT what, count FROM losses ORDER BY what",
                 "events_without_time,1;unfinished_spans,1;unknown_events,1;unmatched_ends,1");
  }

  void damagedEventsAreCountedAndTheRestIsRead() {
    QVERIFY(in_.open(Imported::data("damaged.json")));
    COMPARE_ROWS(in_, "SELECT name, count(*) FROM cpu_events GROUP BY name ORDER BY name", "a,3;bell ?,1");
    COMPARE_ROWS(in_, "SELECT what, count FROM losses ORDER BY what", "damaged_events,2;repaired_events,1");
  }

  void cutFilesAreReadToTheCut() {
    const std::string whole = Imported::read(Imported::data("cudagraphs.json.gz"));
    QVERIFY(in_.open(in_.write("cut.json.gz", whole.substr(0, whole.size() * 3 / 4))));
    QVERIFY(in_.number("SELECT count(*) FROM cpu_events") > 0);
    COMPARE_ROWS(in_, "SELECT what, detail FROM losses WHERE what = 'end_of_file'",
                 "end_of_file,the compressed file is cut short");
    // Chrome's array form needs no end.
    QVERIFY(in_.open(in_.write("array.json", quoted("[{'ph':'X','name':'a','pid':1,'tid':1,'ts':1,'dur':1},"))));
    QCOMPARE(in_.number("SELECT count(*) FROM losses"), int64_t{0});
  }

  void unixTimesAreMovedIntoRange() {
    QVERIFY(in_.open(in_.write(
        "unix.json", quoted("[{'ph':'X','name':'late','pid':1,'tid':1,'ts':1795252631850120.8,'dur':1},"
                            "{'ph':'X','name':'early','pid':1,'tid':1,'ts':1795252631850000.001,'dur':1}]"))));
    COMPARE_ROWS(
        in_,
        "SELECT (SELECT start_ns FROM cpu_events WHERE name = 'late') - start_ns FROM cpu_events WHERE name = 'early'",
        "120799");
    COMPARE_ROWS(in_, "SELECT value FROM session_info WHERE key = 'start_unix_ns'", "1795252631850000001");
    QVERIFY(in_.number("SELECT max(end_ns) FROM cpu_events") < int64_t{1} << 58);
  }

  void sameContentIsImportedOnce() {
    auto first = importing::sessionFor(Imported::data("cudagraphs.json.gz"));
    auto second = importing::sessionFor(Imported::data("cudagraphs.json.gz"));
    QVERIFY(first && second && *first == *second && *first != Imported::data("cudagraphs.json.gz"));
    auto own = importing::sessionFor(*first);
    QVERIFY(own && *own == *first);
  }

  void whatIsNoTraceIsRefusedWithTheListOfFormats() {
    QVERIFY(!in_.open(in_.write("other.json", quoted("{'hello': 'world'}"))));
    QCOMPARE(in_.error().code, ErrorCode::Corrupt);
    QVERIFY2(in_.error().message.find("Kineto") != std::string::npos, in_.error().message.c_str());
    QVERIFY(!in_.open(in_.path("missing.json")));
    QCOMPARE(in_.error().code, ErrorCode::NotFound);
    QVERIFY(!in_.open(in_.write("empty.json", quoted("{'traceEvents': []}"))));
    QCOMPARE(in_.error().code, ErrorCode::Corrupt);
  }

  void cancelledImportsLeaveNothing() {
    importing::ImportProgress progress;
    progress.cancelled = true;
    auto opened = importing::openAny(
        in_.write("c.json", quoted("[{'ph':'X','name':'c','pid':1,'tid':1,'ts':1,'dur':1}]")), &progress);
    QVERIFY(!opened);
    QCOMPARE(opened.error().code, ErrorCode::InvalidArgument);
  }

  void aGrowingSessionCanBeLookedAt() {
    const std::string file = in_.path("growing.json");
    const auto facts = test::writeChromeTrace(file, 8'000'000);
    QVERIFY(facts.launches > 5000);
    importing::ImportProgress progress;
    progress.usableAfter = std::chrono::milliseconds(0);
    std::unique_ptr<session::Reader> early;
    const auto launches = [](const session::Reader& reader) {
      int64_t count = -1;
      (void)reader.each("SELECT (SELECT count(*) FROM launches), (SELECT sum(launches) FROM kernels)", {},
                        [&](const session::Statement& s) { count = s.integerAt(0) == s.integerAt(1) ? s.integerAt(0) : -2; });
      return count;
    };
    int64_t seen = -1, closed = 0;
    progress.usable = [&](const std::string& path) {
      auto reader = session::Reader::open(path);
      QVERIFY2(reader, reader ? "" : reader.error().text().c_str());
      early = std::move(*reader);
      QCOMPARE(early->state(), session::Reader::State::Recording);
      seen = launches(*early);
    };
    progress.closing = [&] {
      QVERIFY(early->refresh());
      QCOMPARE(early->state(), session::Reader::State::Finished);
      early.reset();
      ++closed;
    };
    auto done = importing::sessionFor(file, &progress);
    QVERIFY2(done, done ? "" : done.error().text().c_str());
    QVERIFY2(seen > 0 && seen < facts.launches, std::to_string(seen).c_str());
    QCOMPARE(closed, int64_t{1});
    QVERIFY(!progress.partial && !std::ifstream(*done + "-wal").is_open());
    QVERIFY(in_.open(file));
    QCOMPARE(launches(in_.reader()), facts.launches);
    COMPARE_ROWS(in_, "SELECT count(*) FROM session_info WHERE key IN ('pid', 'hostname', 'boot_id', 'pid_start')", "0");
    // The same rows as those of an import that nobody watches.
    const std::string plain = in_.path("plain.json");
    std::ofstream(plain, std::ios::binary) << Imported::read(file);
    const char* kSums = "SELECT (SELECT count(*) FROM cpu_events), (SELECT sum(dur_ns) FROM gpu_events), (SELECT count(*) FROM gpu_events "
                        "WHERE launch_id IS NULL), (SELECT count(*) FROM losses), (SELECT group_concat(name) FROM threads)";
    const std::string watched = in_.rows(kSums);
    QVERIFY(in_.open(plain));
    QCOMPARE(QString::fromStdString(in_.rows(kSums)), QString::fromStdString(watched));
  }

  void cancelledGrowingSessionsKeepWhatWasRead() {
    const std::string file = in_.path("half.json");
    const auto facts = test::writeChromeTrace(file, 8'000'000);
    importing::ImportProgress progress;
    progress.usableAfter = std::chrono::milliseconds(0);
    progress.usable = [](const std::string&) {};
    progress.report = [&](const std::string&, double fraction) { progress.cancelled = fraction > 0.5; };
    auto part = importing::sessionFor(file, &progress);
    QVERIFY2(part, part ? "" : part.error().text().c_str());
    QVERIFY(progress.partial);
    QVERIFY(in_.open(*part));
    QCOMPARE(in_.reader().state(), session::Reader::State::Finished);
    const int64_t read = in_.number("SELECT count(*) FROM launches");
    QVERIFY2(read > facts.launches / 4 && read < facts.launches, std::to_string(read).c_str());
    COMPARE_ROWS(in_, "SELECT count, detail LIKE 'reading was stopped after 5_ % of the file' FROM losses WHERE what = 'rest_of_file'", "1,1");
    importing::removeSession(*part);
    QVERIFY(in_.open(file));  // the part is not taken for the whole
    QCOMPARE(in_.number("SELECT count(*) FROM launches"), facts.launches);
  }

  void timesAreExact() {
    using importing::microsecondsToNs;
    QCOMPARE(*microsecondsToNs("4395605721757.928"), int64_t{4395605721757928});
    QCOMPARE(*microsecondsToNs("1795252631850120.8"), int64_t{1795252631850120800});
    QCOMPARE(*microsecondsToNs("\"12.3456\""), int64_t{12345});
    QCOMPARE(*microsecondsToNs("-0.5"), int64_t{-500});
    QCOMPARE(*microsecondsToNs("1.5e3"), int64_t{1500000});
    for (const char* wrong : {"", "abc", "9999999999999999999", "1e300", "--1"})
      QVERIFY2(!microsecondsToNs(wrong), wrong);
  }
};

QTEST_GUILESS_MAIN(ChromeTraceTest)
#include "chrome_trace_test.moc"
