// TORCH_TRACE logs of stock PyTorch 2.11, against what tlparse 0.4.3 counts in them and what the programs are known to
// do.
#include "profiler/importers/fx_text.h"
#include "profiler/importers/graph_inputs.h"
#include "profiler/importers/guard_text.h"
#include "profiler/importers/md5.h"
#include "profiler/importers/output_code.h"
#include "profiler/importers/qualified_names.h"
#include "profiler/importers/shape_text.h"
#include "profiler/importers/trace_record.h"
#include "profiler/query/breaks.h"
#include "profiler/query/coverage.h"
#include "profiler/query/recompiles.h"
#include "profiler/query/shapes.h"
#include "profiler/query/source.h"
#include "profiler/query/summary.h"
#include "tests/profiler/importers/imported.h"

using namespace fusebox;
using test::Imported;

class TorchTraceTest : public QObject {
  Q_OBJECT
  Imported in_;

 private slots:
  // tlparse's "Stats { ok: N }": records other than string table entries.
  void everyRecordIsThere_data() {
    QTest::addColumn<QString>("file");
    QTest::addColumn<int>("ok");
    QTest::newRow("graph_break") << "graph_break.log.gz" << 645;
    QTest::newRow("recompile") << "recompile.log.gz" << 921;
    QTest::newRow("train_step") << "train_step.log.gz" << 624;
    QTest::newRow("failing") << "failing.log.gz" << 150;
    QTest::newRow("cache_hit") << "cache_hit.log.gz" << 67;
    QTest::newRow("sizes") << "sizes.log.gz" << 817;
    QTest::newRow("cpu_provenance") << "cpu_provenance.log.gz" << 145;
    QTest::newRow("ranks") << "ranks" << 156 + 278;
  }
  void everyRecordIsThere() {
    QFETCH(QString, file);
    QFETCH(int, ok);
    QVERIFY2(in_.open(Imported::data(file.toStdString())), in_.error().text().c_str());
    QCOMPARE(in_.number("SELECT count(*) FROM artifacts"), int64_t{ok});
    // Of two equal parts of a cut graph without a compiler's own print nobody says which is which.
    const char* expected = file == "ranks" ? "input_names" : "";
    COMPARE_ROWS(in_, "SELECT what FROM losses WHERE what NOT IN ('source_text', 'nested_graphs')", expected);
    QCOMPARE(in_.number("SELECT count(*) FROM artifacts WHERE damaged IS NOT NULL"), int64_t{0});
    // Every graph was understood: an output, and edges into it or (an empty graph) none.
    QCOMPARE(
        in_.number("SELECT count(*) FROM graphs g WHERE NOT EXISTS(SELECT 1 FROM nodes n WHERE n.graph_id = g.graph_id "
                   "AND n.kind = 'output')"),
        int64_t{0});
    QCOMPARE(in_.number("SELECT count(*) FROM stages WHERE end_ns IS NULL OR end_ns < start_ns"), int64_t{0});
  }

  /// This engine writes such logs, too; where PyTorch has no words for a guard that failed, in its own.
  void aLogOfThisEngineIsKnownForWhatItIs() {
    QVERIFY(in_.open(Imported::data("graph_break.log.gz")));
    QCOMPARE(in_.reader().info("engine"), std::string("stock"));
    QVERIFY2(in_.open(Imported::data("own_engine.log.gz")), in_.error().text().c_str());
    QCOMPARE(in_.reader().info("engine"), std::string("fusebox"));
    COMPARE_ROWS(in_, "SELECT f.guard, f.expected, f.found, g.kind, g.source FROM guard_failures f JOIN guards g USING(guard_id) ORDER BY failure_id LIMIT 1",
                 "CONSTANT_MATCH L['n'],1,2,CONSTANT_MATCH,L['n']");
    auto entries = query::shapeEntries(in_.reader());
    QVERIFY(entries);
    const auto of = [](const query::ShapeEntry& e) { return e.symbols.empty() ? std::string() : e.symbols[0].source + " was " + e.symbols[0].before + ", now " + e.symbols[0].after; };
    QVERIFY(entries->contains(2));
    QCOMPARE(of(entries->at(2)), std::string("L['n'] was 1, now 2"));
  }

  void countsOfEachKind() {
    QVERIFY(in_.open(Imported::data("recompile.log.gz")));
    COMPARE_ROWS(in_, "SELECT kind, count(*) FROM artifacts GROUP BY kind ORDER BY kind",
                 "aot_inference_graph,7;artifact,76;chromium_event,757;compilation_metrics,7;compilation_metrics_"
                 "runtime,6;create_symbol,9;"
                 "describe_source,7;describe_storage,7;describe_tensor,7;dynamo_cpp_guards_str,7;dynamo_output_graph,7;"
                 "dynamo_start,7;"
                 "guard_added_fast,10;inductor_output_code,7");
    COMPARE_ROWS(in_, "SELECT stage, count(*) FROM graphs GROUP BY stage ORDER BY stage",
                 "captured,7;forward,7;post_fusion,7;post_grad,7");
  }

  void recompilesNameTheirGuard() {
    QVERIFY(in_.open(Imported::data("recompile.log.gz")));
    COMPARE_ROWS(in_, "SELECT name, file, line, compiles FROM frames", "f,/tmp/demo/recompile.py,14,7");
    COMPARE_ROWS(
        in_,
        "SELECT c.compile_id, f.guard, f.expected, f.found, f.line FROM compiles c JOIN guard_failures f "
        "USING(failure_id) "
        "ORDER BY c.compile_id LIMIT 2",
        "2,tensor 'x' size mismatch at index 0. expected 8, actual 12,8,12,16;3,2 <= x.size()[0] <= 2147483647,,,16");
    // The failure points at a guard of the entry that failed.
    COMPARE_ROWS(
        in_,
        "SELECT g.kind, g.source, g.compile_id = f.compile_id FROM guard_failures f JOIN guards g USING(guard_id) "
        "ORDER BY f.failure_id LIMIT 1",
        "TENSOR_MATCH,L['x'],1");
    QCOMPARE(in_.number("SELECT count(*) FROM guard_failures WHERE recompile_id IS NOT NULL"),
             in_.number("SELECT count(*) FROM guard_failures"));
    QCOMPARE(in_.number("SELECT count(*) FROM guards WHERE compile_id = 1"), int64_t{12});
    // The log says of this guard neither what it expected nor what it found.
    const auto summary = query::summarize(in_.reader());
    QVERIFY(summary);
    const std::string text = query::toText(*summary);
    QVERIFY2(text.find("/tmp/demo/recompile.py:14: f: GLOBAL_STATE changed: grad_mode\n") != text.npos && text.find("expected ,") == text.npos, text.c_str());
  }

  // A guard of torch.nn's own line, which PyTorch shortens to "nn/modules/…", or of a library's function is told at the program's line.
  void recompilesAreThePrograms() {
    QVERIFY(in_.open(Imported::data("ranks")));
    COMPARE_ROWS(in_, "SELECT DISTINCT file, line FROM guard_failures ORDER BY line", "/tmp/demo/ranks.py,15;/tmp/demo/ranks.py,24");
    const auto chains = query::recompileChains(in_.reader());
    QVERIFY(chains);
    const std::string text = query::toText(in_.reader(), *chains);
    QVERIFY2(text.find("assumed at /tmp/demo/ranks.py:15 (in nn/modules/linear.py:134)") != text.npos, text.c_str());
    QVERIFY(in_.open(Imported::data("train_step.log.gz")));
    COMPARE_ROWS(in_, "SELECT DISTINCT file, line FROM guard_failures", "/tmp/demo/train_step.py,30");
    QCOMPARE(in_.number("SELECT count(*) FROM guard_failures WHERE stack LIKE '%\"line\":30,\"function\":\"update\"%'"), in_.number("SELECT count(*) FROM guard_failures"));
  }

