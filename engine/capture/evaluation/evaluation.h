#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "engine/capture/evaluation/frame.h"
#include "engine/capture/evaluation/iterator_pool.h"
#include "engine/capture/guards/guard_set.h"
#include "engine/capture/guards/symbolic_inputs.h"
#include "engine/capture/effects/journal.h"
#include "engine/capture/evaluation/operations.h"
#include "engine/capture/evaluation/origin_table.h"
#include "engine/capture/effects/segment.h"
#include "engine/trace/break_error.h"
#include "engine/trace/trace_context.h"

namespace fusebox::capture {

/// Thrown where evaluation cannot go on; caught at the root frame, which ends the segment before the current instruction.
struct CaptureBreak {
  GraphBreak what;
  int64_t birth = -1;  ///< not negative: the segment must end before the root instruction that made an object (by count)
  std::function<bool()> first = nullptr;  ///< to be done once evaluation has been taken back; then it starts over, if that gives true
  bool isOfGraph = false;  ///< the graph as a whole is refused, and which instruction is to blame is not known
  bool isOfSharedMemory = false;  ///< inputs are to share memory in the trace, too: evaluation starts over with that
  std::optional<LongLoop> loop = std::nullopt;  ///< of the root frame, is too long: evaluation starts over, and ends where the loop begins
};

/// A rule found fewer or more arguments than the function takes: the call is left to raise its TypeError.
struct UnfitArguments {};

/// The arguments of a call, those with a keyword last.
class ArgumentList {
 public:
  ArgumentList(PyObject* const* first, size_t count) : first_(first), count_(count) {}
  template <class Index>
  PyObject* operator[](Index i) const {
    if (static_cast<size_t>(i) >= count_) throw UnfitArguments{};
    return first_[i];
  }
  operator PyObject* const*() const { return first_; }
  PyObject* const* begin() const { return first_; }

 private:
  PyObject* const* first_;
  size_t count_;
};

/// Arguments of one call in vectorcall form.
struct CallArguments {
  CallArguments(PyObject* const* arguments, size_t positionalCount, PyObject* keywordNames)
      : args(arguments, positionalCount + (keywordNames ? static_cast<size_t>(PyTuple_GET_SIZE(keywordNames)) : 0)),
        positional(positionalCount), kwNames(keywordNames) {}
  ArgumentList args;
  size_t positional = 0;
  PyObject* kwNames = nullptr;
  size_t keywords() const { return kwNames ? static_cast<size_t>(PyTuple_GET_SIZE(kwNames)) : 0; }
  size_t total() const { return positional + keywords(); }
  PyObject* keywordName(size_t i) const { return PyTuple_GET_ITEM(kwNames, static_cast<Py_ssize_t>(i)); }
  /// The keyword argument of that name, or null.
  PyObject* keyword(const char* name) const;
};

class Evaluation;
class RecipeMaker;
class FunctionCalls;
class TorchCalls;
class Arrays;
class ExchangedData;
class FunctionModes;
class RandomDraws;
class StandIns;
class SwitchedLeaves;
class InferenceBlocks;
class TakenIterators;
/// A rule for one C callable (or a Python function that is not to be interpreted). `self` of a bound method is args[0].
using CallRule = PyRef (*)(Evaluation& e, PyObject* callable, const CallArguments& a);

/// The evaluation of one segment: operations with provenance. Real objects are computed with; every read of something that
/// existed before adds a guard, every write goes through the journal, tensors are stand-ins of the trace.
class Evaluation final : public Operations {
 public:
  Evaluation(const FrameState& state, const CaptureOptions& options);
  ~Evaluation() override;

  // --- Operations -------------------------------------------------------------------------------------------------
  PyRef getAttr(PyObject* object, PyObject* name) override;
  /// Of torch._dynamo.error_on_graph_break(), as the program has set it by now.
  bool breaksAreErrors = false;
  /// A hook on the gradient of a tensor is set when the graph has run.
  bool putsOffHooks = false;
  /// Such a tensor that has a history, which must be the same when the graph has run.
  void noteHooked(PyObject* tensor);
  /// A hook is put on the gradient of a leaf from outside, which holds what the hook holds.
  void noteHookedLeaf(PyObject* tensor, PyObject* hook);

