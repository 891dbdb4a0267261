#include <QProcess>
#include <QTemporaryDir>
#include <QtTest>
#include <set>

#include "engine/codegen/gpu/launch_shape.h"
#include "engine/codegen/gpu/plan.h"
#include "engine/codegen/gpu/ptx.h"
#include "engine/codegen/gpu/target.h"
#include "tests/engine/codegen/gpu_kernels.h"
#include "tests/engine/codegen/kernel_writer.h"
#include "engine/inductor/ir/lowered_graph.h"
#include "tests/engine/lowering/graph_maker.h"

using namespace fusebox::codegen::testing;
namespace gpu = fusebox::codegen::gpu;
namespace graph = fusebox::graph;

namespace {

/// NVIDIA's own assembler, as Triton's wheel brings it: reads text without a GPU.
QString assembler() { return qEnvironmentVariable("FUSEBOX_PTXAS"); }

/// What the assembler has against a kernel; empty where nothing.
QString faults(const gpu::PtxKernel& kernel) {
  QTemporaryDir folder;
  QFile file(folder.filePath("kernel.ptx"));
  if (!file.open(QIODevice::WriteOnly)) return "cannot write";
  file.write(kernel.text.data(), static_cast<qint64>(kernel.text.size()));
  file.close();
  QProcess run;
  run.start(assembler(), {"-arch=" + QString::fromStdString(kernel.architecture), "-O1", "-o",
                          folder.filePath("kernel.cubin"), file.fileName()});
  if (!run.waitForFinished(60000)) return "the assembler did not finish: " + run.errorString();
  return run.exitCode() == 0
             ? QString()
             : QString::fromUtf8(run.readAllStandardError()) + "\n" + QString::fromStdString(kernel.text);
}

gpu::PtxKernel compiled(const Kernel& kernel, bool aligned = true) {
  auto made = gpu::compilePtx(kernel, gpu::GpuTarget{}, aligned, false);
  if (!made) throw std::runtime_error(made.error().text());
  return std::move(*made);
}

const NamedKernel& named(const std::string& name) {
  static const std::vector<NamedKernel> all = gpuKernels();
  for (const NamedKernel& k : all)
    if (k.name == name) return k;
  throw std::runtime_error("no kernel " + name);
}

/// What the compiler makes of one call, its operands being inputs.
fusebox::inductor::Schedule scheduled(bool onGpu, const char* op, const std::vector<graph::OutputMeta>& inputs, graph::ArgumentList rest,
                                      std::vector<graph::OutputMeta> outputs, bool deterministic = false) {
  const auto placed = [&](graph::OutputMeta m) {
    if (onGpu) m.tensor.device = {graph::DeviceKind::Cuda, 0};
    return m;
  };
  graph::testing::GraphMaker maker;
  graph::ArgumentList args, results;
  for (const auto& input : inputs) args.emplace_back(maker.input(placed(input)));
  for (size_t i = 0; i < rest.size(); ++i)  // an int64_t there: the operand's place
    if (const auto* at = rest[i].as<int64_t>(); at && *at < 0) rest[i] = args[static_cast<size_t>(-1 - *at)];
  for (auto& output : outputs) output = placed(output);
  const size_t count = outputs.size();
  const graph::NodeId call = maker.callMany(op, std::move(rest), std::move(outputs));
  for (size_t i = 0; i < count; ++i) results.emplace_back(graph::ValueRef{call, static_cast<int32_t>(i)});
  fusebox::inductor::LowerOptions options;
  options.refusal = [](const graph::Device&) { return std::string(); };
  options.deterministic = deterministic;
  auto passed = fusebox::inductor::runGraphPasses(maker.returning(results), nullptr);
  auto lowered = fusebox::inductor::lower(passed.value(), options);
  return fusebox::inductor::schedule(lowered.value(), {}).value();
}

int externs(const fusebox::inductor::Schedule& s) {
  return static_cast<int>(std::count_if(s.groups.begin(), s.groups.end(), [](const auto& group) { return group.kernel < 0; }));
}

int accumulations(const Kernel& kernel) {
  int n = 0;
  for (const Section& s : kernel.sections)
    n += static_cast<int>(std::count_if(s.body.begin(), s.body.end(), [](const Statement& st) { return st.kind == Statement::Kind::Accumulate; }));
  return n;
}

int count(const std::string& text, const std::string& part) {
  return static_cast<int>(QString::fromStdString(text).count(QString::fromStdString(part)));
}

}  // namespace

