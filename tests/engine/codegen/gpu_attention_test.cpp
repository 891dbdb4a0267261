#include <QProcess>
#include <QTemporaryDir>
#include <QtTest>

#include "engine/codegen/gpu/ptx.h"
#include "engine/codegen/gpu/target.h"
#include "engine/inductor/ir/lowered_graph.h"
#include "tests/engine/lowering/graph_maker.h"

namespace gpu = fusebox::codegen::gpu;
namespace graph = fusebox::graph;
using fusebox::inductor::Kernel;
using fusebox::inductor::SymExpr;
using graph::DType;

namespace {

struct Sizes {
  int64_t places, rows, columns, width;
};

/// softmax(where(row >= column, query @ key * 0.125, -inf)) @ value as people write it; `scoresAreSeen`: the scores are a result as well.
graph::Graph written(const Sizes& s, DType type, bool scoresAreSeen = false) {
  graph::testing::GraphMaker maker;
  const auto on = [](std::vector<SymExpr> sizes, DType t) {
    graph::OutputMeta m = graph::testing::tensor(std::move(sizes), t);
    m.tensor.device = {graph::DeviceKind::Cuda, 0};
    return m;
  };
  const graph::Device device{graph::DeviceKind::Cuda, 0};
  const SymExpr p = s.places, r = s.rows, n = s.columns, w = s.width;
  const auto q = maker.input(on({p, r, w}, type)), k = maker.input(on({p, w, n}, type)), v = maker.input(on({p, n, w}, type));
  const auto product = maker.call("aten::bmm", {q, k}, on({p, r, n}, type));
  const auto wide = maker.call("aten::_to_copy", {product, DType::Float32, {}, {}, {}, false, {}}, on({p, r, n}, DType::Float32));
  const auto scaled = maker.call("aten::mul.Scalar", {wide, 0.125}, on({p, r, n}, DType::Float32));
  const auto arange = [&](int64_t count) {
    return maker.call("aten::arange", {count, DType::Int64, {}, device, {}}, on({SymExpr(count)}, DType::Int64));
  };
  const auto row = maker.call("aten::unsqueeze", {arange(s.rows), int64_t{1}}, on({r, 1}, DType::Int64));
  const auto isSeen = maker.call("aten::ge.Tensor", {row, arange(s.columns)}, on({r, n}, DType::Bool));
  const auto least = maker.call("aten::full", {graph::ArgumentList{}, -std::numeric_limits<double>::infinity(), DType::Float32, {}, device, {}},
                                on({}, DType::Float32));
  const auto masked = maker.call("aten::where.self", {isSeen, scaled, least}, on({p, r, n}, DType::Float32));
  const auto softmax = maker.call("aten::_softmax", {masked, int64_t{-1}, false}, on({p, r, n}, DType::Float32));
  const auto weights = maker.call("aten::_to_copy", {softmax, type, {}, {}, {}, false, {}}, on({p, r, n}, type));
  graph::ArgumentList results{maker.call("aten::bmm", {weights, v}, on({p, r, w}, type))};
  if (scoresAreSeen) results.emplace_back(masked);
  return maker.returning(std::move(results));
}

/// Backward of the same, from the logarithms of the sums and those of the result times its gradient; `others`: what else is made of the scores'
/// gradients is a result as well.
graph::Graph gradients(const Sizes& s, DType type, bool others = false) {
  graph::testing::GraphMaker maker;
  const auto on = [](std::vector<SymExpr> sizes, DType t) {
    graph::OutputMeta m = graph::testing::tensor(std::move(sizes), t);
    m.tensor.device = {graph::DeviceKind::Cuda, 0};
    return m;
  };
  const auto turned = [&](graph::ValueRef of) {
    graph::OutputMeta m = maker.graph.meta(of);
    std::swap(m.tensor.sizes[1], m.tensor.sizes[2]);
    std::swap(m.tensor.strides[1], m.tensor.strides[2]);
    return maker.call("aten::transpose.int", {of, int64_t{1}, int64_t{2}}, m);
  };
  const graph::Device device{graph::DeviceKind::Cuda, 0};
  const SymExpr p = s.places, r = s.rows, n = s.columns, w = s.width;
  const auto scores = [&](DType t) { return on({p, r, n}, t); };
  const auto q = maker.input(on({p, r, w}, type)), k = maker.input(on({p, n, w}, type)), v = maker.input(on({p, n, w}, type));
  const auto arriving = maker.input(on({p, r, w}, type)), sums = maker.input(on({p, r, 1}, DType::Float32)), along = maker.input(on({p, r, 1}, DType::Float32));
  const auto wide = [&](graph::ValueRef of) { return maker.call("aten::_to_copy", {of, DType::Float32, {}, {}, {}, false, {}}, scores(DType::Float32)); };
  const auto narrow = [&](graph::ValueRef of) { return maker.call("aten::_to_copy", {of, type, {}, {}, {}, false, {}}, scores(type)); };
  const auto least = maker.call("aten::full", {graph::ArgumentList{}, -std::numeric_limits<double>::infinity(), DType::Float32, {}, device, {}},
                                on({}, DType::Float32));
  const auto arange = [&](int64_t count) {
    return maker.call("aten::arange", {count, DType::Int64, {}, device, {}}, on({SymExpr(count)}, DType::Int64));
  };
  const auto row = maker.call("aten::unsqueeze", {arange(s.rows), int64_t{1}}, on({r, 1}, DType::Int64));
  const auto isSeen = maker.call("aten::ge.Tensor", {row, arange(s.columns)}, on({r, n}, DType::Bool));
  const auto scaled = maker.call("aten::mul.Scalar", {wide(maker.call("aten::bmm", {q, turned(k)}, scores(type))), 0.125}, scores(DType::Float32));
  const auto masked = maker.call("aten::where.self", {isSeen, scaled, least}, scores(DType::Float32));
  const auto power = maker.call("aten::exp", {maker.call("aten::sub.Tensor", {masked, sums, int64_t{1}}, scores(DType::Float32))}, scores(DType::Float32));
  const auto ofValue = maker.call("aten::bmm", {turned(narrow(power)), arriving}, on({p, n, w}, type));
  const auto weights = wide(maker.call("aten::bmm", {arriving, turned(v)}, scores(type)));
  const auto less = maker.call("aten::sub.Tensor", {weights, along, int64_t{1}}, scores(DType::Float32));
  const auto inner = maker.call("aten::mul.Scalar", {maker.call("aten::mul.Tensor", {power, less}, scores(DType::Float32)), 0.125}, scores(DType::Float32));
  const auto made = narrow(inner);
  const auto ofQuery = maker.call("aten::bmm", {made, k}, on({p, r, w}, type)), ofKey = maker.call("aten::bmm", {turned(q), made}, on({p, w, n}, type));
  graph::ArgumentList results{ofQuery, turned(ofKey), ofValue};
  if (others) results.emplace_back(inner);
  return maker.returning(std::move(results));
}

std::vector<Kernel> kernelsOf(graph::Graph graph) {
  fusebox::inductor::LowerOptions options;
  options.refusal = [](const graph::Device&) { return std::string(); };
  auto passed = fusebox::inductor::runGraphPasses(std::move(graph), nullptr);
  auto lowered = fusebox::inductor::lower(passed.value(), options);
  return fusebox::inductor::schedule(lowered.value(), {}).value().program.kernels;
}

QString faults(const gpu::PtxKernel& kernel) {
  const QString assembler = qEnvironmentVariable("FUSEBOX_PTXAS");
  if (assembler.isEmpty()) return {};
  QTemporaryDir folder;
  QFile file(folder.filePath("kernel.ptx"));
  if (!file.open(QIODevice::WriteOnly)) return "cannot write";
  file.write(kernel.text.data(), static_cast<qint64>(kernel.text.size()));
  file.close();
  QProcess run;
  run.start(assembler, {"-arch=" + QString::fromStdString(kernel.architecture), "-o", folder.filePath("kernel.cubin"), file.fileName()});
  if (!run.waitForFinished(60000)) return "the assembler did not finish";
  return run.exitCode() == 0 ? QString() : QString::fromUtf8(run.readAllStandardError());
}

}  // namespace

