// Nsight Systems exports, Perfetto traces and TORCH_COMPILE_DEBUG folders.
#include <sqlite3.h>
#include <unistd.h>

#include <QDir>
#include <QFile>
#include <QFileInfo>
#include <QScopeGuard>

#include <filesystem>
#include <set>

#include "profiler/export/proto_writer.h"
#include "profiler/query/other_recordings.h"
#include "profiler/query/slowness.h"
#include "profiler/query/steps.h"
#include "profiler/session/sqlite.h"
#include "tests/profiler/importers/imported.h"

using namespace fusebox;
using exporting::ProtoWriter;
using test::Imported;

namespace {

std::string packet(const ProtoWriter& fields, uint64_t sequence = 7) {
  ProtoWriter copy = fields;
  copy.number(10, sequence);
  return ProtoWriter().message(1, copy).bytes();
}
ProtoWriter spanEvent(uint64_t type, uint64_t track) { return ProtoWriter().number(9, type).number(11, track); }

}  // namespace

class OtherTracesTest : public QObject {
  Q_OBJECT
  Imported in_;

 private slots:
  // Numbers by sqlite3 over the same file.
  void nsightByNode() {
    QVERIFY2(in_.open(in_.inflated("nsight_node.sqlite.gz", "node.sqlite")), in_.error().text().c_str());
    COMPARE_ROWS(in_, "SELECT kind, count(*) FROM gpu_events GROUP BY kind ORDER BY kind", "kernel,27;memcpy,6;sync,7");
    COMPARE_ROWS(in_, "SELECT kind, count(*) FROM cpu_events GROUP BY kind ORDER BY kind",
                 "cuda_driver,918;cuda_graph,6;cuda_runtime,127;nvtx,9;overhead,4");
    QCOMPARE(in_.number("SELECT count(*) FROM launches"), int64_t{33});
    COMPARE_ROWS(in_, "SELECT DISTINCT t.name FROM launches l JOIN threads t USING(thread) ORDER BY 1",
                 "GPU 0 stream 17;GPU 0 stream 21;GPU 0 stream 25;GPU 0 stream 7");
    COMPARE_ROWS(in_, "SELECT value FROM session_info WHERE key = 'device'", "NVIDIA H200");
    QVERIFY(in_.number("SELECT count(*) FROM losses WHERE what = 'nsight_Warning'") == 1);
  }

  void nsightCompressed() {
    QVERIFY2(in_.open(Imported::data("nsight_node.sqlite.gz")), in_.error().text().c_str());
    COMPARE_ROWS(in_, "SELECT kind, count(*) FROM gpu_events GROUP BY kind ORDER BY kind", "kernel,27;memcpy,6;sync,7");
    QCOMPARE(in_.number("SELECT count(*) FROM losses WHERE what = 'end_of_file'"), int64_t{0});
    const std::string whole = Imported::read(Imported::data("nsight_node.sqlite.gz"));
    in_.open(in_.write("cut.sqlite.gz", whole.substr(0, whole.size() / 2)));  // what is left is read or refused
    if (in_.error().message.empty()) QCOMPARE(in_.number("SELECT count(*) FROM losses WHERE what = 'end_of_file'"), int64_t{1});
    // Nothing that was unpacked stays.
    for (const auto& entry : std::filesystem::recursive_directory_iterator(in_.path("cache")))
      QVERIFY2(entry.path().extension() != ".part", entry.path().c_str());
  }