/// Loop IR to PTX text, without a GPU: the text is well formed and has the shape that speed asks for.
class GpuPtxTest : public QObject {
  Q_OBJECT
 private slots:
  void wellFormed_data() {
    QTest::addColumn<QString>("kernel");
    for (const NamedKernel& k : gpuKernels()) QTest::newRow(k.name.c_str()) << QString::fromStdString(k.name);
  }
  void wellFormed() {
    QFETCH(QString, kernel);
    const NamedKernel& k = named(kernel.toStdString());
    for (bool aligned : {true, false}) {
      auto made = gpu::compilePtx(k.kernel, gpu::GpuTarget{}, aligned, false);
      QVERIFY2(made, made ? "" : made.error().text().c_str());
      QVERIFY(made->text.find(".target sm_90") != std::string::npos);
      for (const auto& launch : made->launches) {
        QVERIFY(made->text.find(".entry " + launch.entry) != std::string::npos);
        QVERIFY(launch.threads > 0 && launch.threads <= 1024 && launch.threads % 32 == 0);
        QVERIFY(launch.blocks(k.sizes.data()) > 0);
      }
      if (!assembler().isEmpty()) {
        const QString problem = faults(*made);
        QVERIFY2(problem.isEmpty(), qPrintable(problem));
      }
    }
  }

  /// While a session is recorded the text names lines of the loop IR; the instructions are the same, and the assembler takes it.
  void linesAreNamed_data() { wellFormed_data(); }
  void linesAreNamed() {
    QFETCH(QString, kernel);
    const Kernel& k = named(kernel.toStdString()).kernel;
    const auto instructions = [](const std::string& text) {
      QStringList code;
      for (const QString& line : QString::fromStdString(text).split('\n')) {
        const QString instruction = line.section("//", 0, 0).trimmed();
        if (line.startsWith('\t') && !instruction.isEmpty() && !instruction.startsWith('.')) code << instruction;
      }
      return code;
    };
    auto plain = gpu::compilePtx(k, gpu::GpuTarget{}, true, false), lined = gpu::compilePtx(k, gpu::GpuTarget{}, true, true);
    QVERIFY(plain && lined);
    QCOMPARE(instructions(lined->text), instructions(plain->text));
    const auto last = static_cast<int>(QString::fromStdString(k.str()).count('\n'));
    QRegularExpression loc("\\t\\.loc\\t1 (\\d+) ");
    int found = 0;
    for (auto match = loc.globalMatch(QString::fromStdString(lined->text)); match.hasNext(); ++found) QVERIFY(match.next().captured(1).toInt() <= last);
    QVERIFY2(found > 0 || k.attention, lined->text.c_str());
    if (assembler().isEmpty()) return;
    const QString problem = faults(*lined);
    QVERIFY2(problem.isEmpty(), qPrintable(problem));
  }

  void randomKernels() {
    for (unsigned seed = 0; seed < 25; ++seed) {
      auto made = gpu::compilePtx(Writer(seed).write(), gpu::GpuTarget{80, 108}, true, false);
      QVERIFY2(made, made ? "" : made.error().text().c_str());
      if (assembler().isEmpty() || seed % 5 != 0) continue;
      const QString problem = faults(*made);
      QVERIFY2(problem.isEmpty(), qPrintable(problem));
    }
  }

  /// Whole 16-byte accesses through the read-only path where the buffers begin at multiples of 16, single elements
  /// where they need not.
  void wideAccesses() {
    const std::string wide = compiled(named("contiguous").kernel).text;
    QVERIFY2(count(wide, "ld.global.nc.v4.") >= 2 && count(wide, "st.global.v4.") >= 1, wide.c_str());
    const std::string narrow = compiled(named("contiguous").kernel, false).text;
    QCOMPARE(count(narrow, ".v4."), 0);
    QVERIFY(count(compiled(named("contiguous_bf16").kernel).text, ".v4.") >= 3);
    QVERIFY(count(compiled(named("transposed").kernel).text, "ld.global.nc.v4.") >= 1);
  }

