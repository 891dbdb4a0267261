// GPU events find the launch of a compiled graph, or the operator, that asked for them; sums, waiting, and what is never tied.
#include <QTemporaryDir>
#include <QTest>
#include <cmath>

#include "profiler/cupti/gpu_rows.h"
#include "profiler/query/cuda_graphs.h"
#include "profiler/query/gpu_counters.h"
#include "profiler/session/launch_ring.h"
#include "profiler/session/migrations.h"
#include "profiler/session/reader.h"

using namespace fusebox;
using namespace fusebox::cupti;
using session::LaunchRecord;

class RowsTest : public QObject {
  Q_OBJECT
  QTemporaryDir dir_;
  int files_ = 0;
  std::string path_;
  std::unique_ptr<session::Database> database_;
  std::unique_ptr<session::RowSink> sink_;
  ShapeTable shapes_;
  std::unique_ptr<GpuRows> rows_;
  int32_t threads_ = 100, kernels_ = 1000;
  int64_t spans_ = 0;
  std::map<std::string, int64_t> losses_;

  static constexpr uint32_t kThread = 0xabcd;  // CUPTI's id of the recorder's thread 1

  Activity kernel(uint32_t correlation, int64_t start, int64_t end, const char* symbol = "fused_add", uint32_t stream = 7) {
    LaunchShape shape;
    shape.symbol = symbol;
    shape.grid = {10, 1, 1}, shape.block = {256, 1, 1};
    shape.registers = 48;
    Activity a;
    a.correlation = correlation, a.startNs = start, a.endNs = end, a.stream = stream;
    a.shape = shapes_.number(shape);
    return a;
  }
  Activity call(uint32_t correlation, int64_t start, int64_t end, uint32_t cbid = 307, uint32_t thread = kThread) {
    Activity a;
    a.kind = Activity::Kind::Call;
    a.driver = true, a.code = cbid, a.correlation = correlation, a.startNs = start, a.endNs = end, a.thread = thread;
    return a;
  }
  LaunchRecord launch(int64_t start, int64_t dur, int32_t kernel) { return {start, dur, 0, kernel, 1}; }
  void batch(bool last = false) {
    QVERIFY(database_->execute("BEGIN").has_value());
    rows_->write(*sink_, last);
    QVERIFY(!sink_->error().has_value());
    QVERIFY(database_->execute("COMMIT").has_value());
    rows_->committed();
  }
  std::vector<std::string> ask(const std::string& sql) {
    auto reader = session::Reader::open(path_);
    if (!reader) qFatal("%s", reader.error().text().c_str());
    std::vector<std::string> out;
    auto table = (*reader)->query(sql);
    if (!table) qFatal("%s", table.error().text().c_str());
    for (const auto& row : table->rows) {
      std::string line;
      for (const auto& cell : row) line += (line.empty() ? "" : "|") + session::cellText(cell);
      out.push_back(line);
    }
    return out;
  }
  std::string one(const std::string& sql) {
    const auto rows = ask(sql);
    return rows.empty() ? "nothing" : rows.front();
  }

 private slots:
  void init() {
    path_ = dir_.filePath(QString::number(++files_)).toStdString();
    auto database = session::Database::openForWriting(path_);
    QVERIFY(database.has_value());
    database_ = std::make_unique<session::Database>(std::move(*database));
    QVERIFY(session::createSchema(*database_).has_value());
    sink_ = std::make_unique<session::RowSink>(*database_);
    losses_.clear();
    RecorderLinks links;
    links.newThread = [this] { return ++threads_; };
    links.newKernel = [this] { return ++kernels_; };
    links.newSpan = [this] { return ++spans_; };
    links.threadOf = [](uint32_t thread) { return thread == kThread ? 1 : 0; };
    links.operatorOf = [](int32_t op) { return OperatorPlace{op == 3 ? "aten::add_" : "AddBackward0", "train.py", 40 + op}; };
    links.loss = [this](const std::string& what, int64_t count, const std::string&) { losses_[what] += count; };
    rows_ = std::make_unique<GpuRows>(std::move(links), shapes_, std::vector<GpuDevice>{});
    for (const auto& row : {"INSERT INTO t_kernel(id, name, kind, file, line) VALUES (5, 'fused_add', 'generated', 'model.py', 9)",
                            "INSERT INTO t_launch VALUES (21, 5, 1, 1000, 100, 64, 1), (22, 5, 1, 1200, 100, 64, 1)"})
      QVERIFY(database_->execute(row).has_value());
  }
  void cleanup() {
    rows_.reset();
    sink_.reset();
    database_.reset();
  }