/// Attention from a graph to PTX text, without a GPU; tests/gpu/attention_gpu.py runs it.
class GpuAttentionTest : public QObject {
  Q_OBJECT
 private slots:
  void oneKernel_data() {
    QTest::addColumn<QList<qint64>>("sizes");
    QTest::addColumn<bool>("isBf16");
    for (bool isBf16 : {true, false})
      for (const QList<qint64>& sizes : {QList<qint64>{4, 256, 256, 64}, {3, 100, 77, 72}, {2, 65, 130, 128}, {1, 200, 50, 256}, {2, 1, 1, 16}})
        QTest::addRow("%lld x %lld x %lld x %lld %s", sizes[0], sizes[1], sizes[2], sizes[3], isBf16 ? "bfloat16" : "float16") << sizes << isBf16;
  }
  void oneKernel() {
    QFETCH(QList<qint64>, sizes);
    QFETCH(bool, isBf16);
    const DType type = isBf16 ? DType::BFloat16 : DType::Float16;
    const std::vector<Kernel> kernels = kernelsOf(written({sizes[0], sizes[1], sizes[2], sizes[3]}, type));
    QCOMPARE(kernels.size(), size_t{1});
    QVERIFY(kernels[0].attention);
    for (int capability : {80, 90, 100})
      for (bool aligned : {true, false}) {
        auto made = gpu::compilePtx(kernels[0], gpu::GpuTarget{capability, 132}, aligned, false);
        QVERIFY2(made, made ? "" : made.error().text().c_str());
        QCOMPARE(made->launches.size(), size_t{1});
        QVERIFY(made->launches[0].blocks(nullptr) >= sizes[0]);
        QVERIFY(made->launches[0].sharedBytes > 0 && made->launches[0].sharedBytes <= 227 << 10);
        const bool inGroups = capability == 90 && sizes[1] > 64 && sizes[3] % 64 == 0 && sizes[3] <= 128;
        const std::string types = isBf16 ? ".f32.bf16.bf16" : ".f32.f16.f16";
        const std::string product = inGroups ? "wgmma.mma_async.sync.aligned.m64n64k16" + types + " {" : "mma.sync.aligned.m16n8k16.row.col" + types + ".f32";
        QVERIFY2(made->text.find(product) != std::string::npos, product.c_str());
        QVERIFY2(faults(*made).isEmpty(), qPrintable(faults(*made)));
      }
  }