  /// A row that fits the block's registers is read once, though three sections ask for it.
  void rowsStayInRegisters() {
    const gpu::PtxKernel k = compiled(named("softmax_rows").kernel);
    QCOMPARE(static_cast<int>(k.launches.size()), 1);
    QCOMPARE(k.launches[0].blocks(nullptr), int64_t{64});
    const int loads = count(k.text, "ld.global.nc.v4.");
    QCOMPARE(loads * 4 * k.launches[0].threads, 2048);
    QVERIFY(count(k.text, "shfl.sync.bfly") > 0);
    QCOMPARE(count(k.text, "div.rn.f32"), 0);
    QCOMPARE(count(k.text, "rcp.rn.f32"), 1);  // of the sum, which all elements share
  }

  /// Numbers that stand once a row do not make neighbouring threads neighbouring rows: the matrix is what is read, by rows.
  void rowsOutweighNumbersOfRows() {
    for (const char* name : {"loss_backward", "loss_backward_padded"})
      QVERIFY2(!gpu::makePlan(named(name).kernel, gpu::GpuTarget{}, true).phases[0].map.pointsFast, name);
  }

  /// Rows that end or begin within 16 bytes are read and written in whole vectors all the same: single elements only at their ends.
  void raggedRows() {
    for (const char* name : {"loss_backward", "loss_backward_padded"}) {
      const gpu::Plan plan = gpu::makePlan(named(name).kernel, gpu::GpuTarget{}, true);
      QVERIFY2(plan.sections[0].ragged.on && plan.sections[0].vector == 8, plan.str().c_str());
      QCOMPARE(plan.sections[0].ragged.shift == fusebox::inductor::SymExpr(0), std::string(name) == "loss_backward_padded");
      const std::string text = compiled(named(name).kernel).text;
      QVERIFY2(count(text, "ld.global.nc.v4.") > 0 && count(text, "st.global.v4.") > 0 && count(text, "ld.global.nc.u16") == 0, text.c_str());
    }
    QCOMPARE(count(compiled(named("loss_backward").kernel, false).text, ".v4."), 0);  // not where buffers may begin anywhere
    const gpu::Plan points = gpu::makePlan(named("contiguous_odd").kernel, gpu::GpuTarget{}, true);
    QVERIFY(points.ragged.on && points.phases[0].map.vector == 4);
    for (const char* name : {"softmax_rows_of_777", "product_rows_of_777"})  // lengths that calls bring
      QVERIFY2(count(compiled(named(name).kernel).text, "ld.global.nc.v4.") > 0, name);
  }

  /// Rows that one block cannot keep are kept by a cluster of blocks, where the device has clusters; threads begin where a line does.
  void rowsOfSeveralBlocks() {
    const Kernel& kernel = named("softmax_in_clusters").kernel;
    const gpu::PtxKernel k = compiled(kernel);
    QCOMPARE(static_cast<int>(k.launches.size()), 1);
    QCOMPARE(k.launches[0].blocks(nullptr), int64_t{140 * 4});
    QCOMPARE(count(k.text, ".reqnctapercluster 4, 1, 1"), 1);
    QVERIFY(count(k.text, "mapa") > 0);
    const int vectors = (33001 + gpu::kLineElements - 1 + 3) / 4, inCluster = 4 * k.launches[0].threads;
    QCOMPARE(count(k.text, "ld.global.nc.v4."), (vectors + inCluster - 1) / inCluster);
    for (const auto& section : gpu::makePlan(kernel, gpu::GpuTarget{}, true).sections)
      QVERIFY(section.ragged.shift.bounds() == (std::pair<int64_t, int64_t>(0, gpu::kLineElements - 1)));
    auto older = gpu::compilePtx(kernel, gpu::GpuTarget{80, 108}, true, false);
    QVERIFY(older && older->text.find("cluster") == std::string::npos);
    QVERIFY(older->launches[0].blocks(nullptr) == 140);
    for (const gpu::LaunchShape& shape : gpu::candidateShapes(kernel, gpu::GpuTarget{})) {
      auto made = gpu::compilePtx(kernel, gpu::GpuTarget{}, true, false, shape);
      QVERIFY2(made, made ? "" : made.error().text().c_str());
      const QString problem = assembler().isEmpty() ? QString() : faults(*made);
      QVERIFY2(problem.isEmpty(), qPrintable(problem));
    }
  }