  /// Launch geometry, registers, shared and local memory as the export's own table has them; the warps that they let a multiprocessor hold.
  void nsightKernelsHaveTheirLaunchShapes() {
    const std::string path = in_.inflated("nsight_node.sqlite.gz", "node.sqlite");
    QVERIFY(in_.open(path));
    std::multiset<std::string> expected, found;
    auto foreign = session::Database::openForReading(path, true);
    QVERIFY(foreign);
    auto rows = foreign->prepare("SELECT gridX, gridY, gridZ, blockX, blockY, blockZ, registersPerThread, staticSharedMemory + dynamicSharedMemory, localMemoryPerThread FROM CUPTI_ACTIVITY_KIND_KERNEL");
    QVERIFY(rows);
    const auto sizes = [](const std::string& x, const std::string& y, const std::string& z) { return y == "1" && z == "1" ? x : x + " x " + y + " x " + z; };
    for (auto row = rows->step(); row && *row; row = rows->step()) {
      std::string line = sizes(std::string(rows->textAt(0)), std::string(rows->textAt(1)), std::string(rows->textAt(2))) + "|" + sizes(std::string(rows->textAt(3)), std::string(rows->textAt(4)), std::string(rows->textAt(5)));
      for (int c : {6, 7, 8}) line += "|" + std::string(rows->textAt(c));
      expected.insert(line);
    }
    QVERIFY(in_.reader().each("SELECT grid, block, registers, shared_bytes, local_bytes, occupancy FROM gpu_events WHERE kind = 'kernel'", {}, [&](const session::Statement& s) {
      found.insert(std::string(s.textAt(0)) + "|" + std::string(s.textAt(1)) + "|" + std::string(s.textAt(2)) + "|" + std::string(s.textAt(3)) + "|" + std::string(s.textAt(4)));
      QVERIFY(s.realAt(5) > 0 && s.realAt(5) <= 1);
    }));
    QVERIFY(!expected.empty());
    QVERIFY(found == expected);
    // 80 registers of 64 threads: a warp takes 2560 of a quarter's 16384, 6 fit; 24 of 64 warps, in blocks of two.
    COMPARE_ROWS(in_, "SELECT DISTINCT e.occupancy, k.occupancy_limit FROM gpu_events e JOIN kernels k ON k.kernel_id = e.kernel_id WHERE e.registers = 80", "0.375,registers");
    COMPARE_ROWS(in_, "SELECT name, multiprocessors, capability, peak_bytes_per_s FROM gpu_devices", "NVIDIA H200,132,90,4814304000000");
  }

  /// Of every kernel the number of launches and the times that the export's own tables add up to; of copies and fills the same.
  void nsightSumsAreThoseOfTheExport() {
    const std::string plain = in_.inflated("nsight_node.sqlite.gz", "sums.sqlite");
    const auto foreign = session::Database::openForReading(plain);
    QVERIFY(foreign);
    QVERIFY(in_.open(plain));
    const auto rowsOf = [&](const char* sql) {
      std::string out;
      auto rows = foreign->prepare(sql);
      for (Result<bool> row = rows ? rows->step() : Result<bool>(false); row && *row; row = rows->step())
        out += (out.empty() ? "" : ";") + std::string(rows->textAt(0)) + "," + std::to_string(rows->integerAt(1)) + "," + std::to_string(rows->integerAt(2)) + "," + std::to_string(rows->integerAt(3)) + "," + std::to_string(rows->integerAt(4));
      return out;
    };
    const std::string kernels = rowsOf("SELECT s.value, count(*), sum(end - start), min(end - start), max(end - start) FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN StringIds s ON s.id = k.demangledName GROUP BY 1 ORDER BY 1");
    QVERIFY(std::count(kernels.begin(), kernels.end(), ';') > 3);
    QCOMPARE(in_.rows("SELECT name, count(*), sum(dur_ns), min(dur_ns), max(dur_ns) FROM gpu_events WHERE kind = 'kernel' GROUP BY 1 ORDER BY 1"), kernels);
    QCOMPARE(in_.rows("SELECT name, launches, total_ns, min_ns, max_ns FROM kernels WHERE name IN (SELECT name FROM gpu_events WHERE kind = 'kernel') ORDER BY 1"), kernels);
    // Calls of CUDA as `nsys stats` prints them, without the version in their name, and ranges of the program.
    const std::string calls = rowsOf("SELECT CASE WHEN s.value GLOB '*_v[0-9][0-9][0-9][0-9]' THEN substr(s.value, 1, length(s.value) - 6) WHEN s.value GLOB '*_v[0-9][0-9][0-9][0-9][0-9]' "
        "THEN substr(s.value, 1, length(s.value) - 7) ELSE s.value END, count(*), sum(end - start), min(end - start), max(end - start) FROM CUPTI_ACTIVITY_KIND_RUNTIME r JOIN StringIds s ON s.id = r.nameId GROUP BY 1 ORDER BY 1");
    QVERIFY(std::count(calls.begin(), calls.end(), ';') > 10);
    QCOMPARE(in_.rows("SELECT name, count(*), sum(dur_ns), min(dur_ns), max(dur_ns) FROM cpu_events WHERE kind IN ('cuda_runtime', 'cuda_driver') GROUP BY 1 ORDER BY 1"), calls);
    const std::string ranges = rowsOf("SELECT coalesce(text, (SELECT value FROM StringIds s WHERE s.id = textId)), count(*), sum(end - start), min(end - start), max(end - start) FROM NVTX_EVENTS WHERE eventType = 59 GROUP BY 1 ORDER BY 1");
    QVERIFY(!ranges.empty());
    QCOMPARE(in_.rows("SELECT name, count(*), sum(dur_ns), min(dur_ns), max(dur_ns) FROM cpu_events WHERE kind = 'nvtx' GROUP BY 1 ORDER BY 1"), ranges);
    const std::string waits = rowsOf("SELECT 'waits', count(*), sum(end - start), min(end - start), max(end - start) FROM CUPTI_ACTIVITY_KIND_SYNCHRONIZATION");
    QCOMPARE(in_.rows("SELECT 'waits', count(*), sum(dur_ns), min(dur_ns), max(dur_ns) FROM gpu_events WHERE kind = 'sync'"), waits);
    const std::string copies = rowsOf("SELECT 'bytes', count(*), sum(end - start), sum(bytes), 0 FROM CUPTI_ACTIVITY_KIND_MEMCPY");
    QCOMPARE(in_.rows("SELECT 'bytes', count(*), sum(dur_ns), sum(bytes), 0 FROM gpu_events WHERE kind = 'memcpy'"), copies);
  }

