#include "engine/capture/entries/eager_look.h"

#include "engine/capture/evaluation/torch_objects.h"
#include "engine/capture/guards/symbolic_inputs.h"

namespace fusebox::capture {
namespace {

struct Look {
  GuardSet guards;
  std::shared_ptr<graph::ShapeEnv> shapes = graph::ShapeEnv::make();
  SymbolicPolicy policy;
  SymbolicInputs inputs{&policy, guards, *shapes};

  Look(PyCodeObject* code, PyObject* globals, NumberHistory* history) : guards(code, globals) {
    policy.history = history;
    policy.allowed = false;
  }

  void at(PyObject* object, const Source* source, int depth) {
    constexpr int kDeepest = 3;
    if (isTensorObject(object)) {
      inputs.geometry(object, source);
    } else if (PyLong_CheckExact(object)) {
      inputs.integer(object, source, {});
    } else if (depth < kDeepest && (PyTuple_CheckExact(object) || PyList_CheckExact(object))) {
      for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(object); ++i)
        at(PySequence_Fast_GET_ITEM(object, i), guards.sources().sequenceItem(source, i), depth + 1);
    } else if (depth < kDeepest && PyDict_CheckExact(object)) {
      PyObject *key, *value;
      for (Py_ssize_t i = 0; PyDict_Next(object, &i, &key, &value);)
        if (PyUnicode_CheckExact(key)) at(value, guards.sources().dictItem(source, key), depth + 1);
    }
  }
};

}  // namespace

void noteNumbers(EntryPoint& point, const FrameState& state, PyObject* globals) {
  point.numbers.beginCapture();
  Look look(state.code, globals, &point.numbers);
  for (size_t i = 0; i < state.locals.size(); ++i)
    if (state.locals[i]) look.at(state.locals[i].get(), look.guards.sources().local(static_cast<int>(i)), 0);
}

}  // namespace fusebox::capture