  /// No block ends before the others of its cluster have read its shared memory, whatever shape is tried.
  void blocksOfClustersEndTogether() {
    int seen = 0;
    for (const char* name : {"softmax_in_clusters", "softmax_in_few_clusters"})
      for (const gpu::LaunchShape& shape : gpu::candidateShapes(named(name).kernel, gpu::GpuTarget{})) {
        auto made = gpu::compilePtx(named(name).kernel, gpu::GpuTarget{}, true, false, shape);
        QVERIFY2(made, made ? "" : made.error().text().c_str());
        for (size_t at = made->text.find(".entry"); at != std::string::npos;) {
          const size_t next = made->text.find(".entry", at + 1);
          const std::string entry = made->text.substr(at, next - at);
          at = next;
          if (entry.find("mapa") == std::string::npos) continue;
          ++seen;
          const size_t read = entry.rfind("mapa"), told = entry.rfind("barrier.cluster.arrive"), waited = entry.rfind("barrier.cluster.wait");
          QVERIFY2(read < told && told < waited && waited != std::string::npos, name);
        }
      }
    QVERIFY(seen > 4);
  }

  void fewLongRowsAreDivided() {
    const gpu::PtxKernel k = compiled(named("softmax_long").kernel);
    QVERIFY(k.launches.size() > 2);
    QVERIFY(k.launches[0].blocks(nullptr) >= 50);
    QVERIFY(k.workBytes && k.workBytes(nullptr) > 0);
    QVERIFY(!compiled(named("softmax_rows").kernel).workBytes);
  }

  /// Sums of columns beside the work by rows: few blocks walk over all rows, and everything of a row is read once.
  void columnSumsWalk() {
    const gpu::PtxKernel k = compiled(named("layer_norm_backward_bf16").kernel);
    QCOMPARE(static_cast<int>(k.launches.size()), 2);
    QVERIFY(k.launches[0].blocks(nullptr) <= 132 * 8 && k.launches[0].blocks(nullptr) >= 132);
    QVERIFY(k.workBytes && k.workBytes(nullptr) > 0);
    const std::string rows = k.text.substr(0, k.text.find(k.launches[1].entry));
    QCOMPARE(count(rows, "ld.global.nc.v4.") * 4 * k.launches[0].threads, 3 * 2048);  // x, the gradient, the weight
    QCOMPARE(count(rows, "prefetch.global.L2") * 4 * k.launches[0].threads, 2 * 2048);  // of the next row; weights stay in the cache
    auto shapes = gpu::candidateShapes(named("layer_norm_backward").kernel, gpu::GpuTarget{});
    QVERIFY(shapes.size() > 2);
  }

  /// The gradients of a normalisation, by rows and by columns, are one kernel on a GPU, two on the CPU.
  void gradientsOfNormalisations() {
    using graph::testing::tensor;
    for (DType type : {DType::Float32, DType::BFloat16})
      for (bool onGpu : {true, false}) {
        const auto x = tensor({4096, 768}, type), w = tensor({768}, type), row = tensor({4096, 1});
        const graph::Argument all = graph::ArgumentList{true, true, true};
        const auto s = scheduled(onGpu, "aten::native_layer_norm_backward", {x, x, row, row, w, w},
                                 {int64_t{-1}, int64_t{-2}, graph::ArgumentList{int64_t{768}}, int64_t{-3}, int64_t{-4}, int64_t{-5}, int64_t{-6}, all},
                                 {x, w, w});
        QCOMPARE(static_cast<int>(s.program.kernels.size()), onGpu ? 1 : 2);
        QCOMPARE(accumulations(s.program.kernels[0]), onGpu ? 2 : 0);
        if (onGpu) QCOMPARE(static_cast<int>(compiled(s.program.kernels[0]).launches.size()), 2);
      }
  }