  PyRef getMethod(PyObject* object, PyObject* name, PyRef* self) override;
  PyRef getSpecial(PyObject* object, PyObject* name) override;
  bool setAttr(PyObject* object, PyObject* name, PyObject* value) override;
  PyRef call(PyObject* callable, PyObject* const* args, size_t positional, PyObject* kwNames) override;
  PyRef callEx(PyObject* callable, PyObject* argsTuple, PyObject* kwargs) override;
  PyRef binary(int op, PyObject* a, PyObject* b) override;
  PyRef unary(Op op, PyObject* a) override;
  PyRef compare(int op, PyObject* a, PyObject* b) override;
  bool same(PyObject* a, PyObject* b) override;
  int contains(PyObject* container, PyObject* item) override;
  int truth(PyObject* object) override;
  int condition(PyObject* object, const Frame& frame, const Instruction& jump, bool jumpsWhen) override;
  PyRef opposite(PyObject* object) override;
  Py_ssize_t length(PyObject* object) override;
  bool guessLength(PyObject* iterable) override;
  PyRef getItem(PyObject* object, PyObject* key) override;
  bool setItem(PyObject* object, PyObject* key, PyObject* value) override;
  PyRef iter(PyObject* object) override;
  PyRef next(PyObject* iterator) override;
  int send(PyObject* receiver, PyObject* value, PyRef* result) override;
  bool isAwaiting(PyObject* coroutine) override;
  PyRef makeGenerator(std::unique_ptr<Frame> frame) override;
  bool handsOver(PyObject* callable, PyObject* const* args, size_t count) override;
  PyRef tracebackOf(PyObject* exception) override;
  PyRef format(PyObject* value, PyObject* spec) override;
  PyRef convert(char conversion, PyObject* value) override;
  PyRef loadGlobal(Frame& frame, PyObject* name) override;
  bool storeGlobal(Frame& frame, PyObject* name, PyObject* value) override;
  PyRef loadCell(PyObject* cell) override;
  bool hasCellContents(PyObject* cell) override;
  void storeCell(PyObject* cell, PyObject* value) override;
  void readLocal(Frame& frame, int index) override;
  bool pushUnread(Frame& frame, int index) override;
  /// A number, or a tensor that cannot be traced, at `index` of the root frame's stack: only an instruction that looks at it reads it. False: another value.
  bool leaveUnread(Frame& frame, size_t index, PyObject* value, const Source* source);
  PyRef importName(Frame& frame, PyObject* name, PyObject* fromList, PyObject* level) override;
  PyRef importFrom(PyObject* module, PyObject* name) override;
  bool importFirst(PyObject* name);
  bool updateDict(PyObject* dict, PyObject* mapping) override;
  /// The same by the __setitem__ of the dict's class, as OrderedDict.update does.
  bool updateDictBy(PyObject* dict, PyObject* mapping, bool byItsClass);
  /// list.extend, +=: what runs the program for its elements (a generator) sees those before in the list already.
  bool extendByAny(PyObject* list, PyObject* iterable);
  PyRef makeSuper(Frame& frame, PyObject* type, PyObject* object) override;
  int exceptionMatches(PyObject* exception, PyObject* type) override;
  void adopt(PyObject* fresh) override;
  /// The same for iterators, which are kept even if they are not collectable.
  void adoptIterator(PyObject* iterator);
  /// A value that was not read is assigned to locals as it is, if the next instructions only do that (STORE_FAST, or UNPACK_SEQUENCE
  /// of a tuple or list and the same for its parts): what the program never looks at is not guarded. False: nothing was done.
  bool assignUnread(Frame& root, PyObject* value, const Source* source);
  void willRaise(PyObject* exception) override;
  void noteTraceback(Frame& frame) override;

  // --- values (values.cpp) ----------------------------------------------------------------------------------------
  /// The value at a source as the program sees it: guarded, known, tensors as stand-ins.
  PyRef wrap(PyObject* object, const Source* source);
  /// The same for a value that the program is given and may never look at: a tuple of constants is guarded by what is read of it.
  PyRef read(PyObject* object, const Source* source);
  /// What C code may look into as a whole: such a tuple is guarded whole, or has symbols in it; all else as it is.
  PyRef settled(PyObject* object);
  /// The slice of such a tuple, whose elements alone are read. Null without error: it is no such tuple, or the slice is asked otherwise.
  PyRef partOfUnread(PyObject* object, PyObject* slice);
  /// The same of a key, which is hashed with the tuples inside.
  PyRef settledKey(PyObject* key);
  /// The source of an object, null for fresh ones. An object of unknown origin is a break, unless it never changes.
  const Source* sourceOf(PyObject* object);
  bool isFresh(PyObject* object) { return sourceOf(object) == nullptr; }
  /// An object that may be taken as it is, and why. What is read from it is guarded.
  PyRef pin(PyObject* object, Why why);
  Origin* origin(PyObject* object) { return origins_.find(object); }
  const OriginTable& origins() const { return origins_; }
  /// Guards length (or keys, in order) and elements of a list, tuple, dict or set that has a source. C code may then move its elements
  /// about: each has an origin, and is translated where it is read.
  void know(PyObject* container);
  /// A list, tuple or dict whose elements are only moved elsewhere: where it is from outside and nobody has known it, or written to the list, a fresh one of its
  /// elements, read one by one, so that what changes from call to call stays in motion. Anything else is known, and given as it is. Null: an exception is set.
  PyRef moved(PyObject* container);
  /// An element of a list or tuple, guarded; `i` is in range.
  PyRef element(PyObject* sequence, Py_ssize_t i);
  /// The same, `item`, of a list or deque from outside that was written to: guarded where it lay at first, with all others where nobody knows.
  PyRef writtenElement(PyObject* sequence, PyObject* item, Py_ssize_t i);
  /// Whether a deque is from outside: then its length, at first, is guarded now, and its elements are read with a guard.
  bool isDequeFromOutside(PyObject* object);
  PyRef dequeElement(PyObject* deque, Py_ssize_t i);
  /// The length of the builtin part of a container, guarded.
  Py_ssize_t builtinLength(PyObject* container);
  /// All keys of a dict in order, as they were when the segment began, guarded.
  void guardKeys(PyObject* dict);
  /// What C code may look into: the object itself, or a copy with stand-ins for the tensors inside. The program must not get hold of a
  /// copy: original() gives its own object back.
  PyRef expose(PyObject* object);
  /// A result of C code with the program's own containers in the place of copies.
  PyRef original(PyRef value);
  /// The evaluator's value for what a container holds now (a real tensor gives its stand-in).
  PyRef translate(PyObject* element, const Source* source);

  const CaptureOptions& options() const { return options_; }
  /// The stand-in of a tensor of constant sizes that is an input of the graph, guarded.
  PyRef inputOfGraph(PyObject* tensor, const Source* source);
  /// The stand-in of a tensor that every run makes anew.
  PyRef inputDrawn(PyObject* tensor, const Source* source);

