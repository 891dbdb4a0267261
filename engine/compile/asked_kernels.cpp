#include "engine/compile/asked_kernels.h"

#include "engine/record/graph_rows.h"

namespace fusebox {
namespace {

record::KernelRecord recordOf(const graph::Node& node, record::Id compile) {
  record::KernelRecord kernel;
  kernel.compile = compile;
  kernel.name = kernel.op = node.op.substr(0, node.op.find('.'));
  kernel.kind = "extern";
  kernel.reason = "data decide the size of its result: it runs between two parts of the graph";
  if (!node.outputs.empty() && node.outputs[0].kind == graph::OutputMeta::Kind::Tensor) kernel.device = node.outputs[0].tensor.device.str();
  if (const graph::SourceLine* line = record::placeOf(node)) kernel.place = {line->file, line->line, line->function};
  return kernel;
}

}  // namespace

void AskedKernels::ran(const graph::Node& node, int64_t startNs, int64_t durNs) {
  record::Recorder* recorder = record::Recorder::session();
  if (!recorder) return;
  record::Id kernel = 0;
  {
    std::lock_guard lock(mutex_);
    if (recorder_ != recorder) {  // it began after the graph was compiled
      recorder_ = recorder;
      compile_ = record::Recorder::caller().compile;
      kernels_.clear();
    }
    record::Id& known = kernels_[&node];
    if (known == 0) known = recorder->kernel(recordOf(node, compile_));
    kernel = known;
  }
  recorder->launch(kernel, 0, startNs, durNs, 0);
}

}  // namespace fusebox
