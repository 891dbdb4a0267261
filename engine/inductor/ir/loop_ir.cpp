#include "engine/inductor/ir/loop_ir.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cinttypes>
#include <cstdio>
#include <unordered_map>

namespace fusebox::inductor {
namespace {

constexpr std::string_view kOpNames[] = {
    "constant", "index", "load", "reduced",
    "cast", "bitcast",
    "neg", "abs", "sign", "reciprocal", "sqrt", "rsqrt", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin",
    "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "erfc", "erfinv",
    "lgamma", "digamma", "sigmoid", "floor", "ceil", "trunc", "round_even", "logical_not", "bit_not", "isnan", "isinf",
    "signbit",
    "add", "sub", "mul", "div", "trunc_div", "floor_div", "fmod", "remainder", "pow", "atan2", "hypot", "copysign",
    "nextafter", "maximum", "minimum", "bit_and", "bit_or", "bit_xor", "shift_left", "shift_right", "eq", "ne", "lt", "le",
    "gt", "ge",
    "where", "fma",
    "rand_uniform", "rand_normal", "rand_int64", "scan", "check",
};
static_assert(std::size(kOpNames) == static_cast<size_t>(Op::Check) + 1);

constexpr std::string_view kReduceNames[] = {"sum", "prod", "max", "min", "any", "all", "argmax", "argmin", "welford",
                                             "online_softmax"};
static_assert(std::size(kReduceNames) == static_cast<size_t>(ReduceKind::OnlineSoftmax) + 1);

constexpr std::string_view kRoleNames[] = {"in", "out", "inout", "scratch"};

/// Writes a kernel as text. In canonical form symbols and buffers are numbered by position, so that kernels which differ in
/// names only give the same text.
class KernelWriter {
 public:
  KernelWriter(const Kernel& kernel, bool canonical, const std::vector<std::string>& nodeNames)
      : kernel_(kernel), canonical_(canonical), nodeNames_(nodeNames) {
    numberSymbols();
  }

  std::string text() {
    header();
    for (size_t i = 0; i < kernel_.sections.size(); ++i) section(i, kernel_.sections[i]);
    return std::move(out_);
  }

 private:
  void numberSymbols() {
    auto add = [this](Symbol s, std::string canonicalName) {
      names_[s.id] = canonical_ ? std::move(canonicalName) : s.name();
    };
    for (size_t i = 0; i < kernel_.sizeSymbols.size(); ++i) add(kernel_.sizeSymbols[i], fmt::format("s{}", i));
    for (size_t i = 0; i < kernel_.outer.size(); ++i) add(kernel_.outer[i].symbol, fmt::format("o{}", i));
    for (size_t s = 0; s < kernel_.sections.size(); ++s) {
      const Section& section = kernel_.sections[s];
      const std::string prefix = fmt::format("{}_", s);
      for (size_t i = 0; i < section.axes.size(); ++i)
        add(section.axes[i].symbol, fmt::format("a{}{}", prefix, i));
      std::vector<std::pair<ValueId, Symbol>> loaded;
      for (const auto& [symbol, value] : section.indirect) loaded.emplace_back(value, symbol);
      std::sort(loaded.begin(), loaded.end());
      for (size_t i = 0; i < loaded.size(); ++i) add(loaded[i].second, fmt::format("v{}{}", prefix, i));
    }
    if (kernel_.attention) {
      add(kernel_.attention->width.symbol, "w");
      add(kernel_.attention->depth.symbol, "d");
    }
    for (size_t i = 0; i < kernel_.buffers.size(); ++i)
      buffers_[kernel_.buffers[i].id] = canonical_ ? fmt::format("b{}", i) : kernel_.buffers[i].name;
  }

  std::string atom(const graph::SymAtom& a) const {
    using Kind = graph::SymAtom::Kind;
    switch (a.kind) {
      case Kind::Symbol: {
        auto it = names_.find(a.symbol.id);
        return it != names_.end() ? it->second : fmt::format("?{}", a.symbol.id);
      }
      case Kind::FloorDiv: return fmt::format("({} // {})", expr(a.a), expr(a.b));
      case Kind::Mod: return fmt::format("({} % {})", expr(a.a), expr(a.b));
      case Kind::Min: return fmt::format("min({}, {})", expr(a.a), expr(a.b));
      case Kind::Max: return fmt::format("max({}, {})", expr(a.a), expr(a.b));
    }
    return "?";
  }

  /// Terms in an order that does not depend on symbol ids.
  std::string expr(const SymExpr& e) const {
    if (e.isConstant()) return std::to_string(e.constant());
    std::vector<std::string> parts;
    for (const SymExpr::Term& term : e.terms()) {
      std::vector<std::string> factors;
      for (const graph::SymAtom& a : term.factors) factors.push_back(atom(a));
      std::sort(factors.begin(), factors.end());
      std::string part;
      for (const std::string& f : factors) part += (part.empty() ? "" : "*") + f;
      if (part.empty()) part = std::to_string(term.coefficient);
      else if (term.coefficient != 1) part = fmt::format("{}*{}", term.coefficient, part);
      parts.push_back(std::move(part));
    }
    std::sort(parts.begin(), parts.end());
    std::string text;
    for (const std::string& p : parts) text += (text.empty() ? "" : " + ") + p;
    return text.empty() ? "0" : text;
  }

