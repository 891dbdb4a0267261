#include "engine/codegen/cpu/kernel_check.h"

#include <fmt/format.h>

#include <unordered_set>

namespace fusebox::codegen::cpu {
using inductor::Kernel;
using inductor::Op;
using inductor::Section;
using inductor::Statement;
using inductor::SymExpr;
using inductor::ValueId;

namespace {

class Checker {
 public:
  explicit Checker(const Kernel& kernel) : kernel_(kernel) {}

  Result<void> run() {
    for (const auto& b : kernel_.buffers) {
      if (auto r = type(b.dtype); !r) return r;
      buffers_.insert(b.id);
    }
    for (auto s : kernel_.sizeSymbols) symbols_.insert(s.id);
    if (auto r = axes(kernel_.outer); !r) return r;
    if (kernel_.attention) {
      if (auto r = axes({kernel_.attention->width, kernel_.attention->depth}); !r) return r;
      reductions_.insert(0);
      if (kernel_.attention->isGradient()) reductions_.insert(1);
    }
    for (const Section& s : kernel_.sections)
      if (auto r = section(s); !r) return r;
    return {};
  }

 private:
  Result<void> wrong(std::string what) const { return fail(ErrorCode::Internal, "malformed kernel: " + what, kernel_.name); }

  Result<void> type(inductor::DType t) const {
    if (!graph::hasArithmetic(t))
      return fail(ErrorCode::Unsupported, "no CPU code for element type " + std::string(graph::name(t)), kernel_.name);
    return {};
  }

  Result<void> expression(const SymExpr& e) const {
    for (auto s : e.symbols())
      if (!symbols_.count(s.id)) return wrong("symbol " + s.name() + " is not in scope");
    return {};
  }

  Result<void> axes(const std::vector<inductor::Axis>& list) {
    for (const auto& a : list) {
      if (auto r = expression(a.extent); !r) return r;
      symbols_.insert(a.symbol.id);
    }
    return {};
  }

  Result<void> operand(ValueId id, size_t limit, bool optional) const {
    if ((optional && id == -1) || (id >= 0 && static_cast<size_t>(id) < limit)) return {};
    return wrong(fmt::format("operand %{} does not precede its user", id));
  }

  Result<void> value(const inductor::Value& v, size_t position) const {
    if (auto r = type(v.type); !r) return r;
    if (v.op == Op::Load && !buffers_.count(v.buffer)) return wrong("load of an unknown buffer");
    if (v.op == Op::Load || v.op == Op::Index)
      if (auto r = expression(v.index); !r) return r;
    if (v.op == Op::Reduced) {
      if (!reductions_.count(v.args[0])) return wrong(fmt::format("use of reduction r{} before it is finished", v.args[0]));
      return {};
    }
    if (auto r = operand(v.mask, position, true); !r) return r;
    for (ValueId a : v.args)
      if (auto r = operand(a, position, true); !r) return r;
    if (v.op > Op::Reduced && v.args[0] < 0) return wrong("operation " + std::string(name(v.op)) + " without operands");
    return {};
  }

  Result<void> section(const Section& s) {
    if (auto r = axes(s.axes); !r) return r;
    for (size_t i = 0; i < s.values.size(); ++i) {
      if (auto r = value(s.values[i], i); !r) return r;
      for (const auto& [symbol, id] : s.indirect)
        if (static_cast<size_t>(id) == i) symbols_.insert(symbol.id);
    }
    std::unordered_set<int> made;
    for (const Statement& st : s.body) {
      const bool reduces = st.kind == Statement::Kind::Reduce;
      if (auto r = operand(reduces ? st.inputs[0] : st.value, s.values.size(), false); !r) return r;
      if (auto r = operand(st.mask, s.values.size(), true); !r) return r;
      if (reduces) {
        made.insert(st.reduction);
        continue;
      }
      if (!buffers_.count(st.buffer)) return wrong("store to an unknown buffer");
      if (auto r = expression(st.index); !r) return r;
    }
    reductions_.insert(made.begin(), made.end());
    return {};
  }

  const Kernel& kernel_;
  std::unordered_set<uint32_t> symbols_;
  std::unordered_set<inductor::BufferId> buffers_;
  std::unordered_set<int> reductions_;
};

}  // namespace

Result<void> checkKernel(const Kernel& kernel) { return Checker(kernel).run(); }

}  // namespace fusebox::codegen::cpu