  // How much a kernel of symbolic sizes moves the log does not tell: it is not what the sizes that are known add up to.
  void trafficOfSymbolicSizesIsUnknown() {
    QVERIFY(in_.open(Imported::data("recompile.log.gz")));
    const std::string ofSymbols = "SELECT count(*) FROM fusion_groups g WHERE EXISTS(SELECT 1 FROM fusion_members m JOIN nodes n USING(node_id) WHERE m.group_id = g.group_id AND n.shape GLOB '*s[0-9]*')";
    QCOMPARE(in_.number(ofSymbols), int64_t{10});
    QCOMPARE(in_.number(ofSymbols + " AND g.read_bytes IS NOT NULL"), int64_t{0});
    QVERIFY(in_.number("SELECT count(*) FROM fusion_groups WHERE read_bytes > 0") > 0);
  }

  // As tlparse names them; a backward pass that is compiled when it runs has the number of its forward one.
  void compilesHaveTheNamesOfTheLogs() {
    QVERIFY(in_.open(Imported::data("recompile.log.gz")));
    COMPARE_ROWS(in_, "SELECT group_concat(log_id, '') FROM compiles", "[0/0][0/1][0/2][0/3][0/4][0/5][0/6]");
    QCOMPARE(in_.number("SELECT count(*) FROM graphs g JOIN compiles c USING(compile_id) WHERE g.log_id = c.log_id"), in_.number("SELECT count(*) FROM graphs"));
    QVERIFY(in_.open(Imported::data("train_step.log.gz")));
    COMPARE_ROWS(in_, "SELECT kind, log_id FROM compiles WHERE compile_id < 3", "frame,[0/0];backward,[0/0]");
    QVERIFY(in_.open(Imported::data("graph_break.log.gz")));  // capture began anew behind each break
    COMPARE_ROWS(in_, "SELECT log_id FROM compiles WHERE attempt > 0 LIMIT 1", "[0/0_1]");
  }

  // A cache that settings leave out was not asked, which is another thing than a log that says nothing of it.
  void aCacheThatIsDisabledIsSaidSo() {
    QVERIFY(in_.open(Imported::data("graph_break.log.gz")));
    COMPARE_ROWS(in_, "SELECT cache, outcome, count(*) FROM cache_events GROUP BY cache, outcome", "fx_graph,disabled,5");
    COMPARE_ROWS(in_, "SELECT coalesce(cache, 'none'), count(*) FROM compiles GROUP BY cache", "none,1;disabled,5");  // one compiled no graph
    const auto summary = query::summarize(in_.reader());
    QVERIFY(summary);
    QCOMPARE(summary->cacheDisabled, int64_t{5});
    const std::string text = query::toText(*summary);
    QVERIFY2(text.find("0 hits, 0 misses, 0 bypasses, not asked for 5 graphs: it is disabled\n") != text.npos, text.c_str());
    QVERIFY(in_.open(Imported::data("cache_hit.log.gz")));
    COMPARE_ROWS(in_, "SELECT cache FROM compiles", "hit");
  }

  // What a comparison of two logs has to explain a difference of guards or kernels with.
  void settingsOfTheCompilerAreFacts() {
    QVERIFY(in_.open(Imported::data("recompile.log.gz")));
    COMPARE_ROWS(in_,
                 "SELECT key, value FROM session_info WHERE key IN ('config.automatic_dynamic_shapes', 'config.recompile_limit', "
                 "'config.inductor.max_fusion_size', 'config.inductor._profile_var') ORDER BY key",
                 "config.automatic_dynamic_shapes,True;config.inductor.max_fusion_size,64;config.recompile_limit,8");
  }

  void relationsAreReadInWordsOfPython() {
    using importing::parseRelation;
    using importing::RelationText;
    QCOMPARE(parseRelation("Eq(Mod(s77, 2), 0)"), (RelationText{"s77 % 2", "==", "0"}));
    QCOMPARE(parseRelation("Ne((s77//2), 1)"), (RelationText{"s77//2", "!=", "1"}));
    QCOMPARE(parseRelation("s77 > 64"), (RelationText{"64", "<", "s77"}));
    QCOMPARE(parseRelation("s0*(s1 - 1) >= Max(1, FloorDiv(s2, Min(3, s1)))"), (RelationText{"max(1, (s2 // min(3, s1)))", "<=", "s0*(s1 - 1)"}));
    QCOMPARE(parseRelation("(s86 >= 0) & (s86 <= 8)"), (RelationText{"(s86 >= 0) & (s86 <= 8)", "==", "True"}));
    QCOMPARE(parseRelation("Eq(s0, "), (RelationText{"Eq(s0,", "==", "True"}));
    QCOMPARE(parseRelation(""), (RelationText{"", "==", "True"}));
    QVERIFY(sameRelation(parseRelation("Eq(s0, s1*s2)"), parseRelation("s2*s1 == s0")));
    QVERIFY(!sameRelation(parseRelation("s0 <= s1"), parseRelation("s1 <= s0")));
    QCOMPARE(importing::parseRange("[2, int_oo]").lower, std::optional<int64_t>(2));
    QCOMPARE(importing::parseRange("[2, int_oo]").upper, std::optional<int64_t>());
    QCOMPARE(importing::parseRange("2, 3").lower, std::optional<int64_t>());
    QCOMPARE(importing::parseBound("2 <= L['x'].size()[0] <= 64").of, std::string_view("L['x'].size()[0]"));
    QCOMPARE(importing::parseBound("2 <= L['x'].size()[0] <= 64").range.upper, std::optional<int64_t>(64));
    QVERIFY(importing::parseBound("L['x'].size()[0] <= L['y'].size()[0]").of.empty());
    QCOMPARE(importing::symbolsIn("4*s27*(s77 - 1) + L['s1'].size()[0] + u0 + zf3 + max(s27)"), (std::vector<std::string>{"s27", "s77", "u0", "zf3"}));
    QCOMPARE(importing::withoutScopes("L['b'].size()[0] == G['a']"), std::string("b.size()[0] == a"));
  }

  // sizes.py calls small functions with sizes, ints and floats that differ; see what each does in the lines named here.
  void symbolsHaveSourcesRangesAndReasons() {
    QVERIFY(in_.open(Imported::data("sizes.log.gz")));
    const QString of = "FROM symbols s JOIN compiles c USING(compile_id) WHERE c.frame = '%1' ORDER BY c.compile_id, s.position";
    COMPARE_ROWS(in_, ("SELECT s.name, s.kind, s.source, s.hint, s.lower, s.upper, s.policy, s.before, s.after, s.line " + of.arg("scale")).toStdString(),
                 "s77,size,L['x'].size()[0],10,2,,automatic,8,10,5;s77,size,L['x'].size()[0],100,2,,automatic,8,100,5;"
                 "s77,size,L['x'].size()[0],14,2,,automatic,8,14,5;s48,int,L['factor'],3,,,automatic,2,3,5");
    COMPARE_ROWS(in_, ("SELECT s.name, s.kind, s.hint, typeof(s.hint) " + of.arg("leading")).toStdString(), "s86,int,4,integer;s77,size,5,integer;zf69,float,2.5,real");
    // mark_dynamic(x, 0, min=2, max=512); the place is the program's, not that of the modules of torch.
    COMPARE_ROWS(in_, ("SELECT s.hint, s.lower, s.upper, s.policy, s.file, s.line " + of.arg("inner")).toStdString(), "16,2,512,asked,/tmp/demo/sizes.py,82");
    // One for the rows that a mask picks; those of later tracings are the same.
    COMPARE_ROWS(in_, ("SELECT s.name, s.kind, s.policy, s.hint IS NULL, s.line " + of.arg("picked")).toStdString(), "u0,unbacked,unbacked,1,28");
  }