  void aKernelFindsItsLaunch() {
    rows_->launched(1, 21, launch(1000, 100, 5));
    rows_->launched(1, 22, launch(1200, 100, 5));
    rows_->add({kernel(1, 5000, 5400), kernel(2, 5500, 6500), call(1, 1010, 1050), call(2, 1210, 1250)});
    batch(true);
    QCOMPARE(ask("SELECT name, launch_id, kernel_id, dur_ns, thread, called_ns, call_dur_ns, file, line, registers, grid FROM gpu_events"),
             (std::vector<std::string>{"fused_add|21|5|400|1|1010|40|model.py|9|48|10", "fused_add|22|5|1000|1|1210|40|model.py|9|48|10"}));
    QCOMPARE(ask("SELECT device_start_ns, device_ns FROM launches ORDER BY launch_id"), (std::vector<std::string>{"5000|400", "5500|1000"}));
    QCOMPARE(one("SELECT total_ns, min_ns, max_ns, timed_launches, device_function FROM kernels WHERE kernel_id = 5"),
             std::string("1400|400|1000|2|fused_add"));
    QCOMPARE(one("SELECT count(*) FROM flows WHERE from_ns = 1010 AND to_ns = 5000 AND from_thread = 1"), std::string("1"));
    QVERIFY(losses_.empty());
  }

  void twoKernelsOfOneLaunchAreOneTime() {
    rows_->launched(1, 21, launch(1000, 100, 5));
    rows_->add({kernel(1, 5000, 5400), kernel(2, 5500, 5600, "fused_add_1"), call(1, 1010, 1050), call(2, 1060, 1090)});
    batch();
    batch();  // the launch is over
    QCOMPARE(one("SELECT timed_launches, total_ns, min_ns, max_ns FROM kernels WHERE kernel_id = 5"), std::string("1|500|500|500"));
    QCOMPARE(one("SELECT device_ns FROM launches WHERE launch_id = 21"), std::string("500"));
  }

  void eventsWaitForTheirLaunch() {
    rows_->add({kernel(1, 5000, 5400)});
    batch();
    QCOMPARE(one("SELECT count(*) FROM gpu_events"), std::string("0"));
    rows_->add({call(1, 1010, 1050)});  // the call comes later
    batch();
    QCOMPARE(one("SELECT count(*) FROM gpu_events"), std::string("0"));
    rows_->launched(1, 21, launch(1000, 100, 5));  // the launch last
    batch();
    QCOMPARE(one("SELECT launch_id FROM gpu_events"), std::string("21"));
  }

  void afterSomePatienceTheyAreWrittenAsTheyAre() {
    rows_->add({kernel(1, 5000, 5400), kernel(9, 6000, 6100), call(9, 5990, 5995)});
    for (int i = 0; i < 7; ++i) batch();
    QCOMPARE(one("SELECT count(*), count(launch_id), count(called_ns) FROM gpu_events"), std::string("2|0|1"));
    QCOMPARE(losses_["gpu_unattributed"], int64_t{1});
  }

  void operatorsOutsideGraphsGetRows() {
    rows_->operatorRan(1, {1000, 200, 0, 3, session::kOperatorTag});
    rows_->operatorRan(1, {1300, 100, 0, 4, session::kOperatorTag});  // launched nothing: no row
    rows_->add({kernel(1, 5000, 5400, "_ZN2at6native3addIfEEvPT_"), kernel(2, 5500, 5600, "_ZN2at6native3addIfEEvPT_"), call(1, 1010, 1050),
                call(2, 1060, 1090)});
    batch(true);
    QCOMPARE(ask("SELECT operator, file, line FROM gpu_events"), (std::vector<std::string>{"aten::add_|train.py|43", "aten::add_|train.py|43"}));
    QCOMPARE(ask("SELECT kind, name, file, line FROM cpu_events"), (std::vector<std::string>{"cpu_op|aten::add_|train.py|43"}));
    QCOMPARE(one("SELECT name, kind, op, timed_launches, launches, total_ns, file, line FROM kernels WHERE kernel_id > 1000"),
             std::string("at::native::add|eager|aten::add_|2|2|500|train.py|43"));
  }