  // --- floats that change from call to call (run_time_numbers.cpp) -----------------------------------------------------
  /// The value stands for such a float: a 0-dimensional tensor of float64 that the program sees as a float.
  bool isNumber(PyObject* o) const { return !numbers_.empty() && numbers_.contains(o); }
  bool usedNumbers() const { return !numbers_.empty(); }
  /// Whether a break is for want of what a number is that changes from call to call.
  bool wantsNumber(const GraphBreak& why) const {
    return why.kind == kRunTimeNumber || (usesArrayNumbers_ && why.kind == trace::name(trace::BreakKind::DataDependent));
  }
  static constexpr const char* kRunTimeNumber = "run-time number";
  /// A break of that kind, after which the float is captured as the constant that it is in this call.
  [[noreturn]] void refuseNumber(const char* use);
  /// The same if `read`, an element of a container that C code will look into or move about, is one. Symbolic ints become constants there.
  void requireConstant(const PyRef& read);

  // --- symbolic ints (symbolic_values.cpp; symbolic_numbers.h says what they are) -------------------------------------------
  /// An int of the program that is an expression over the symbols of trace().shapes(); a plain one where it is a constant.
  PyRef symbolicInt(const graph::SymExpr& e);
  /// What C code will look at: a symbolic number, also in a slice, becomes a constant of the capture because of `use`; all else as it is.
  PyRef plainNumber(PyObject* object, std::string_view use);
  /// len(object).
  PyRef lengthOf(PyObject* object);

  // --- writes (slots_write.cpp): to what this segment made directly, to anything else through the journal ---------------
  /// Of the builtin part of a dict; `value` null deletes (KeyError if it is not there).
  bool storeKey(PyObject* dict, PyObject* key, PyObject* value) override;
  /// Of the builtin part of a list, by index or slice; `value` null deletes.
  bool storeElement(PyObject* list, PyObject* key, PyObject* value);
  bool append(PyObject* list, PyObject* item) override;
  bool addToSet(PyObject* set, PyObject* item) override;
  bool mergeIntoSet(PyObject* set, PyObject* whole) override;
  PyRef tupleOf(PyObject* sequence) override;
  void stored(PyObject* name, PyObject* value) override;
  void willUnbind(const Frame& frame, PyObject* value) override;
  /// Calls a method of a builtin list, set or deque, args[0], which changes it in a way that depends on the other arguments alone. What
  /// is stored stays the same object; the contents of other arguments must be theirs alone.
  PyRef mutate(PyObject* method, const CallArguments& a);
  bool clearDict(PyObject* dict);
  /// del dict[key] where `missing` says what is raised if it is not there.
  bool deleteKey(PyObject* dict, PyObject* key, const std::function<void()>& missing);
  bool moveToEnd(PyObject* orderedDict, PyObject* key, bool last);
  /// Whether a dict has a key, guarded; -1: error.
  int hasKey(PyObject* dict, PyObject* key);
  /// A list or set that was written to without a look at it: what it held at first is read now, and guarded.
  void readOriginal(PyObject* container);
  /// The same for how many it held.
  void guardOriginalLength(PyObject* container);
  void guardIdentity(PyObject* constant, bool withItself);
  bool isTensor(PyObject* object) const;
  bool isStandIn(PyObject* object) const;

  // --- guards -----------------------------------------------------------------------------------------------------
  void guard(GuardKind kind, const Source* source, PyObject* expected = nullptr, int64_t number = 0);
  /// `name` was, or will be, looked up on the type: nothing that decides the result has changed.
  void guardTypeAttribute(PyTypeObject* type, PyObject* name);
  /// A tensor that is looked for in a dict from outside: the program's own tensor in place of its stand-in, guarded to be that one. Other keys
  /// as they are. A break for what the segment computes, which no such dict has as a key.
  PyRef keyInDict(PyObject* dict, PyObject* key);
  /// What the hash and equality of a key depend on stays: identity where that is all, else what their Python code reads.
  void guardKey(PyObject* key);
  /// Whether a set from outside holds a tensor, with guards on both; -1: error.
  int setHoldsTensor(PyObject* set, PyObject* tensor);
  /// `predicate(value at source, expected)` holds; `text` says what, for people.
  void guardCustom(const Source* source, bool (*predicate)(PyObject*, PyObject*), PyObject* expected, const char* text);
  /// What torch.autograd.grad() in the segment takes for granted of an input: no other one is the same tensor, and no hook is on its gradient.
  void guardDerivativesOf(const Source* source);
  /// `ordered`: `contents` is in the order of the set itself, which a program that goes through it sees.
  void guardSetContents(PyObject* contents, const Source* source, bool ordered = true);
  /// The segment depends on where inputs lie in their storages, or on how far these reach: guarded when it ends.
  void requireOffsets() { readsOffsets_ = true; }
  void requireStorage() { readsStorage_ = true; }
  /// Before a function that was taken as known runs: its code and positional defaults stay what they are.
  void guardFunction(PyObject* function);
  SourceTable& sources() { return guards_->sources(); }

