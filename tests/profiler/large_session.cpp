#include "tests/profiler/large_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "profiler/session/launch_store.h"
#include "profiler/session/migrations.h"
#include "profiler/session/pyramid_builder.h"
#include "profiler/session/schema.h"

namespace fusebox::test {
namespace {

using session::Cell;
using session::RowKind;
using session::RowSink;

constexpr int64_t kStartNs = 1'000'000'000, kPeriodNs = 2'000, kKernelNs = 6'000;  // a kernel starts each period, on the next stream
constexpr int kStreams = 4, kFrames = 1'000, kEntries = 10;                         // compilations of a function
constexpr int64_t kCompiles = int64_t{kFrames} * kEntries;
constexpr int kThread = 1, kFirstLane = 10, kCallsOfStep = 20;

std::string fileOf(int64_t frame) { return fmt::format("/home/user/model/part_{:02}.py", frame % 100); }
int64_t lineOf(int64_t frame) { return 10 + 40 * (frame / 100); }

struct Writer {
  session::Database& database;
  RowSink& sink;
  const LargeOptions& options;
  int64_t done = 0;

  int64_t endNs() const { return kStartNs + options.events * kPeriodNs; }
  Result<void> commitNowAndThen() { return ++done % 200'000 == 0 ? database.execute("COMMIT; BEGIN") : Result<void>(); }

  void frames();
  Result<void> compiles();
  void compileRows(int64_t compile, int64_t each);
  Result<void> events();
  Result<void> spans();
};

void Writer::frames() {
  for (int64_t f = 1; f <= kFrames; ++f) {
    sink.put(RowKind::Frame, {f, Cell{}, std::string("forward"), fmt::format("Layer{}.forward", f), fileOf(f), lineOf(f), Cell{},
                              std::string("compiled"), Cell{}, kStartNs});
  }
  for (int64_t file = 0; file < 100; ++file) {
    std::string text;
    for (int line = 1; line <= 440; ++line) text += fmt::format("    x{} = torch.relu(self.linear_{}(x{}))\n", line, line % 7, line - 1);
    const auto bytes = static_cast<int64_t>(text.size());
    sink.put(RowKind::SourceFile, {file + 1, fileOf(file), std::move(text), bytes, Cell{}, int64_t{0}, kStartNs});
  }
}

void Writer::compileRows(int64_t c, int64_t each) {
  const int64_t frame = (c - 1) / kEntries + 1, attempt = (c - 1) % kEntries;
  const std::string file = fileOf(frame);
  const int64_t line = lineOf(frame), first = (c - 1) * each;
  const int64_t began = kStartNs + (endNs() - kStartNs) / 50 * c / kCompiles;
  sink.put(RowKind::Compile, {c, frame, Cell{}, attempt, std::string("forward"), std::string("inductor"), Cell{}, Cell{}, began, began + 30'000,
                              std::string("ok"), Cell{}, std::string("miss"), Cell{}, attempt > 0 ? Cell{first - 1} : Cell{}, int64_t{kThread}, file, line});
  sink.put(RowKind::Graph, {c, c, std::string("post_grad"), std::string("forward"), fmt::format("forward_{}", c), Cell{}, each, each - 1,
                            int64_t{1}, int64_t{1}, Cell{}, began});
  for (int64_t i = 1; i <= each; ++i) {
    const int64_t id = first + i, at = line + i % 30;
    sink.put(RowKind::Stage, {id, c, Cell{}, int64_t{0}, std::string("inductor"), fmt::format("pass_{}", i % 60), began + i * 100, began + i * 100 + 90,
                              int64_t{kThread}, int64_t{i % 9 == 0}, each, each, Cell{}, Cell{}});
    sink.put(RowKind::Guard, {id, c, i, std::string(i % 3 ? "TENSOR_MATCH" : "EQUALS_MATCH"), fmt::format("L['self'].layers[{}].weight", i),
                              std::string("float32[64, 64]"), fmt::format("check_tensor(L['self'].layers[{}].weight)", i), Cell{}, file, at, Cell{}});
    sink.put(RowKind::GuardFailure, {id, frame, c, id, std::string("TENSOR_MATCH L['x']"), fmt::format("float32[{}, 64]", attempt + 1),
                                     fmt::format("float32[{}, 64]", attempt + 2), std::string(i == each ? "recompile" : "next entry"), file, at, began, Cell{}});
    sink.put(RowKind::GraphBreak, {id, frame, c, std::string("unsupported call"), fmt::format("print of a traced tensor, the {}th", i % 30),
                                   std::string("move the print out of the compiled code"), file, at, at, int64_t{4}, int64_t{20},
                                   std::string("CALL"), int64_t{34}, Cell{}, began, Cell{}});
    sink.put(RowKind::Node, {id, c, i - 1, fmt::format("relu_{}", i), std::string("call"), std::string(i % 4 ? "aten::relu" : "aten::mm"), Cell{},
                             std::string("float32"), std::string("[64, 64]"), std::string("[64, 1]"), std::string("cuda:0"), Cell{}, int64_t{16384},
                             int64_t{0}, fmt::format("layers.{}", i), file, at, std::string("forward"), Cell{}});
    if (i > 1) sink.putIntegers(RowKind::Edge, {c, id - 1, id, 0, 0});
    sink.put(RowKind::Kernel, {id, c, c, id, fmt::format("fused_relu_{}_{}", c, i), std::string("generated"), Cell{}, std::string("cuda:0"), Cell{},
                               Cell{}, int64_t{16384}, int64_t{16384}, int64_t{4096}, file, at, began, Cell{}});
    sink.put(RowKind::FusionGroup, {id, c, c, i - 1, fmt::format("fused_relu_{}_{}", c, i), std::string("pointwise"), id, int64_t{16384}, int64_t{16384},
                                    int64_t{8192}, Cell{}, file, at});
    sink.putIntegers(RowKind::FusionMember, {id, id, 0, 0});
    sink.put(RowKind::FusionDecision, {id, c, c, i - 1, fmt::format("relu_{}", i), fmt::format("relu_{}", i + 1), id, id + 1, id, std::string("vertical"),
                                       i % 2, std::string("the consumer reads what the producer writes"), Cell{}, int64_t{8192}});
    sink.put(RowKind::Buffer, {id, c, c, fmt::format("buf{}", i), std::string("planned"), id, std::string("float32"), std::string("[64, 64]"),
                               std::string("cuda:0"), int64_t{16384}, i - 1, i, i % 4 * 16384, Cell{}});
    sink.put(RowKind::Artifact, {id, c, c, std::string("inductor_output_code"), fmt::format("code_{}", id), std::string("text"),
                                 fmt::format("def call(args):\n    return args[{}]\n", i), Cell{}, Cell{}, began, int64_t{kThread}});
  }
}

Result<void> Writer::compiles() {
  const int64_t each = std::max<int64_t>(2, options.rows / kCompiles);
  for (int64_t c = 1; c <= kCompiles; ++c) {
    compileRows(c, each);
    if (c % 1000 == 0) {
      if (auto set = database.execute("COMMIT; BEGIN"); !set) return set;
    }
  }
  return {};
}

Result<void> Writer::events() {
  struct Lane {
    session::PyramidBuilder pyramid;
    int64_t firstId = 0, startNs = 0, rows = 0;
  };
  std::vector<Lane> lanes;
  sink.put(RowKind::Thread, {int64_t{kThread}, int64_t{4711}, std::string("python")});
  sink.put(RowKind::GpuShape, {int64_t{1}, std::string("fused_relu"), Cell{}, int64_t{0}, std::string("32"), std::string("256"), int64_t{256},
                               int64_t{32}, int64_t{0}, int64_t{0}, int64_t{0}, 0.5, std::string("registers")});
  for (int s = 0; s < kStreams; ++s) {
    lanes.push_back({session::PyramidBuilder(2, kFirstLane + s)});
    sink.put(RowKind::Thread, {int64_t{kFirstLane + s}, Cell{}, fmt::format("GPU 0, stream {}", 7 + s)});
  }
  session::LaunchStore store(sink, options.events);
  session::LaunchRing ring(kThread);
  const int64_t used = std::min<int64_t>(std::max<int64_t>(2, options.rows / kCompiles) * kCompiles, 50'000);  // kernels that run
  std::vector<int64_t> runs(static_cast<size_t>(used));
  const int64_t launchesOfCall = std::max<int64_t>(1, std::min<int64_t>(100, options.events / 1000));
  for (int64_t i = 0; i < options.events; ++i) {
    const int64_t start = kStartNs + i * kPeriodNs, kernel = i * 7 % used, id = i + 1;
    ring.push({start - 900, 700, 0, static_cast<int32_t>(kernel + 1), static_cast<int32_t>(kernel + 1)});
    if (i % launchesOfCall == launchesOfCall - 1) {
      const int64_t call = i / launchesOfCall;
      ring.push({start - (launchesOfCall - 1) * kPeriodNs - 1000, launchesOfCall * kPeriodNs - 400, 0, static_cast<int32_t>(call % kCallsOfStep * 10 + 1),
                 session::kCallTag});
    }
    if (i % 50'000 == 0) store.drain(ring);
    Lane& lane = lanes[static_cast<size_t>(i % kStreams)];
    const int64_t dur = kKernelNs - i * 31 % 1500;
    sink.put(RowKind::GpuEvent, {id, std::string("kernel"), Cell{}, int64_t{0}, 7 + i % kStreams, start, dur, id, kernel + 1, id, Cell{}, int64_t{1},
                                 kFirstLane + i % kStreams, int64_t{kThread}, start - 800, int64_t{600}, Cell{}, Cell{}, Cell{}});
    if (lane.rows == 0) lane.firstId = id, lane.startNs = start;
    if (++lane.rows == 4096 || i + kStreams >= options.events) {
      sink.putIntegers(RowKind::Block, {2, lane.firstId, id, kFirstLane + i % kStreams, lane.startNs, start + dur});
      lane.rows = 0;
    }
    lane.pyramid.add(id, start, dur, sink);
    ++runs[static_cast<size_t>(kernel)];
    if (auto good = commitNowAndThen(); !good) return good;
  }
  store.drain(ring);
  store.flush();
  store.committed();
  for (Lane& lane : lanes) lane.pyramid.flush(sink);
  for (int64_t k = 0; k < used; ++k) {
    const int64_t n = runs[static_cast<size_t>(k)];
    if (n == 0) continue;
    sink.putIntegers(RowKind::GpuStats, {k + 1, n, n, n * 5'250, 4'500, kKernelNs, kStartNs, endNs()});
    sink.putIntegers(RowKind::GpuShapeStats, {k + 1, 1, n, n * 5'250});
  }
  return {};
}

/// Stacks of `depth` calls, the innermost third operators, one beside the other.
Result<void> Writer::spans() {
  const int64_t stacks = std::max<int64_t>(1, options.rows / options.depth), width = (endNs() - kStartNs) / stacks;
  int64_t id = 0;
  for (int64_t s = 0; s < stacks; ++s) {
    for (int64_t d = 0; d < options.depth; ++d) {
      const int64_t inset = width * d / (2 * options.depth + 2);
      const bool isOperator = d * 3 > options.depth * 2;
      sink.put(RowKind::CpuEvent, {++id, std::string(isOperator ? "cpu_op" : "python_function"),
                                   isOperator ? fmt::format("aten::op_{}", (s + d) % 300) : fmt::format("part_{:02}.py({}): forward", (s + d) % 100, d + 1),
                                   kStartNs + s * width + inset, width - 2 * inset - 100, int64_t{kThread}, d, Cell{},
                                   isOperator ? Cell{fmt::format(R"({{"Input Dims":[[{},64]]}})", s % 50)} : Cell{}, Cell{}, Cell{}});
      if (auto good = commitNowAndThen(); !good) return good;
    }
  }
  return {};
}

}  // namespace

Result<void> writeLargeSession(const std::string& path, const LargeOptions& options) {
  auto database = session::Database::openForWriting(path);
  if (!database) return tl::unexpected(database.error());
  if (auto set = database->execute("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -65536"); !set) return set;
  if (auto made = session::createSchema(*database); !made) return made;
  if (auto begun = database->execute("BEGIN"); !begun) return begun;
  RowSink sink(*database);
  Writer writer{*database, sink, options};
  writer.frames();
  if (auto written = writer.compiles(); !written) return written;
  if (auto written = writer.events(); !written) return written;
  if (auto written = writer.spans(); !written) return written;
  const std::pair<const char*, Cell> facts[] = {
      {"engine", std::string("fusebox")}, {"torch", std::string("2.11.0")}, {"python", std::string("3.11.7")}, {"device", std::string("cuda")},
      {"script", fileOf(0)}, {"fusebox_version", std::string("0.1.0")}, {"schema_version", int64_t{session::kSchemaVersion}},
      {"clock", std::string("monotonic")}, {"start_ns", kStartNs}, {"end_ns", writer.endNs()}, {"start_unix_ns", int64_t{1'700'000'000'000'000'000}},
      {"state", std::string("finished")}};
  for (const auto& [key, value] : facts) sink.put(RowKind::Info, {std::string(key), value});
  if (sink.error()) return tl::unexpected(*sink.error());
  sink.reset();
  return database->execute("COMMIT");
}

}  // namespace fusebox::test