  void kernelsOfEagerOperatorsAreOfOneDevice() {
    rows_->operatorRan(1, {1000, 200, 0, 3, session::kOperatorTag});
    auto second = kernel(2, 5500, 5600, "_ZN2at6native3addIfEEvPT_");
    second.device = 1;
    rows_->add({kernel(1, 5000, 5400, "_ZN2at6native3addIfEEvPT_"), second, call(1, 1010, 1050), call(2, 1060, 1090)});
    batch(true);
    QCOMPARE(ask("SELECT device, launches, total_ns FROM kernels WHERE kernel_id > 1000 ORDER BY device"),
             (std::vector<std::string>{"cuda:0|1|400", "cuda:1|1|100"}));
  }

  void innermostOfNestedLaunches() {
    rows_->launched(1, 22, launch(1020, 40, 6));
    rows_->launched(1, 21, launch(1000, 100, 5));
    rows_->add({kernel(1, 5000, 5400), kernel(2, 5500, 5600), call(1, 1030, 1035), call(2, 1070, 1075)});
    batch(true);
    QCOMPARE(ask("SELECT launch_id FROM gpu_events"), (std::vector<std::string>{"22", "21"}));
  }

  void otherThreadsDoNotMatch() {
    rows_->launched(1, 21, launch(1000, 100, 5));
    rows_->add({kernel(1, 5000, 5400), call(1, 1010, 1050, 307, 0x1111)});
    batch(true);
    QCOMPARE(one("SELECT count(launch_id) FROM gpu_events"), std::string("0"));
  }

  void replayedGraphsAreKnownByNameWhereItIsUnique() {
    rows_->deviceFunction("fused_add", 5);
    rows_->deviceFunction("fused_twice", 6);
    rows_->deviceFunction("fused_twice", 7);
    auto a = kernel(1, 5000, 5400), b = kernel(1, 5500, 5600, "fused_twice");
    a.graph = b.graph = 3, a.graphNode = 0, b.graphNode = 1;
    rows_->launched(1, 21, launch(1000, 100, 8));
    rows_->add({a, b, call(1, 1010, 1050, 514)});
    batch(true);
    QCOMPARE(ask("SELECT kernel_id, launch_id, graph, graph_node FROM gpu_events"), (std::vector<std::string>{"5|21|3|0", "8|21|3|1"}));
    QCOMPARE(one("SELECT kind, name FROM cpu_events"), std::string("cuda_driver|cuGraphLaunch"));
  }