  // --- attributes (slots_attribute.cpp) -----------------------------------------------------------------------------
  /// PyObject_GenericGetAttr with provenance, starting the class search behind `after` in the MRO when given (super).
  /// `missing`: set instead of raising AttributeError.
  PyRef genericGetAttr(PyObject* object, PyObject* name, bool* missing = nullptr);
  bool genericSetAttr(PyObject* object, PyObject* name, PyObject* value);
  bool setClassAttr(PyObject* object, PyObject* name, PyObject* value);
  PyRef typeGetAttr(PyTypeObject* type, PyObject* name);
  /// The same without a __getattribute__ of the metaclass.
  PyRef plainTypeGetAttr(PyTypeObject* type, PyObject* name);
  PyRef classFallback(PyTypeObject* type, PyObject* name);
  /// A member of an enumeration; null without error when it has none of that name.
  PyRef enumMember(PyTypeObject* type, PyObject* name);
  /// An attribute that every function has, of a known one.
  PyRef functionPart(PyObject* function, PyObject* value, const Source* source, PyObject* name);
  PyRef moduleGetAttr(PyObject* module, PyObject* name);
  PyRef plainModuleGetAttr(PyObject* module, PyObject* name);
  /// What a module that lacks an attribute gives nevertheless: by its own __getattr__ or its class's.
  PyRef moduleFallback(PyObject* module, PyObject* name);
  PyRef tensorGetAttr(PyObject* object, PyObject* name);
  PyRef ownTensorAttribute(PyObject* object, PyObject* name);
  PyRef hiddenTensorAttribute(PyObject* object, PyObject* name);
  PyRef versionOf(PyObject* tensor);
  /// Whether this capture has written the attribute that a look-up in a class finds.
  bool isWrittenInClass(PyTypeObject* type, PyObject* name) const;
  /// cls.__dict__ (class_dicts.cpp).
  PyRef classDict(PyTypeObject* type);
  /// The mapping behind a mappingproxy, to be read as a whole.
  PyRef proxied(PyObject* proxy);
  /// proxy[key], KeyError where it lacks it.
  PyRef proxyItem(PyObject* proxy, PyObject* key);
  PyRef superGetAttr(PyObject* super, PyObject* name);
  /// What a look-up for `type` finds in class `holder`, of its MRO, where that is no descriptor. Without `holder`: where it lies first.
  PyRef heldByClass(PyTypeObject* type, PyTypeObject* holder, PyObject* name, PyObject* value);
  PyRef heldByClass(PyTypeObject* type, PyObject* name, PyObject* value);
  PyRef bindDescriptor(PyObject* descriptor, PyObject* object, PyTypeObject* type, PyObject* name);
  /// __dict__ of an instance as a known object; null without error when it has none.
  PyRef instanceDict(PyObject* object);
  /// Whether look-ups on instances follow object.__getattribute__ (a __getattr__ beside it is asked last).
  bool looksUpPlainly(PyTypeObject* type);
  /// A class attribute through the MRO, guarded; borrowed, null when absent.
  PyObject* typeLookup(PyTypeObject* type, PyObject* name);
  /// dict[name] guarded; null without error when absent (guarded too).
  PyRef readDict(PyObject* dict, PyObject* key);
  /// object[key] of a tuple or list (or what the builtin part of a subclass holds).
  PyRef tupleItem(PyObject* object, PyObject* key);
  void attributeError(PyObject* object, PyObject* name);
  /// The same where it was to be read: the error says of what.
  void attributeNotFound(PyObject* object, PyObject* name);

  // --- comparison, hash and text (slots_compare.cpp, slots_text.cpp) -------------------------------------------------
  /// A special method of the object's class that Python code defines; borrowed, or null. Of tensors: that the program defines.
  PyObject* pythonMethod(PyObject* object, const char* name);
  /// What the object's class of the program has under the name of a slot where that is neither a function nor the slot of a class in C
  /// (dict.setdefault as __setitem__, a staticmethod), bound to the object; null without error where there is no such thing.
  PyRef placedMethod(PyObject* object, const char* name);
  /// False: pythonMethod() finds none.
  bool mayBePython(PyObject* object);
  /// Whether the special methods of a class of tensors are torch's, guarded; those of others are evaluated.
  bool guardTorchsMethods(PyTypeObject* type);
  /// method(self, other); null with `*declined` when it answers NotImplemented.
  PyRef tryBinary(PyObject* method, PyObject* self, PyObject* other, bool* declined);
  /// Equality of elements of a container: identity first. -1: error.
  int equalElements(PyObject* a, PyObject* b);
  PyRef compareSequences(int op, PyObject* a, PyObject* b);
  int compareDicts(int op, PyObject* a, PyObject* b);
  /// What the hash and equality of a key depend on.
  enum class KeyKind : uint8_t { Plain, Address, Python };
  /// Guards it; `__hash__` in Python is evaluated.
  KeyKind readKey(PyObject* key);
  /// The key of the dict that equals `key` (or `key` itself where only C code compares); null without error when there is none.
  PyRef storedKey(PyObject* dict, PyObject* key);
  PyRef hashOf(PyObject* object);
  /// Of a key whose class says in Python how it is compared: C code would ask it about each element of that hash but itself.
  void refuseEqualHash(PyObject* set, PyObject* key);
  PyRef textOfContainer(PyObject* container);
  PyRef percent(PyObject* formatText, PyObject* arguments);
  /// str.format of `a` without its first argument, or str.format_map of `mapping` where that is given.
  PyRef formatFields(PyObject* formatText, const CallArguments& a, PyObject* mapping);

  // --- C code that calls Python back (callbacks.cpp) ------------------------------------------------------------------
  /// What C code may ask the objects it is given for.
  enum class Asks : uint8_t { Nothing, Numbers, Text, Keys };
  /// The special method in Python that such code would call on an object of its class; null: none.
  const char* callback(PyObject* object, Asks asks);
  /// The first such object among `object` and what it contains.
  PyObject* findCallback(PyObject* object, Asks asks, const char** method, int depth = 0);
  /// A break if there is one.
  void refuseCallbacks(PyObject* object, Asks asks);
  /// An index, or a tuple or slice of them, with objects that have __index__ in Python replaced by what it gives.
  PyRef plainIndex(PyObject* key);
  /// What a special method gave to C code, which wants a value of one type; a break where it is another one.
  PyRef expect(PyRef result, bool fits, const char* method);
  /// What the first of these special methods gives where it is Python's; the object itself where it is C's.
  PyRef numberOf(PyObject* object, std::initializer_list<const char*> methods);

