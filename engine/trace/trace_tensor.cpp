#include "engine/trace/trace_tensor.h"

#include <ATen/FunctionalTensorWrapper.h>

#include "engine/trace/break_error.h"
#include "engine/trace/dispatch_state.h"
#include "engine/trace/sym_int.h"

namespace fusebox::trace {
namespace {

/// What reading or writing the memory of a stand-in raises: parseBreak() knows it.
constexpr const char* kNoData = "FUSEBOX_BREAK[data access] Cannot access data pointer of a tensor whose operators are traced: it has no memory | Move the call out of the compiled region.";

c10::DispatchKeySet keysFor(const at::Tensor& meta, c10::Device device) {
  auto backend = c10::computeDispatchKey(meta.scalar_type(), meta.layout(), device);
  c10::DispatchKeySet keys{backend, kTraceKey};
  auto component = keys.highestBackendKey();
  auto lazy = meta.key_set() &
              c10::DispatchKeySet{c10::DispatchKey::Conjugate, c10::DispatchKey::Negative, c10::DispatchKey::ZeroTensor};
  return keys | lazy | c10::getAutogradRelatedKeySetFromBackend(component) |
         c10::getAutocastRelatedKeySetFromBackend(component);
}

// Every meta storage owns (through its DataPtr's context) one storage on the real device, so that views of one tensor agree on
// which storage they share.
// Views of it have addresses that look real, so reading has to be refused like writing.
c10::intrusive_ptr<c10::StorageImpl> deviceStorage(const at::Tensor& meta, c10::Device device) {
  auto* storage = meta.storage().unsafeGetStorageImpl();
  if (void* owned = storage->_mutable_data_ptr_no_checks().get_context())
    return c10::intrusive_ptr<c10::StorageImpl>::reclaim_copy(static_cast<c10::StorageImpl*>(owned));
  auto made = c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), storage->sym_nbytes(),
                                                    c10::DataPtr(nullptr, device), nullptr, false);
  made->release_data_and_set_meta_custom_data_ptr_error_msg_(kNoData);
  auto keep = made;
  storage->set_data_ptr_noswap(c10::DataPtr(
      nullptr, keep.release(), [](void* p) { c10::intrusive_ptr<c10::StorageImpl>::reclaim(static_cast<c10::StorageImpl*>(p)); },
      c10::Device(c10::kMeta)));
  return made;
}

}  // namespace

TraceTensorImpl::TraceTensorImpl(at::Tensor meta, c10::Device device, uint64_t trace, graph::ValueRef value,
                                 std::shared_ptr<const SymbolicGeometry> geometry, std::shared_ptr<graph::ShapeEnv> env)
    : TensorImpl(keysFor(meta, device), meta.dtype(), device),
      meta_(std::move(meta)),
      geometry_(std::move(geometry)),
      env_(std::move(env)),
      value_(value),
      trace_(trace) {
  if (meta_.has_storage())
    storage_ = c10::Storage(deviceStorage(meta_, device));
  else
    storage_access_should_throw_ = true;
  if (meta_.unsafeGetTensorImpl()->is_wrapped_number()) set_wrapped_number(true);
  applyGeometry();
}

void TraceTensorImpl::syncGeometry(std::shared_ptr<const SymbolicGeometry> geometry, std::shared_ptr<graph::ShapeEnv> env) {
  geometry_ = std::move(geometry);
  if (env) env_ = std::move(env);
  applyGeometry();
}

void TraceTensorImpl::applyGeometry() {
  if (geometry_) {
    auto numbers = [&](const std::vector<graph::SymExpr>& all) {
      c10::SymDimVector made;
      for (auto& e : all) made.push_back(toSymInt(e, *env_));
      return made;
    };
    TensorImpl::set_sizes_and_strides(numbers(geometry_->sizes), numbers(geometry_->strides), toSymInt(geometry_->offset, *env_));
    return;
  }
  if (has_symbolic_sizes_strides_) {  // it was symbolic before
    const auto sizes = c10::fromIntArrayRefSlow(meta_.sizes()), strides = c10::fromIntArrayRefSlow(meta_.strides());
    TensorImpl::set_sizes_and_strides(sizes, strides, c10::SymInt(meta_.storage_offset()));
    return;
  }
  set_sizes_and_strides(meta_.sizes(), meta_.strides());
  storage_offset_ = meta_.storage_offset();
}

