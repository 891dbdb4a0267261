#include "engine/runtime/argument_binding.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/runtime/own_operators.h"

namespace fusebox::runtime {
namespace {

using graph::Argument;
using graph::ArgumentList;
using graph::SymExpr;
using c10::IValue;
using c10::TypeKind;

tl::unexpected<Error> mismatch(const Argument& argument, const c10::TypePtr& type) {
  return fail(ErrorCode::Unsupported, fmt::format("cannot pass {} as {}", argument.str(), type->str()));
}

BoundArgument fixed(IValue value) {
  BoundArgument bound;
  bound.fixed = std::move(value);
  return bound;
}

at::Tensor wrappedNumber(const at::Scalar& number) {
  auto tensor = c10::scalar_to_tensor(number);
  tensor.unsafeGetTensorImpl()->set_wrapped_number(true);
  return tensor;
}

/// Integers in any of the forms that the graph holds them, enumerations of libtorch included.
std::optional<SymExpr> asInteger(const Argument& argument) {
  if (auto* v = argument.as<int64_t>()) return SymExpr(*v);
  if (auto* v = argument.as<bool>()) return SymExpr(int64_t{*v});
  if (auto* v = argument.as<SymExpr>()) return *v;
  if (auto* v = argument.as<graph::DType>()) return SymExpr(static_cast<int64_t>(*v));
  if (auto* v = argument.as<graph::Layout>()) return SymExpr(int64_t{v->value});
  if (auto* v = argument.as<graph::MemoryFormat>()) return SymExpr(int64_t{v->value});
  return std::nullopt;
}

std::optional<double> asDouble(const Argument& argument) {
  if (auto* v = argument.as<double>()) return *v;
  if (auto* v = argument.as<int64_t>()) return static_cast<double>(*v);
  if (auto* v = argument.as<bool>()) return *v ? 1.0 : 0.0;
  if (auto* v = argument.as<SymExpr>(); v && v->isConstant()) return static_cast<double>(v->constant());
  return std::nullopt;
}

std::optional<at::Scalar> asScalar(const Argument& argument) {
  if (auto* v = argument.as<bool>()) return at::Scalar(*v);
  if (auto* v = argument.as<int64_t>()) return at::Scalar(*v);
  if (auto* v = argument.as<double>()) return at::Scalar(*v);
  if (auto* v = argument.as<std::complex<double>>()) return at::Scalar(c10::complex<double>(v->real(), v->imag()));
  if (auto* v = argument.as<SymExpr>(); v && v->isConstant()) return at::Scalar(v->constant());
  return std::nullopt;
}

Result<BoundArgument> bindInteger(const Argument& argument, const c10::TypePtr& type) {
  auto value = asInteger(argument);
  if (!value) return mismatch(argument, type);
  if (value->isConstant()) return fixed(value->constant());
  BoundArgument bound;
  bound.kind = BoundArgument::Kind::Integer;
  bound.integers = {*value};
  return bound;
}

Result<BoundArgument> bindScalar(const Argument& argument, const c10::TypePtr& type, const SlotOf& slotOf) {
  if (auto* ref = argument.as<graph::ValueRef>()) {
    BoundArgument bound;
    bound.kind = BoundArgument::Kind::Number;
    bound.slots = {slotOf(*ref)};
    return bound;
  }
  if (auto value = asScalar(argument)) return fixed(*value);
  if (argument.as<SymExpr>()) return bindInteger(argument, type);
  return mismatch(argument, type);
}

Result<BoundArgument> bindTensor(const Argument& argument, const c10::TypePtr& type, const SlotOf& slotOf) {
  auto* ref = argument.as<graph::ValueRef>();
  // Backward operators take tensors that may be missing under a type that does not say so (attn_bias of attention).
  if (argument.isNone()) return fixed(IValue(at::Tensor()));
  if (auto* symbolic = argument.as<SymExpr>(); symbolic && !symbolic->isConstant()) {
    BoundArgument bound;
    bound.kind = BoundArgument::Kind::WrappedNumber;
    bound.integers = {*symbolic};
    return bound;
  }
  if (!ref) {
    // A number where a tensor is wanted: Python's scalars, which take part in type promotion as numbers do.
    auto number = asScalar(argument);
    if (!number) return mismatch(argument, type);
    return fixed(wrappedNumber(*number));
  }
  BoundArgument bound;
  bound.kind = BoundArgument::Kind::Tensor;
  bound.slots = {slotOf(*ref)};
  return bound;
}

Result<BoundArgument> bindTensorList(const Argument& argument, const c10::TypePtr& type, bool optional, const SlotOf& slotOf) {
  auto* items = argument.as<ArgumentList>();
  if (!items) return mismatch(argument, type);
  BoundArgument bound;
  bound.kind = optional ? BoundArgument::Kind::OptionalTensorList : BoundArgument::Kind::TensorList;
  for (const Argument& item : *items) {
    auto* ref = item.as<graph::ValueRef>();
    if (!ref && !(optional && item.isNone())) return mismatch(argument, type);
    bound.slots.push_back(ref ? slotOf(*ref) : -1);
  }
  return bound;
}

Result<BoundArgument> bindIntegerList(const Argument& argument, const c10::ListType& type, const c10::TypePtr& whole) {
  BoundArgument bound;
  bound.kind = BoundArgument::Kind::IntegerList;
  if (auto* items = argument.as<ArgumentList>()) {
    for (const Argument& item : *items) {
      auto value = asInteger(item);
      if (!value) return mismatch(argument, whole);
      bound.integers.push_back(*value);
    }
  } else if (auto value = asInteger(argument)) {
    bound.integers.push_back(*value);
  } else {
    return mismatch(argument, whole);
  }
  std::vector<int64_t> constants;
  for (const SymExpr& value : bound.integers) {
    if (!value.isConstant()) return bound;
    constants.push_back(value.constant());
  }
  return fixed(IValue(c10::List<int64_t>(constants)));
}

/// Lists whose elements are known now: booleans, doubles, scalars, strings.
template <class T, class Convert>
Result<BoundArgument> bindFixedList(const Argument& argument, const c10::TypePtr& type, Convert convert) {
  auto* items = argument.as<ArgumentList>();
  if (!items) return mismatch(argument, type);
  std::vector<T> values;
  for (const Argument& item : *items) {
    std::optional<T> value = convert(item);
    if (!value) return mismatch(argument, type);
    values.push_back(*value);
  }
  return fixed(IValue(values));
}

std::optional<bool> asBool(const Argument& argument) {
  if (auto* v = argument.as<bool>()) return *v;
  if (auto* v = argument.as<int64_t>()) return *v != 0;
  return std::nullopt;
}

Result<BoundArgument> bindScalarList(const Argument& argument, const c10::TypePtr& type, const SlotOf& slotOf) {
  auto* items = argument.as<ArgumentList>();
  const bool anyRead = items && std::any_of(items->begin(), items->end(), [](const Argument& item) { return item.as<graph::ValueRef>(); });
  if (!anyRead) return bindFixedList<at::Scalar>(argument, type, asScalar);
  BoundArgument bound;
  bound.kind = BoundArgument::Kind::NumberList;
  std::vector<at::Scalar> values;
  for (const Argument& item : *items) {
    auto* ref = item.as<graph::ValueRef>();
    const std::optional<at::Scalar> value = ref ? at::Scalar() : asScalar(item);
    if (!value) return mismatch(argument, type);
    bound.slots.push_back(ref ? slotOf(*ref) : -1);
    values.push_back(*value);
  }
  bound.fixed = IValue(values);
  return bound;
}

Result<BoundArgument> bindList(const Argument& argument, const c10::TypePtr& whole, const SlotOf& slotOf) {
  const auto& list = whole->expectRef<c10::ListType>();
  const c10::TypePtr& element = list.getElementType();
  switch (element->kind()) {
    case TypeKind::TensorType: return bindTensorList(argument, whole, false, slotOf);
    case TypeKind::OptionalType: return bindTensorList(argument, whole, true, slotOf);
    case TypeKind::IntType:
    case TypeKind::SymIntType: return bindIntegerList(argument, list, whole);
    case TypeKind::FloatType: return bindFixedList<double>(argument, whole, asDouble);
    case TypeKind::BoolType: return bindFixedList<bool>(argument, whole, asBool);
    case TypeKind::NumberType: return bindScalarList(argument, whole, slotOf);
    case TypeKind::StringType:
      return bindFixedList<std::string>(argument, whole, [](const Argument& item) {
        auto* text = item.as<std::string>();
        return text ? std::optional(*text) : std::nullopt;
      });
    default: return mismatch(argument, whole);
  }
}

std::string toDeviceName(const graph::Device& device) { return device.str(); }

}  // namespace

Result<c10::OperatorHandle> findOperator(const std::string& name) {
  registerOwnOperators();
  const size_t scope = name.find("::");
  const size_t dot = name.find('.', scope == std::string::npos ? 0 : scope);
  c10::OperatorName key(name.substr(0, dot), dot == std::string::npos ? "" : name.substr(dot + 1));
  auto handle = c10::Dispatcher::singleton().findSchema(key);
  if (!handle) return fail(ErrorCode::NotFound, "no operator named " + name);
  return *handle;
}

Result<BoundArgument> bindArgument(const Argument& argument, const c10::TypePtr& type, const SlotOf& slotOf,
                                   c10::ArrayRef<at::Generator> generators) {
  if (auto optional = type->cast<c10::OptionalType>()) {
    if (argument.isNone()) return fixed(IValue());
    return bindArgument(argument, optional->getElementType(), slotOf, generators);
  }
  switch (type->kind()) {
    case TypeKind::TensorType: return bindTensor(argument, type, slotOf);
    case TypeKind::NumberType: return bindScalar(argument, type, slotOf);
    case TypeKind::IntType:
    case TypeKind::SymIntType:
    case TypeKind::ScalarTypeType:
    case TypeKind::LayoutType:
    case TypeKind::MemoryFormatType: return bindInteger(argument, type);
    case TypeKind::FloatType:
      if (auto value = asDouble(argument)) return fixed(*value);
      if (auto* symbolic = argument.as<SymExpr>()) {
        BoundArgument bound;
        bound.kind = BoundArgument::Kind::Double;
        bound.integers = {*symbolic};
        return bound;
      }
      return mismatch(argument, type);
    case TypeKind::BoolType:
    case TypeKind::SymBoolType:
      if (auto value = asBool(argument)) return fixed(*value);
      return mismatch(argument, type);
    case TypeKind::StringType:
      if (auto* value = argument.as<std::string>()) return fixed(*value);
      return mismatch(argument, type);
    case TypeKind::DeviceObjType:
      if (auto* value = argument.as<graph::Device>()) return fixed(c10::Device(toDeviceName(*value)));
      return mismatch(argument, type);
    case TypeKind::GeneratorType: {
      auto* ref = argument.as<graph::GeneratorRef>();
      if (argument.isNone()) return fixed(IValue());
      if (!ref || ref->index < 0 || static_cast<size_t>(ref->index) >= generators.size()) return mismatch(argument, type);
      return fixed(generators[static_cast<size_t>(ref->index)]);
    }
    case TypeKind::ListType: return bindList(argument, type, slotOf);
    default: return mismatch(argument, type);
  }
}

Result<std::vector<BoundArgument>> bindArguments(const c10::FunctionSchema& schema, const ArgumentList& arguments,
                                                 const SlotOf& slotOf, c10::ArrayRef<at::Generator> generators) {
  const auto& parameters = schema.arguments();
  if (arguments.size() > parameters.size())
    return fail(ErrorCode::Internal, fmt::format("{} arguments for {}", arguments.size(), toString(schema.operator_name())));
  std::vector<BoundArgument> result;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const c10::Argument& parameter = parameters[i];
    if (i >= arguments.size()) {
      if (!parameter.default_value()) return fail(ErrorCode::Internal, "missing argument " + parameter.name());
      result.push_back(fixed(*parameter.default_value()));
      continue;
    }
    auto bound = bindArgument(arguments[i], parameter.real_type(), slotOf, generators);
    if (!bound) {
      Error error = bound.error();
      error.context = toString(schema.operator_name()) + " argument " + parameter.name();
      return tl::unexpected(error);
    }
    result.push_back(std::move(*bound));
  }
  return result;
}