  void relationsHaveTheLineThatAskedAndTheirGuard() {
    QVERIFY(in_.open(Imported::data("sizes.log.gz")));
    const QString of = "FROM relations r JOIN compiles c USING(compile_id) WHERE c.frame = '%1' ORDER BY c.compile_id, r.position";
    COMPARE_ROWS(in_, ("SELECT r.relation, r.line, r.guard_id IS NOT NULL, r.failures " + of.arg("scale")).toStdString(),
                 "s77 <= 64,6,1,1;64 < s77,6,1,0;s77 <= 64,6,1,0");
    COMPARE_ROWS(in_, ("SELECT r.relation, r.kind, r.line, r.symbols " + of.arg("halves")).toStdString(),
                 "s77 % 2 == 0,guard,44,[\"s77\"];s77//2 <= s77,guard,44,[\"s77\"];s77//2 != 1,guard,44,[\"s77\"];s77 % 2 != 0,guard,44,[\"s77\"]");
    COMPARE_ROWS(in_, ("SELECT r.relation, r.kind, r.failures " + of.arg("joined") + " LIMIT 4").toStdString(),
                 "L['a'].stride()[0] == s98,guard,0;L['b'].size()[0] == s97,duck,2;L['b'].size()[1] == s98,duck,0;L['b'].stride()[0] == s98,guard,0");
  }

  void specialisationsHaveTheirLineAndTheGuardThatFailed() {
    QVERIFY(in_.open(Imported::data("sizes.log.gz")));
    COMPARE_ROWS(in_, "SELECT c.frame, s.expression, s.value, s.source, s.line, s.failures FROM specialisations s JOIN compiles c USING(compile_id) "
                      "ORDER BY c.frame, s.value",
                 "split,s77,4,L['x'].size()[0],19,1;split,s77,5,L['x'].size()[0],19,0;table,s77,5,L['x'].size()[0],13,2;"
                 "table,s77,6,L['x'].size()[0],13,1;table,s77,7,L['x'].size()[0],13,0");
    COMPARE_ROWS(in_, "SELECT DISTINCT g.kind, g.source FROM specialisations s JOIN guards g USING(guard_id)", "TENSOR_MATCH,L['x']");
    QVERIFY(in_.rows("SELECT reason FROM specialisations WHERE line = 19").find("for i in range(n)") != std::string::npos);
  }

  void breaksHaveReasonsHintsAndStacks() {
    QVERIFY(in_.open(Imported::data("graph_break.log.gz")));
    COMPARE_ROWS(in_, "SELECT kind, file, line, opcode, json_array_length(stack) FROM graph_breaks ORDER BY break_id",
                 "Unsupported Tensor.item() call with capture_scalar_outputs=False,/tmp/demo/graph_break.py,8,CALL,3;"
                 "Unsupported Tensor.item() call with capture_scalar_outputs=False,/tmp/demo/graph_break.py,8,CALL,3;"
                 "Failed to trace builtin operator,/tmp/demo/graph_break.py,8,CALL,3;Data-dependent "
                 "branching,/tmp/demo/graph_break.py,16,,2");
    QVERIFY(in_.rows("SELECT hint FROM graph_breaks LIMIT 1").find("gb0124.html") != std::string::npos);
    COMPARE_ROWS(
        in_, "SELECT f.name, p.name FROM frames f JOIN frames p ON p.frame_id = f.parent_frame_id ORDER BY f.frame_id",
        "torch_dynamo_resume_in_inner_at_8,inner;torch_dynamo_resume_in_inner_at_8,inner;torch_dynamo_resume_in_step_"
        "at_15,step;"
        "torch_dynamo_resume_in_step_at_16,step");
    // The lines that the log quotes stand at their place.
    const std::string text = in_.rows("SELECT text FROM source_files WHERE file = '/tmp/demo/graph_break.py'");
    QCOMPARE(QString::fromStdString(text).split('\n').value(7), QString("print(\"mean\", float(h.mean()) * 0)"));
  }

  /// What PyTorch compiles for a backward pass when it runs is a compile of its own, with its stages; each lies within its compile.
  void stagesBelongToTheirPass() {
    for (const char* name : {"train_step.log.gz", "recompile.log.gz", "graph_break.log.gz"}) {
      QVERIFY(in_.open(Imported::data(name)));
      COMPARE_ROWS(in_, "SELECT count(*) FROM compiles c WHERE c.kind = 'backward' AND NOT EXISTS (SELECT 1 FROM stages s WHERE s.compile_id = c.compile_id AND s.depth = 0 AND s.name = 'entire_backward_compile')", "0");
      COMPARE_ROWS(in_, "SELECT count(*) FROM stages s JOIN compiles c USING(compile_id) WHERE s.depth = 0 AND s.name LIKE 'entire%' AND (s.end_ns > c.end_ns + 1000000 OR s.start_ns < c.start_ns - 1000000)", "0");
    }
    QVERIFY(in_.open(Imported::data("train_step.log.gz")));
    COMPARE_ROWS(in_, "SELECT kind, round((end_ns - start_ns) / 1e9, 3), (SELECT round(sum(dur_ns) / 1e9, 3) FROM stages s WHERE s.compile_id = c.compile_id AND depth = 0 AND name LIKE 'entire%') FROM compiles c WHERE kind = 'backward'", "backward,1.535,1.535");
    COMPARE_ROWS(in_, "SELECT count(*), count(compile_id) FROM cpu_events WHERE name = 'CachingAutotuner.benchmark_all_configs'", "8,8");
    // The whole is the lengths that the log gives, and what `recompiles` adds up.
    const auto summary = query::summarize(in_.reader());
    QVERIFY(summary);
    int64_t ns = 0;
    QVERIFY(in_.reader().each("SELECT sum(dur_ns) AS ns FROM compiles", {}, [&](const session::Statement& row) { ns = row.integer("ns"); }));
    QCOMPARE(std::llround(summary->totalCompileMs * 1e6), ns);
  }