void TraceTensorImpl::specialise(const graph::SymExpr& e) const {
  if (e.isConstant() || env_->simplify(e).isConstant()) return;
  if (env_->closed()) raiseBreak(BreakKind::FinishedTrace, "the size of a tensor of a finished trace is used", "do not keep it in globals");
  env_->specialise(e, AskedBy::now());
}

c10::IntArrayRef TraceTensorImpl::sizes_custom() const {
  if (geometry_)
    for (auto& e : geometry_->sizes) specialise(e);
  return meta_.sizes();
}

c10::IntArrayRef TraceTensorImpl::strides_custom() const {
  if (geometry_)
    for (auto& e : geometry_->strides) specialise(e);
  return meta_.strides();
}

int64_t TraceTensorImpl::size_custom(int64_t d) const {
  const auto at = c10::maybe_wrap_dim(d, meta_.dim());
  if (geometry_) specialise(geometry_->sizes[static_cast<size_t>(at)]);
  return meta_.size(at);
}

int64_t TraceTensorImpl::numel_custom() const {
  if (geometry_) specialise(geometry_->numel());
  return meta_.numel();
}

int64_t TraceTensorImpl::storage_offset_custom() const {
  if (geometry_) specialise(geometry_->offset);
  return meta_.storage_offset();
}

template <class Version>
c10::intrusive_ptr<c10::TensorImpl> TraceTensorImpl::copy(Version&& version, bool allowChange) const {
  auto made = c10::make_intrusive<TraceTensorImpl>(meta_, *device_opt_, trace_, value_, geometry_, env_);
  if (!made->is_inference()) made->set_version_counter(std::forward<Version>(version));
  made->set_allow_tensor_metadata_change(allowChange);
  return made;
}

c10::intrusive_ptr<c10::TensorImpl> TraceTensorImpl::shallow_copy_and_detach(const c10::VariableVersion& version,
                                                                             bool allowChange) const {
  return copy(version, allowChange);
}
c10::intrusive_ptr<c10::TensorImpl> TraceTensorImpl::shallow_copy_and_detach(c10::VariableVersion&& version,
                                                                             bool allowChange) const {
  return copy(std::move(version), allowChange);
}

void TraceTensorImpl::shallow_copy_from(const c10::intrusive_ptr<TensorImpl>& other) {
  auto* from = dynamic_cast<TraceTensorImpl*>(other.get());
  TORCH_CHECK(from, "set_data of a traced tensor with a real tensor");
  copy_tensor_metadata(from, this, version_counter(), allow_tensor_metadata_change());
  meta_ = from->meta_;
  geometry_ = from->geometry_;
  env_ = from->env_;
  value_ = from->value_;
  trace_ = from->trace_;
}

TraceTensorImpl* asTrace(const at::Tensor& tensor) {
  if (!tensor.defined() || !tensor.key_set().has(kTraceKey)) return nullptr;
  return dynamic_cast<TraceTensorImpl*>(tensor.unsafeGetTensorImpl());
}

TraceTensorImpl* asTraceThroughWrapper(const at::Tensor& tensor) {
  if (!tensor.defined()) return nullptr;
  if (at::functionalization::impl::isFunctionalTensor(tensor))
    return asTrace(at::functionalization::impl::unsafeGetFunctionalWrapper(tensor)->value());
  return asTrace(tensor);
}

namespace {

/// A tensor's own count of elements, which stays 0 where its sizes are symbols: by it libtorch decides whether memory that is not there may be read.
struct OwnCount : c10::TensorImpl {
  static void set(c10::TensorImpl& tensor, int64_t count) { tensor.*(&OwnCount::numel_) = count; }
};

}  // namespace

void forbidDataAccess(const at::Tensor& tensor) {
  // A functional wrapper asks the pointer for its device, so reading it cannot be refused here; C++ that reads null pointers refuses.
  if (!tensor.defined() || !tensor.has_storage()) return;
  tensor.storage().unsafeGetStorageImpl()->set_throw_on_mutable_data_ptr();
  auto* traced = asTraceThroughWrapper(tensor);
  if (traced && traced->symbolic()) OwnCount::set(*tensor.unsafeGetTensorImpl(), traced->meta().numel());
}

}  // namespace fusebox::trace
