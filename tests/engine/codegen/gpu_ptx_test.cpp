#include <QProcess>
#include <QTemporaryDir>
#include <QtTest>
#include <set>

#include "engine/codegen/gpu/launch_shape.h"
#include "engine/codegen/gpu/ptx.h"
#include "engine/codegen/gpu/target.h"
#include "tests/engine/codegen/gpu_kernels.h"
#include "tests/engine/codegen/kernel_writer.h"

using namespace fusebox::codegen::testing;
namespace gpu = fusebox::codegen::gpu;

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
  }

  void fewLongRowsAreDivided() {
    const gpu::PtxKernel k = compiled(named("softmax_long").kernel);
    QVERIFY(k.launches.size() > 3);
    QVERIFY(k.launches[0].blocks(nullptr) >= 50);
    QVERIFY(k.workBytes && k.workBytes(nullptr) > 0);
    QVERIFY(!compiled(named("softmax_rows").kernel).workBytes);
  }

  void sizesAreArguments() {
    const NamedKernel& k = named("softmax_dynamic");
    const gpu::PtxKernel made = compiled(k.kernel);
    QCOMPARE(made.launches[0].blocks(k.sizes.data()), int64_t{6});
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