  // --- calls (slots_call.cpp, module_protocol.cpp, callables_*.cpp) --------------------------------------------------
  PyRef call(PyObject* callable, const CallArguments& a) { return call(callable, a.args, a.positional, a.kwNames); }
  PyRef callFunction(PyObject* function, const CallArguments& a);
  /// Raises what CPython does for arguments that the callable does not take; a break if it takes them. Always false.
  bool refuseArguments(PyObject* callable, const CallArguments& a);
  PyRef callType(PyTypeObject* type, const CallArguments& a);
  /// type.__call__: __new__ and __init__, whatever the metaclass.
  PyRef construct(PyTypeObject* type, const CallArguments& a);
  PyRef callInstance(PyObject* object, const CallArguments& a);
  /// Mode(value); null without error where Python code has to decide.
  PyRef memberOfValue(PyTypeObject* type, const CallArguments& a);
  PyRef callCached(PyObject* wrapper, const CallArguments& a);
  PyRef evaluateCached(PyObject* wrapper, const CallArguments& a, PyRef* made);
  PyRef callModuleInstance(PyObject* module, PyObject* callMethod, const CallArguments& a, bool* handled);
  PyRef callMethodNamed(PyObject* object, const char* name, std::initializer_list<PyObject*> args);
  /// Runs a C callable (or a Python function that only computes with tensors) for real on exposed arguments; a break if it would
  /// call Python code of one of them.
  PyRef callReal(PyObject* callable, const CallArguments& a, Asks asks = Asks::Numbers);
  /// Whether a function of torch's Python code only computes with its tensor arguments and may be run by CPython. Guards what it calls.
  bool isTrusted(PyObject* function);
  /// The same of a builtin `__iter__`, called by name.
  PyRef iterBuiltin(PyObject* object, PyTypeObject* owner);
  /// Closes generators whose last reference went.
  void closeAbandoned();
  /// An exception leaves a frame: what it had on its stack goes now, what its locals hold when the exception does.
  void unwind(Frame& frame);
  IteratorPool& iterators() { return *iterators_; }
  /// requires_grad of a tensor from outside is set; a break where the graph cannot go on with it.
  void changeRequiresGrad(PyObject* tensor, PyObject* value);
  /// Keeps an object as long as the capture lasts.
  void keepAlive(PyRef object) { keepAlive_.push_back(std::move(object)); }
  /// What advances an iterator: it itself, or what stands in for one of the program's that Python code takes part in. Null: C code.
  LazyIterator* advancerOf(PyObject* iterator);
  /// A value that nobody has looked at is what is found there.
  RecipePtr unreadRecipe(const Source* source) const;
  const std::shared_ptr<IteratorPool>& iteratorPool() const { return iterators_; }
  /// Before C code may advance an object: an iterator from before this segment is left alone by a break.
  void willConsume(PyObject* object);
  /// The same without looking into the arguments.
  PyRef callRaw(PyObject* callable, const CallArguments& a);
  /// A result of C code: adopts what is new, gives BreakError its way.
  PyRef checked(PyObject* result);
  /// What `call`, of torch with these arguments, gives for checked(); the program hears its warnings as eager says them (torch_warnings.cpp).
  PyObject* heard(const CallArguments& a, const std::function<PyObject*(const CallArguments&)>& call);
  /// A tensor that requires a gradient and has no history cannot leave a graph: the segment would have to end before it.
  void noteLeaf(PyObject* tensor);
  /// The address of an object as id() gives it. What this segment makes has another when it runs, so an address may only
  /// be the key of a dict that this segment made (deepcopy's memo), which refuseAddress() sees to. That of an object that existed before is a
  /// number once the object is guarded to be that one.
  PyRef addressOf(PyObject* object);
  bool isAddress(PyObject* o) const { return !addresses_.empty() && PyLong_CheckExact(o) && addresses_.count(PyLong_AsVoidPtr(o)) > 0; }
  /// Also those inside of a tuple or frozenset of constants.
  void refuseAddress(PyObject* o) {
    if (addresses_.empty()) return;
    if (isAddress(o) && !settleAddress(o)) breakHere("identity", "the id of an object is used as a number", "Compare objects with `is`.");
    if (PyTuple_CheckExact(o) || PyFrozenSet_CheckExact(o)) refuseAddressesIn(o);
  }
  /// From here on an address is a constant. False: it is that of an object which this segment made.
  bool settleAddress(PyObject* address);
  /// The same of whatever says where an object lies.
  bool settleObject(PyObject* object);
  /// The same for the elements of a tuple or list and the keys of a set or dict, among which something else is looked for.
  void refuseAddressesIn(PyObject* container);
  /// A call that is made for real after the graph has run, in its place among the effects (deferred_calls.cpp). `observes`: it may run
  /// code that looks at what was written.
  void deferCall(PyObject* callable, const CallArguments& a, bool observes);
  /// Deferred calls write to this object: whoever meets it afterwards ends the segment. False: it has been met before.
  bool leaveToLaterCalls(PyObject* object, const char* what);
  /// The same call, made now, from a frame like the one that is evaluated. False: it raised.
  bool callNow(PyObject* callable, const CallArguments& a);
  /// Whether an exception that is raised here reaches an except or finally clause of this segment.
  bool insideTry() const;
  /// A guard of identity holds an object that has no weak references: one with __del__ is a break.
  void refuseToKeepAlive(PyObject* object);
  /// An instance of a class with __del__ lives and dies in CPython alone.
  void refuseFinalizer(PyTypeObject* type);
  /// The root instruction at which an exception was raised that a handler of this segment took; -1: none did.
  int64_t raisedAt(PyObject* exception) const;
  /// Runs a frame to its end.
  PyRef runFrame(std::unique_ptr<Frame> frame);
  /// The same for a call of `function`. Where one that torch.compiler.allow_in_graph marked cannot be followed, capture starts over and calls it
  /// as it is: CPython runs it once, on what stands for its arguments, and nothing guards what it reads.
  PyRef follow(PyObject* function, std::unique_ptr<Frame> frame);
  bool isCalledAsItIs(PyObject* function) const;
  PyRef callAsItIs(PyObject* function, const CallArguments& a);
  /// Runs until return, yield or error; the root frame counts instructions and may stop.
  int runUntilYield(Frame& frame, PyRef* result);
  Frame* frame() const { return frame_; }