  // torch's optimizer and DistributedDataParallel break inside themselves; the program's lines called them.
  void breaksInLibrariesAreListedWhereTheProgramCalledThem() {
    QVERIFY(in_.open(Imported::data("train_step.log.gz")));
    COMPARE_ROWS(in_, "SELECT file, line, json_extract(stack, '$[#-1].line') FROM graph_breaks ORDER BY break_id", "/tmp/demo/train_step.py,30,80;/tmp/demo/train_step.py,30,80");
    auto breaks = query::breakSummaries(in_.reader());
    QVERIFY2(breaks && breaks->size() == 1, "one break");
    const query::BreakSummary& one = breaks->front();
    QCOMPARE(one.function, "update");
    QCOMPARE(one.inside, (query::StackPlace{"/opt/torch/.venv/lib/python3.12/site-packages/torch/optim/optimizer.py", "_use_grad", 80}));
    QCOMPARE(one.after.size(), size_t{1});  // torch_dynamo_resume_in_wrapper_at_533
    const std::string text = query::toText(in_.reader(), *breaks, {});
    QVERIFY2(text.starts_with("/tmp/demo/train_step.py:30  Call to"), text.c_str());
    QVERIFY2(text.find("\n  inside _use_grad, at /opt/torch/.venv/lib/python3.12/site-packages/torch/optim/optimizer.py:80\n") != text.npos, text.c_str());

    // Two places in the library behind one line of the program are two breaks.
    QVERIFY(in_.open(Imported::data("ranks")));
    auto summary = query::summarize(in_.reader());
    QVERIFY(summary.has_value());
    std::vector<std::pair<std::string, int>> listed;
    for (const auto& b : summary->graphBreaks) listed.emplace_back(b.file + ":" + std::to_string(b.line), b.inside.line);
    QCOMPARE(listed, (std::vector<std::pair<std::string, int>>{{"/tmp/demo/ranks.py:24", 1566}, {"/tmp/demo/ranks.py:24", 105}}));
  }

  // Two blocks of n1, up, gelu, down, a norm that both share, and a scale of their own; a head behind them.
  void nodesBelongToTheModulesWhoseTensorsTheyWorkOn() {
    QVERIFY(in_.open(Imported::data("blocks.log.gz")));
    QCOMPARE(in_.number("SELECT count(*) FROM nodes WHERE name = 'self.layers.1.n1.weight' AND module_path = 'layers.1.n1'"), int64_t{12});  // eight graphs of training, four of inference
    COMPARE_ROWS(in_,
                 "SELECT n.name, n.module_path FROM nodes n JOIN graphs g USING(graph_id) WHERE g.graph_id = 1 AND n.kind = 'call' "
                 "ORDER BY position LIMIT 8",
                 "layer_norm,layers.0.n1;linear,layers.0.up;h,;linear_1,layers.0.down;layer_norm_1,layers.0.shared;mul,layers.0;x,;layer_norm_2,layers.1.n1");
    // What the mapping says: a norm's parts too, before and after; what no module's tensors enter stays the code's.
    for (const char* stage : {"joint", "forward", "post_grad", "post_fusion"}) {
      COMPARE_ROWS(in_,
                   "SELECT group_concat(module_path || ' ' || count, ';') FROM (SELECT coalesce(n.module_path, 'none') AS module_path, count(*) AS count FROM nodes n JOIN graphs g "
                   "USING(graph_id) WHERE g.compile_id = 1 AND g.direction IN ('forward', 'joint') AND n.position <= (SELECT position FROM nodes m WHERE m.graph_id = n.graph_id "
                   "AND m.name = 'addmm_1') AND n.kind = 'call' AND g.stage = '" + std::string(stage) + "' GROUP BY 1 ORDER BY 1)",
                   "layers.0.down 2;layers.0.n1 9;layers.0.up 2;none 5");
    }
    // Without one: what a module's tensors enter.
    QVERIFY(in_.open(Imported::data("train_step.log.gz")));
    COMPARE_ROWS(in_,
                 "SELECT n.op, n.module_path FROM nodes n JOIN graphs g USING(graph_id) WHERE g.stage = 'post_grad' AND g.direction = 'forward' AND n.kind = 'call' "
                 "AND n.module_path <> '' ORDER BY n.node_id",
                 "aten::permute,a;aten::addmm,a;aten::mul.Tensor,n;aten::add.Tensor,n;aten::permute,b;aten::addmm,b");
    QCOMPARE(importing::moduleOf("L['s']._modules['l']._modules['0']._parameters['weight']", false), "l.0");
    QCOMPARE(importing::moduleOf("L['s']._modules['l']._modules['0']._parameters['weight']", true), "s.l.0");
    QCOMPARE(importing::moduleOf("L['s']._parameters['weight']", true), "");
    QCOMPARE(importing::moduleOf("L['s']._modules['l", false), "");
  }

  void trainingHasAllStages() {
    QVERIFY(in_.open(Imported::data("train_step.log.gz")));
    COMPARE_ROWS(in_,
                 "SELECT stage, direction, node_count FROM graphs WHERE compile_id = 1 AND stage IN ('joint', "
                 "'forward', 'backward') ORDER BY graph_id",
                 "joint,joint,117;forward,forward,55;backward,backward,79");
    QCOMPARE(in_.number("SELECT count(*) FROM compiles WHERE kind = 'backward'"), int64_t{1});
    // Of a node: its type, place and neighbours.
    COMPARE_ROWS(in_,
                 "SELECT n.op, n.dtype, n.shape, n.stride, n.device, n.bytes, n.file, n.line, n.function FROM nodes n "
                 "JOIN graphs g USING(graph_id) "
                 "WHERE g.stage = 'joint' AND n.name = 'addmm_1'",
                 "aten::addmm,float32,[16, 8],[8, 1],cuda:0,512,/tmp/demo/train_step.py,16,forward");
    COMPARE_ROWS(
        in_,
        "SELECT s.name, e.arg FROM edges e JOIN nodes d ON d.node_id = e.dst_node_id JOIN nodes s ON s.node_id = "
        "e.src_node_id "
        "JOIN graphs g ON g.graph_id = d.graph_id WHERE g.stage = 'joint' AND d.name = 'addmm_1' ORDER BY e.arg",
        "net.b.bias,0;mul_6,1;permute_1,2");
    COMPARE_ROWS(
        in_, "SELECT n.op, n.args FROM nodes n JOIN graphs g USING(graph_id) WHERE g.graph_id = 1 AND n.name = 'iadd'",
        "operator.iadd,net.steps, 1");
    QVERIFY(in_.number("SELECT count(*) FROM node_origins o JOIN nodes n ON n.node_id = o.node_id JOIN graphs g ON "
                       "g.graph_id = n.graph_id "
                       "WHERE g.stage = 'backward'") > 30);
  }

  void kernelsCarryTheirNodesAndCode() {
    QVERIFY(in_.open(Imported::data("train_step.log.gz")));
    COMPARE_ROWS(in_,
                 "SELECT g.name, g.kind, k.kind, k.op, g.node_count FROM fusion_groups g JOIN kernels k "
                 "USING(kernel_id) WHERE g.compile_id = 1 "
                 "AND g.graph_id = (SELECT min(graph_id) FROM graphs WHERE stage = 'post_fusion') ORDER BY g.position",
                 "extern_kernels.addmm,extern,extern,aten::addmm,1;aten.randint.low_out,extern,extern,randint,;"
                 "triton_per_fused_gelu_native_dropout_native_layer_norm_0,reduction,generated,,17;extern_kernels."
                 "addmm,extern,extern,aten::addmm,1;"
                 "triton_per_fused__log_softmax_prepare_softmax_online_1,reduction,generated,,2;"
                 "triton_per_fused__log_softmax_nll_loss_forward_sub_2,reduction,generated,,15;triton_poi_fused_add_"
                 "copy__3,pointwise,generated,,2");
    // Calls of one name are told apart by what they are given; of a call without nodes nothing is claimed.
    COMPARE_ROWS(in_, "SELECT DISTINCT reason FROM kernels WHERE name = 'extern_kernels.addmm' AND compile_id = 1 ORDER BY kernel_id",
                 "Inductor calls a library for it; it is given net.a.bias, x, net.a.weight;Inductor calls a library for it; it is given net.b.bias, net.b.weight");
    COMPARE_ROWS(in_, "SELECT node_count, read_bytes, write_bytes FROM fusion_groups WHERE name = 'aten.randint.low_out'", ",,");
    QVERIFY(
        in_.rows("SELECT loop_ir FROM kernels WHERE name LIKE 'triton_poi_fused_add_copy__3'").find("@triton.jit") !=
        std::string::npos);
    QVERIFY(in_.number("SELECT compile_ns FROM kernels WHERE name = 'triton_poi_fused_add_copy__3'") > 1000000);
  }

