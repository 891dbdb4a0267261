#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "engine/capture/cpython/instruction.h"
#include "engine/capture/cpython/py_ref.h"
#include "engine/capture/evaluation/source.h"

namespace fusebox::capture {

/// A Python frame under evaluation. CPython's layout of locals and stack, with owned references.
struct Frame {
  struct Loop {
    int head = 0;                             ///< index of the instruction that it jumps back to
    int64_t operators = 0, instructions = 0;  ///< what had been captured at the end of its first turn
  };
  std::shared_ptr<const DecodedCode> decoded;
  PyRef function;
  PyObject* globals = nullptr;   ///< borrowed from function
  PyObject* builtins = nullptr;  ///< borrowed from function
  std::vector<PyRef> locals;     ///< localsplus
  std::vector<PyRef> stack;      ///< a null PyRef is CPython's NULL
  int pc = 0;                    ///< index of the instruction under execution
  PyRef kwNames;                 ///< between KW_NAMES and CALL
  PyRef result;                  ///< set by Flow::Return and Flow::Yield
  Frame* caller = nullptr;
  size_t handedOver = 0;         ///< during a call: first slot of the arguments that the callee's frame takes over; 0: none
  int handling = 0;              ///< exceptions that its handlers are handling, of those that they have taken since the frame was made
  bool isRoot = false;
  std::vector<Loop> loops;       ///< those that it is in
  bool reraises = false;         ///< Flow::Error hands on what was raised before: the frame gets no further traceback entry for it
  /// Root frame of a capture, and a generator from before it: locals whose value has not been read yet, so carries no guard. Empty elsewhere.
  std::vector<bool> unread;
  struct UnreadEntry {
    size_t index = 0;
    PyObject* value = nullptr;  ///< borrowed from the stack
    const Source* source = nullptr;
  };
  std::vector<UnreadEntry> unreadStack;     ///< numbers, and tensors that cannot be traced, on the stack that no instruction has looked at
  const Source* unreadItem = nullptr;       ///< what FOR_ITER pushed has not been read: its source
  std::vector<const Source*> unreadSource;  ///< where such a value comes from; null: the local itself

  /// A frame of `function` before its first instruction; locals are all unbound.
  static std::unique_ptr<Frame> make(PyObject* function);

  PyRef pop() {
    PyRef top = std::move(stack.back());
    stack.pop_back();
    return top;
  }
  void push(PyRef value) { stack.push_back(std::move(value)); }
  /// The n-th from the top, 1 being the top.
  PyRef& peek(int n) { return stack[stack.size() - static_cast<size_t>(n)]; }
  const Instruction& instruction() const { return decoded->instructions[static_cast<size_t>(pc)]; }
  PyCodeObject* code() const { return decoded->code; }
  PyObject* name(int index) const { return PyTuple_GET_ITEM(decoded->names.get(), index); }
  int line() const { return decoded->lineOf(pc); }
};

}  // namespace fusebox::capture
