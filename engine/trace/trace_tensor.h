#pragma once

#include <ATen/ATen.h>
#include <c10/core/TensorImpl.h>

#include "engine/graph/graph.h"

namespace fusebox::trace {

class Recorder;

/// A tensor without data: looks like a tensor of its device, holds a meta tensor for geometry and aliasing, and the graph value that
/// will hold its data when the graph runs.
class TraceTensorImpl final : public c10::TensorImpl {
 public:
  TraceTensorImpl(at::Tensor meta, c10::Device device, uint64_t trace, graph::ValueRef value);

  const at::Tensor& meta() const { return meta_; }
  graph::ValueRef value() const { return value_; }
  void setValue(graph::ValueRef value) { value_ = value; }
  /// Serial number of the trace it belongs to.
  uint64_t trace() const { return trace_; }
  /// Copies sizes, strides and offset from the meta tensor again, after an operator changed it in place.
  void syncGeometry();

  c10::intrusive_ptr<TensorImpl> shallow_copy_and_detach(const c10::VariableVersion& version, bool allowChange) const override;
  c10::intrusive_ptr<TensorImpl> shallow_copy_and_detach(c10::VariableVersion&& version, bool allowChange) const override;
  void shallow_copy_from(const c10::intrusive_ptr<TensorImpl>& other) override;

 protected:
  const char* tensorimpl_type_name() const override { return "TraceTensorImpl"; }

 private:
  template <class Version>
  c10::intrusive_ptr<TensorImpl> copy(Version&& version, bool allowChange) const;
  at::Tensor meta_;
  graph::ValueRef value_;
  uint64_t trace_;
};

/// The trace tensor behind `tensor`, or null. Does not look through functional wrappers.
TraceTensorImpl* asTrace(const at::Tensor& tensor);
/// The same, looking through a functional wrapper (pending writes are not applied).
TraceTensorImpl* asTraceThroughWrapper(const at::Tensor& tensor);
/// Data pointer accesses to this tensor's storage raise instead of reading null.
void forbidDataAccess(const at::Tensor& tensor);

}  // namespace fusebox::trace