bool isSymbolic(const BoundArgument& argument) {
  return std::any_of(argument.integers.begin(), argument.integers.end(), [](const SymExpr& e) { return !e.isConstant(); });
}

BoundArgument withValues(const BoundArgument& argument, const graph::SymbolValues& symbols) {
  return isSymbolic(argument) ? fixed(materialise(argument, {}, symbols)) : argument;
}

IValue materialise(const BoundArgument& argument, const std::function<const at::Tensor&(int32_t)>& tensor,
                   const graph::SymbolValues& symbols) {
  switch (argument.kind) {
    case BoundArgument::Kind::Fixed: return argument.fixed;
    case BoundArgument::Kind::Tensor: return tensor(argument.slots[0]);
    case BoundArgument::Kind::TensorList: {
      c10::List<at::Tensor> list;
      list.reserve(argument.slots.size());
      for (int32_t slot : argument.slots) list.push_back(tensor(slot));
      return list;
    }
    case BoundArgument::Kind::OptionalTensorList: {
      c10::List<std::optional<at::Tensor>> list;
      list.reserve(argument.slots.size());
      for (int32_t slot : argument.slots) list.push_back(slot < 0 ? std::nullopt : std::optional(tensor(slot)));
      return list;
    }
    case BoundArgument::Kind::Number: return tensor(argument.slots[0]).item();
    case BoundArgument::Kind::NumberList: {
      c10::List<at::Scalar> list = argument.fixed.to<c10::List<at::Scalar>>().copy();
      for (size_t i = 0; i < argument.slots.size(); ++i)
        if (argument.slots[i] >= 0) list.set(i, tensor(argument.slots[i]).item());
      return list;
    }
    case BoundArgument::Kind::Integer: return symbols(argument.integers[0]);
    case BoundArgument::Kind::Double: return static_cast<double>(symbols(argument.integers[0]));
    case BoundArgument::Kind::WrappedNumber: return wrappedNumber(symbols(argument.integers[0]));
    case BoundArgument::Kind::IntegerList: {
      c10::List<int64_t> list;
      list.reserve(argument.integers.size());
      for (const SymExpr& value : argument.integers) list.push_back(symbols(value));
      return list;
    }
  }
  return {};
}

}  // namespace fusebox::runtime
