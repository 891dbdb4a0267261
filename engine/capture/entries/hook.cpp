#include "engine/capture/entries/hook.h"

#include "engine/capture/cpython/errors.h"
#include "engine/capture/cpython/frame_internals.h"
#include "engine/capture/cpython/stack_room.h"
#include "engine/capture/entries/barrier.h"
#include "engine/capture/entries/driver.h"
#include "engine/capture/entries/hook_skip.h"

namespace fusebox::capture {
namespace {

struct ThreadRegion {
  const RegionOptions* options = nullptr;  ///< null: no region
  PyCodeObject* root = nullptr;
  int disabled = 0;
  size_t refusal = 0;  ///< a digest of why the frame before was left to Python; 0: none was
};
thread_local ThreadRegion region;

int openRegions = 0;   ///< of all threads; guarded by the GIL
int deepFrames = 0;    ///< under which nothing is hooked, of all threads; guarded by the GIL
FrameEvaluator evaluatorBefore = nullptr;

/// The wrapper that torch.compiler.disable puts round a function: nothing below it is compiled.
bool isMarkedDisabled(InterpreterFrame* frame) {
  if (isDisabledByTorch(reinterpret_cast<PyObject*>(functionOf(frame)))) return true;
  static PyObject* const kMark = PyUnicode_InternFromString("_torchdynamo_disable");
  static PyObject* const kRecursive = PyUnicode_InternFromString("_torchdynamo_disable_recursive");
  PyObject* dict = functionOf(frame)->func_dict;
  PyObject* mark = dict ? PyDict_GetItemWithError(dict, kMark) : nullptr;
  return mark && mark != Py_False && PyDict_GetItemWithError(dict, kRecursive) != Py_False;
}

PyObject* evaluateHooked(PyThreadState* thread, InterpreterFrame* frame, int throwing);

/// Runs a frame as CPython does without a hook: what it calls takes no C stack. Other threads run eagerly meanwhile.
PyObject* evaluateUnhooked(PyThreadState* thread, InterpreterFrame* frame, int throwing) {
  if (deepFrames++ == 0 && frameEvaluator() == evaluateHooked) setFrameEvaluator(evaluatorBefore);
  PyObject* result = evaluate(thread, frame, throwing);
  if (--deepFrames == 0 && openRegions > 0 && frameEvaluator() == evaluatorBefore) setFrameEvaluator(evaluateHooked);
  return result;
}

/// What is known of a frame's code; null when that cannot be told (out of memory): the frame is CPython's.
CodeState* knownState(InterpreterFrame* frame) {
  return guarded("looking at a frame", [&] { return &stateOf(codeOf(frame), globalsOf(frame)); }, [](bool) {
    clearError();
    return static_cast<CodeState*>(nullptr);
  });
}

PyObject* evaluateHooked(PyThreadState* thread, InterpreterFrame* frame, int throwing) {
  ThreadRegion& here = region;
  if (stackIsShort()) [[unlikely]] return evaluateUnhooked(thread, frame, throwing);
  if (!throwing && here.options && !here.disabled && isImportedModule(thread, frame)) {
    RegionPause pause;  // what a module does while it is imported happens once
    return evaluate(thread, frame, 0);
  }
  if (throwing || !here.options || here.disabled || captureSuspended() || !isFresh(frame) || isTraced(thread))
    return evaluate(thread, frame, throwing);
  CodeState* state = knownState(frame);
  if (!state) return evaluate(thread, frame, 0);
  if ((state->skip || state->unprofitable) && codeOf(frame) != here.root) {
    if (!state->tracing && !isMarkedDisabled(frame)) return evaluate(thread, frame, 0);
    RegionPause pause;
    return evaluate(thread, frame, 0);
  }
  return runFrame(thread, frame, *state, here.options);
}

void openRegion() {
  if (openRegions++ > 0 || deepFrames > 0) return;
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
    : previousOptions_(region.options), previousRoot_(region.root), previousDisabled_(region.disabled), previousRefusal_(region.refusal) {
  region.options = options;
  region.root = root;
  region.disabled = 0;
  region.refusal = 0;
  openRegion();
}

Region::~Region() {
  closeRegion();
  region.options = previousOptions_;
  region.root = previousRoot_;
  region.disabled = previousDisabled_;
  region.refusal = previousRefusal_;
}

RegionPause::RegionPause() { ++region.disabled; }
RegionPause::~RegionPause() { --region.disabled; }

bool inRegion() { return region.options && !region.disabled; }

bool isRegionRoot(const PyCodeObject* code) { return region.root == code; }

bool isRefusedAgain(std::string_view why) {
  const size_t refusal = std::hash<std::string_view>()(why);
  return std::exchange(region.refusal, refusal) == refusal;
}

bool isCapturing() { return captureDepth() > 0; }

}  // namespace fusebox::capture
