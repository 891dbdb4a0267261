#include "engine/capture/guards/tensor_spec.h"
#include "engine/capture/cpython/errors.h"
#include "engine/capture/evaluation/torch_objects.h"

#include <c10/core/DeviceType.h>

#include <algorithm>

namespace fusebox::capture {
namespace {

/// The C++ tensor of a Python one; null if `object` is none.
const c10::TensorImpl* implOf(PyObject* object) {
  return isTensorObject(object) ? tensorOf(object).unsafeGetTensorImpl() : nullptr;
}

/// Apart from the positions in `free`.
bool equalSizes(c10::IntArrayRef found, const std::vector<int64_t>& expected, uint64_t free) {
  if (found.size() != expected.size()) return false;
  for (size_t i = 0; i < expected.size(); ++i)
    if (found[i] != expected[i] && (i >= TensorSpec::kMostFree || !(free >> i & 1))) return false;
  return true;
}

bool hasPlainSizes(const c10::TensorImpl& impl) { return !impl.is_nested() && !impl.has_symbolic_sizes_strides() && !asksForSizes(impl); }

/// True if the tensor has no history: grad_fn is read as stored, which for views may be stale but is null only for leaves.
bool hasNoHistory(const c10::TensorImpl& impl) {
  const auto* meta = static_cast<torch::autograd::AutogradMeta*>(impl.autograd_meta());
  return !meta || !meta->grad_fn_;
}

}  // namespace

TensorSpec TensorSpec::of(PyObject* tensor) {
  TensorSpec s;
  s.type = Py_TYPE(tensor);
  const c10::TensorImpl& impl = *implOf(tensor);
  s.keys = impl.key_set().raw_repr();
  s.dtype = static_cast<int8_t>(c10::typeMetaToScalarType(impl.dtype()));
  s.deviceType = static_cast<int8_t>(impl.device().type());
  s.deviceIndex = impl.device().index();
  s.layout = static_cast<int8_t>(impl.layout());
  s.requiresGrad = impl.requires_grad();
  s.isLeaf = hasNoHistory(impl);
  s.hasStrides = impl.layout() == c10::kStrided && hasPlainSizes(impl);
  s.hasSizes = hasPlainSizes(impl);
  if (impl.has_symbolic_sizes_strides()) {
    PyErr_SetString(PyExc_TypeError, "a tensor with symbolic sizes cannot be guarded");
    return s;
  }
  if (s.hasSizes) s.sizes = impl.sizes().vec();
  if (s.hasStrides) {
    s.strides = impl.strides().vec();
    s.storageOffset = impl.storage_offset();
    if (impl.has_storage()) s.storageBytes = static_cast<int64_t>(impl.unsafe_storage().nbytes());
  }
  return s;
}

bool TensorSpec::matches(PyObject* object) const {
  // The exact class comes first: it makes the unpacking below safe.
  if (Py_TYPE(object) != type) return false;
  const c10::TensorImpl& impl = *tensorOf(object).unsafeGetTensorImpl();
  if (impl.key_set().raw_repr() != keys) return false;
  if (static_cast<int8_t>(c10::typeMetaToScalarType(impl.dtype())) != dtype) return false;
  if (impl.requires_grad() != requiresGrad || (requiresGrad && hasNoHistory(impl) != isLeaf)) return false;
  const c10::Device device = impl.device();
  if (static_cast<int8_t>(device.type()) != deviceType || device.index() != deviceIndex) return false;
  if (!hasSizes || !hasPlainSizes(impl) || !equalSizes(impl.sizes(), sizes, freeSizes)) return false;
  if (!hasStrides) return true;
  if (comparesStorage && ((impl.storage_offset() != storageOffset && !freeOffset) || !impl.has_storage() ||
                          static_cast<int64_t>(impl.unsafe_storage().nbytes()) < storageBytes))
    return false;
  return equalSizes(impl.strides(), strides, freeStrides);
}

std::string TensorSpec::str() const {
  size_t named = 0;
  auto list = [&](const std::vector<int64_t>& v, uint64_t free) {
    std::string text = "[";
    for (size_t i = 0; i < v.size(); ++i) {
      const bool isFree = i < kMostFree && (free >> i & 1);
      text += (i ? ", " : "") + (!isFree ? std::to_string(v[i]) : named < symbols.size() ? symbols[named] : "?");
      named += isFree;
    }
    return text + "]";
  };
  std::string text;
  if (type && type != tensorType()) text += std::string(type->tp_name) + " ";
  text += std::string(c10::toString(static_cast<c10::ScalarType>(dtype))) + (hasSizes ? list(sizes, freeSizes) : " of sizes that are not plain numbers");
  if (hasStrides) text += " strides " + list(strides, freeStrides);
  if (hasStrides && comparesStorage) text += " offset " + std::to_string(storageOffset) + " of at least " + std::to_string(storageBytes) + " bytes";
  text += " " + c10::Device(static_cast<c10::DeviceType>(deviceType), deviceIndex).str();
  if (layout != 0) text += " layout " + std::to_string(layout);
  if (requiresGrad) text += isLeaf ? " requires_grad" : " requires_grad (not a leaf)";
  if (isInference()) text += " inference";
  return text;
}

int TensorSpec::differences(PyObject* object) const {
  if (Py_TYPE(object) != type) return 1;
  const TensorSpec found = of(object);
  clearError();
  const bool isLaidOutSo = equalSizes(found.sizes, sizes, freeSizes) && equalSizes(found.strides, strides, freeStrides);
  const int count = (found.dtype != dtype) + (found.requiresGrad != requiresGrad || found.isLeaf != isLeaf) +
                    (found.deviceType != deviceType || found.deviceIndex != deviceIndex) + !isLaidOutSo;
  return std::max(count, 1);
}

std::string TensorSpec::difference(PyObject* object) const {
  if (!implOf(object)) return std::string("an object of type ") + Py_TYPE(object)->tp_name;
  TensorSpec found = of(object);
  found.comparesStorage = comparesStorage;
  found.storageBytes = std::min(found.storageBytes, storageBytes);
  std::string text = found.str();
  clearError();
  TensorSpec resized = found;
  resized.sizes = sizes;
  resized.strides = strides;
  if (type && std::string_view(type->tp_name) == "Parameter" && text != str() && resized.str() == str())
    text += "; sizes of parameters are constants unless torch._dynamo.config.force_parameter_static_shapes is off";
  if (text == str() && !matches(object)) {
    text += " keys " + c10::toString(implOf(object)->key_set()) + ", expected " +
            c10::toString(c10::DispatchKeySet(c10::DispatchKeySet::RAW, keys));
  }
  return text;
}

bool TensorSpec::isInference() const {
  // Inference tensors are those without autograd keys.
  return !c10::DispatchKeySet(c10::DispatchKeySet::RAW, keys).has(c10::DispatchKey::ADInplaceOrView);
}

}  // namespace fusebox::capture
