#include "engine/capture/evaluation/real_stretch.h"

#include <vector>

namespace fusebox::capture {

namespace {

constexpr size_t kFarthest = 24;  ///< instructions looked ahead

bool isScalar(PyObject* o) {
  return o && (PyFloat_CheckExact(o) || PyLong_CheckExact(o) || PyBool_Check(o) || PyUnicode_CheckExact(o) || o == Py_None);
}

bool isBuiltinContainer(PyObject* o) { return PyList_CheckExact(o) || PyDict_CheckExact(o) || PySet_Check(o); }

/// One slot of the stack as it will be.
struct Slot {
  PyObject* value = nullptr;  ///< null: CPython's NULL, or a result that is not there yet
  bool hot = false;           ///< came out of the break
  bool scalar = false, method = false;
};

/// Looks ahead over instructions that only push.
class Lookahead {
 public:
  Lookahead(const FrameState& state, const std::set<int>& hotLocals, bool topIsHot) : state_(state), hotLocals_(hotLocals) {
    for (const PyRef& value : state.stack) slots_.push_back({value.get(), false, isScalar(value.get()), false});
    if (topIsHot) slots_.back().hot = true;
  }

  /// The instruction was a push that is followed; `consumed` is set when it is the last of the stretch.
  bool follow(const Instruction& i, bool* consumed, int* storedLocal) {
    switch (i.op) {
      case Op::PRECALL: case Op::NOP: case Op::CACHE: case Op::KW_NAMES: return true;
      case Op::PUSH_NULL: return push({});
      case Op::LOAD_CONST: return push({PyTuple_GET_ITEM(state_.code->co_consts, i.arg), false, isScalar(PyTuple_GET_ITEM(state_.code->co_consts, i.arg)), false});
      case Op::LOAD_FAST: {
        PyObject* value = state_.locals[static_cast<size_t>(i.arg)].get();
        return value && push({value, hotLocals_.count(i.arg) > 0, isScalar(value), false});
      }
      case Op::LOAD_METHOD: return method();
#if PY_VERSION_HEX >= 0x030C0000
      case Op::LOAD_ATTR: return (i.arg & 1) && method();
#endif
      case Op::BINARY_OP: case Op::COMPARE_OP: return *consumed = scalars(2);
      case Op::UNARY_NEGATIVE: case Op::UNARY_NOT: case Op::UNARY_POSITIVE: return *consumed = scalars(1);
      case Op::FORMAT_VALUE: return *consumed = scalars(i.arg & 4 ? 2 : 1);
      case Op::BUILD_STRING: return *consumed = scalars(static_cast<size_t>(i.arg));
      case Op::POP_JUMP_IF_FALSE: case Op::POP_JUMP_IF_TRUE: case Op::POP_TOP: return *consumed = scalars(1);
      case Op::STORE_FAST: *storedLocal = i.arg; return *consumed = scalars(1);
      case Op::CALL: return *consumed = call(static_cast<size_t>(i.arg));
      default: return false;
    }
  }

 private:
  bool push(Slot slot) {
    slots_.push_back(slot);
    return true;
  }

  bool method() {
    if (slots_.empty() || !slots_.back().value || !isBuiltinContainer(slots_.back().value)) return false;
    slots_.back().method = true;
    return push({});
  }

  /// The top `n` are scalars, and one of them came out of the break.
  bool scalars(size_t n) const {
    if (n == 0 || slots_.size() < n) return false;
    bool hot = false;
    for (size_t k = slots_.size() - n; k < slots_.size(); ++k) {
      if (!slots_[k].scalar) return false;
      hot = hot || slots_[k].hot;
    }
    return hot;
  }

  /// A C function or a method of a builtin container, called with scalars.
  bool call(size_t n) const {
    if (!scalars(n) || slots_.size() < n + 2) return false;
    const Slot &below = slots_[slots_.size() - n - 2], &above = slots_[slots_.size() - n - 1];
    if (below.method) return true;
    if (!below.value) return above.value && PyCFunction_Check(above.value);
    return Py_TYPE(below.value) == &PyMethodDescr_Type && above.value && (isBuiltinContainer(above.value) || isScalar(above.value));
  }

  const FrameState& state_;
  const std::set<int>& hotLocals_;
  std::vector<Slot> slots_;
};

}  // namespace

void RealStretch::executed(Op op) {
  switch (op) {
    case Op::CALL: case Op::CALL_FUNCTION_EX: case Op::BINARY_OP: case Op::BINARY_SUBSCR: case Op::COMPARE_OP: case Op::LOAD_ATTR:
    case Op::UNARY_NEGATIVE: case Op::UNARY_NOT: case Op::UNARY_POSITIVE: case Op::FORMAT_VALUE: case Op::BUILD_STRING:
      resultOnTop_ = true;
      break;
    default: resultOnTop_ = false;
  }
}

int RealStretch::end(const FrameState& state) {
  const bool topIsHot = resultOnTop_ && !state.stack.empty() && isScalar(state.stack.back().get());
  if (!topIsHot && locals_.empty()) return 0;
  const auto decoded = decodeCode(state.code);
  const auto& list = decoded->instructions;
  const auto start = static_cast<size_t>(decoded->indexOfOffset[static_cast<size_t>(state.offset)]);
  Lookahead ahead(state, locals_, topIsHot);
  for (size_t at = start; at + 1 < list.size() && at < start + kFarthest; ++at) {
    bool consumed = false;
    int stored = -1;
    if (!ahead.follow(list[at], &consumed, &stored)) return 0;
    if (!consumed) continue;
    if (stored >= 0) locals_.insert(stored);
    return list[at + 1].offset;
  }
  return 0;
}

}  // namespace fusebox::capture
