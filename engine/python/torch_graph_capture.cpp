#include "engine/python/torch_graph_capture.h"

#include <c10/core/DeviceGuard.h>
#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <pybind11/pybind11.h>

#include <map>

#include "engine/runtime/gpu/cuda_driver.h"

namespace py = pybind11;

namespace fusebox::python {
namespace {

using runtime::CapturedWork;
using runtime::gpu::CudaDriver;

void check(int error, const char* call) {
  if (error == 0) [[likely]] return;
  auto checked = (*CudaDriver::get())->check(error, call);
  TORCH_CHECK(false, checked.error().text());
}

c10::Stream currentStream(c10::Device device) { return c10::impl::VirtualGuardImpl(device.type()).getStream(device); }

/// Drops a Python object on whatever thread, also when the interpreter is gone.
void drop(py::object& object) {
  if (!Py_IsInitialized()) {
    object.release();
    return;
  }
  py::gil_scoped_acquire gil;
  object = py::object();
}

class TorchCapturedWork final : public CapturedWork {
 public:
  TorchCapturedWork(py::object graph, c10::Device device, bool random)
      : graph_(std::move(graph)), exec_(reinterpret_cast<void*>(py::cast<uintptr_t>(graph_.attr("raw_cuda_graph_exec")()))), device_(device), random_(random) {}
  ~TorchCapturedWork() override { drop(graph_); }
  void launch() override {
    if (random_) {  // torch hands the generator's state to the graph
      py::gil_scoped_acquire gil;
      graph_.attr("replay")();
      return;
    }
    check((*CudaDriver::get())->cuGraphLaunch(exec_, currentStream(device_).native_handle()), "cuGraphLaunch");
  }

 private:
  py::object graph_;
  void* exec_;
  c10::Device device_;
  bool random_;
};

/// Makes `stream` torch's current one while alive.
class StreamScope {
 public:
  explicit StreamScope(c10::Stream stream) : impl_(stream.device_type()), before_(impl_.exchangeStream(stream)) {}
  ~StreamScope() { impl_.exchangeStream(before_); }

 private:
  c10::impl::VirtualGuardImpl impl_;
  c10::Stream before_;
};

/// Python's warnings are off while alive. The GIL is held at both ends.
class QuietWarnings {
 public:
  QuietWarnings() : scope_(py::module_::import("warnings").attr("catch_warnings")()) {
    scope_.attr("__enter__")();
    py::module_::import("warnings").attr("simplefilter")("ignore");
  }
  ~QuietWarnings() {
    try {
      scope_.attr("__exit__")(py::none(), py::none(), py::none());
    } catch (py::error_already_set& error) {
      error.discard_as_unraisable("fusebox: warnings");
    }
  }
  QuietWarnings(const QuietWarnings&) = delete;
  QuietWarnings& operator=(const QuietWarnings&) = delete;

 private:
  py::object scope_;
};

void follow(c10::Stream later, c10::Stream earlier) {
  c10::Event event(later.device_type());
  event.record(earlier);
  event.block(later);
}

class TorchGraphCapture final : public runtime::GraphCapture {
 public:
  c10::DeviceType deviceType() const override { return c10::DeviceType::CUDA; }

  bool begin(c10::Device device) override {
    const c10::DeviceGuard guard(device);  // first, so that a context made below is that of the thread's current device
    const c10::Stream now = currentStream(device);
    if (auto ready = (*CudaDriver::get())->ensureContext(device.index()); !ready) TORCH_CHECK(false, ready.error().text());
    int capturing = 0;
    check((*CudaDriver::get())->cuStreamGetCaptureInfo(now.native_handle(), &capturing, nullptr, nullptr, nullptr, nullptr),
          "cuStreamGetCaptureInfo");
    if (capturing) return false;
    auto [last, isFirst] = last_.try_emplace(device.index(), now);
    if (!isFirst && last->second != now) {
      follow(now, last->second);
      last->second = now;
    }
    return true;
  }

  std::unique_ptr<CapturedWork> capture(c10::Device device, bool random, const std::function<void()>& work) override {
    const c10::impl::VirtualGuardImpl torch(device.type());
    auto side = side_.find(device.index());
    if (side == side_.end()) side = side_.emplace(device.index(), torch.getStreamFromGlobalPool(device)).first;
    follow(side->second, currentStream(device));
    py::gil_scoped_acquire gil;
    const StreamScope stream(side->second);
    device_ = device;
    const py::object cuda = py::module_::import("torch.cuda");
    if (!pools_.count(device.index())) {
      pool_ = cuda.attr("graph_pool_handle")();
      // An empty graph holds the pool: torch gives one up for good with the last graph that uses it.
      const QuietWarnings quiet;
      holders_.push_back(captured(cuda, [] {}));
      pools_.emplace(device.index(), pool_);
    }
    pool_ = pools_.at(device.index());
    py::object graph = captured(cuda, work);
    graph.attr("instantiate")();
    return std::make_unique<TorchCapturedWork>(std::move(graph), device, random);
  }

  /// A graph of what `work` does on the current stream, with memory of pool_.
  py::object captured(const py::object& cuda, const std::function<void()>& work) {
    py::object graph = cuda.attr("CUDAGraph")(py::arg("keep_graph") = true);
    try {
      graph.attr("capture_begin")(py::arg("pool") = pool_, py::arg("capture_error_mode") = "thread_local");
      {
        py::gil_scoped_release release;
        work();
      }
      graph.attr("capture_end")();
    } catch (...) {
      recover(cuda, graph);
      throw;
    }
    return graph;
  }

