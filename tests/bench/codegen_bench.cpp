#include <QtTest>
#include <chrono>
#include <cmath>

#include "tests/engine/codegen/kernel_builder.h"

using namespace fusebox::codegen::testing;

namespace {

double now() { return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

/// Best time of one launch on one thread, ns.
double bestLaunch(const fusebox::codegen::cpu::CompiledKernel& k, Buffers& data) {
  double best = 1e300;
  const double start = now();
  while (now() - start < 1e8) {
    const double t = now();
    launch(k, data, {}, 1);
    best = std::min(best, now() - t);
  }
  return best;
}

void report(const char* what, const Kernel& kernel, double elements) {
  Buffers data(kernel, {});
  std::mt19937 random(1);
  data.fill(random);
  const std::string& target = testTargets().back();
  for (int tier : {0, 1}) {
    auto features = fusebox::codegen::cpu::TargetFeatures::named("host").value();
    auto jit = fusebox::codegen::cpu::Jit::create({features, false, tier}).value();
    auto k = jit->compile(kernel).value();
    const double ns = bestLaunch(*k, data);
    double bytes = 0;
    for (const KernelBuffer& b : kernel.buffers)
      if (b.role != BufferRole::Scratch) bytes += static_cast<double>(data.numel(b.id) * fusebox::graph::elementSize(b.dtype));
    qInfo("%-26s %s tier %d: compile %6.2f ms, %7.3f ns/element, %6.1f GB/s", what, target.c_str(), tier, static_cast<double>(k->compileNs) / 1e6,
          ns / elements, bytes / ns);
  }
}

ValueId gelu(KernelBuilder& b, ValueId x) {
  const DType f = DType::Float32;
  const auto e = b.op(Op::Erf, f, b.op(Op::Mul, f, x, b.constant(f, 0.70710678118654752)));
  return b.op(Op::Mul, f, b.op(Op::Mul, f, x, b.constant(f, 0.5)), b.op(Op::Add, f, e, b.constant(f, 1)));
}

}  // namespace

/// Compile time and throughput of typical kernels, printed. One thread.
class CodegenBench : public QObject {
  Q_OBJECT
 private slots:
  void kernels() {
    const DType f = DType::Float32;
    // A first kernel pays for LLVM's own start.
    {
      KernelBuilder b("warm_up");
      const auto x = b.input(f, 64), z = b.output(f, 64);
      const SymExpr i = b.outer(64);
      b.section();
      b.store(z, i, b.load(x, i));
      report("copy (warm-up)", b.kernel, 64);
    }
    {
      KernelBuilder b("gelu_chain");
      const int n = 65536;
      const auto x = b.input(f, n), z = b.output(f, n);
      const SymExpr i = b.outer(n);
      b.section();
      const auto v = b.load(x, i);
      const auto g = gelu(b, b.op(Op::Add, f, b.op(Op::Sin, f, v), b.op(Op::Cos, f, v)));
      b.store(z, i, b.op(Op::Add, f, b.op(Op::Mul, f, g, v), b.constant(f, 1)));
      report("gelu(sin+cos)*x+1", b.kernel, n);
    }
    for (DType t : {DType::Float32, DType::BFloat16, DType::Float16, DType::Float64}) {
      KernelBuilder b("add");
      const int n = 65536;
      const auto x = b.input(t, n), y = b.input(t, n), z = b.output(t, n);
      const SymExpr i = b.outer(n);
      b.section();
      b.store(z, i, b.op(Op::Add, t, b.load(x, i), b.load(y, i)));
      report(("add " + std::string(fusebox::graph::name(t))).c_str(), b.kernel, n);
    }
    for (Op op : {Op::Exp, Op::Log, Op::Tanh, Op::Sigmoid, Op::Erf, Op::Pow, Op::Tan, Op::Atan2}) {
      KernelBuilder b("function");
      const int n = 65536;
      const auto x = b.input(f, n), z = b.output(f, n);
      const SymExpr i = b.outer(n);
      b.section();
      const auto v = b.load(x, i);
      b.store(z, i, b.op(op, f, v, op == Op::Pow || op == Op::Atan2 ? v : -1));
      report(std::string(name(op)).c_str(), b.kernel, n);
    }
    {
      KernelBuilder b("layer_norm");
      const int rows = 64, columns = 1024;
      const auto x = b.input(f, rows * columns), w = b.input(f, columns), c = b.input(f, columns), z = b.output(f, rows * columns);
      const SymExpr i = b.outer(rows), width(columns);
      b.section(true);
      SymExpr j = b.axis(columns);
      const int stats = b.reduce(ReduceKind::Welford, b.load(x, i * width + j));
      b.section();
      j = b.axis(columns);
      const auto variance = b.op(Op::Mul, f, b.reduced(stats, f, 1), b.constant(f, 1.0 / columns));
      const auto scale = b.op(Op::Rsqrt, f, b.op(Op::Add, f, variance, b.constant(f, 1e-5)));
      const auto normal = b.op(Op::Mul, f, b.op(Op::Sub, f, b.load(x, i * width + j), b.reduced(stats, f)), scale);
      b.store(z, i * width + j, gelu(b, b.op(Op::Add, f, b.op(Op::Mul, f, normal, b.load(w, j)), b.load(c, j))));
      report("layer_norm + gelu", b.kernel, rows * columns);
    }
    {
      KernelBuilder b("softmax");
      const int rows = 64, columns = 1024;
      const auto x = b.input(f, rows * columns), z = b.output(f, rows * columns);
      const auto kept = b.buffer(BufferRole::Scratch, f, columns);
      const SymExpr i = b.outer(rows), width(columns);
      b.section(true);
      SymExpr j = b.axis(columns);
      const int largest = b.reduce(ReduceKind::Max, b.load(x, i * width + j));
      b.section(true);
      j = b.axis(columns);
      const auto e = b.op(Op::Exp, f, b.op(Op::Sub, f, b.load(x, i * width + j), b.reduced(largest, f)));
      b.store(kept, j, e);
      const int sum = b.reduce(ReduceKind::Sum, e);
      b.section();
      j = b.axis(columns);
      b.store(z, i * width + j, b.op(Op::Div, f, b.load(kept, j), b.reduced(sum, f)));
      report("softmax rows of 1024", b.kernel, rows * columns);
    }
    for (bool columns : {false, true}) {
      KernelBuilder b(columns ? "column_sum" : "full_sum");
      const int rows = 1024, width = 1024;
      const auto x = b.input(f, rows * width), z = b.output(f, columns ? width : 1);
      const SymExpr j = columns ? b.outer(width) : SymExpr(0);
      b.section(true);
      const SymExpr i = b.axis(columns ? rows : rows * width);
      const int sum = b.reduce(ReduceKind::Sum, b.load(x, columns ? i * SymExpr(width) + j : i));
      b.section();
      b.store(z, j, b.reduced(sum, f));
      report(columns ? "column sum 1024x1024" : "sum of 1 M", b.kernel, rows * width);
    }
    {
      KernelBuilder b("transpose");
      const int n = 2048;
      const auto x = b.input(f, n * n), z = b.output(f, n * n);
      const SymExpr i = b.outer(n), j = b.outer(n);
      b.section();
      b.store(z, i * SymExpr(n) + j, b.load(x, j * SymExpr(n) + i));
      report("transpose 2048x2048", b.kernel, n * n);
    }
  }
};

QTEST_APPLESS_MAIN(CodegenBench)
#include "codegen_bench.moc"
