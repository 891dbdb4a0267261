#include "engine/trace/convert.h"

#include <ATen/CPUGeneratorImpl.h>

#include "engine/trace/break_error.h"
#include "engine/trace/python_number.h"
#include "engine/trace/sym_int.h"
#include "engine/trace/tensor_scalar.h"
#include "engine/trace/trace_tensor.h"

namespace fusebox::trace {
namespace {

// ScalarType, Layout and MemoryFormat arguments travel as plain integers; only the schema's real type tells.
c10::TypePtr elementType(c10::TypePtr type) {
  while (true) {
    if (auto optional = type->cast<c10::OptionalType>())
      type = optional->getElementType();
    else if (auto list = type->cast<c10::ListType>())
      type = list->getElementType();
    else
      return type;
  }
}

graph::Argument symbolicInteger(const c10::SymInt& value) {
  auto known = exprOf(value);
  if (!known) return value.guard_int(__FILE__, __LINE__);
  return known->isConstant() ? graph::Argument(known->constant()) : graph::Argument(*known);
}

graph::Argument integerArgument(int64_t value, const c10::TypePtr& type) {
  switch (type->kind()) {
    case c10::TypeKind::ScalarTypeType: return graph::DType(static_cast<int8_t>(value));
    case c10::TypeKind::LayoutType: return graph::Layout{static_cast<int8_t>(value)};
    case c10::TypeKind::MemoryFormatType: return graph::MemoryFormat{static_cast<int8_t>(value)};
    default: return value;
  }
}

graph::Argument scalarArgument(const c10::IValue& v, const c10::TypePtr& type,
                               const std::function<graph::Argument(const at::Tensor&)>& tensor) {
  if (v.isNone()) return {};
  if (v.isTensor()) return v.toTensor().defined() ? tensor(v.toTensor()) : graph::Argument{};
  if (v.isBool()) return v.toBool();
  if (v.isInt()) return integerArgument(v.toInt(), type);
  if (v.isSymInt()) return symbolicInteger(v.toSymInt());
  if (v.isSymBool()) return v.toSymBool().guard_bool(__FILE__, __LINE__);
  if (v.isSymFloat())
    if (at::Tensor known = tensorOfScalar(v.toSymFloat()); known.defined()) return tensor(known);
  if (v.isSymFloat()) return v.toSymFloat().is_symbolic() ? unwrapped(v.toSymFloat().toSymNodeImplUnowned())->guard_float(__FILE__, __LINE__) : v.toSymFloat().as_float_unchecked();
  if (v.isDouble()) return v.toDouble();
  if (v.isComplexDouble()) {
    auto c = v.toComplexDouble();
    return std::complex<double>(c.real(), c.imag());
  }
  if (v.isString()) return v.toStringRef();
  if (v.isDevice()) return toDevice(v.toDevice());
  if (v.isGenerator()) {
    if (!v.toGenerator().defined() || v.toGenerator() == at::detail::getDefaultCPUGenerator()) return {};
    raiseBreak(BreakKind::UnsupportedOp, "a random operator takes its own generator",
               "use the default generator inside compiled code");
  }
  raiseBreak(BreakKind::UnsupportedOp, "an operator argument of kind " + v.tagKind() + " cannot be recorded",
             "move the call out of compiled code");
}

}  // namespace

graph::Device toDevice(c10::Device device) {
  graph::Device made;
  made.kind = device.is_cpu()    ? graph::DeviceKind::Cpu
              : device.is_cuda() ? graph::DeviceKind::Cuda
              : device.is_meta() ? graph::DeviceKind::Meta
                                 : graph::DeviceKind::Other;
  made.index = device.index();
  return made;
}

c10::Device fromDevice(const graph::Device& device) {
  switch (device.kind) {
    case graph::DeviceKind::Cuda: return c10::Device(c10::kCUDA, device.index);
    case graph::DeviceKind::Meta: return c10::Device(c10::kMeta, device.index);
    default: return c10::Device(c10::kCPU, device.index);
  }
}

graph::TensorMeta toMeta(const at::Tensor& tensor, c10::Device device, const SymbolicGeometry* geometry) {
  graph::TensorMeta meta;
  std::shared_ptr<const SymbolicGeometry> own;
  at::Tensor numbers = tensor;
  if (!geometry) {
    if (auto* traced = asTraceThroughWrapper(tensor)) {
      own = traced->symbolic();
      // A wrapper that had symbolic sizes once does not tell its offset, though its value is constant by now.
      if (tensor.unsafeGetTensorImpl()->has_symbolic_sizes_strides()) numbers = traced->meta();
    }
    geometry = own.get();
  }
  if (geometry) {
    meta.sizes = geometry->sizes;
    meta.strides = geometry->strides;
    meta.storageOffset = geometry->offset;
  } else {
    meta.sizes.assign(numbers.sizes().begin(), numbers.sizes().end());
    meta.strides.assign(numbers.strides().begin(), numbers.strides().end());
    meta.storageOffset = numbers.storage_offset();
  }
  meta.dtype = static_cast<graph::DType>(tensor.scalar_type());
  meta.device = toDevice(device);
  return meta;
}

std::string operatorName(const c10::FunctionSchema& schema) {
  return schema.overload_name().empty() ? schema.name() : schema.name() + "." + schema.overload_name();
}

graph::Argument toArgument(const c10::IValue& value, const c10::Argument& schema,
                           const std::function<graph::Argument(const at::Tensor&)>& tensor) {
  auto type = elementType(schema.real_type());
  if (!value.isList()) return scalarArgument(value, type, tensor);
  graph::ArgumentList list;
  for (auto& element : value.toListRef()) list.push_back(scalarArgument(element, type, tensor));
  return list;
}

}  // namespace fusebox::trace