  /// Before every instruction: ends a segment that has become too long, and lets signals of the program in.
  void countBytecode();
  void willTurn(Frame& frame, int target) override;
  const LongLoop* longLoopHere(const Frame& root) const;

  // --- breaks -------------------------------------------------------------------------------------------------------
  [[noreturn]] void breakHere(std::string kind, std::string reason, std::string hint = {});
  [[noreturn]] void breakHere(const trace::BreakError& error);  ///< which tracing raised, and nobody else will ask for
  /// Throws if a C call stopped at something that cannot be traced; the error indicator is cleared.
  void throwIfBreak();
  Place place() const;
  std::vector<Place> stackPlaces() const;
  /// Where the callers of the innermost frame are, shared between the guards made there; null in the root frame.
  std::shared_ptr<const std::vector<Place>> callerPlaces() const;

  // --- the segment (evaluator.cpp, recipes.cpp) -----------------------------------------------------------------------
  Result<Segment> run(int64_t stopAt, std::optional<GraphBreak> why);
  int64_t rootCount() const { return rootCount_; }
  /// What was just evaluated is this process's own although no guard can say so (a hash of a text): other processes evaluate it themselves.
  void ownToProcess(const char* what) { ofProcess_ = what; }
  /// The same of the order of a set, where it is one of the hashes' seed.
  void readOrder(PyObject* set);
  /// A transform's level is entered: capture cannot stop before it is left again, except in front of this root instruction.
  void noteTransform();
  /// Calls of autograd.Function.
  FunctionCalls& functions() { return *functions_; }
  /// What a backend in Python will be given; null for the engine's own backends.
  TorchCalls* torchCalls() { return torchCalls_.get(); }
  /// Arrays of numpy that stand for tensors of the graph.
  Arrays& arrays() { return *arrays_; }
  FunctionModes& functionModes() { return *functionModes_; }
  /// What is asked of generators of random numbers.
  RandomDraws& draws() { return *draws_; }
  InferenceBlocks& inferenceBlocks() { return *inferenceBlocks_; }
  const StandIns& standIns() const { return *standIns_; }
  /// Whether an operator that is written in Python has been called.
  bool calledPython() const { return pythonOpAt_ >= 0; }
  /// An argument that a binding of torch hands on, as the program gave it.
  PyRef fromTorchCall(PyRef argument) { return original(fromTorch(std::move(argument))); }
  /// nn.Module instances under call, outermost first.
  const std::vector<PyObject*>& modulesUnderCall() const { return modules_; }
  std::string modulePath(PyObject* module);
  /// How much this evaluation has done so far to what existed before.
  struct Effects {
    int64_t writes = 0;
    size_t logged = 0;
    bool operator==(const Effects&) const = default;
  };
  Effects effectsSoFar() const;
  /// The exception that was being handled when the segment began; borrowed, null: none.
  PyObject* handledBefore() const { return handled_.get(); }
  const GuardSet& guardSet() const { return *guards_; }
  Journal& journal() { return journal_; }
  trace::TraceContext& trace() { return *trace_; }
  /// Expressions of the ints from outside that are none, by where they are read.
  const std::unordered_map<const Source*, graph::SymExpr>& symbolicIntegers() const;
  /// What a debugger has seen of this evaluation (debug_stops.cpp).
  struct DebugState {
    bool repeats = false;        ///< a later attempt at the same segment: nothing new
    bool told = false;           ///< of the break that ends it
    int baseDepth = -1;          ///< frames of the program below the root frame
    std::vector<int> lines;      ///< that the root frame and each inlined one is in
  };
  DebugState watch;

 private:
  friend class RecipeMaker;
  struct Modes;
  const Source* unreadSource(const Frame& f, size_t local) { return f.unreadSource[local] ? f.unreadSource[local] : sources().local(static_cast<int>(local)); }
  /// An iterator that existed before: looked ahead of while capturing, advanced when the graph has run.
  struct Ahead {
    PyRef iterator;
    const Source* source = nullptr;  ///< of `rest`
    PyRef rest;
    bool exhausted = false;
    std::vector<PyRef> parts;        ///< it and the iterators inside it, which nothing else may advance
  };
  std::vector<std::unique_ptr<Ahead>> ahead_;
  mutable std::vector<std::pair<const PyCodeObject*, int>> lastCallers_;  ///< code and instruction, of lastCallerPlaces_
  mutable std::shared_ptr<const std::vector<Place>> lastCallerPlaces_;
  Ahead& aheadOf(PyObject* iterator, const Source* source);
  void requireUnwritten(const Ahead& a);
  PyRef nextOutside(PyObject* iterator, const Source* source);
  void assignParts(Frame& root, PyObject* value, const Source* source);
  /// Before an instruction of the root frame: what it may look at on the stack is read.
  void readOperands(Frame& root);
  PyRef wrapTensor(PyObject* object, const Source* source);
  /// Guards what a wrapper (tensor_subclasses.h) says of itself, and gives it, or the one that stands for it while some of its sizes are symbols.
  PyRef wrapWrapper(PyObject* object, const Source* source);
  /// What is computed with in the place of an object that was met before.
  PyRef insteadOf(PyObject* object, const Origin& known) const;
  PyRef wrapNumber(PyObject* object, const Source* source);
  PyRef symbolOfArrayNumber(PyObject* number, const Source* source, PyObject* standIn);
  PyRef wrapIntegers(PyObject* object, const Source* source);
  std::unordered_map<const Source*, PyRef> integersAt_;
  struct Unread {
    PyRef original;
    const Source* source = nullptr;
  };
  bool usesArrayNumbers_ = false;  ///< some number of numpy's is a value of the graph
  std::unordered_map<PyObject*, Unread> unread_;  ///< tuples of constants that the program may not have looked at, by their copies
  std::unordered_map<const Source*, PyRef> unreadAt_;
  /// The arguments of a call of C code, settled.
  struct Settled {
    Settled(Evaluation& e, const CallArguments& a);
    CallArguments arguments;
    bool isOther = false;  ///< than the given ones