  void gradientsAreOneKernel_data() {
    QTest::addColumn<QList<qint64>>("sizes");
    QTest::addColumn<bool>("isBf16");
    for (bool isBf16 : {true, false})
      for (const QList<qint64>& sizes : {QList<qint64>{4, 256, 256, 64}, {3, 100, 77, 72}, {2, 65, 130, 128}, {2, 1, 1, 16}, {2, 1, 300, 32}})
        QTest::addRow("%lld x %lld x %lld x %lld %s", sizes[0], sizes[1], sizes[2], sizes[3], isBf16 ? "bfloat16" : "float16") << sizes << isBf16;
  }
  void gradientsAreOneKernel() {
    QFETCH(QList<qint64>, sizes);
    QFETCH(bool, isBf16);
    const std::vector<Kernel> kernels = kernelsOf(gradients({sizes[0], sizes[1], sizes[2], sizes[3]}, isBf16 ? DType::BFloat16 : DType::Float16));
    QCOMPARE(kernels.size(), size_t{1});
    QVERIFY(kernels[0].attention && kernels[0].attention->isGradient());
    for (int store : kernels[0].attention->stores) QVERIFY(store >= 2);
    for (int capability : {80, 90, 100})
      for (bool aligned : {true, false}) {
        auto made = gpu::compilePtx(kernels[0], gpu::GpuTarget{capability, 132}, aligned, false);
        QVERIFY2(made, made ? "" : made.error().text().c_str());
        QCOMPARE(made->launches.size(), size_t{2});
        for (const auto& launch : made->launches) {
          QVERIFY(launch.blocks(nullptr) >= sizes[0]);
          QVERIFY(launch.sharedBytes > 0 && launch.sharedBytes <= 163 << 10);
        }
        QVERIFY2(faults(*made).isEmpty(), qPrintable(faults(*made)));
      }
  }