  void axes(const std::vector<Axis>& list) {
    for (size_t i = 0; i < list.size(); ++i)
      out_ += fmt::format("{}{} < {}", i ? ", " : "", names_[list[i].symbol.id], expr(list[i].extent));
  }

  void header() {
    out_ += fmt::format("kernel {} on {}\n", canonical_ ? "" : kernel_.name,
                        kernel_.device.kind == graph::DeviceKind::Cpu ? "cpu" : "device");
    if (kernel_.isBatch) out_ += "  for many sets of buffers at a time\n";
    if (const Attention* a = kernel_.attention.get())
      out_ += fmt::format("  attention: width {} < {}, depth {} < {}, sharing {}{}{}\n", names_[a->width.symbol.id], expr(a->width.extent),
                          names_[a->depth.symbol.id], expr(a->depth.extent), a->sharing, a->safe ? ", safe" : "",
                          a->isGradient() ? fmt::format(", gradients {} {} {}", a->stores[0], a->stores[1], a->stores[2]) : std::string());
    if (!kernel_.sizeSymbols.empty()) {
      out_ += "  sizes ";
      for (size_t i = 0; i < kernel_.sizeSymbols.size(); ++i) {
        const Symbol s = kernel_.sizeSymbols[i];
        out_ += fmt::format("{}{} in [{}, {}]", i ? ", " : "", names_[s.id], s.lower(), s.upper());
      }
      out_ += "\n";
    }
    for (const KernelBuffer& b : kernel_.buffers)
      out_ += fmt::format("  {} {}: {}[{}] align {}{}\n", kRoleNames[static_cast<size_t>(b.role)], buffers_[b.id], graph::name(b.dtype),
                          expr(b.numel), b.alignment, b.overwrites >= 0 ? " over " + buffers_[b.overwrites] : "");
    out_ += "  for ";
    axes(kernel_.outer);
    out_ += "\n";
  }

  static std::string ref(ValueId id) { return fmt::format("%{}", id); }

  static std::string immediate(DType type, int64_t imm) {
    if (!graph::isFloatingPoint(type)) return std::to_string(imm);
    char text[64];
    const double value = std::bit_cast<double>(imm);
    std::snprintf(text, sizeof text, "%.17g", value);
    if (value != value) std::snprintf(text, sizeof text, "nan:%" PRIx64, static_cast<uint64_t>(imm));
    return text;
  }

  void value(ValueId id, const Value& v) {
    out_ += fmt::format("    {}: {} = {}", ref(id), graph::name(v.type), name(v.op));
    switch (v.op) {
      case Op::Constant: out_ += fmt::format(" {}", immediate(v.type, v.imm)); break;
      case Op::Index: out_ += fmt::format(" {}", expr(v.index)); break;
      case Op::Reduced: out_ += fmt::format(" r{}.{}", v.args[0], v.imm); break;
      case Op::Load:
        out_ += fmt::format(" {}[{}]", buffers_[v.buffer], expr(v.index));
        if (v.mask >= 0) out_ += fmt::format(" if {} else {}", ref(v.mask), immediate(v.type, v.imm));
        break;
      default:
        for (ValueId a : v.args)
          if (a >= 0) out_ += fmt::format(" {}", ref(a));
    }
    if (v.op == Op::Check) out_ += fmt::format(" fault {}", v.imm);
    if (v.op == Op::Scan) out_ += fmt::format(" by {}.{}", name(scanKind(v.imm)), scanResult(v.imm));
    if (v.origin >= 0 && static_cast<size_t>(v.origin) < nodeNames_.size()) out_ += "  # " + nodeNames_[static_cast<size_t>(v.origin)];
    out_ += "\n";
  }

  static std::string operatorOf(const Statement& s) {
    if (s.kind == Statement::Kind::Accumulate) return fmt::format("= {} over points", name(s.reduce));
    return s.kind == Statement::Kind::Store ? "=" : "+=";
  }

  void statement(const Statement& s) {
    if (s.kind == Statement::Kind::Reduce) {
      out_ += fmt::format("    r{} = {}", s.reduction, name(s.reduce));
      for (ValueId v : s.inputs)
        if (v >= 0) out_ += fmt::format(" {}", ref(v));
    } else {
      out_ += fmt::format("    {}[{}] {} {}", buffers_[s.buffer], expr(s.index), operatorOf(s), ref(s.value));
      if (s.mask >= 0) out_ += fmt::format(" if {}", ref(s.mask));
    }
    out_ += "\n";
  }

