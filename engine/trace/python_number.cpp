#include "engine/trace/python_number.h"

#include <pybind11/pybind11.h>
#include <torch/csrc/utils/python_symnode.h>

namespace fusebox::trace {

std::optional<c10::SymNode> symbolicNumber(const at::Tensor& t) {
  if (!t.defined() || !t.unsafeGetTensorImpl()->is_wrapped_number()) return std::nullopt;
  auto* object = t.unsafeGetTensorImpl()->pyobj_slot()->load_pyobj();
  if (!object) return std::nullopt;
  pybind11::gil_scoped_acquire gil;
  pybind11::handle tensor(object);
  if (!pybind11::hasattr(tensor, "_wrapped_number")) return std::nullopt;
  pybind11::object node = pybind11::getattr(tensor.attr("_wrapped_number"), "node", pybind11::none());
  if (node.is_none()) return std::nullopt;
  return c10::SymNode::reclaim_copy(node.cast<c10::SymNodeImpl*>());
}

c10::SymNode unwrapped(c10::SymNodeImpl* node) {
  auto* wrapper = dynamic_cast<torch::impl::PythonSymNodeImpl*>(node);
  if (!wrapper) return c10::SymNode::reclaim_copy(node);
  pybind11::gil_scoped_acquire gil;
  const pybind11::handle inner = wrapper->getPyObj();
  return c10::SymNode::reclaim_copy(pybind11::isinstance<c10::SymNodeImpl>(inner) ? inner.cast<c10::SymNodeImpl*>() : node);
}

}  // namespace fusebox::trace