   private:
    std::vector<PyRef> keep_;
    std::vector<PyObject*> args_;
  };
  PyRef asNumber(PyRef value);
  PyRef numberBinary(int op, PyObject* a, PyObject* b);
  /// A number that is read from a tensor on the CPU, as one that changes from call to call; null: it stays what it is.
  PyRef asReadNumber(PyObject* number);
  PyRef numberUnary(Op op, PyObject* a);
  /// Whether such floats are among the arguments; a break unless the callable computes with them.
  bool requireTakesNumbers(PyObject* callable, const CallArguments& a);
  /// What a function of torch's that takes numbers is given for a float that data decide; null: it is none, or there is nothing that means the same.
  PyRef readNumberFor(PyObject* callable, PyObject* argument);
  /// A break where a rule would take such a float for the tensor that stands for it.
  void refuseNumbersAsTensors(PyObject* callable, const CallArguments& a);
  std::unordered_map<PyObject*, PyRef> numbers_;
  std::unordered_map<const Source*, PyRef> numberAt_;
  bool exposesNumbers_ = false;  ///< to an operator that computes with them
  /// The operator where one operand is a symbolic number; nullopt: the other one's class may define it in Python.
  std::optional<PyRef> symbolicBinary(int op, PyObject* a, PyObject* b);
  std::optional<PyRef> symbolicCompare(int op, PyObject* a, PyObject* b);
  bool sameSymbolic(PyObject* a, PyObject* b);
  PyRef symbolicGetAttr(PyObject* object, PyObject* name);
  /// Whether symbolic numbers themselves are among the arguments; the call with constants in their place.
  bool givesNumbers(const CallArguments& a) const;
  PyRef withPlainNumbers(PyObject* callable, const CallArguments& a, const char* use);
  /// Whether symbolic ints, or tensors with symbolic sizes, are among the arguments.
  bool givesSymbols(const CallArguments& a) const;
  /// Whether the cells of functions around one hold such.
  bool hasSymbolsInCells(PyObject* function) const;
  /// A symbolic number as torch's binding takes it.
  PyRef toTorch(PyObject* number);
  /// What torch's binding gives: torch.SymInt, also in a tuple, list or torch.Size, becomes what the program sees.
  PyRef fromTorch(PyRef value);
  PyRef exposeSlice(PyObject* slice);
  bool exposesSymbols_ = false;  ///< to torch, which computes with them; other C code gets constants
  struct ExposingSymbols {
    bool& flag;
    bool before;
    ExposingSymbols(Evaluation& e, bool now) : flag(e.exposesSymbols_), before(std::exchange(e.exposesSymbols_, now)) {}
    ~ExposingSymbols() { flag = before; }
    ExposingSymbols(const ExposingSymbols&) = delete;
  };
  void guardValue(PyObject* object, const Source* source);
  /// Before C code looks into an object: a break if what it finds there could change unnoticed.
  void requireKnown(PyObject* object);
  void guardMethodOf(PyObject* method, const Source* source);
  /// The object that a builtin method is bound to, as the program sees it.
  PyRef selfOf(PyObject* method);
  struct Deeper;
  int exposing_ = 0;  ///< containers that are being exposed, each inside the one before
  PyRef exposeSequence(PyObject* object);
  PyRef exposeDict(PyObject* object);
  PyRef copied(PyObject* object, PyRef copy);
  /// The iterator of a builtin container or of a view of a dict, by the class whose __iter__ it is; null for others.
  /// Membership by equality of elements.
  int containsElement(PyObject* container, PyObject* item);
  PyRef walkOver(PyObject* object, PyTypeObject* type);
  /// `self` set: for a call, where a method is not bound, so that nothing more refers to the iterator.
  PyRef lazyGetAttr(PyObject* object, PyObject* name, PyRef* self);
  bool bindArguments(Frame& frame, PyObject* function, const CallArguments& a);
  PyRef callNew(PyTypeObject* type, const CallArguments& a);
  bool callInit(PyObject* object, PyTypeObject* type, const CallArguments& a);
  /// What was written must not be reached under the name of something else next time.
  void guardWritesAgainstAliases();
  Segment finish(Frame& root, Segment::Exit exit, std::optional<GraphBreak> why);
  graph::Provenance provenance();