  /// Scans and scattered additions are generated for a GPU, where their order may be any; elsewhere they stay eager's operators.
  void scansAndScatters() {
    using graph::testing::tensor;
    const auto x = tensor({64, 1000}), index = tensor({500, 1000}, DType::Int64), v = tensor({500, 1000});
    for (bool onGpu : {true, false}) {
      const auto scan = scheduled(onGpu, "aten::cumsum", {x}, {int64_t{-1}, int64_t{1}, {}}, {x});
      QCOMPARE(externs(scan), onGpu ? 0 : 1);
      if (onGpu) QVERIFY(isForGpu(scan.program.kernels.at(0)));
      for (bool deterministic : {true, false}) {
        const auto s = scheduled(onGpu, "aten::scatter_add", {x, index, v}, {int64_t{-1}, int64_t{0}, int64_t{-2}, int64_t{-3}}, {x}, deterministic);
        QCOMPARE(externs(s), onGpu && !deterministic ? 0 : 1);
        if (onGpu && !deterministic) QVERIFY(compiled(s.program.kernels.back()).text.find("red.global.add.f32") != std::string::npos ||
                                             compiled(s.program.kernels.back()).text.find("atom.global.add.f32") != std::string::npos);
      }
    }
    QCOMPARE(gpu::makePlan(named("scatter_f32").kernel, gpu::GpuTarget{}, true).phases[0].map.vector, 1);  // a warp adds to neighbours
    for (const char* name : {"added_rows_f32", "added_rows_sections"}) {  // rows that are looked up are rows: read and added in vectors
      const std::string text = compiled(named(name).kernel).text;
      QVERIFY2(text.find("red.relaxed.gpu.global.add.v4.f32") != std::string::npos && text.find("ld.global.nc.v") != std::string::npos, name);
      QVERIFY2(compiled(named(name).kernel, false).text.find("red.relaxed") == std::string::npos, name);  // where buffers may begin anywhere
      const gpu::Plan old = gpu::makePlan(named(name).kernel, {80, 108}, true);
      QCOMPARE(old.phases[0].map.vector * old.sections.back().vector, 1);
    }
    QVERIFY(compiled(named("added_rows_bf16").kernel).text.find("red.relaxed.gpu.global.add.noftz.v4.bf16x2") != std::string::npos);
    const auto narrow = tensor({64, 1000}, DType::BFloat16), added = tensor({500, 1000}, DType::BFloat16), large = tensor({64000, 1000}, DType::BFloat16);
    const graph::ArgumentList places = {int64_t{-1}, int64_t{0}, int64_t{-2}, int64_t{-3}};
    QCOMPARE(externs(scheduled(true, "aten::scatter_add", {narrow, index, added}, places, {narrow})), 0);  // summed in 32 bits
    QCOMPARE(externs(scheduled(true, "aten::scatter_add", {large, index, added}, places, {large})), 1);   // of which there would be too many
    QCOMPARE(externs(scheduled(true, "aten::scatter_add", {narrow, index, added}, places, {narrow}, true)), 1);
    const auto counts = tensor({64, 1000}, DType::Int64);
    QCOMPARE(externs(scheduled(true, "aten::scatter_add", {counts, index, tensor({500, 1000}, DType::Int64)},
                               {int64_t{-1}, int64_t{0}, int64_t{-2}, int64_t{-3}}, {counts}, true)), 0);  // sums of integers have one result
  }

  /// The maximum and the sum of exponentials of a row that no block can keep are one walk; of one that it can, they stay two steps.
  void longRowsAreReadOnceForSoftmax() {
    const auto reductions = [](const char* name) {
      std::vector<ReduceKind> kinds;
      for (const Section& s : gpu::makePlan(named(name).kernel, gpu::GpuTarget{}, true).kernel.sections)
        for (const Statement& st : s.body)
          if (st.kind == Statement::Kind::Reduce) kinds.push_back(st.reduce);
      return kinds;
    };
    QCOMPARE(reductions("softmax_wide"), std::vector<ReduceKind>{ReduceKind::OnlineSoftmax});
    QCOMPARE(reductions("softmax_rows"), (std::vector<ReduceKind>{ReduceKind::Max, ReduceKind::Sum}));
  }