  void gradientsLeftAsTheyAre() {
    for (const Kernel& kernel : kernelsOf(gradients({4, 256, 256, 64}, DType::BFloat16, true))) QVERIFY(!kernel.attention);
    for (const Kernel& kernel : kernelsOf(gradients({4, 256, 256, 64}, DType::Float32))) QVERIFY(!kernel.attention);
    for (const Kernel& kernel : kernelsOf(gradients({1, 128, 128, 256}, DType::BFloat16))) QVERIFY(!kernel.attention);
  }

  /// Whole rows of pieces of 16 bytes are copied as such; what begins anywhere is not.
  void copies() {
    const Kernel kernel = kernelsOf(written({4, 256, 256, 64}, DType::BFloat16)).front();
    const auto copiesOf = [&](bool aligned) {
      return QString::fromStdString(gpu::compilePtx(kernel, gpu::GpuTarget{}, aligned, false).value().text).count("cp.async.cg");
    };
    QVERIFY(copiesOf(true) > 0);
    QCOMPARE(copiesOf(false), 0);
  }

  void leftAsItIs() {
    for (const Kernel& kernel : kernelsOf(written({4, 256, 256, 64}, DType::BFloat16, true))) QVERIFY(!kernel.attention);
    for (const Kernel& kernel : kernelsOf(written({4, 256, 256, 64}, DType::Float32))) QVERIFY(!kernel.attention);
    const Kernel kernel = kernelsOf(written({4, 256, 256, 64}, DType::BFloat16)).front();
    QVERIFY(!gpu::compilePtx(kernel, gpu::GpuTarget{75, 40}, true, false));
  }

  /// Few rows of many columns are few blocks with much to do.
  void fewRowsOfManyColumns() {
    const auto isMade = [](const Sizes& s) {
      return gpu::compilePtx(kernelsOf(written(s, DType::BFloat16)).front(), gpu::GpuTarget{}, true, false).has_value();
    };
    QVERIFY(!isMade({8, 1, 8192, 64}));
    QVERIFY(isMade({8, 1, 512, 64}) && isMade({256, 1, 8192, 64}) && isMade({8, 512, 8192, 64}));
  }

  /// Attentions that differ in sizes, in what is made of scores or in how rows lie are different code.
  void textSaysAll() {
    const Kernel one = kernelsOf(written({4, 256, 256, 64}, DType::BFloat16)).front();
    const Kernel same = kernelsOf(written({4, 256, 256, 64}, DType::BFloat16)).front();
    QCOMPARE(canonicalText(one), canonicalText(same));
    for (const Sizes& s : {Sizes{4, 256, 256, 128}, Sizes{4, 128, 256, 64}, Sizes{4, 256, 128, 64}})
      QVERIFY(canonicalText(one) != canonicalText(kernelsOf(written(s, DType::BFloat16)).front()));
    QVERIFY(canonicalText(one) != canonicalText(kernelsOf(written({4, 256, 256, 64}, DType::Float16)).front()));
  }
};

QTEST_GUILESS_MAIN(GpuAttentionTest)
#include "gpu_attention_test.moc"
