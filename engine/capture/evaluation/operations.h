#pragma once

#include <Python.h>

#include <memory>

#include "engine/capture/evaluation/frame.h"
#include "engine/capture/cpython/py_ref.h"

namespace fusebox::capture {

/// What instructions do to objects. One implementation carries the operations out as CPython does (RealOperations), one
/// evaluates them with provenance (CaptureOperations). Every function that returns PyRef, bool or int reports a Python
/// exception by null, false or -1 with the error indicator set, as CPython's own API does.
class Operations {
 public:
  virtual ~Operations() = default;

  virtual PyRef getAttr(PyObject* object, PyObject* name) = 0;
  /// For a call that follows: a function with `*self` set, or any attribute with `*self` null.
  virtual PyRef getMethod(PyObject* object, PyObject* name, PyRef* self) = 0;
  /// A special method bound to the object, looked up on its type; null without error when absent.
  virtual PyRef getSpecial(PyObject* object, PyObject* name) = 0;
  /// `value` null deletes.
  virtual bool setAttr(PyObject* object, PyObject* name, PyObject* value) = 0;

  /// Vectorcall convention: `args` has `positional` values, then one for each name of `kwNames` (may be null).
  virtual PyRef call(PyObject* callable, PyObject* const* args, size_t positional, PyObject* kwNames) = 0;
  /// Whether CPython moves the arguments of this call into the frame of the callee, and it matters that they are moved.
  virtual bool handsOver(PyObject*, PyObject* const*, size_t) { return false; }
  /// `kwargs` may be null.
  virtual PyRef callEx(PyObject* callable, PyObject* argsTuple, PyObject* kwargs) = 0;

  virtual PyRef binary(int op, PyObject* a, PyObject* b) = 0;  ///< CPython's NB_ number
  virtual PyRef unary(Op op, PyObject* a) = 0;
  virtual PyRef compare(int op, PyObject* a, PyObject* b) = 0;  ///< Py_LT...
  /// `a is b`.
  virtual bool same(PyObject* a, PyObject* b) { return a == b; }
  virtual int contains(PyObject* container, PyObject* item) = 0;
  virtual int truth(PyObject* object) = 0;
  /// The truth of what a conditional jump of the frame asks, which jumps when it is `jumpsWhen`.
  virtual int condition(PyObject* object, const Frame&, const Instruction&, bool /*jumpsWhen*/) { return truth(object); }
  /// `not a`.
  virtual PyRef opposite(PyObject* object) {
    const int answer = truth(object);
    return answer < 0 ? PyRef() : PyRef::borrow(answer ? Py_False : Py_True);
  }
  /// Before the frame jumps back to an instruction: a loop takes another turn.
  virtual void willTurn(Frame&, int /*target*/) {}
  virtual Py_ssize_t length(PyObject* object) = 0;
  /// What CPython guesses the length of an iterable by; only what the object's own methods do and raise counts.
  virtual bool guessLength(PyObject* iterable) { return PyObject_LengthHint(iterable, 0) >= 0; }

  virtual PyRef getItem(PyObject* object, PyObject* key) = 0;
  virtual bool setItem(PyObject* object, PyObject* key, PyObject* value) = 0;  ///< `value` null deletes

  virtual PyRef iter(PyObject* object) = 0;
  /// Null without error: exhausted.
  virtual PyRef next(PyObject* iterator) = 0;
  /// 1: yielded, 0: returned, -1: raised.
  virtual int send(PyObject* receiver, PyObject* value, PyRef* result) = 0;
  virtual PyRef makeGenerator(std::unique_ptr<Frame> frame) = 0;
  /// Whether a coroutine waits for something already, so that nobody else may wait for it.
  virtual bool isAwaiting(PyObject* coroutine) { return PyRef::steal(PyObject_GetAttrString(coroutine, "cr_await")).get() != Py_None; }

  virtual PyRef format(PyObject* value, PyObject* spec) = 0;  ///< `spec` may be null
  /// 's', 'r' or 'a'.
  virtual PyRef convert(char conversion, PyObject* value) = 0;

  virtual PyRef loadGlobal(Frame& frame, PyObject* name) = 0;
  virtual bool storeGlobal(Frame& frame, PyObject* name, PyObject* value) = 0;  ///< `value` null deletes
  /// Null without error: the cell is empty.
  virtual PyRef loadCell(PyObject* cell) = 0;
  virtual bool hasCellContents(PyObject* cell) = 0;
  virtual void storeCell(PyObject* cell, PyObject* value) = 0;
  /// First read of an `unread` local of the root frame.
  virtual void readLocal(Frame& frame, int index) = 0;
  /// Pushes such a local without reading it. False: it must be read.
  virtual bool pushUnread(Frame&, int) { return false; }

  virtual PyRef importName(Frame& frame, PyObject* name, PyObject* fromList, PyObject* level) = 0;
  virtual PyRef importFrom(PyObject* module, PyObject* name) = 0;

  virtual bool updateDict(PyObject* dict, PyObject* mapping) = 0;
  virtual PyRef makeSuper(Frame& frame, PyObject* type, PyObject* object) = 0;

  /// Whether an exception matches what stands in an except clause; -1: error.
  virtual int exceptionMatches(PyObject* exception, PyObject* type) = 0;
  /// What __exit__ is told of; null: none.
  virtual PyRef tracebackOf(PyObject* exception) { return PyRef::steal(PyException_GetTraceback(exception)); }
  /// Called with every mutable object that an instruction made.
  virtual void adopt(PyObject* fresh) = 0;
  // Changes of containers that an instruction makes itself (they may have existed before the capture, when a segment starts inside a
  // comprehension).
  virtual bool storeKey(PyObject* dict, PyObject* key, PyObject* value) { return PyDict_SetItem(dict, key, value) == 0; }
  virtual bool append(PyObject* list, PyObject* item) { return PyList_Append(list, item) == 0; }
  virtual bool addToSet(PyObject* set, PyObject* item) { return PySet_Add(set, item) == 0; }
  /// Adds all elements of a set, frozenset or dict of constants in CPython's order (isMergedAsWhole).
  virtual bool mergeIntoSet(PyObject* set, PyObject* whole) { return _PySet_Update(set, whole) == 0; }
  virtual PyRef tupleOf(PyObject* sequence) { return PyRef::steal(PySequence_Tuple(sequence)); }
  /// A local variable of that name gets the value.
  virtual void stored(PyObject* /*name*/, PyObject* /*value*/) {}
  /// Before the last reference that a local variable holds may go.
  virtual void willUnbind(const Frame&, PyObject*) {}
  /// Before `raise` raises an exception (not again).
  virtual void willRaise(PyObject*) {}
  /// Called with every frame that handles an exception, unless it hands on what it has handled before.
  virtual void noteTraceback(Frame& frame) = 0;

  // Written in terms of the above.
  bool extendList(PyObject* list, PyObject* iterable, bool asksLength = false);
  bool updateSet(PyObject* set, PyObject* iterable);
  /// The elements of any iterable as a list or tuple; `makeTuple` picks.
  /// `asksLength`: CPython makes a list or tuple of it, and guesses its length first.
  PyRef collect(PyObject* iterable, bool makeTuple, bool asksLength = false);
};

/// Whether what a cell `__class__` holds (null: nothing) is a class that super() can begin at; else CPython's RuntimeError.
bool checkSuperClass(PyObject* content);
/// Whether what stands in an except clause may stand there: exception classes, or a tuple of them; else CPython's TypeError.
bool checkExceptionClasses(PyObject* type);

}  // namespace fusebox::capture