  /// What is consecutive along either axis is accessed in whole vectors, by threads that cover rectangles.
  void transposesInRectangles() {
    for (const char* name : {"transposed", "transposed_ragged", "transposed_bf16", "both_ways"}) {
      const gpu::Plan plan = gpu::makePlan(named(name).kernel, gpu::GpuTarget{}, true);
      QVERIFY2(plan.phases[0].map.tileFast > 0, name);
      const std::string text = compiled(named(name).kernel).text;
      QVERIFY2(text.find(".v4.") != std::string::npos || text.find(".v2.") != std::string::npos, text.c_str());
      QCOMPARE(count(text, "ld.global.nc.u8") + count(text, "st.global.u8") + count(text, "st.global.b16"), 0);
    }
    QCOMPARE(gpu::makePlan(named("transposed_odd").kernel, gpu::GpuTarget{}, true).phases[0].map.tileFast, 0);
  }

  /// Four uniform numbers, or two normal ones, of one Philox block, which is 20 products.
  void neighboursShareRandomBlocks() {
    const auto products = [](const char* name) {
      const std::string text = compiled(named(name).kernel).text;
      int n = 0;  // Philox's multipliers
      for (const char* factor : {"3528531795", "-766435501", "3449720151", "-845247145"}) n += count(text, factor);
      return n;
    };
    QVERIFY(products("uniform") > 10 && products("uniform") <= 20);
    QVERIFY(products("normal") > 20 && products("normal") <= 40);
  }

  /// A block carries a row's running sum from one stretch to the next; columns are one thread's each.
  void scansAreCarried() {
    QVERIFY(count(compiled(named("scan_sum_3x30001").kernel).text, "bar.sync") >= 2);
    const gpu::Plan columns = gpu::makePlan(named("scan_sum_300x40_columns").kernel, gpu::GpuTarget{}, true);
    QCOMPARE(columns.phases[0].map.inner, 1);
    QCOMPARE(count(compiled(named("scan_sum_300x40_columns").kernel).text, "bar.sync"), 0);
  }

  void sizesAreArguments() {
    const NamedKernel& k = named("softmax_dynamic");
    const gpu::PtxKernel made = compiled(k.kernel);
    QCOMPARE(made.launches[0].blocks(k.sizes.data()), int64_t{3});  // a block takes two of six rows
    QVERIFY(made.text.find("_param_2") != std::string::npos);
  }

  /// What is worth timing: the rules first, then shapes that make other code or other launches, of which the assembler accepts all.
  void launchShapes() {
    for (const char* name : {"contiguous", "transposed", "softmax_rows", "softmax_long"}) {
      const Kernel& kernel = named(name).kernel;
      const auto shapes = gpu::candidateShapes(kernel, gpu::GpuTarget{});
      QVERIFY2(shapes.size() >= 2 && shapes.size() <= 6, name);
      QCOMPARE(shapes.front(), gpu::LaunchShape{});
      std::set<std::string> seen;
      for (const gpu::LaunchShape& shape : shapes) {
        auto made = gpu::compilePtx(kernel, gpu::GpuTarget{}, true, false, shape);
        QVERIFY2(made, made ? "" : made.error().text().c_str());
        for (const auto& launch : made->launches) QVERIFY(launch.threads > 0 && launch.threads <= 1024 && launch.threads % 32 == 0);
        QVERIFY2(seen.insert(made->text + std::to_string(made->launches[0].blocks(nullptr))).second, shape.str().c_str());
        QCOMPARE(made->text.find(".minnctapersm") != std::string::npos, shape.resident > 0);
        if (assembler().isEmpty()) continue;
        const QString problem = faults(*made);
        QVERIFY2(problem.isEmpty(), qPrintable(problem));
      }
    }
  }

  void checksAssert() {
    QVERIFY(compiled(named("gather_checked").kernel).text.find("__assertfail") != std::string::npos);
    QVERIFY(compiled(named("gather").kernel).text.find("__assertfail") == std::string::npos);
  }

  /// What has no code is refused by name, and older devices too.
  void refusals() {
    KernelBuilder b("gamma");
    const auto x = b.input(DType::Float32, 10), z = b.output(DType::Float32, 10);
    const SymExpr i = b.outer(10);
    b.section();
    b.store(z, i, b.op(Op::Lgamma, DType::Float32, b.load(x, i)));
    QVERIFY(!gpu::hasDeviceCode(Op::Lgamma, DType::Float32));
    const auto made = gpu::compilePtx(b.kernel, gpu::GpuTarget{}, true, false);
    QVERIFY(!made);
    QVERIFY2(made.error().text().find("lgamma") != std::string::npos, made.error().text().c_str());
    QVERIFY(!gpu::compilePtx(named("contiguous").kernel, gpu::GpuTarget{60, 20}, true, false));
  }