  /// Before the contents of a container from outside change. Breaks if they cannot be journaled.
  void openForWriting(PyObject* container);
  PyRef changeInPlace(int op, PyObject* a, PyObject* b);
  /// `withSelf`: the first argument is the object of a bound method.
  PyRef applyRule(CallRule rule, PyObject* callable, const CallArguments& a, bool withSelf = false);
  bool holdsItsOwn(const Frame& root, size_t i);
  void leaveFrame(const Frame& root, RecipeMaker& recipes, Segment& segment);
  void attachGraph(RecipeMaker& recipes, Segment& segment);
  /// A generator that ends at an unknown place: nothing may be left to run when the segment ends, but of those that are made again.
  void requireNoneSuspended(const RecipeMaker* recipes = nullptr);
  const FrameState& state_;
  CaptureOptions options_;
  std::shared_ptr<GuardSet> guards_;
  OriginTable origins_;
  Journal journal_;
  std::unique_ptr<trace::TraceContext> trace_;
  std::unique_ptr<SymbolicInputs> symbolicInputs_;
  std::unique_ptr<Modes> entryModes_;
  std::unique_ptr<FunctionCalls> functions_;
  std::unique_ptr<TorchCalls> torchCalls_;
  std::unique_ptr<Arrays> arrays_;
  std::unique_ptr<FunctionModes> functionModes_;
  std::unique_ptr<ExchangedData> exchangedData_;
  std::unique_ptr<SwitchedLeaves> switchedLeaves_;
  std::unique_ptr<StandIns> standIns_;
  std::unique_ptr<RandomDraws> draws_;
  std::unique_ptr<TakenIterators> takenIterators_;
  std::unique_ptr<InferenceBlocks> inferenceBlocks_;
  std::unique_ptr<Frame> root_;
  Frame* frame_ = nullptr;
  const char* ofProcess_ = nullptr;
  struct Hooked {
    PyRef tensor, history;
    int64_t at;  ///< root instruction that sets the hook
  };
  /// Assignment to `grad` of a leaf from outside.
  bool setGrad(PyObject* tensor, PyObject* value);
  std::unordered_map<PyObject*, PyRef> grads_;  ///< of tensors from outside to which the program has assigned one
  std::vector<Hooked> hooked_;
  struct HookedLeaf {
    PyRef tensor, hook;
    int64_t at;
  };
  std::vector<HookedLeaf> hookedLeaves_;
  void requireHistories() const;
  void requireNoCycles(RecipeMaker& recipes) const;
  int64_t rootCount_ = 0, stopAt_ = -1, bytecodes_ = 0, frames_ = 0;
  int depth_ = 0;
  int64_t lastRaise_ = -1;  ///< root instruction at which the last exception that a handler of the root frame took was raised
  PyRef raised_;                 ///< the exception that left a frame last
  std::vector<Place> raisedAt_;  ///< and where it was raised, outermost first
  void noteRaise();
  int64_t transformAt_ = -1;  ///< root instruction that entered the first transform that is not left
  int64_t pythonOpAt_ = -1;   ///< root instruction that called the first operator written in Python
  int64_t firstLeaf_ = -1;  ///< root instruction that made the first leaf that requires a gradient; -1: none
  int64_t writes_ = 0;      ///< writes to what existed before, so far
  PyRef handled_;  ///< the exception that was being handled when the segment began
  std::unordered_map<PyObject*, int64_t> caught_;  ///< exceptions that handlers took, kept alive, and the root instruction then
  std::unordered_set<PyTypeObject*> guardedTypes_;
  std::unordered_set<PyObject*> guardedFunctions_;
  std::vector<std::pair<PyRef, const char*>> writtenLater_;  ///< by deferred calls, and what they are
  bool readsOffsets_ = false, readsStorage_ = false;
  std::unordered_map<void*, int64_t> addresses_;  ///< what id() gave, and the root instruction that asked first
  std::vector<PyRef> keepAlive_;
  std::unordered_set<PyObject*> pinnedNumbers_;  ///< numbers that were taken as known without a place: others may be the same object
  std::unordered_map<PyObject*, std::pair<PyRef, PyRef>> copies_;  ///< by copy: the copy, and what it is one of
  struct Holder {
    PyObject* object;
    bool isMissed;  ///< a weak reference notices its end, or that of something it holds
  };
  std::vector<Holder> holders_;  ///< in the frame when the segment began: generators, and what holds one
  void findHolders(const Frame& root);
  void refuseDrops(const Frame& root);
  void refuseOtherOrder(const Frame& root);
  /// Before elements of a dict or set are removed or moved: taking that back would leave iterators from outside at other places.
  void refuseMoving(PyObject* container);
  std::shared_ptr<IteratorPool> iterators_ = std::make_shared<IteratorPool>();
  std::vector<PyObject*> modules_;  ///< nn.Module instances under call, outermost first
  /// Places of the program by the frames that are there, innermost first: code and instruction.
  std::map<std::vector<std::pair<PyObject*, int>>, std::shared_ptr<const std::vector<graph::SourceLine>>> stacks_;
};

/// Rules by name, resolved once a process: by PyMethodDef of C functions and methods, by object for everything else.
CallRule ruleOf(PyObject* callable);
/// What kinds of C callables of torch are called on stand-ins without a rule of their own.
bool isTorchBinding(PyObject* callable);
/// A torch.Size of the elements of a tuple; with symbolic ints, which isSymbolicSize() tells.
PyRef newSize(PyObject* tuple);
bool isSymbolicSize(PyObject* object);
/// CPython's binary operator by NB_ number.
PyObject* evaluateBinary(int op, PyObject* a, PyObject* b);

/// Before C code hashes `given`, or what lies in a tuple or list, as elements of a set or keys of a dict: what that asks of the program is read.
void readElements(Evaluation& e, PyObject* given);
/// An element of a container from outside goes, or an attribute of a class, and perhaps the object with it, which other code of the program would notice.
void refuseLoss(Evaluation& e, PyObject* element);

}  // namespace fusebox::capture
