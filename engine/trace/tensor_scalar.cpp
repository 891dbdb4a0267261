#include "engine/trace/tensor_scalar.h"

#include <c10/core/SymNodeImpl.h>

#include "engine/trace/break_error.h"

namespace fusebox::trace {
namespace {

class TensorScalar final : public c10::SymNodeImpl {
 public:
  explicit TensorScalar(at::Tensor tensor) : tensor_(std::move(tensor)) {}
  bool is_int() override { return false; }
  bool is_bool() override { return false; }
  bool is_float() override { return true; }
  bool is_nested_int() const override { return false; }
  bool has_hint() override { return false; }
  double guard_float(const char*, int64_t) override {
    raiseBreak(BreakKind::DataDependent, "an operator asks for the value of a tensor that it takes as a number",
               "keep the value in a tensor, or move the decision out of compiled code");
  }
  std::string str() override { return "item()"; }
  const at::Tensor& tensor() const { return tensor_; }

 private:
  at::Tensor tensor_;
};

}  // namespace

c10::Scalar scalarOf(const at::Tensor& traced) { return c10::SymFloat(c10::SymNode(c10::make_intrusive<TensorScalar>(traced))); }

at::Tensor tensorOfScalar(const c10::SymFloat& number) {
  if (!number.is_symbolic()) return {};
  auto* known = dynamic_cast<TensorScalar*>(number.toSymNodeImplUnowned());
  return known ? known->tensor() : at::Tensor();
}

}  // namespace fusebox::trace