  /// Small kernels of one form run in one launch, whatever their sizes are: each block finds its buffers in a table.
  void smallKernelsShareALaunch() {
    graph::testing::GraphMaker maker;
    graph::ArgumentList results;
    const auto onGpu = [](graph::OutputMeta m) {
      m.tensor.device = {graph::DeviceKind::Cuda, 0};
      return m;
    };
    const graph::ValueRef numbers = maker.input(onGpu(graph::testing::tensor({8})));
    for (int64_t i = 0; i < 5; ++i) {
      const graph::OutputMeta m = onGpu(graph::testing::tensor({SymExpr(i < 3 ? 64 << i : 33 + i)}));
      const graph::ValueRef x = maker.input(m), y = maker.input(m);
      const graph::ValueRef number = maker.call("aten::select.int", {numbers, int64_t{0}, i}, onGpu(graph::testing::tensor({})));
      results.emplace_back(maker.call("aten::addcmul", {x, y, number, 0.5}, m));
    }
    for (int i = 0; i < 2; ++i) {  // single elements, as steps of an optimiser are
      const graph::OutputMeta m = onGpu(graph::testing::tensor({}));
      results.emplace_back(maker.call("aten::sqrt", {maker.input(m)}, m));
    }
    fusebox::inductor::LowerOptions options;
    options.refusal = [](const graph::Device&) { return std::string(); };
    auto lowered = fusebox::inductor::lower(maker.returning(results), options);
    const auto s = fusebox::inductor::schedule(lowered.value(), {}).value();
    QCOMPARE(s.program.kernels.size(), size_t{3});  // 37 elements are no multiple of the four that a thread takes from the others
    std::vector<int32_t> batches;
    for (const auto& step : s.program.steps)
      if (const auto* launch = std::get_if<fusebox::inductor::LaunchStep>(&step)) batches.push_back(launch->batch);
    QCOMPARE(batches, (std::vector<int32_t>{0, 0, 0, 0, -1, 1, 1}));
    QVERIFY(std::any_of(s.decisions.begin(), s.decisions.end(), [](const auto& d) { return d.kind == "beside" && d.fused; }));
    bool wide = false;
    for (const Kernel& kernel : s.program.kernels) {
      if (!kernel.isBatch) continue;
      const gpu::PtxKernel made = compiled(kernel);
      QVERIFY(made.isBatch && made.launches.size() == 1);
      QVERIFY2(made.text.find("ld.param") != std::string::npos, made.text.c_str());
      QVERIFY2(made.text.find("st.local") == std::string::npos, "the table is copied");
      const int64_t sizes[] = {64 / 4, 3};
      wide |= made.text.find("ld.global.nc.v4") != std::string::npos;
      QCOMPARE(made.launches[0].blocks(sizes), int64_t{1});
      if (!assembler().isEmpty()) QVERIFY2(faults(made).isEmpty(), qPrintable(faults(made)));
      if (!assembler().isEmpty()) QVERIFY(faults(compiled(kernel, false)).isEmpty());
    }
    QVERIFY(wide);
  }

  /// Older devices lack instructions (bfloat16 conversions, NaN-propagating maxima): the back end finds others.
  void everyArchitecture() {
    for (int capability : {70, 80, 120})
      for (const char* kernel : {"contiguous_bf16", "softmax_rows", "scatter_f32", "scatter_u8", "gather_checked"}) {
        auto made = gpu::compilePtx(named(kernel).kernel, gpu::GpuTarget{capability, 80}, true, false);
        QVERIFY2(made, made ? "" : made.error().text().c_str());
      }
  }

  void architectures() {
    QCOMPARE(gpu::GpuTarget{100}.ptxArchitecture(), std::string("sm_90"));
    QCOMPARE(gpu::GpuTarget{88}.ptxArchitecture(), std::string("sm_87"));
    QCOMPARE(gpu::GpuTarget{75}.ptxArchitecture(), std::string("sm_75"));
  }
};

QTEST_GUILESS_MAIN(GpuPtxTest)
#include "gpu_ptx_test.moc"
