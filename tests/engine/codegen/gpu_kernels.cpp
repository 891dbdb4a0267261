#include "tests/engine/codegen/gpu_kernels.h"

#include <fmt/format.h>

#include "engine/graph/symbol_values.h"

namespace fusebox::codegen::testing {
namespace {

/// gelu(sin x + cos y) * x + 1, x and y contiguous.
Kernel contiguous(DType type, SymExpr n) {
  KernelBuilder b("contiguous");
  const auto x = b.input(type, n), y = b.input(type, n), z = b.output(type, n);
  const SymExpr i = b.outer(n);
  b.section();
  const DType f = DType::Float32;
  auto wide = [&](ValueId v) { return type == f ? v : b.op(Op::Cast, f, v); };
  const ValueId u = wide(b.load(x, i)), v = wide(b.load(y, i));
  const ValueId s = b.op(Op::Add, f, b.op(Op::Sin, f, u), b.op(Op::Cos, f, v));
  const ValueId e = b.op(Op::Erf, f, b.op(Op::Mul, f, s, b.constant(f, 0.7071067811865476)));
  const ValueId g = b.op(Op::Mul, f, b.op(Op::Mul, f, s, b.constant(f, 0.5)), b.op(Op::Add, f, e, b.constant(f, 1)));
  const ValueId out = b.op(Op::Add, f, b.op(Op::Mul, f, g, u), b.constant(f, 1));
  b.store(z, i, type == f ? out : b.op(Op::Cast, type, out));
  return b.kernel;
}

Kernel transposed(DType type, int64_t rows, int64_t columns) {
  KernelBuilder b("transposed");
  const auto x = b.input(type, rows * columns), z = b.output(type, rows * columns);
  const SymExpr i = b.outer(columns), j = b.outer(rows);
  b.section();
  b.store(z, i * SymExpr(rows) + j, b.op(Op::Neg, type, b.load(x, j * SymExpr(columns) + i)));
  return b.kernel;
}

/// A batch of matrices stored both ways, with a value for each row and one for each column added.
Kernel bothWays(int64_t batch, int64_t rows, int64_t columns) {
  KernelBuilder b("both_ways");
  const DType f = DType::Float32;
  const auto x = b.input(f, batch * rows * columns), u = b.input(f, rows), v = b.input(f, columns);
  const auto y = b.output(f, batch * rows * columns), z = b.output(DType::BFloat16, batch * rows * columns);
  const SymExpr o = b.outer(batch), i = b.outer(columns), j = b.outer(rows);
  b.section();
  const SymExpr along = (o * SymExpr(rows) + j) * SymExpr(columns) + i, across = (o * SymExpr(columns) + i) * SymExpr(rows) + j;
  const ValueId sum = b.op(Op::Add, f, b.op(Op::Add, f, b.load(x, along), b.load(u, j)), b.load(v, i));
  b.store(y, along, sum);
  b.store(z, across, b.op(Op::Cast, DType::BFloat16, sum));
  return b.kernel;
}

/// The gradients of a layer norm: that of its input by rows, those of its weight and bias by columns.
Kernel layerNormBackward(int64_t rows, int64_t n, DType made) {
  KernelBuilder b("layer_norm_backward");
  const DType f = DType::Float32;
  const auto x = b.input(f, rows * n), g = b.input(f, rows * n), w = b.input(f, n), mean = b.input(f, rows);
  const auto dx = b.output(f, rows * n), dw = b.output(made, n), db = b.output(made, n), top = b.output(f, n);
  const SymExpr o = b.outer(rows);
  b.section(true);
  SymExpr i = b.axis(n);
  auto centred = [&] { return b.op(Op::Sub, f, b.load(x, o * SymExpr(n) + i), b.load(mean, o)); };
  auto weighted = [&] { return b.op(Op::Mul, f, b.load(g, o * SymExpr(n) + i), b.load(w, i)); };
  const ValueId product = b.op(Op::Mul, f, weighted(), centred());
  const int first = b.reduce(ReduceKind::Sum, weighted()), second = b.reduce(ReduceKind::Sum, product);
  b.section();
  i = b.axis(n);
  const ValueId share = b.op(Op::Mul, f, centred(), b.reduced(second, f));
  const ValueId gradient = b.op(Op::Sub, f, b.op(Op::Sub, f, weighted(), b.reduced(first, f)), share);
  b.store(dx, o * SymExpr(n) + i, gradient);
  b.accumulate(ReduceKind::Sum, dw, i, b.op(Op::Mul, f, b.load(g, o * SymExpr(n) + i), centred()));
  b.accumulate(ReduceKind::Sum, db, i, b.load(g, o * SymExpr(n) + i));
  b.accumulate(ReduceKind::Max, top, SymExpr(n - 1) - i, gradient);
  return b.kernel;
}

/// The gradient of cross-entropy over a vocabulary of `n`: rows of 16 bits, and numbers of 64 and 32 bits a row. Rows begin `stride` apart.
Kernel lossBackward(int64_t rows, int64_t n, int64_t stride) {
  KernelBuilder b("loss_backward");
  const DType f = DType::Float32, h = DType::BFloat16;
  const auto label = b.input(DType::Int64, rows), top = b.input(f, rows), rest = b.input(f, rows), x = b.input(h, rows * stride);
  const auto z = b.output(h, rows * stride);
  const SymExpr o = b.outer(rows);
  b.section();
  const SymExpr i = b.axis(n), at = o * SymExpr(stride) + i;
  const ValueId wide = b.op(Op::Cast, f, b.load(x, at));
  const ValueId power = b.op(Op::Exp, f, b.op(Op::Sub, f, b.op(Op::Sub, f, wide, b.load(top, o)), b.load(rest, o)));
  const ValueId here = b.op(Op::Eq, DType::Bool, b.index(i), b.load(label, o));
  const ValueId one = b.op(Op::Where, f, here, b.constant(f, 1), b.constant(f, 0));
  b.store(z, at, b.op(Op::Cast, h, b.op(Op::Sub, f, power, one)));
  return b.kernel;
}

/// A reduction of rows or columns, and what it gives stored.
Kernel reduction(ReduceKind kind, int results, DType type, int64_t outer, int64_t inner, bool columns) {
  KernelBuilder b("reduction");
  const auto x = b.input(type, outer * inner);
  const DType made = kind == ReduceKind::ArgMax ? DType::Int64 : type;
  std::vector<BufferId> out;
  for (int r = 0; r < results; ++r) out.push_back(b.output(made, outer));
  const SymExpr o = b.outer(outer);
  b.section(true);
  const SymExpr i = b.axis(inner);
  const int all = b.reduce(kind, b.load(x, columns ? i * SymExpr(outer) + o : o * SymExpr(inner) + i));
  b.section();
  for (int r = 0; r < results; ++r) b.store(out[static_cast<size_t>(r)], o, b.reduced(all, made, r));
  return b.kernel;
}

/// exp(x - max) / sum, the maximum and the sum in sections of their own.
Kernel softmax(int64_t rows, SymExpr n, Symbol* size = nullptr) {
  KernelBuilder b("softmax");
  const DType f = DType::Float32;
  if (size) b.kernel.sizeSymbols.push_back(*size);
  const auto x = b.input(f, SymExpr(rows) * n), z = b.output(f, SymExpr(rows) * n);
  const SymExpr o = b.outer(rows);
  b.section(true);
  SymExpr i = b.axis(n);
  const int largest = b.reduce(ReduceKind::Max, b.load(x, o * n + i));
  auto power = [&] { return b.op(Op::Exp, f, b.op(Op::Sub, f, b.load(x, o * n + i), b.reduced(largest, f))); };
  b.section(true);
  i = b.axis(n);
  const int total = b.reduce(ReduceKind::Sum, power());
  b.section();
  i = b.axis(n);
  b.store(z, o * n + i, b.op(Op::Div, f, power(), b.reduced(total, f)));
  return b.kernel;
}

/// x * y, y a row for all, in points of rows of any length.
Kernel productOfRows(int64_t rows, Symbol n) {
  KernelBuilder b("product_of_rows");
  const DType half = DType::Float16, f = DType::Float32;
  b.kernel.sizeSymbols.push_back(n);
  const auto x = b.input(half, SymExpr(rows) * SymExpr(n)), y = b.input(f, SymExpr(n)), z = b.output(half, SymExpr(rows) * SymExpr(n));
  const SymExpr o = b.outer(rows), i = b.outer(n);
  b.section();
  b.store(z, o * SymExpr(n) + i, b.op(Op::Cast, half, b.op(Op::Mul, f, b.op(Op::Cast, f, b.load(x, o * SymExpr(n) + i)), b.load(y, i))));
  return b.kernel;
}

Kernel layerNorm(int64_t rows, int64_t n) {
  KernelBuilder b("layer_norm");
  const DType f = DType::Float32;
  const auto x = b.input(f, rows * n), w = b.input(f, n), z = b.output(f, rows * n), mean = b.output(f, rows);
  const SymExpr o = b.outer(rows);
  b.section(true);
  SymExpr i = b.axis(n);
  const int all = b.reduce(ReduceKind::Welford, b.load(x, o * SymExpr(n) + i));
  b.section();
  b.store(mean, o, b.reduced(all, f, 0));
  b.section();
  i = b.axis(n);
  const ValueId variance = b.op(Op::Div, f, b.reduced(all, f, 1), b.reduced(all, f, 2));
  const ValueId scale = b.op(Op::Rsqrt, f, b.op(Op::Add, f, variance, b.constant(f, 1e-5)));
  const ValueId centred = b.op(Op::Sub, f, b.load(x, o * SymExpr(n) + i), b.reduced(all, f, 0));
  b.store(z, o * SymExpr(n) + i, b.op(Op::Mul, f, b.op(Op::Mul, f, centred, scale), b.load(w, i)));
  return b.kernel;
}

/// Running reductions of rows or columns, and of what they give.
Kernel scan(ReduceKind kind, DType type, int64_t outer, int64_t inner, bool columns) {
  KernelBuilder b("scan");
  const bool isArg = kind == ReduceKind::ArgMax || kind == ReduceKind::ArgMin, two = isArg || kind == ReduceKind::OnlineSoftmax;
  const auto x = b.input(type, outer * inner), y = b.output(type, outer * inner), z = b.output(isArg ? DType::Int64 : type, outer * inner);
  const SymExpr o = b.outer(outer);
  b.section();
  const SymExpr i = b.axis(inner), at = columns ? i * SymExpr(outer) + o : o * SymExpr(inner) + i;
  const ValueId v = b.load(x, at);
  b.store(y, at, b.scan(kind, isArg ? 1 : 0, type, v));
  b.store(z, at, two ? b.scan(kind, isArg ? 0 : 1, isArg ? DType::Int64 : type, v) : b.op(Op::Neg, type, b.scan(kind, 0, type, v)));
  return b.kernel;
}

/// What one section leaves at a point for the next one, elements taken by other threads than stored them.
Kernel scratch(int64_t rows, int64_t n) {
  KernelBuilder b("scratch");
  const DType f = DType::Float32;
  const auto x = b.input(f, rows * n), z = b.output(f, rows * n), kept = b.buffer(BufferRole::Scratch, f, n);
  const SymExpr o = b.outer(rows);
  b.section();
  SymExpr i = b.axis(n);
  b.store(kept, i, b.op(Op::Tanh, f, b.load(x, o * SymExpr(n) + i)));
  b.section();
  i = b.axis(n);
  b.store(z, o * SymExpr(n) + i, b.load(kept, SymExpr(n - 1) - i));
  return b.kernel;
}

Kernel gather(int64_t n, int64_t table, bool checked) {
  KernelBuilder b("gather");
  const auto index = b.input(DType::Int64, n), x = b.input(DType::Float32, table), z = b.output(DType::Float32, n);
  const SymExpr i = b.outer(n);
  b.section();
  ValueId at = b.load(index, i);
  if (checked) {
    at = b.op(Op::Check, DType::Int64, at,
              b.op(Op::Lt, DType::Bool, at, b.constant(DType::Int64, static_cast<double>(table))));
    b.kernel.sections.back().values.back().imm = static_cast<int64_t>(Fault::Gather);
  }
  b.store(z, i, b.load(x, b.indirect(at, 0, table - 1)));
  return b.kernel;
}

Kernel scatter(DType type, int64_t n, int64_t table) {
  KernelBuilder b("scatter");
  const auto index = b.input(DType::Int64, n), x = b.input(type, n), z = b.buffer(BufferRole::InOut, type, table);
  const SymExpr i = b.outer(n);
  b.section();
  const ValueId value = b.load(x, i);
  b.atomicAdd(z, b.indirect(b.load(index, i), 0, table - 1), value);
  return b.kernel;
}

/// Rows of a table, weighted, added to the rows of another one: messages of a graph. `inSection`: the weights are stored on the way, the rows
/// are a section of their own.
Kernel addedRows(DType type, int64_t n, int64_t width, int64_t table, bool inSection) {
  KernelBuilder b("added_rows");
  const DType f = DType::Float32;
  const auto from = b.input(DType::Int64, n), to = b.input(DType::Int64, n), x = b.input(DType::BFloat16, table * width), w = b.input(f, n);
  const auto z = b.buffer(BufferRole::InOut, type, table * width), weights = inSection ? b.output(f, n) : -1;
  const SymExpr i = b.outer(n);
  const auto checked = [&](ValueId at) {
    const ValueId sound = b.op(Op::Check, DType::Int64, at, b.op(Op::Lt, DType::Bool, at, b.constant(DType::Int64, static_cast<double>(table))));
    b.kernel.sections.back().values.back().imm = static_cast<int64_t>(Fault::Gather);
    return b.indirect(sound, 0, table - 1);
  };
  SymExpr c(0);
  if (inSection) {
    b.section();
    b.store(weights, i, b.op(Op::Mul, f, b.load(w, i), b.constant(f, 2)));
    b.section();
    c = b.axis(width);
  } else {
    c = b.outer(width);
    b.section();
  }
  const ValueId value = b.op(Op::Mul, f, b.op(Op::Cast, f, b.load(x, checked(b.load(from, i)) * SymExpr(width) + c)), b.load(w, i));
  b.atomicAdd(z, checked(b.load(to, i)) * SymExpr(width) + c, type == f ? value : b.op(Op::Cast, type, value));
  return b.kernel;
}

/// A load that is made only inside a window.
Kernel padded(int64_t n) {
  KernelBuilder b("padded");
  const DType f = DType::Float32;
  const auto x = b.input(f, n), z = b.output(f, n + 10);
  const SymExpr i = b.outer(n + 10);
  b.section();
  const ValueId at = b.index(i);
  const ValueId inside = b.op(Op::BitAnd, DType::Bool, b.op(Op::Ge, DType::Bool, at, b.constant(DType::Int64, 5)),
                              b.op(Op::Lt, DType::Bool, at, b.constant(DType::Int64, static_cast<double>(n + 5))));
  b.store(z, i, b.load(x, i - SymExpr(5), inside, 2.5));
  return b.kernel;
}

/// Rows of `n` with zeros behind them, as `to`: what lies beyond is not read.
Kernel paddedRows(int64_t rows, int64_t n, int64_t to, int64_t stride) {
  KernelBuilder b("padded_rows");
  const DType h = DType::BFloat16, f = DType::Float32;
  const auto x = b.input(h, (rows - 1) * stride + n), u = b.input(f, rows), z = b.output(h, rows * to);
  const SymExpr o = b.outer(rows), i = b.outer(to);
  b.section();
  const ValueId inside = b.op(Op::Lt, DType::Bool, b.index(i), b.constant(DType::Int64, static_cast<double>(n)));
  const ValueId v = b.op(Op::Cast, f, b.load(x, o * SymExpr(stride) + i, inside, 0));
  b.store(z, o * SymExpr(to) + i, b.op(Op::Cast, h, b.op(Op::Mul, f, v, b.load(u, o, inside, 0))));
  return b.kernel;
}

/// Rows of odd length, of which the last ones are zeros and of which nothing is read.
Kernel fewerRows(int64_t rows, int64_t n) {
  KernelBuilder b("fewer_rows");
  const DType h = DType::BFloat16, f = DType::Float32;
  const auto x = b.input(h, (rows - 3) * n), u = b.input(f, rows - 3), z = b.output(h, rows * n);
  const SymExpr o = b.outer(rows), i = b.outer(n), at = o * SymExpr(n) + i;
  b.section();
  const ValueId inside = b.op(Op::Lt, DType::Bool, b.index(o), b.constant(DType::Int64, static_cast<double>(rows - 3)));
  const ValueId v = b.op(Op::Mul, f, b.op(Op::Cast, f, b.load(x, at, inside, 0)), b.load(u, o, inside, 0));
  b.store(z, at, b.op(Op::Cast, h, b.op(Op::Add, f, v, b.op(Op::Cast, f, b.index(i)))));
  return b.kernel;
}

/// Rows of odd length that begin anywhere, a number for each row and each column, of two types.
Kernel rowsAndColumns(int64_t rows, int64_t n, int64_t stride, int64_t offset) {
  KernelBuilder b("rows_and_columns");
  const DType h = DType::BFloat16, f = DType::Float32;
  const auto x = b.input(h, rows * stride + offset), u = b.input(f, rows), v = b.input(f, n);
  const auto y = b.output(f, rows * n), z = b.output(h, rows * stride + offset);
  const SymExpr o = b.outer(rows), i = b.outer(n);
  b.section();
  const SymExpr at = o * SymExpr(stride) + i + SymExpr(offset);
  const ValueId sum = b.op(Op::Add, f, b.op(Op::Mul, f, b.op(Op::Cast, f, b.load(x, at)), b.load(u, o)), b.load(v, i));
  b.store(y, o * SymExpr(n) + i, sum);
  b.store(z, at, b.op(Op::Cast, h, sum));
  return b.kernel;
}

Kernel random(Op op, DType type, int64_t n) {
  KernelBuilder b("random");
  const auto seed = b.input(DType::Int64, 1), z = b.output(type, n);
  const SymExpr i = b.outer(n);
  b.section();
  b.store(z, i, b.op(op, type, b.load(seed, 0), b.index(i)));
  return b.kernel;
}

}  // namespace

std::vector<NamedKernel> gpuKernels() {
  const DType f = DType::Float32;
  std::vector<NamedKernel> list = {
      {"contiguous", contiguous(f, 1 << 16), {}},
      {"contiguous_odd", contiguous(f, 40001), {}},
      {"contiguous_bf16", contiguous(DType::BFloat16, 1 << 16), {}, 1},
      {"contiguous_f16", contiguous(DType::Float16, 4096), {}, 1},
      {"transposed", transposed(f, 96, 160), {}},
      {"transposed_ragged", transposed(f, 36, 52), {}},
      {"transposed_odd", transposed(f, 33, 47), {}},
      {"transposed_f64", transposed(DType::Float64, 50, 62), {}},
      {"transposed_bf16", transposed(DType::BFloat16, 72, 136), {}},
      {"transposed_u8", transposed(DType::UInt8, 72, 136), {}},
      {"both_ways", bothWays(3, 44, 68), {}},
      {"layer_norm_backward", layerNormBackward(2500, 768, f), {}, 2000},
      {"layer_norm_backward_bf16", layerNormBackward(1100, 2048, DType::BFloat16), {}, 2000},
      {"layer_norm_backward_odd", layerNormBackward(1031, 333, f), {}, 2000},
      {"loss_backward", lossBackward(300, 5025, 5025), {}, 1},
      {"loss_backward_padded", lossBackward(300, 5025, 5032), {}, 1},
      {"padded_rows", paddedRows(70, 1003, 1008, 1003), {}, 1},
      {"padded_rows_apart", paddedRows(70, 1003, 1008, 1008), {}, 1},
      {"fewer_rows", fewerRows(40, 1003), {}, 1},
      {"rows_and_columns", rowsAndColumns(60, 1003, 1003, 0), {}},
      {"rows_and_columns_long", rowsAndColumns(9, 2501, 2510, 3), {}},
      {"softmax_wide", softmax(9, 20001), {}},
      {"softmax_rows", softmax(64, 2048), {}},
      {"softmax_in_clusters", softmax(140, 33001), {}},
      {"softmax_in_few_clusters", softmax(40, 33001), {}},
      {"softmax_short", softmax(100, 24), {}},
      {"softmax_odd", softmax(7, 1001), {}},
      {"softmax_long", softmax(3, 100000), {}},
      {"layer_norm", layerNorm(64, 768), {}},
      {"layer_norm_odd", layerNorm(5, 333), {}},
      {"scratch", scratch(9, 100), {}},
      {"scratch_long", scratch(3, 20000), {}},
      {"gather", gather(5000, 10, false), {}},
      {"gather_checked", gather(5000, 10, true), {}},
      {"scatter_f32", scatter(f, 5000, 10), {}, 20000},
      {"scatter_f64", scatter(DType::Float64, 5000, 10), {}, 20000},
      {"scatter_i32", scatter(DType::Int32, 5000, 10), {}},
      {"scatter_i64", scatter(DType::Int64, 5000, 10), {}},
      {"scatter_u8", scatter(DType::UInt8, 300, 10), {}},
      {"added_rows_f32", addedRows(f, 700, 64, 40, false), {}, 20000},
      {"added_rows_bf16", addedRows(DType::BFloat16, 60, 64, 40, false), {}, 20000},
      {"added_rows_f16", addedRows(DType::Float16, 60, 36, 40, true), {}, 20000},
      {"added_rows_f64", addedRows(DType::Float64, 700, 20, 40, true), {}, 20000},
      {"added_rows_sections", addedRows(f, 3000, 256, 100, true), {}, 20000},
      {"added_rows_odd", addedRows(f, 300, 517, 40, true), {}, 20000},
      {"padded", padded(1000), {}},
      {"uniform", random(Op::RandUniform, f, 3000), {}},
      {"normal", random(Op::RandNormal, f, 3000), {}},
      {"integers", random(Op::RandInt64, DType::Int64, 3000), {}},
  };
  struct Shape {
    int64_t outer, inner;
    bool columns;
  };
  for (const Shape& s : {Shape{64, 1000, false}, Shape{1, 300000, false}, Shape{300, 40, true}, Shape{32, 60000, true},
                         Shape{70, 5, false}, Shape{2048, 64, true}, Shape{150, 2051, false}, Shape{1, 300001, false}})
    for (const auto& [kind, results] :
         {std::pair{ReduceKind::Sum, 1}, std::pair{ReduceKind::Max, 1}, std::pair{ReduceKind::ArgMax, 1},
          std::pair{ReduceKind::Welford, 3}, std::pair{ReduceKind::OnlineSoftmax, 2}})
      list.push_back({fmt::format("{}_{}x{}{}", name(kind), s.outer, s.inner, s.columns ? "_columns" : ""),
                      reduction(kind, results, f, s.outer, s.inner, s.columns),
                      {},
                      2000});
  for (DType t : {DType::Float64, DType::BFloat16, DType::Int64})
    list.push_back({fmt::format("sum_{}", graph::name(t)), reduction(ReduceKind::Sum, 1, t, 40, 500, false), {}, 500});
  for (const Shape& s : {Shape{70, 5, false}, Shape{9, 1000, false}, Shape{5, 4096, false}, Shape{3, 30001, false}, Shape{300, 40, true}})
    for (ReduceKind kind : {ReduceKind::Sum, ReduceKind::Max, ReduceKind::ArgMin, ReduceKind::OnlineSoftmax})
      list.push_back({fmt::format("scan_{}_{}x{}{}", name(kind), s.outer, s.inner, s.columns ? "_columns" : ""),
                      scan(kind, f, s.outer, s.inner, s.columns), {}, 2000});
  list.push_back({"scan_prod_i64", scan(ReduceKind::Prod, DType::Int64, 20, 300, false), {}, 1, 3});
  list.push_back({"scan_argmax_i32", scan(ReduceKind::ArgMax, DType::Int32, 20, 3000, false), {}, 1, 9});
  const Symbol size = Symbol::make("s0", 2, 1 << 20);
  Symbol copy = size;
  list.push_back({"softmax_dynamic", softmax(6, SymExpr(size), &copy), {777}});
  // Made for rows of a thousand, which are taken in vectors as they lie in memory, whatever their length.
  Symbol row = Symbol::make("s1", 2, 1 << 20);
  graph::setHint(row, 1000);
  for (int64_t n : {2, 3, 4, 5, 31, 511, 777, 1000, 4097}) {
    list.push_back({fmt::format("softmax_rows_of_{}", n), softmax(6, SymExpr(row), &row), {n}});
    list.push_back({fmt::format("product_rows_of_{}", n), productOfRows(7, row), {n}});
  }
  return list;
}

}  // namespace fusebox::codegen::testing