  /// Ranges that the program counts are its steps: "step 0" to "step 2" of the file, as sqlite3 has them.
  void nsightStepsAreThoseOfTheProgram() {
    QVERIFY(in_.open(in_.inflated("nsight_node.sqlite.gz", "node.sqlite")));
    const auto steps = query::findSteps(in_.reader());
    QVERIFY(steps);
    QCOMPARE(steps->how, std::string("marked by the program (step 0 … step 2)"));
    std::vector<int64_t> expected;
    QVERIFY(in_.reader().each("SELECT dur_ns FROM cpu_events WHERE kind = 'nvtx' AND name LIKE 'step %' ORDER BY start_ns", {}, [&](const session::Statement& s) { expected.push_back(s.integerAt(0)); }));
    QCOMPARE(steps->steps.size(), size_t{3});
    for (size_t i = 0; i < 3; ++i) QCOMPARE(steps->steps[i].ns(), expected.at(i));
    // The first is the warm-up, a hundred times as long: it is not in the split of a typical one.
    const auto why = query::whySlow(in_.reader());
    QVERIFY(why);
    QCOMPARE(why->steps, int64_t{3});
    QCOMPARE(why->looked, int64_t{2});
    QCOMPARE(why->medianNs, static_cast<double>(expected[1]));
  }

  void nsightKernelsKnowTheirCall() {
    QVERIFY(in_.open(in_.inflated("nsight_node.sqlite.gz", "node.sqlite")));
    COMPARE_ROWS(in_,
                 "SELECT e.name LIKE 'cuLaunchKernel%', g.dur_ns, g.start_ns > e.start_ns FROM gpu_events g JOIN flows "
                 "f ON f.to_event_id = g.event_id "
                 "JOIN cpu_events e ON e.event_id = f.from_event_id JOIN kernels k USING(kernel_id) WHERE k.kind = "
                 "'generated' LIMIT 1",
                 "1,1248,1");
    // Nodes of a replayed graph all follow its launch.
    QVERIFY(in_.number("SELECT max(n) FROM (SELECT count(*) AS n FROM flows GROUP BY from_event_id)") > 1);
  }

  void nsightGraphsWhole() {
    QVERIFY(in_.open(in_.inflated("nsight_graph.sqlite.gz", "graph.sqlite")));
    COMPARE_ROWS(in_, "SELECT k.op, k.launches FROM kernels k WHERE name LIKE 'CUDA graph %'", "cuda graph,3");
    // 1795253918989982057 is the moment 0 of the export; the first NVTX range begins 9778222 ns later.
    QCOMPARE(in_.number("SELECT i.value + e.start_ns - s.value FROM session_info i, session_info s, cpu_events e WHERE "
                        "i.key = 'start_unix_ns' "
                        "AND s.key = 'start_ns' AND e.kind = 'nvtx' AND e.name = 'step 0'"),
             int64_t{1795253918989982057 + 9778222});
  }