  void provenanceTiesKernelsToCapturedNodes() {
    QVERIFY(in_.open(Imported::data("cpu_provenance.log.gz")));
    // mm:2 and mm:4 are told apart by their handles.
    COMPARE_ROWS(in_,
                 "SELECT n.name FROM fusion_groups g JOIN fusion_members m USING(group_id) JOIN nodes n USING(node_id) "
                 "WHERE g.name = 'extern_kernels.mm' ORDER BY g.position",
                 "mm;mm_1");
    COMPARE_ROWS(
        in_,
        "SELECT group_concat(c.name) FROM nodes n JOIN graphs g USING(graph_id) JOIN node_origins o USING(node_id) "
        "JOIN nodes c ON c.node_id = o.origin_node_id JOIN graphs cg ON cg.graph_id = c.graph_id "
        "WHERE g.stage = 'post_grad' AND cg.stage = 'captured' AND n.name = 'rsqrt'",
        "h");
    COMPARE_ROWS(in_, "SELECT kind, device, count(*) FROM kernels GROUP BY kind ORDER BY kind",
                 "extern,,2;generated,cpu,3");
    COMPARE_ROWS(in_, "SELECT backend FROM compiles", "inductor");
  }

  void failuresAreSaid() {
    QVERIFY(in_.open(Imported::data("failing.log.gz")));
    COMPARE_ROWS(in_, "SELECT status, count(*) FROM compiles GROUP BY status", "failed,4");
    QCOMPARE(in_.number("SELECT count(*) FROM compiles WHERE error IS NULL OR length(error) < 10"), int64_t{0});
  }

  /// What failed stands in every report, in words for the program's author.
  void failuresAreFactsLikeOthers() {
    using Verdict = query::FunctionCoverage::Verdict;
    auto reader = importing::openAny(Imported::data("failing.log.gz"));
    QVERIFY(reader);
    const auto coverage = query::coverageOf(**reader);
    QVERIFY(coverage);
    QCOMPARE(coverage->functions.size(), size_t{4});
    for (const auto& f : coverage->functions) QCOMPARE(f.verdict, Verdict::Not);
    QCOMPARE(query::coverageSentence(*coverage), std::string("4 functions: 4 not compiled"));
    const struct {
      const char *kind, *reason, *hint, *advice;
      int64_t line;
    } expected[] = {{"Unsupported", "builtin operator `print`", "Avoid calling builtin `print`", "Allow a graph break, or move the line out", 33},
                    {"TorchRuntimeError", "no fake impl registered", "set_stance", "Register a fake implementation of the operator", 39},
                    {"BackendCompilerFailed", "raised: RuntimeError: backend could not compile the graph", "", "Try another backend to find the part that fails", 42},
                    {"InductorError", "LoweringException: NotImplementedError: no lowering for this operator", "", "Keep the operator out of the generated code", 49}};
    QCOMPARE(coverage->uncompiled.size(), std::size(expected));
    for (size_t i = 0; i < std::size(expected); ++i) {
      const auto& u = coverage->uncompiled[i];
      QCOMPARE(u.kind, std::string(expected[i].kind));
      QVERIFY2(u.reason.find(expected[i].reason) != std::string::npos, u.reason.c_str());
      QVERIFY2(u.reason.find("debug context") == std::string::npos && u.reason.find("TensorBox") == std::string::npos, u.reason.c_str());
      QVERIFY2(u.hint.find(expected[i].hint) != std::string::npos, u.hint.c_str());
      QCOMPARE(query::adviseUncompiled(u).front().title, std::string(expected[i].advice));
      QCOMPARE(u.line, expected[i].line);
      QVERIFY(!u.recovered && u.error.size() >= u.reason.size() / 2);
    }
    // PyTorch says at which lines of the program it happened; these are quoted.
    QVERIFY2(coverage->uncompiled[0].error.find("from user code:\n   File \"/tmp/demo/failing.py\", line 33, in with_break\n    print(\"break\")") != std::string::npos, coverage->uncompiled[0].error.c_str());
    const auto source = query::sourceText(**reader, "/tmp/demo/failing.py");
    QVERIFY(source && source->find("print(\"break\")") != std::string::npos && source->find("return double_it(torch.cos(x))") != std::string::npos);
    const auto summary = query::summarize(**reader);
    QVERIFY(summary);
    const std::string text = query::toText(*summary);
    QVERIFY2(text.find("NOT COMPILED  with_lowering, /tmp/demo/failing.py:49: InductorError") != std::string::npos, text.c_str());
    QCOMPARE(query::toJson(*summary).at("not_compiled").size(), size_t{4});
    const auto stops = query::stopSummaries(**reader);
    QVERIFY(stops && stops->size() == 4 && stops->front().isFailure);
    const std::string breaks = query::toText(**reader, {}, coverage->uncompiled);
    QVERIFY2(breaks.find("with_backend is not compiled") != std::string::npos, breaks.c_str());
  }

  /// A break of several attempts is one, whatever the compiler tells its developers; functions that broke are partly compiled.
  void brokenFunctionsArePartlyCompiled() {
    using Verdict = query::FunctionCoverage::Verdict;
    auto reader = importing::openAny(Imported::data("graph_break.log.gz"));
    QVERIFY(reader);
    const auto coverage = query::coverageOf(**reader);
    QVERIFY(coverage);
    QVERIFY(coverage->uncompiled.empty());
    std::map<std::string, const query::FunctionCoverage*> functions;
    for (const auto& f : coverage->functions) functions[f.name] = &f;
    QCOMPARE(functions.size(), size_t{2});  // what resumes belongs to them
    QCOMPARE(functions.at("step")->verdict, Verdict::Partly);
    QCOMPARE(functions.at("inner")->verdict, Verdict::Partly);
    QVERIFY2(functions.at("step")->why.find("Tensor.item()") != std::string::npos, functions.at("step")->why.c_str());
    const auto breaks = query::breakSummaries(**reader);
    QVERIFY(breaks);
    for (const auto& b : *breaks) QVERIFY2(b.reason.find("Developer debug context") == std::string::npos, b.reason.c_str());
    QCOMPARE(std::count_if(breaks->begin(), breaks->end(), [](const auto& b) { return b.line == 8 && b.kind.find("item()") != std::string::npos; }), 1);
  }

  /// A break in a try ends the function, which fullgraph has nothing to do with.
  void functionsThatAreGivenUpAtABreakSaySo() {
    auto reader = importing::openAny(Imported::data("given_up.log.gz"));
    QVERIFY(reader);
    const auto stops = query::stopSummaries(**reader);
    QVERIFY(stops && stops->size() == 2);
    const query::BreakSummary &function = stops->front(), &at = stops->back();
    QCOMPARE(function.kind, std::string(query::kGivenUp));
    QCOMPARE(query::adviseBreak(**reader, function).front().title, std::string("Move the line out of its block"));
    QCOMPARE(at.kind, std::string("Failed to trace builtin operator"));
    QVERIFY2(at.reason.starts_with("Dynamo does not know how to trace builtin operator `exec`"), at.reason.c_str());
    QVERIFY(function.line == 7 && at.line == 7);
  }