  void section(size_t number, const Section& s) {
    out_ += fmt::format("  section {}{}", number, s.isReduction ? " reduce " : " ");
    axes(s.axes);
    out_ += "\n";
    for (size_t i = 0; i < s.values.size(); ++i) {
      value(static_cast<ValueId>(i), s.values[i]);
      for (const auto& [symbol, id] : s.indirect)
        if (id == static_cast<ValueId>(i)) out_ += fmt::format("    {} := {}\n", names_[symbol.id], ref(id));
    }
    for (const Statement& st : s.body) statement(st);
  }

  const Kernel& kernel_;
  bool canonical_;
  const std::vector<std::string>& nodeNames_;
  std::string out_;
  std::unordered_map<uint32_t, std::string> names_;
  std::unordered_map<BufferId, std::string> buffers_;
};

}  // namespace

bool isDear(Op op) {
  return (op >= Op::Sin && op <= Op::Atanh) || (op >= Op::Erfc && op <= Op::Digamma) || op == Op::Fmod || op == Op::Remainder || op == Op::Pow ||
         op == Op::Atan2 || op == Op::Hypot;
}

std::string Kernel::str(const std::vector<std::string>& nodeNames) const { return KernelWriter(*this, false, nodeNames).text(); }

std::string canonicalText(const Kernel& kernel) { return KernelWriter(kernel, true, {}).text(); }

void numberLines(Kernel& kernel) {
  auto line = static_cast<int32_t>(2 + (kernel.isBatch ? 1 : 0) + (kernel.attention ? 1 : 0) + (kernel.sizeSymbols.empty() ? 0 : 1) + kernel.buffers.size());
  for (Section& section : kernel.sections) {
    ++line;  // its head
    for (size_t i = 0; i < section.values.size(); ++i) {
      section.values[i].line = ++line;
      line += static_cast<int32_t>(std::ranges::count(section.indirect, static_cast<ValueId>(i), [](const auto& loaded) { return loaded.second; }));
    }
    for (Statement& statement : section.body) statement.line = ++line;
  }
}

uint64_t Kernel::structuralHash() const {
  uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a
  for (unsigned char c : canonicalText(*this)) hash = (hash ^ c) * 0x100000001b3u;
  return hash;
}

bool hasChecks(const Kernel& kernel) {
  return std::any_of(kernel.sections.begin(), kernel.sections.end(), [](const Section& s) {
    return std::any_of(s.values.begin(), s.values.end(), [](const Value& v) { return v.op == Op::Check; });
  });
}

bool hasScan(const Section& section) {
  return std::any_of(section.values.begin(), section.values.end(), [](const Value& v) { return v.op == Op::Scan; });
}

bool roundsByOrder(ReduceKind kind, DType type) {
  if (!graph::isFloatingPoint(type)) return false;
  return kind == ReduceKind::Sum || kind == ReduceKind::Prod || kind == ReduceKind::Welford || kind == ReduceKind::OnlineSoftmax;
}

bool roundsByOrder(const Kernel& kernel) {
  if (kernel.attention) return true;
  for (const Section& section : kernel.sections) {
    auto typeOf = [&](ValueId id) { return section.values[static_cast<size_t>(id)].type; };
    for (const Value& v : section.values)
      if (v.op == Op::Scan && roundsByOrder(scanKind(v.imm), typeOf(v.args[0]))) return true;
    for (const Statement& st : section.body) {
      if (st.kind == Statement::Kind::AtomicAdd && graph::isFloatingPoint(typeOf(st.value))) return true;
      if (st.kind == Statement::Kind::Reduce && roundsByOrder(st.reduce, typeOf(st.inputs[0]))) return true;
      if (st.kind == Statement::Kind::Accumulate && roundsByOrder(st.reduce, typeOf(st.value))) return true;
    }
  }
  return false;
}

bool isForGpu(const Kernel& kernel) {
  return kernel.attention || std::any_of(kernel.sections.begin(), kernel.sections.end(), [](const Section& s) {
    return hasScan(s) || std::any_of(s.body.begin(), s.body.end(), [](const Statement& st) {
             return st.kind == Statement::Kind::Accumulate || st.kind == Statement::Kind::AtomicAdd;
           });
  });
}

size_t componentCount(ReduceKind kind) {
  switch (kind) {
    case ReduceKind::Welford: return 3;
    case ReduceKind::ArgMax:
    case ReduceKind::ArgMin:
    case ReduceKind::OnlineSoftmax: return 2;
    default: return 1;
  }
}

bool hasReduction(const Section& section) {
  return std::any_of(section.body.begin(), section.body.end(), [](const Statement& s) { return s.kind == Statement::Kind::Reduce; });
}

uint32_t longestIndex(const Section& section) {
  uint32_t longest = 0;
  for (const Value& value : section.values) longest = std::max(longest, value.index.weight());
  for (const Statement& statement : section.body) longest = std::max(longest, statement.index.weight());
  return longest;
}

std::string_view name(Op op) { return kOpNames[static_cast<size_t>(op)]; }
std::string_view name(ReduceKind kind) { return kReduceNames[static_cast<size_t>(kind)]; }

}  // namespace fusebox::inductor