  void nodesOfARecordingAreKnownByTheirPlace() {
    // Recording 8: a piece with fused_twice of kernel 6 and a library's two kernels (9), and one with fused_twice of kernel 7.
    for (const char* row : {"INSERT INTO t_kernel(id, name, kind, op) VALUES (6, 'a', 'generated', NULL), (7, 'b', 'generated', NULL), "
                            "(8, 'f recording 0', 'cuda_graph', NULL), (9, 'mm', 'extern', 'aten::mm')",
                            "INSERT INTO t_cuda_graph(id, compile_id, event, number, nodes, stretches, kernel_id, time_ns) VALUES "
                            "(1, 1, 'warm_up', NULL, NULL, NULL, NULL, 5), (2, 1, 'recorded', 0, 4, 2, 8, 10)",
                            "INSERT INTO t_cuda_graph_node VALUES (2, 0, 0, 1, 1, 6), (2, 0, 1, 2, 2, 9), (2, 2, 0, 1, 3, 7)",
                            "INSERT INTO t_launch VALUES (31, 8, 0, 1000, 100, 0, 1), (32, 8, 0, 3000, 100, 0, 1)",
                            "INSERT INTO t_launch_stats VALUES (8, 0, 2, 200, 100, 100, 0, 1000, 3100)"})
      QVERIFY(database_->execute(row).has_value());
    rows_->deviceFunction("fused_twice", 6);
    rows_->deviceFunction("fused_twice", 7);
    rows_->graphRecorded({8, 1, 400, 500, {{2, 0, 1, 7}, {0, 0, 1, 6}, {0, 1, 2, 9}}});
    uint32_t correlation = 0;
    for (const int64_t start : {400, 1000, 3000}) {  // the first is the recording's own run: no replay
      if (start > 400) rows_->launched(1, start == 1000 ? 31 : 32, launch(start, 100, 8));
      std::vector<Activity> events;
      const auto node = [&](uint32_t graph, uint32_t number, const char* symbol, int64_t at, int64_t takes) {
        auto a = kernel(correlation, at, at + takes, symbol);
        a.graph = graph, a.graphNode = number;
        events.push_back(a);
      };
      ++correlation;
      node(3, 0, "fused_twice", start + 200, 10);
      node(3, 1, "sgemm", start + 220, 20);
      node(3, 2, "splitK", start + 250, 5);
      events.push_back(call(correlation, start + 10, start + 20, 514));
      ++correlation;
      node(4, 0, "fused_twice", start + 300, 40);
      events.push_back(call(correlation, start + 50, start + 60, 514));
      rows_->add(std::move(events));
    }
    batch(true);
    QCOMPARE(ask("SELECT graph, graph_node, kernel_id, coalesce(launch_id, 0) FROM gpu_events ORDER BY start_ns LIMIT 8"),
             (std::vector<std::string>{"3|0|6|0", "3|1|9|0", "3|2|9|0", "4|0|7|0", "3|0|6|31", "3|1|9|31", "3|2|9|31", "4|0|7|31"}));
    // The replay is the sum of its nodes.
    QCOMPARE(ask("SELECT kernel_id, timed_launches, total_ns FROM kernels WHERE timed_launches > 0 ORDER BY 1"),
             (std::vector<std::string>{"6|3|30", "7|3|120", "8|2|150", "9|4|75"}));
    auto reader = session::Reader::open(path_);
    QVERIFY(reader.has_value());
    auto graphs = query::cudaGraphs(**reader);
    QVERIFY(graphs.has_value());
    QCOMPARE(graphs->size(), size_t{2});
    const auto& recording = graphs->back();
    QVERIFY(recording.isRecording() && !graphs->front().isRecording());
    QCOMPARE((std::vector<int64_t>{recording.replays, recording.hostNs, recording.timedReplays, recording.deviceNs}), (std::vector<int64_t>{2, 200, 2, 150}));
    auto nodes = query::cudaGraphNodes(**reader, recording);
    QVERIFY(nodes.has_value());
    QCOMPARE(nodes->size(), size_t{3});
    QCOMPARE((*nodes)[1].name, std::string("mm"));
    QCOMPARE((std::vector<int64_t>{(*nodes)[0].deviceNs, (*nodes)[1].deviceNs, (*nodes)[1].events, (*nodes)[2].deviceNs}), (std::vector<int64_t>{20, 50, 4, 80}));
    auto replays = query::cudaGraphReplays(**reader, recording);
    QVERIFY(replays.has_value());
    QCOMPARE(replays->size(), size_t{2});
    QCOMPARE((std::vector<int64_t>{replays->back().launch, replays->back().deviceStartNs, replays->back().deviceNs, replays->back().spanNs}),
             (std::vector<int64_t>{32, 3200, 75, 140}));
    QCOMPARE(query::recordingOfKernel(**reader, *graphs, 9).value_or(-2), 1);
    QCOMPARE(query::recordingOfKernel(**reader, *graphs, 8).value_or(-2), 1);
    QCOMPARE(query::recordingOfKernel(**reader, *graphs, 5).value_or(-2), -1);
  }

  void aNameThatIsNotTheNodesWins() {
    rows_->deviceFunction("fused_add", 5);
    rows_->deviceFunction("fused_other", 6);
    rows_->graphRecorded({8, 1, 400, 500, {{0, 0, 1, 6}}});
    rows_->launched(1, 31, launch(1000, 100, 8));
    auto a = kernel(1, 5000, 5400);  // fused_add where the recording has fused_other: the order did not tell the graph
    a.graph = 3;
    rows_->add({a, call(1, 1010, 1050, 514)});
    batch(true);
    QCOMPARE(one("SELECT kernel_id FROM gpu_events"), std::string("5"));
  }

