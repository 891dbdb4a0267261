#include "engine/capture/entries/hook.h"

#include "engine/capture/entries/driver.h"
#include "engine/capture/cpython/frame_internals.h"

namespace fusebox::capture {
namespace {

struct ThreadRegion {
  const RegionOptions* options = nullptr;  ///< null: no region
  PyCodeObject* root = nullptr;
  int disabled = 0;
};
thread_local ThreadRegion region;

int openRegions = 0;  ///< of all threads; guarded by the GIL
FrameEvaluator evaluatorBefore = nullptr;

/// The wrapper that torch.compiler.disable puts round a function: nothing below it is compiled.
bool isMarkedDisabled(InterpreterFrame* frame) {
  static PyObject* const kMark = PyUnicode_InternFromString("_torchdynamo_disable");
  static PyObject* const kRecursive = PyUnicode_InternFromString("_torchdynamo_disable_recursive");
  PyObject* dict = functionOf(frame)->func_dict;
  PyObject* mark = dict ? PyDict_GetItemWithError(dict, kMark) : nullptr;
  return mark && mark != Py_False && PyDict_GetItemWithError(dict, kRecursive) != Py_False;
}

PyObject* evaluateHooked(PyThreadState* thread, InterpreterFrame* frame, int throwing) {
  ThreadRegion& here = region;
  if (!throwing && here.options && !here.disabled && isImportedModule(thread, frame)) {
    RegionPause pause;  // what a module does while it is imported happens once
    return evaluate(thread, frame, 0);
  }
  if (throwing || !here.options || here.disabled || captureSuspended() || !isFresh(frame) || isTraced(thread))
    return evaluate(thread, frame, throwing);
  PyCodeObject* code = codeOf(frame);
  CodeState& state = stateOf(code);
  if (state.skip && code != here.root) {
    if (!isMarkedDisabled(frame)) return evaluate(thread, frame, 0);
    RegionPause pause;
    return evaluate(thread, frame, 0);
  }
  return runFrame(thread, frame, state, here.options);
}

void openRegion() {
  if (openRegions++ > 0) return;
  evaluatorBefore = frameEvaluator();
  setFrameEvaluator(evaluateHooked);
}

void closeRegion() {
  if (--openRegions > 0) return;
  // Somebody else may have set a hook inside the region: theirs stays.
  if (frameEvaluator() == evaluateHooked) setFrameEvaluator(evaluatorBefore);
}

}  // namespace

Region::Region(const RegionOptions* options, PyCodeObject* root)
    : previousOptions_(region.options), previousRoot_(region.root), previousDisabled_(region.disabled) {
  region.options = options;
  region.root = root;
  region.disabled = 0;
  openRegion();
}

Region::~Region() {
  closeRegion();
  region.options = previousOptions_;
  region.root = previousRoot_;
  region.disabled = previousDisabled_;
}

RegionPause::RegionPause() { ++region.disabled; }
RegionPause::~RegionPause() { --region.disabled; }

bool inRegion() { return region.options && !region.disabled; }

bool isCapturing() { return captureDepth() > 0; }

}  // namespace fusebox::capture
