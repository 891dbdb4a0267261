#include "engine/aot/aot_module.h"
#include "engine/aot/trace_finisher.h"

namespace fusebox::aot {

Result<AotModule> finishTrace(trace::TraceContext& context, const std::vector<at::Tensor>& outputs, const CompilerTraits& compiler) {
  std::optional<trace::TraceContext::Active> active;
  if (trace::TraceContext::current() != &context) active.emplace(context);
  TraceFinisher finisher(context, outputs);
  try {
    if (auto done = finisher.readMutations(); !done) return tl::unexpected(done.error());
    if (auto done = finisher.planOutputs(); !done) return tl::unexpected(done.error());
    if (auto done = finisher.separateResults(); !done) return tl::unexpected(done.error());
    if (auto done = finisher.recordBackward(); !done) return tl::unexpected(done.error());
    auto module = finisher.split(compiler);
    if (auto good = module.forward.verify(); !good) return tl::unexpected(good.error());
    if (module.backward)
      if (auto good = module.backward->verify(); !good) return tl::unexpected(good.error());
    return module;
  } catch (const trace::BreakError& e) {
    return fail(ErrorCode::Unsupported, e.reason(), e.hint());
  } catch (const c10::Error& e) {
    return fail(ErrorCode::Unsupported, std::string("the trace could not be finished: ") + e.what_without_backtrace());
  } catch (const std::exception& e) {
    return fail(ErrorCode::Unsupported, std::string("the trace could not be finished: ") + e.what());
  }
}

}  // namespace fusebox::aot