  void countersFindTheirKernels() {
    rows_->counted().expect({"dram__bytes_read.sum", "my.pct"}, 0);
    auto elsewhere = kernel(6, 5200, 5700, "on another device");  // at the same time: not one of those that are counted
    elsewhere.device = 1;
    rows_->add({elsewhere, call(6, 1005, 1008)});
    rows_->launched(1, 21, launch(1000, 100, 5));
    rows_->launched(1, 22, launch(1200, 100, 5));
    // CUPTI puts a kernel of its own behind each that it counts; two windows, the second without room for its last kernel.
    rows_->add({kernel(1, 900, 950, "before"), kernel(2, 5000, 5400), kernel(2, 5450, 5490, "WaitNs", 6), kernel(3, 5500, 5600, "other"),
                kernel(4, 8000, 8100), kernel(5, 8200, 8300), call(2, 1010, 1050), call(3, 1060, 1070), call(4, 1210, 1220), call(5, 1230, 1240)});
    rows_->counted().add({4000, 7000, {64, 10, 32, NAN}, 0, false});
    rows_->counted().add({7500, 9000, {128, 30}, 0, true});
    rows_->counted().add({9500, 9900, {1, 1, 2, 2}, 0, false});  // two ranges where nothing ran: whose they are is not known
    batch(true);
    QCOMPARE(ask("SELECT e.name, c.metric, c.value, c.kernel_id, c.launch_id FROM gpu_counters c JOIN gpu_events e USING(event_id) ORDER BY e.start_ns, c.metric"),
             (std::vector<std::string>{"fused_add|dram__bytes_read.sum|64|5|21", "fused_add|my.pct|10|5|21", "other|dram__bytes_read.sum|32|5|21",
                                       "fused_add|dram__bytes_read.sum|128|5|22", "fused_add|my.pct|30|5|22"}));
    QCOMPARE(one("SELECT count(*) FROM gpu_events WHERE name = 'WaitNs'"), std::string("0"));
    QCOMPARE(losses_["gpu_counters"], int64_t{1});
    QCOMPARE(losses_["gpu_counters_unmatched"], int64_t{2});
    auto reader = session::Reader::open(path_);
    QVERIFY(reader.has_value());
    auto counters = query::kernelCounters(**reader, 5);
    QVERIFY(counters.has_value());
    QCOMPARE(counters->size(), size_t{2});
    QCOMPARE(counters->front().title, std::string("DRAM read"));
    QCOMPARE((std::vector<double>{counters->front().mean, counters->front().least, counters->front().most}), (std::vector<double>{224.0 / 3, 32, 128}));
    QCOMPARE(counters->back().mean, (10.0 * 400 + 30.0 * 100) / 500);  // weighted by time
    QCOMPARE(query::counterText(query::KernelCounter::Unit::Bytes, 3 << 20), std::string("3 MiB"));
  }

  void lanesHavePyramids() {
    std::vector<Activity> many;
    for (uint32_t i = 0; i < 9000; ++i) {
      many.push_back(kernel(i + 1, 10'000'000 + i * 1000, 10'000'000 + i * 1000 + 600, "k", i % 2 ? 7 : 13));
      many.push_back(call(i + 1, 1000 + i, 1001 + i));
    }
    rows_->add(std::move(many));
    batch(true);
    QCOMPARE(one("SELECT count(DISTINCT lane), count(*) FROM gpu_events"), std::string("2|9000"));
    QCOMPARE(one("SELECT sum(count) FROM timeline WHERE track = 'gpu' AND level = 12"), std::string("9000"));
    QCOMPARE(ask("SELECT name FROM threads WHERE name LIKE 'GPU%' ORDER BY name"),
             (std::vector<std::string>{"GPU 0, stream 13", "GPU 0, stream 7"}));
  }
};

QTEST_GUILESS_MAIN(RowsTest)
#include "rows_test.moc"
