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
namespace rows = session::rows;
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
    sink.put(rows::Frame{.id = f, .name = std::string("forward"), .qualname = fmt::format("Layer{}.forward", f), .file = fileOf(f),
        .line = lineOf(f), .status = std::string("compiled"), .first_seen_ns = kStartNs});
  }
  for (int64_t file = 0; file < 100; ++file) {
    std::string text;
    for (int line = 1; line <= 440; ++line) text += fmt::format("    x{} = torch.relu(self.linear_{}(x{}))\n", line, line % 7, line - 1);
    const auto bytes = static_cast<int64_t>(text.size());
    sink.put(rows::SourceFile{.id = file + 1, .path = fileOf(file), .text = std::move(text), .bytes = bytes, .truncated = int64_t{0},
        .time_ns = kStartNs});
  }
}

void Writer::compileRows(int64_t c, int64_t each) {
  const int64_t frame = (c - 1) / kEntries + 1, attempt = (c - 1) % kEntries;
  const std::string file = fileOf(frame);
  const int64_t line = lineOf(frame), first = (c - 1) * each;
  const int64_t began = kStartNs + (endNs() - kStartNs) / 50 * c / kCompiles;
  sink.put(rows::Compile{.id = c, .frame_id = frame, .attempt = attempt, .kind = std::string("forward"), .backend = std::string("inductor"),
      .start_ns = began, .end_ns = began + 30'000, .status = std::string("ok"), .cache = std::string("miss"),
      .failure_id = attempt > 0 ? Cell{first - 1} : Cell{}, .thread = int64_t{kThread}, .file = file, .line = line});
  sink.put(rows::Graph{.id = c, .compile_id = c, .stage = std::string("post_grad"), .direction = std::string("forward"),
      .name = fmt::format("forward_{}", c), .node_count = each, .edge_count = each - 1, .input_count = int64_t{1}, .output_count = int64_t{1},
      .time_ns = began});
  for (int64_t i = 1; i <= each; ++i) {
    const int64_t id = first + i, at = line + i % 30;
    sink.put(rows::Stage{.id = id, .compile_id = c, .depth = int64_t{0}, .phase = std::string("inductor"), .name = fmt::format("pass_{}", i % 60),
        .start_ns = began + i * 100, .end_ns = began + i * 100 + 90, .thread = int64_t{kThread}, .changed = int64_t{i % 9 == 0},
        .nodes_before = each, .nodes_after = each});
    sink.put(rows::Guard{.id = id, .compile_id = c, .position = i, .kind = std::string(i % 3 ? "TENSOR_MATCH" : "EQUALS_MATCH"),
        .source = fmt::format("L['self'].layers[{}].weight", i), .expected = std::string("float32[64, 64]"),
        .code = fmt::format("check_tensor(L['self'].layers[{}].weight)", i), .file = file, .line = at});
    sink.put(rows::GuardFailure{.id = id, .frame_id = frame, .compile_id = c, .guard_id = id, .guard = std::string("TENSOR_MATCH L['x']"),
        .expected = fmt::format("float32[{}, 64]", attempt + 1), .found = fmt::format("float32[{}, 64]", attempt + 2),
        .outcome = std::string(i == each ? "recompile" : "next entry"), .file = file, .line = at, .time_ns = began});
    sink.put(rows::GraphBreak{.id = id, .frame_id = frame, .compile_id = c, .kind = std::string("unsupported call"),
        .reason = fmt::format("print of a traced tensor, the {}th", i % 30), .hint = std::string("move the print out of the compiled code"),
        .file = file, .line = at, .end_line = at, .col = int64_t{4}, .end_col = int64_t{20}, .opcode = std::string("CALL"), .offset = int64_t{34},
        .time_ns = began});
    sink.put(rows::Node{.id = id, .graph_id = c, .position = i - 1, .name = fmt::format("relu_{}", i), .kind = std::string("call"),
        .op = std::string(i % 4 ? "aten::relu" : "aten::mm"), .dtype = std::string("float32"), .shape = std::string("[64, 64]"),
        .stride = std::string("[64, 1]"), .device = std::string("cuda:0"), .bytes = int64_t{16384}, .is_backward = int64_t{0},
        .module_path = fmt::format("layers.{}", i), .file = file, .line = at, .function = std::string("forward")});
    if (i > 1) sink.put(rows::Edge{.graph_id = int64_t{c}, .src = int64_t{id - 1}, .dst = int64_t{id}, .output = int64_t{0}, .arg = int64_t{0}});
    sink.put(rows::Kernel{.id = id, .compile_id = c, .graph_id = c, .group_id = id, .name = fmt::format("fused_relu_{}_{}", c, i),
        .kind = std::string("generated"), .device = std::string("cuda:0"), .read_bytes = int64_t{16384}, .write_bytes = int64_t{16384},
        .flops = int64_t{4096}, .file = file, .line = at, .time_ns = began});
    sink.put(rows::FusionGroup{.id = id, .compile_id = c, .graph_id = c, .position = i - 1, .name = fmt::format("fused_relu_{}_{}", c, i),
        .kind = std::string("pointwise"), .kernel_id = id, .read_bytes = int64_t{16384}, .write_bytes = int64_t{16384},
        .bytes_saved = int64_t{8192}, .file = file, .line = at});
    sink.put(rows::FusionMember{.group_id = int64_t{id}, .node_id = int64_t{id}, .position = int64_t{0}, .role = int64_t{0}});
    sink.put(rows::FusionDecision{.id = id, .compile_id = c, .graph_id = c, .position = i - 1, .a = fmt::format("relu_{}", i),
        .b = fmt::format("relu_{}", i + 1), .a_node = id, .b_node = id + 1, .group_id = id, .kind = std::string("vertical"), .fused = i % 2,
        .reason = std::string("the consumer reads what the producer writes"), .score_bytes = int64_t{8192}});
    sink.put(rows::Buffer{.id = id, .compile_id = c, .graph_id = c, .name = fmt::format("buf{}", i), .kind = std::string("planned"),
        .node_id = id, .dtype = std::string("float32"), .shape = std::string("[64, 64]"), .device = std::string("cuda:0"),
        .bytes = int64_t{16384}, .first_use = i - 1, .last_use = i, .pool_offset = i % 4 * 16384});
    sink.put(rows::Artifact{.id = id, .compile_id = c, .graph_id = c, .kind = std::string("inductor_output_code"),
        .name = fmt::format("code_{}", id), .format = std::string("text"), .text = fmt::format("def call(args):\n return args[{}]\n", i),
        .time_ns = began, .thread = int64_t{kThread}});
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
  sink.put(rows::Thread{.id = int64_t{kThread}, .os_tid = int64_t{4711}, .name = std::string("python")});
  sink.put(rows::GpuShape{.id = int64_t{1}, .name = std::string("fused_relu"), .device = int64_t{0}, .grid = std::string("32"),
      .block = std::string("256"), .threads = int64_t{256}, .registers = int64_t{32}, .static_shared = int64_t{0}, .dynamic_shared = int64_t{0},
      .local_bytes = int64_t{0}, .occupancy = 0.5, .occupancy_limit = std::string("registers")});
  for (int s = 0; s < kStreams; ++s) {
    lanes.push_back({session::PyramidBuilder(2, kFirstLane + s)});
    sink.put(rows::Thread{.id = int64_t{kFirstLane + s}, .name = fmt::format("GPU 0, stream {}", 7 + s)});
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
    sink.put(rows::GpuEvent{.id = id, .kind = std::string("kernel"), .device = int64_t{0}, .stream = 7 + i % kStreams, .start_ns = start,
        .dur_ns = dur, .correlation = id, .kernel_id = kernel + 1, .launch_id = id, .shape_id = int64_t{1}, .lane = kFirstLane + i % kStreams,
        .thread = int64_t{kThread}, .called_ns = start - 800, .call_dur_ns = int64_t{600}});
    if (lane.rows == 0) lane.firstId = id, lane.startNs = start;
    if (++lane.rows == 4096 || i + kStreams >= options.events) {
      sink.put(rows::Block{.track = int64_t{2}, .first_id = int64_t{lane.firstId}, .last_id = int64_t{id},
          .thread = int64_t{kFirstLane + i % kStreams}, .start_ns = int64_t{lane.startNs}, .end_ns = int64_t{start + dur}});
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
    sink.put(rows::GpuStats{.kernel_id = int64_t{k + 1}, .launches = int64_t{n}, .events = int64_t{n}, .total_ns = int64_t{n * 5'250},
        .min_ns = int64_t{4'500}, .max_ns = int64_t{kKernelNs}, .first_ns = int64_t{kStartNs}, .last_ns = int64_t{endNs()}});
    sink.put(rows::GpuShapeStats{.kernel_id = int64_t{k + 1}, .shape_id = int64_t{1}, .events = int64_t{n}, .total_ns = int64_t{n * 5'250}});
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
      sink.put(rows::CpuEvent{.id = ++id, .kind = std::string(isOperator ? "cpu_op" : "python_function"),
          .name = isOperator ? fmt::format("aten::op_{}", (s + d) % 300) : fmt::format("part_{:02}.py({}): forward", (s + d) % 100, d + 1),
          .start_ns = kStartNs + s * width + inset, .dur_ns = width - 2 * inset - 100, .thread = int64_t{kThread}, .depth = d,
          .detail = isOperator ? Cell{fmt::format(R"({{"Input Dims":[[{},64]]}})", s % 50)} : Cell{}});
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
  for (const auto& [key, value] : facts) sink.put(rows::Info{.key = std::string(key), .value = value});
  if (sink.error()) return tl::unexpected(*sink.error());
  sink.reset();
  return database->execute("COMMIT");
}

}  // namespace fusebox::test