  /// Traces say `forward`: of which class it is stands in the file, where that is known.
  void functionsHaveTheNamesThatPythonGivesThem() {
    constexpr std::string_view kText = "import a\nclass Net(Base):\n  x = 1\n\n  # words\n  @wrap\n  def forward(self):\n    def inner(x): return x\n    if x:\n      async def late(): pass\n"
                                       "  class Part:\n    def go(self): pass\ndef alone(): pass\n";
    const std::pair<int64_t, const char*> expected[] = {{6, "Net.forward"}, {7, "Net.forward"}, {8, "Net.forward.<locals>.inner"}, {10, "Net.forward.<locals>.late"}, {12, "Net.Part.go"}, {13, "alone"}};
    for (const auto& [line, name] : expected) {
      const std::string_view last = std::string_view(name).substr(std::string_view(name).rfind('.') + 1);
      QCOMPARE(importing::qualifiedName(kText, line, last), std::string(name));
    }
    QCOMPARE(importing::qualifiedName(kText, 8, "forward"), std::string("forward"));  // another one begins there
    QCOMPARE(importing::qualifiedName(kText, 99, "forward"), std::string("forward"));
    const auto bytes = importing::firstBytes(Imported::data("given_up.log.gz"), size_t{8} << 20);
    QVERIFY(bytes);
    const std::string was = "/tmp/demo/given.py";
    const std::string path = in_.write("given.py", "import torch\n\n\nclass Net(torch.nn.Module):\n    def forward(self, x):\n        try:\n            exec(\"z = 1\")\n        except ValueError:\n            pass\n"
                                                   "        return x + 1\n\n\ndef make():\n    @torch.compile(backend=\"eager\")\n    def step(x):\n        return x * 2\n    return step\n\n\n"
                                                   "torch.compile(Net(), backend=\"eager\")(torch.ones(3))\nmake()(torch.ones(3))\n");
    std::string log = *bytes;
    for (size_t at = 0; (at = log.find(was, at)) != std::string::npos; at += path.size()) log.replace(at, was.size(), path);
    QVERIFY(in_.open(in_.write("given.log", log)));
    COMPARE_ROWS(in_, "SELECT name, qualname FROM frames WHERE file LIKE '%given.py' ORDER BY 1", "forward,Net.forward;step,make.<locals>.step");
  }

  void cachesAreAsked() {
    QVERIFY(in_.open(Imported::data("cache_hit.log.gz")));
    COMPARE_ROWS(in_, "SELECT cache, outcome, length(key) > 10 FROM cache_events ORDER BY cache",
                 "aotautograd,hit,1;fx_graph,hit,1");
    COMPARE_ROWS(in_, "SELECT cache FROM compiles", "hit");
  }

  void ranksAreKeptApart() {
    QVERIFY(in_.open(Imported::data("ranks")));
    COMPARE_ROWS(in_, "SELECT DISTINCT backend FROM compiles", "");  // aot_eager, which no record says
    COMPARE_ROWS(
        in_,
        "SELECT t.name LIKE 'rank 0 %', count(*) FROM compiles c JOIN threads t USING(thread) GROUP BY 1 ORDER BY 1",
        "0,9;1,7");
    QCOMPARE(in_.number("SELECT count(DISTINCT t.name) FROM guard_failures x JOIN compiles c ON c.failure_id = "
                        "x.failure_id JOIN threads t USING(thread) "
                        "WHERE t.name LIKE 'rank 1 %'"),
             int64_t{1});
  }

  // tlparse's raw.jsonl of the same log holds the same records, spans aside, which lie beside it.
  void tlparseOutputGivesTheSame() {
    QVERIFY(in_.open(Imported::data("cache_hit.log.gz")));
    const auto facts =
        "SELECT (SELECT count(*) FROM artifacts), (SELECT count(*) FROM graphs), (SELECT count(*) FROM nodes), (SELECT "
        "count(*) FROM guards), "
        "(SELECT count(*) FROM stages), (SELECT count(*) FROM fusion_members), (SELECT group_concat(name) FROM frames)";
    const std::string log = in_.rows(facts);
    QVERIFY2(in_.open(Imported::data("tlparse/raw.jsonl")), in_.error().text().c_str());
    QCOMPARE(in_.rows(facts), log);
    QVERIFY(in_.open(Imported::data("tlparse")));
    QCOMPARE(in_.rows(facts), log);
  }