  void nsightLosesWhatIsDamaged() {
    const std::string path = in_.inflated("nsight_node.sqlite.gz", "damaged.sqlite");
    std::string bytes = Imported::read(path);
    for (size_t at = 8 * 4096; at < 24 * 4096; ++at) bytes[at] = static_cast<char>(at * 7);
    in_.open(in_.write("damaged.sqlite", bytes));  // what is left depends on the pages; it must be read or refused
    if (in_.error().message.empty()) QVERIFY(in_.number("SELECT count(*) FROM losses WHERE what = 'tables'") > 0);
    // A table of our names that is a view is not asked.
    sqlite3* db = nullptr;
    sqlite3_open(in_.path("view.sqlite").c_str(), &db);
    sqlite3_exec(
        db,
        "CREATE TABLE StringIds(id INTEGER PRIMARY KEY, value TEXT); CREATE VIEW NVTX_EVENTS AS WITH RECURSIVE c(x) AS "
        "(SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x AS start, x AS end FROM c",
        nullptr, nullptr, nullptr);
    sqlite3_close(db);
    QVERIFY(!in_.open(in_.path("view.sqlite")));
    QCOMPARE(in_.error().code, ErrorCode::Corrupt);
  }

  void perfettoEvents() {
    ProtoWriter snapshot;
    snapshot.message(1, ProtoWriter().number(1, 6).number(2, 1000))
        .message(1, ProtoWriter().number(1, 1).number(2, 5001000));
    snapshot.message(1, ProtoWriter().number(1, 64).number(2, 500).number(4, 1000));  // a clock of microseconds
    ProtoWriter names;
    names.message(1, ProtoWriter().number(1, 3).text(2, "kernel"))
        .message(2, ProtoWriter().number(1, 4).text(2, "triton_poi_0"));
    names.message(3, ProtoWriter().number(1, 5).text(2, "correlation"));
    std::string trace =
        packet(ProtoWriter().message(6, snapshot).number(13, 1)) +
        packet(ProtoWriter().message(60, ProtoWriter().number(1, 11).text(2, "main"))) +
        packet(ProtoWriter().message(60, ProtoWriter().number(1, 12).number(5, 11).text(2, "stream 7"))) +
        packet(ProtoWriter().message(12, names)) +
        packet(ProtoWriter().number(8, 2000).message(11, spanEvent(1, 11).text(23, "outer").text(22, "python"))) +
        packet(ProtoWriter().number(8, 502).number(58, 64).message(
            11, spanEvent(1, 12).number(10, 4).number(3, 3).message(4, ProtoWriter().number(1, 5).number(4, 77)))) +
        packet(ProtoWriter().number(8, 504).number(58, 64).message(11, spanEvent(2, 12))) +
        packet(ProtoWriter().number(8, 2500).message(11, spanEvent(3, 11).text(23, "mark"))) +
        packet(ProtoWriter().number(8, 9000).message(11, spanEvent(2, 11))) +
        packet(ProtoWriter().text(1, "scheduling")) +
        packet(ProtoWriter().number(8, 9500).message(11, spanEvent(1, 11).text(23, "open"))) +
        packet(ProtoWriter().number(42, 1).number(8, 9900).message(11, spanEvent(2, 12)));
    QVERIFY2(in_.open(in_.write("t.pftrace", trace)), in_.error().text().c_str());
    COMPARE_ROWS(in_, "SELECT kind, name, start_ns, dur_ns FROM cpu_events ORDER BY start_ns",
                 "python,outer,2000,7000;instant,mark,2500,0;span,open,9500,0");
    COMPARE_ROWS(in_,
                 "SELECT g.name, g.start_ns, g.dur_ns, g.correlation, t.name FROM gpu_events g JOIN threads t "
                 "ON t.thread = g.lane JOIN launches USING(launch_id)",
                 "triton_poi_0,3000,2000,77,main · stream 7");
    COMPARE_ROWS(in_, "SELECT what, count FROM losses ORDER BY what",
                 "dropped_packets,1;other_packets,1;unfinished_spans,1;unmatched_ends,1");
    COMPARE_ROWS(in_, "SELECT value FROM session_info WHERE key = 'start_unix_ns'", "5002000");
    // Cut inside the last packet.
    QVERIFY(in_.open(in_.write("cut.pftrace", trace.substr(0, trace.size() - 5))));
    COMPARE_ROWS(in_, "SELECT detail FROM losses WHERE what = 'end_of_file'", "the file is cut short");
  }