  /// After a capture that failed: ends it, and gives allocator and generator back to the rest of the program.
  void recover(const py::object& cuda, py::object& graph) {
    auto attempt = [](const auto& f) {
      try {
        f();
      } catch (const py::error_already_set&) {  // the first error says more
      }
    };
    attempt([&] { graph.attr("capture_end")(); });
    for (const py::object* pool : {&pool_, &kept_})
      if (*pool) attempt([&] { py::module_::import("torch._C").attr("_cuda_endAllocateToPool")(device_.index(), *pool); });
    // A copy of the generator's state does not believe itself to be captured.
    attempt([&] {
      const py::object generator = cuda.attr("default_generators")[py::int_(device_.index())];
      generator.attr("graphsafe_set_state")(generator.attr("clone_state")());
    });
    takeKeptMemory();
  }

  void keepMemory(bool keep) override {
    py::gil_scoped_acquire gil;
    const py::object c = py::module_::import("torch._C");
    if (keep && !kept_) {
      kept_ = py::module_::import("torch.cuda").attr("graph_pool_handle")();
      keptUses_ = 0;
    }
    const py::object &from = keep ? pool_ : kept_, &to = keep ? kept_ : pool_;
    c.attr("_cuda_endAllocateToPool")(device_.index(), from);
    c.attr("_cuda_beginAllocateCurrentStreamToPool")(device_.index(), to);
    keptUses_ += keep;
  }

  std::shared_ptr<void> takeKeptMemory() override {
    if (!kept_) return nullptr;
    struct Pool {
      py::object handle;
      int device, uses;
      ~Pool() {
        if (!Py_IsInitialized()) {
          handle.release();
          return;
        }
        py::gil_scoped_acquire gil;
        try {
          for (int i = 0; i < uses; ++i) py::module_::import("torch._C").attr("_cuda_releasePool")(device, handle);
        } catch (const py::error_already_set&) {  // at the interpreter's end; the process gives all memory back
        }
        handle = py::object();
      }
    };
    py::gil_scoped_acquire gil;
    return std::shared_ptr<Pool>(new Pool{std::exchange(kept_, py::object()), device_.index(), keptUses_});
  }

  int64_t poolBytes(c10::Device device) override {
    const auto pool = pools_.find(device.index());
    if (pool == pools_.end()) return -1;
    py::gil_scoped_acquire gil;
    try {
      // Per-pool numbers are in the allocator's snapshot only; c10's device-generic interface knows devices, not pools.
      const py::object segments = py::module_::import("torch.cuda").attr("memory_snapshot")(pool->second, py::arg("include_traces") = false);
      int64_t bytes = 0;
      for (const py::handle segment : segments)
        if (py::cast<int>(segment["device"]) == device.index()) bytes += py::cast<int64_t>(segment["total_size"]);
      return bytes;
    } catch (const py::error_already_set&) {  // an allocator that keeps no such account (cudaMallocAsync)
      return -1;
    }
  }

  int32_t nodes() override {
    const CudaDriver& driver = **CudaDriver::get();
    int status = 0;
    void* graph = nullptr;
    size_t count = 0;
    check(driver.cuStreamGetCaptureInfo(currentStream(device_).native_handle(), &status, nullptr, &graph, nullptr, nullptr),
          "cuStreamGetCaptureInfo");
    if (graph) check(driver.cuGraphGetNodes(graph, nullptr, &count), "cuGraphGetNodes");
    return static_cast<int32_t>(count);
  }

 private:
  std::map<int, c10::Stream> last_, side_;  ///< by device
  std::map<int, py::object> pools_;         ///< shared by all recordings of a device
  std::vector<py::object> holders_;
  c10::Device device_ = c10::Device(c10::kCUDA, 0);
  py::object pool_, kept_;
  int keptUses_ = 0;
};

class SimulatedWork final : public CapturedWork {
 public:
  explicit SimulatedWork(std::function<void()> work) : work_(std::move(work)) {}
  void launch() override {
    if (std::exchange(isFirst_, false)) return;  // capturing has carried it out
    work_();
  }

 private:
  std::function<void()> work_;
  bool isFirst_ = true;
};

class SimulatedGraphCapture final : public runtime::GraphCapture {
 public:
  c10::DeviceType deviceType() const override { return c10::DeviceType::CPU; }
  bool begin(c10::Device) override { return true; }
  std::unique_ptr<CapturedWork> capture(c10::Device, bool, const std::function<void()>& work) override {
    nodes_ = 0;
    work();
    return std::make_unique<SimulatedWork>(work);
  }
  void keepMemory(bool) override {}
  int32_t nodes() override { return ++nodes_; }
  std::shared_ptr<void> takeKeptMemory() override { return nullptr; }
  int64_t poolBytes(c10::Device) override { return -1; }

 private:
  int32_t nodes_ = 0;
};

}  // namespace

std::unique_ptr<runtime::GraphCapture> torchGraphCapture() { return std::make_unique<TorchGraphCapture>(); }
std::unique_ptr<runtime::GraphCapture> simulatedGraphCapture() { return std::make_unique<SimulatedGraphCapture>(); }

}  // namespace fusebox::python
