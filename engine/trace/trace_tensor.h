#pragma once

#include <ATen/ATen.h>
#include <c10/core/TensorImpl.h>

#include "engine/graph/graph.h"
#include "engine/trace/symbolic_geometry.h"

namespace fusebox::trace {

class Recorder;

/// A tensor without data: looks like a tensor of its device, holds a meta tensor for geometry and aliasing, and the graph value that
/// will hold its data when the graph runs. With symbols in its geometry, C++ that reads plain numbers gets those of the capture, and what it
/// read is a constant from then on (ShapeEnv::specialise).
class TraceTensorImpl final : public c10::TensorImpl {
 public:
  /// `geometry`, with `env`, where something of it is symbolic; else null.
  TraceTensorImpl(at::Tensor meta, c10::Device device, uint64_t trace, graph::ValueRef value,
                  std::shared_ptr<const SymbolicGeometry> geometry = nullptr, std::shared_ptr<graph::ShapeEnv> env = nullptr);

  /// Concrete: the geometry at capture.
  const at::Tensor& meta() const { return meta_; }
  /// Null where all of it is constant.
  const std::shared_ptr<const SymbolicGeometry>& symbolic() const { return geometry_; }
  /// As expressions, be they constants.
  SymbolicGeometry geometry() const { return geometry_ ? *geometry_ : geometryOf(meta_); }
  const std::shared_ptr<graph::ShapeEnv>& env() const { return env_; }
  graph::ValueRef value() const { return value_; }
  void setValue(graph::ValueRef value) { value_ = value; }
  /// Serial number of the trace it belongs to.
  uint64_t trace() const { return trace_; }
  /// Copies sizes, strides and offset from the meta tensor again, after an operator changed it in place; `geometry` is what they are now.
  void syncGeometry(std::shared_ptr<const SymbolicGeometry> geometry = nullptr, std::shared_ptr<graph::ShapeEnv> env = nullptr);

  c10::intrusive_ptr<TensorImpl> shallow_copy_and_detach(const c10::VariableVersion& version, bool allowChange) const override;
  c10::intrusive_ptr<TensorImpl> shallow_copy_and_detach(c10::VariableVersion&& version, bool allowChange) const override;
  void shallow_copy_from(const c10::intrusive_ptr<TensorImpl>& other) override;

 protected:
  const char* tensorimpl_type_name() const override { return "TraceTensorImpl"; }
  c10::IntArrayRef sizes_custom() const override;
  c10::IntArrayRef strides_custom() const override;
  int64_t size_custom(int64_t d) const override;
  int64_t numel_custom() const override;
  int64_t storage_offset_custom() const override;

 private:
  template <class Version>
  c10::intrusive_ptr<TensorImpl> copy(Version&& version, bool allowChange) const;
  void applyGeometry();
  void specialise(const graph::SymExpr& e) const;
  at::Tensor meta_;
  std::shared_ptr<const SymbolicGeometry> geometry_;
  std::shared_ptr<graph::ShapeEnv> env_;
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