  void damageIsCounted() {
    std::string log;
    {
      auto bytes = importing::firstBytes(Imported::data("cache_hit.log.gz"), size_t{1} << 20);
      QVERIFY(bytes);
      log = *bytes;
    }
    const size_t payload = log.find("\t    def forward(");
    QVERIFY(payload != std::string::npos);
    std::string wrong = log;
    wrong[payload + 6] = 'D';
    const size_t json = wrong.find("{\"dynamo_start\"");
    wrong.replace(json, 3, "{{{");
    wrong.insert(0, "a line of the program\n\tan orphan\n");
    wrong.resize(wrong.size() - 200);
    QVERIFY(in_.open(in_.write("wrong.log", wrong)));
    COMPARE_ROWS(in_,
                 "SELECT what, count FROM losses WHERE what NOT IN ('source_text', 'graph_statements', "
                 "'unfinished_spans') ORDER BY what",
                 "broken_records,1;damaged_payloads,2;end_of_file,1;input_names,6;orphan_lines,1;spans,1;stray_lines,1");
    QCOMPARE(in_.number("SELECT count(*) FROM artifacts WHERE kind = 'broken' AND damaged IS NOT NULL"), int64_t{1});
    // Nesting that would overflow the stack of whoever copies or writes the value is damage too.
    const std::string deep = std::string(100'000, '[') + std::string(100'000, ']');
    QVERIFY(in_.open(in_.write("deep.log", log.substr(0, log.find('{')) + "{\"dynamo_start\": " + deep + "}\n" + log)));
    COMPARE_ROWS(in_, "SELECT what, count FROM losses WHERE what = 'broken_records'", "broken_records,1");
    // Windows line ends do no harm.
    std::string crlf;
    for (const char c : log) crlf += c == '\n' ? std::string("\r\n") : std::string(1, c);
    QVERIFY(in_.open(in_.write("crlf.log", crlf)));
    COMPARE_ROWS(in_, "SELECT what FROM losses WHERE what <> 'source_text'", "");
    QCOMPARE(in_.number("SELECT count(*) FROM artifacts"), int64_t{67});
  }

  // A file of this disk is the one that ran where it has every line that the log quotes; a changed one is not shown in its place.
  void unchangedSourcesAreReadFromThisDisk() {
    const auto bytes = importing::firstBytes(Imported::data("recompile.log.gz"), size_t{8} << 20);
    QVERIFY(bytes && in_.open(Imported::data("recompile.log.gz")));
    const std::string was = "/tmp/demo/recompile.py";
    const QString quoted = QString::fromStdString(in_.rows("SELECT text FROM t_source_file WHERE path = '" + was + "'"));
    QVERIFY(quoted.contains("return"));
    QStringList lines = quoted.split('\n');
    for (QString& line : lines) line = line.isEmpty() ? "# not quoted" : "    " + line;
    for (const bool changed : {false, true}) {
      if (changed) lines.replaceInStrings("return", "yield");
      const std::string text = lines.join('\n').toStdString() + "\n", path = in_.write(changed ? "changed.py" : "same.py", text);
      std::string log = *bytes;
      for (size_t at = 0; (at = log.find(was, at)) != std::string::npos; at += path.size()) log.replace(at, was.size(), path);
      QVERIFY(in_.open(in_.write("moved.log", log)));
      QCOMPARE(in_.rows("SELECT truncated FROM t_source_file WHERE path = '" + path + "'"), std::string(changed ? "1" : "0"));
      QCOMPARE(in_.rows("SELECT text FROM t_source_file WHERE path = '" + path + "'"), changed ? quoted.toStdString() : text);
    }
  }

  void timesAreUnixTimes() {
    QVERIFY(in_.open(Imported::data("recompile.log.gz")));
    // The first span began at 1795252631850120.8 µs.
    QCOMPARE(in_.number("SELECT value FROM session_info WHERE key = 'start_unix_ns'") / 1000000000,
             int64_t{1795252631});
    QVERIFY(std::abs(in_.number("SELECT min(start_ns) FROM stages") -
                     in_.number("SELECT min(time_ns) FROM artifacts WHERE kind = 'dynamo_start'")) < 1000000000);
  }

  void printedGraphs() {
    using importing::parseFxText;
    const auto g = parseFxText(
        "class GraphModule(torch.nn.Module):\n    def forward(self, L_x_: \"f32[2, s77][s77, 1]cpu\", L_y_: "
        "\"bf16[3]\"):\n"
        "        l_x_ = L_x_\n        l_y_ = L_y_\n        # File: /a b/c.py:7 in f, code: return (x # y)\n"
        "        p = self.weight\n        mul: \"f32[2]cpu\" = l_x_ * 2;  l_x_ = None\n"
        "        s = torch.nn.functional.pad(mul, (1, 2), value = l_y_, mode = 'a,b # c');  mul = None\n"
        "        v = s.view(-1);  s = None\n        strange ~~ thing\n        return {'a': v, 'b': p}\n");
    QCOMPARE(g.nodes.size(), size_t{7});
    QCOMPARE(g.unread, int64_t{1});
    QCOMPARE(g.nodes[0].name, std::string("l_x_"));
    QCOMPARE(g.nodes[0].bytes, int64_t{-1});
    QCOMPARE(g.nodes[1].bytes, int64_t{6});
    QCOMPARE(g.nodes[2].kind, std::string("constant"));
    QCOMPARE(g.nodes[3].op, std::string("operator.mul"));
    QCOMPARE(g.nodes[3].file, std::string("/a b/c.py"));
    QCOMPARE(g.nodes[4].op, std::string("torch.nn.functional.pad"));
    QCOMPARE(g.nodes[4].inputs.size(), size_t{2});
    QCOMPARE(g.nodes[4].inputs[1].node, size_t{1});
    QCOMPARE(g.nodes[5].op, std::string("Tensor.view"));
    QCOMPARE(g.nodes[6].inputs.size(), size_t{2});
  }

  // primals_3 is what the program calls net.a.bias, in every stage.
  void inputsAreCalledWhatTheProgramCallsThem() {
    QVERIFY(in_.open(Imported::data("train_step.log.gz")));
    const char* names = "net.steps;net.a.weight;net.a.bias;x;net.n.weight;net.n.bias;net.b.weight;net.b.bias;y";
    for (const char* stage : {"captured' AND direction = 'inference", "joint", "forward", "post_grad' AND direction = 'forward", "post_fusion' AND direction = 'forward"}) {
      COMPARE_ROWS(in_, "SELECT name FROM nodes WHERE kind = 'placeholder' AND name NOT LIKE 'tangent%' AND graph_id = (SELECT min(graph_id) FROM graphs WHERE stage = '" +
                            std::string(stage) + "') ORDER BY position", names);
    }
    QCOMPARE(in_.number("SELECT count(*) FROM nodes WHERE kind = 'placeholder' AND (name LIKE 'primals%' OR name LIKE 'arg_\\_1' ESCAPE '\\')"), int64_t{0});
    COMPARE_ROWS(in_, "SELECT n.args FROM nodes n JOIN graphs USING(graph_id) WHERE stage = 'joint' AND n.name = 'net.a.bias'",
                 "primals_3: G['net']._modules['a']._parameters['bias']");
    // Arguments name what they read.
    COMPARE_ROWS(in_, "SELECT n.args FROM nodes n JOIN graphs USING(graph_id) WHERE stage = 'forward' AND n.op = 'aten::addmm' ORDER BY n.position LIMIT 1",
                 "net.a.bias, x, permute");
    COMPARE_ROWS(in_, "SELECT DISTINCT name FROM buffers WHERE kind = 'input' AND name LIKE '%weight' ORDER BY name", "net.a.weight;net.b.weight;net.n.weight");
    // Parameters that an optimizer holds, which the graph has as attributes, and their gradients.
    COMPARE_ROWS(in_, "SELECT name FROM nodes WHERE kind = 'placeholder' AND graph_id = (SELECT min(graph_id) FROM graphs WHERE stage = 'forward' AND direction = 'inference') "
                      "AND name LIKE '%[1]%'", "self.param_groups[0]['params'][1];self.param_groups[0]['params'][1].grad");
    QCOMPARE(in_.number("SELECT count(*) FROM losses WHERE what = 'input_names'"), int64_t{0});
  }

  // DistributedDataParallel cuts the captured graph; each part numbers its own inputs, and backward passes are compiled long after.
  void inputsOfPartsAreThoseOfTheirPart() {
    QVERIFY(in_.open(Imported::data("ddp_parts.log.gz")));
    const auto inputs = [&](int part, const std::string& stage, const std::string& direction, bool fromEnd) {
      return in_.rows("SELECT group_concat(name, ' ') FROM (SELECT name FROM nodes WHERE kind = 'placeholder' AND graph_id = (SELECT graph_id FROM graphs WHERE stage = '" +
                      stage + "' AND direction = '" + direction + "' ORDER BY graph_id " + (fromEnd ? "DESC" : "") + " LIMIT 1 OFFSET " + std::to_string(part) +
                      ") ORDER BY position)");
    };
    QCOMPARE(inputs(0, "post_grad", "forward", false), std::string("x s.blocks.0.a.weight s.blocks.0.a.bias s.blocks.0.n.weight s.blocks.0.n.bias"));
    QCOMPARE(inputs(1, "joint", "joint", false),
             std::string("x s.blocks.1.a.weight s.blocks.1.a.bias s.blocks.1.n.weight s.blocks.1.n.bias s.blocks.2.a.weight s.blocks.2.a.bias s.blocks.2.n.weight "
                         "s.blocks.2.n.bias tangent_0"));
    // They are compiled from the last to the first.
    QCOMPARE(inputs(0, "post_grad", "backward", true), std::string("x s.blocks.0.n.weight addmm getitem_1 rsqrt tangent_0"));
    QCOMPARE(inputs(2, "post_grad", "backward", true), inputs(0, "post_grad", "backward", false));
    QVERIFY(inputs(0, "post_grad", "backward", false).starts_with("x_2 s.blocks.3.a.weight s.blocks.3.n.weight s.out.weight "));
    // Each is made of its own part's graph.
    QCOMPARE(in_.number("SELECT count(DISTINCT o.graph_id) FROM node_origins JOIN nodes l ON l.node_id = node_origins.node_id JOIN graphs g ON g.graph_id = l.graph_id "
                        "JOIN nodes o ON o.node_id = node_origins.origin_node_id WHERE g.stage = 'post_grad' AND g.direction = 'backward'"), int64_t{3});
    QCOMPARE(in_.number("SELECT count(*) FROM losses WHERE what = 'input_names'"), int64_t{0});
  }

  // DistributedDataParallel and contextlib are no functions of the program; they break before anything becomes a graph.
  void functionsOfLibrariesAreCountedApart() {
    QVERIFY(in_.open(Imported::data("ddp_parts.log.gz")));
    auto coverage = query::coverageOf(in_.reader());
    QVERIFY(coverage.has_value());
    QCOMPARE(query::coverageSentence(*coverage), std::string("1 function: 1 compiled; 3 functions of libraries: 3 not compiled"));
    QCOMPARE(coverage->functions.front().name, std::string("forward"));
    QVERIFY(!coverage->functions.front().ofLibrary);
    QCOMPARE(std::count_if(coverage->functions.begin(), coverage->functions.end(), [](const auto& f) { return f.ofLibrary; }), 3);
  }

  void inputsThatAreNotToldKeepTheirNames() {
    using importing::FxGraph;
    using importing::GraphInputs;
    using importing::parseFxText;
    QCOMPARE(importing::programName("L['s']._modules['layers']._modules['1']._buffers['mean']"), std::string("s.layers.1.mean"));
    QCOMPARE(importing::programName("G['opt'].param_groups[0]['params'][1]"), std::string("opt.param_groups[0]['params'][1]"));
    QCOMPARE(importing::programName("L['s']._modules['cut"), std::string("s._modules['cut"));
    const auto shown = [](const FxGraph& graph) {
      std::string out;
      for (const auto& node : graph.nodes) {
        if (node.kind == "placeholder") out += (out.empty() ? "" : " ") + (node.shown.empty() ? node.name : node.shown);
      }
      return out;
    };
    GraphInputs inputs;
    for (const char* source : {"L['x']", "G['x']", "L['a_b']", "L['a']['b']", "L['w']"}) inputs.source(0, source);
    FxGraph captured = parseFxText("class G(torch.nn.Module):\n    def forward(self, L_x_: \"f32[2]\", G_x_: \"f32[2]\", L_a_b_: \"f32[3]\", L_w_: \"f32[4]\", s0: \"Sym(s0)\"):\n"
                                   "        l_x_ = L_x_\n        g_x_ = G_x_\n        l_a_b_ = L_a_b_\n        l_w_ = L_w_\n        w: \"f32[2]\" = l_x_ + g_x_\n        return (w,)\n");
    QCOMPARE(inputs.nameCaptured(captured), int64_t{1});  // L['a_b'] and L['a']['b'] are written alike
    QCOMPARE(shown(captured), std::string("L['x'] G['x'] l_a_b_ L['w'] s0"));
    const std::string head = "class G(torch.nn.Module):\n    def forward(\n        self,\n", tail = "    ):\n        return ()\n";
    FxGraph described = parseFxText(head + "        arg0_1: \"f32[4]\",  # PlainAOTInput(idx=3)\n        arg1_1: \"f32[3]\",  # PlainAOTInput(idx=2)\n"
                                    "        arg2_1: \"f32[8]\",  # SubclassGetAttrAOTInput(base=PlainAOTInput(idx=3), attr='inner, part')\n"
                                    "        arg3_1: \"f32[9]\",  # ParamAOTInput(target='head.weight')\n        arg4_1: \"i64[]\",  # PhiloxForwardSeedAOTInput()\n"
                                    "        arg5_1: \"f32[4]\",  # TangentAOTInput(output=PlainAOTOutput(idx=2))\n        arg6_1: \"f32[4]\",  # AOTInput(((\n" + tail);
    QCOMPARE(inputs.nameLater(described), int64_t{1});
    QCOMPARE(shown(described), std::string("w arg1_1 w.inner, part head.weight arg4_1 tangent_2 arg6_1"));
    // PyTorch before 2.9 prints nothing beside them: numbers count if all agree.
    FxGraph old = parseFxText(head + "        primals_1: \"f32[2]\",\n        primals_2: \"f32[2]\",\n        primals_3: \"f32[3]\",\n        primals_4: \"f32[4]\",\n"
                              "        primals_5: \"Sym(s0)\",\n" + tail);
    QCOMPARE(inputs.nameLater(old), int64_t{1});
    QCOMPARE(shown(old), std::string("L['x'] G['x'] primals_3 w s0"));
    FxGraph other = parseFxText(head + "        primals_1: \"f32[2]\",\n        primals_2: \"f32[7]\",\n" + tail);
    QCOMPARE(inputs.nameLater(other), int64_t{2});
    QCOMPARE(shown(other), std::string("primals_1 primals_2"));
    QCOMPARE(importing::withNames("x, [1], x = x, 'x', y.x", {{"x", "net.x"}}), std::string("net.x, [1], x = net.x, 'x', y.x"));
  }

  // The attempt at which PyTorch gave up is no compilation again: limit.py allows two entries and calls with five sizes.
  void theLimitIsNoRecompile() {
    QVERIFY(in_.open(Imported::data("limit.log.gz")));
    auto summary = query::summarize(in_.reader());
    QVERIFY(summary.has_value());
    QCOMPARE(summary->compiledAgain, int64_t{1});
    QCOMPARE(summary->limitsReached, int64_t{1});
    QCOMPARE(summary->coverage.functions.size(), size_t{1});
    QCOMPARE(summary->coverage.functions[0].entries, int64_t{2});
    QCOMPARE(summary->coverage.functions[0].recompiles, int64_t{1});
    auto chains = query::recompileChains(in_.reader(), false);
    QVERIFY(chains.has_value() && chains->size() == 1);
    QCOMPARE((*chains)[0].entries.size(), size_t{2});
  }

  // Without provenance the log says of C++ kernels only what they are given.
  void kernelsWithoutNodesSayHowToGetThem() {
    QVERIFY(in_.open(Imported::data("ddp_parts.log.gz")));
    QCOMPARE(in_.number("SELECT count(*) FROM fusion_groups WHERE kind = 'loops' AND node_count IS NULL AND read_bytes IS NULL AND write_bytes IS NULL AND reason LIKE "
                        "'%INDUCTOR_PROVENANCE=1%'"), in_.number("SELECT count(*) FROM fusion_groups WHERE kind = 'loops'"));
    QVERIFY(in_.number("SELECT count(*) FROM fusion_groups WHERE kind = 'loops'") > 0);
    QCOMPARE(in_.number("SELECT count(*) FROM fusion_groups WHERE kind = 'loops' AND reason LIKE '%it is given %s.blocks.0.n.weight%'"), int64_t{2});
    QVERIFY(in_.rows("SELECT reason FROM kernels WHERE kind = 'generated' LIMIT 1").find("INDUCTOR_PROVENANCE=1") != std::string::npos);
  }

  void oldGuardsAndChecksums() {
    QCOMPARE(importing::md5(""), std::string("d41d8cd98f00b204e9800998ecf8427e"));
    QCOMPARE(importing::md5("The quick brown fox jumps over the lazy dog"),
             std::string("9e107d9d372bb6826bd81d3542a419d6"));
    QCOMPARE(importing::md5(std::string(119, 'a')), std::string("8a7bd0732ed6a28ce75f6dabc90e1613"));
    const auto reason = importing::parseRecompileReason("1/0: L['n'] == 3  # x + n  # o/t.py:5 in g");
    QCOMPARE(reason.entry, std::string("1/0"));
    QCOMPARE(reason.expected, std::string("3"));
    QCOMPARE(reason.guard.line, int64_t{5});
  }
};

QTEST_GUILESS_MAIN(TorchTraceTest)
#include "torch_trace_test.moc"