  void compileDebugFolder() {
    QVERIFY2(in_.open(Imported::data("compile_debug")), in_.error().text().c_str());
    COMPARE_ROWS(in_, "SELECT stage, direction, node_count FROM graphs ORDER BY graph_id",
                 "forward,inference,24;post_grad,inference,24;post_fusion,inference,24");
    COMPARE_ROWS(in_, "SELECT name, kind, node_count FROM fusion_groups ORDER BY position",
                 "cpp_fused_native_layer_norm_0,loops,7;extern_kernels.mm,extern,1;cpp_fused__softmax_amax_1,loops,6;"
                 "extern_kernels.mm,extern,1;"
                 "cpp_fused_add_tanh_2,loops,2");
    COMPARE_ROWS(in_, "SELECT name, dtype, shape, bytes, device FROM buffers WHERE name = 'buf3'",
                 "buf3,float32,[32, 64],8192,cpu");
    COMPARE_ROWS(in_, "SELECT count(*) FROM artifacts WHERE name = 'ir_pre_fusion.txt' AND length(text) > 1000", "1");
    // One model's folder by itself.
    for (const auto& entry : std::filesystem::recursive_directory_iterator(Imported::data("compile_debug"))) {
      if (entry.path().filename() == "model__0_inference_0.0") QVERIFY(in_.open(entry.path().string()));
    }
    QCOMPARE(in_.number("SELECT count(*) FROM graphs"), int64_t{3});
    QVERIFY(!in_.open(in_.path(".")));
  }

  /// Where the user has no folder of their own, sessions lie where nobody else could have put something: not behind a link of another.
  /// A folder of several kinds is read as one of them, and says what else is there.
  void foldersSayWhatElseTheyHold() {
    namespace fs = std::filesystem;
    const fs::path mixed = in_.path("mixed");
    fs::create_directories(mixed);
    fs::copy(Imported::data("compile_debug"), mixed / "debug", fs::copy_options::recursive);
    for (const char* name : {"cpu_sums.json.gz", "compiled_plain.json.gz", "exported.pt2"}) fs::copy(Imported::data(name), mixed / name);
    QVERIFY(in_.open(mixed.string()));
    COMPARE_ROWS(in_, "SELECT what, count, detail FROM losses WHERE what LIKE 'other %' ORDER BY 1",
                 "other recording: Chrome or Kineto trace (JSON, also .gz),2,not read with this folder; open it by itself: compiled_plain.json.gz;"
                 "other recording: exported program (.pt2),1,not read with this folder; open it by itself: exported.pt2");
    const auto others = query::otherRecordings(in_.reader());  // to choose from
    QCOMPARE(others.size(), size_t{3});
    for (const auto& other : others) QVERIFY2(in_.open((mixed / other.file).string()), other.file.c_str());
    QVERIFY(in_.open(Imported::data("tlparse")));
    COMPARE_ROWS(in_, "SELECT count(*) FROM losses WHERE what LIKE 'other %'", "0");
    QVERIFY(query::otherRecordings(in_.reader()).empty());
  }

  void theSpareFolderIsNoLink() {
    QTemporaryDir home, temporary, elsewhere;
    const auto changed = [](const char* name, const QByteArray& value) {
      const QByteArray before = qgetenv(name);
      qputenv(name, value);
      return qScopeGuard([name, before] { before.isNull() ? qunsetenv(name) : qputenv(name, before); });
    };
    const QString taken = home.filePath("taken");  // a file where a folder would have to be
    QVERIFY(QFile(taken).open(QIODevice::WriteOnly));
    const auto cache = changed("XDG_CACHE_HOME", taken.toUtf8());
    const auto temp = changed("TMPDIR", temporary.path().toUtf8());
    const QString name = temporary.filePath(QStringLiteral("fusebox-%1").arg(getuid()));
    const QString own = QString::fromStdString(importing::cacheFolder());
    QCOMPARE(own, name + "/imported");
    QCOMPARE(QFileInfo(own).permissions() & (QFileDevice::ReadGroup | QFileDevice::WriteGroup | QFileDevice::ReadOther | QFileDevice::WriteOther), QFileDevice::Permissions());
    QVERIFY(QDir(name).removeRecursively());
    QVERIFY(QFile::link(elsewhere.path(), name));
    const QString spare = QString::fromStdString(importing::cacheFolder());
    QVERIFY2(spare.startsWith(name + "-"), qPrintable(spare));
    QVERIFY(QFileInfo(spare).isDir() && !QFileInfo(spare).isSymLink());
    QVERIFY(QDir(elsewhere.path()).isEmpty());
    QCOMPARE(QString::fromStdString(importing::cacheFolder()), spare);
    QVERIFY(QDir(spare).removeRecursively());
  }
};

QTEST_GUILESS_MAIN(OtherTracesTest)
#include "other_traces_test.moc"
