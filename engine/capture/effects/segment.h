#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/aot/aot_function.h"
#include "engine/capture/guards/guard.h"
#include "engine/capture/cpython/py_ref.h"
#include "engine/capture/evaluation/number_expr.h"
#include "engine/capture/evaluation/source.h"

namespace fusebox::capture {

/// The state of a Python frame between two instructions: enough to start capturing there, to execute one instruction, or to
/// hand the frame back to CPython.
struct FrameState {
  PyRef function;             ///< PyFunctionObject
  PyCodeObject* code = nullptr;
  std::vector<PyRef> locals;  ///< localsplus: arguments, locals, cells (cell objects, if MAKE_CELL has run), free variables
  std::vector<PyRef> stack;   ///< value stack, bottom first; a null PyRef stands for CPython's NULL
  int offset = 0;             ///< next instruction, in code units
};

/// How to make a Python object after the graph has run. A recipe that several places share is built once per call (`id`).
struct Recipe {
  enum class Kind : uint8_t {
    GraphOutput,   ///< result `index` of the graph (a tensor)
    FromSource,    ///< the object at `source` as the frame was entered
    Constant,      ///< `object` itself: immutable, or an object whose identity matters and that no capture made
    Handled,       ///< the exception that is handled when the segment begins, of which nothing has been read
    Null,          ///< CPython's NULL (unbound local, stack filler)
    Tuple, List, Set, FrozenSet, Slice,  ///< from children; a set with an `object`: a copy of that, with its layout
    Dict,          ///< children: key, value, key, value …
    Instance,      ///< object.__new__(type `object`) without __init__; children: key, value … of its __dict__; `slots`: of
                   ///< its __slots__; if the type derives from a builtin container, `base` is the recipe of the contents
    Cell,          ///< new cell; child 0 its contents (Null for an empty one)
    Function,      ///< new function: children code, globals, closure tuple, kFunctionParts, dict; Null: what a new function has anyway
    BoundMethod,   ///< children function, self
    Partial,       ///< functools.partial: children function, args tuple, keywords dict
    Iterator,      ///< iter(child 0) advanced by `index`
    Call,          ///< children callable, args tuple, kwargs dict: a pure constructor in eager (super, mappingproxy, …); a 4th child goes to the result's __setstate__
    Expression,    ///< the int or float `number` of the values that the call's symbols have
    Parameterised, ///< GraphOutput whose Python class is `object` (as_subclass), or what `base` makes; children: attributes, as of an Instance
  } kind = Kind::Constant;
  int64_t index = -1;
  const Source* source = nullptr;
  HeldRef object;
  std::vector<std::shared_ptr<Recipe>> children;
  std::vector<std::pair<HeldRef, std::shared_ptr<Recipe>>> slots;  ///< of an Instance or a Parameterised: descriptor of a C member and its value
  std::shared_ptr<Recipe> base;
  std::shared_ptr<const NumberRecipe> number;  ///< of an Expression
  int32_t id = -1;
};
using RecipePtr = std::shared_ptr<Recipe>;

/// Attributes of a function that a program may set, in the order of a Function recipe's children.
inline constexpr const char* kFunctionParts[] = {"__name__", "__qualname__", "__module__", "__doc__", "__defaults__", "__kwdefaults__",
                                                 "__annotations__"};

/// A write to an object that existed before the frame, or a call, carried out after the graph, in program order. What may raise is
/// decided while capturing (a key that is deleted is guarded to be there); only calls raise here.
struct SideEffect {
  enum class Kind : uint8_t {
    SetAttr,      ///< target.__dict__[key] = value, without calling Python; DelAttr: nothing if the key is not there
    DelAttr,
    SetSlot,      ///< C member `key` (a str) of target, or attribute of a class, = value
    DelSlot,
    SetItem,      ///< target[key] = value of the builtin part of a dict or list; `key` of a list may be a slice
    DelItem,      ///< of a dict: nothing if the key is not there
    SetCell,      ///< target cell's contents = value, or nothing
    Method,       ///< key(target, *value): a method of a builtin container that cannot raise
    AdvanceIterator, ///< next() on target `number` times
    AskCache,     ///< value is a Call recipe: a cached function (functools.lru_cache) is asked for what it remembers, and counts it
    Call,         ///< value is a Call recipe: print, logging, warnings that were put off until after the graph, at instruction `number`
  } kind = Kind::SetAttr;
  RecipePtr target, key, value;
  int64_t number = 0;
};

/// A call of a generator of random numbers, made before the graph runs. Where the segment is given up for the program, the generator has the state
/// that it had before.
struct Draw {
  RecipePtr generator, call;
  enum class Gives : uint8_t { Nothing, Float, Int, Array, Tensor } gives = Gives::Nothing;  ///< Array: or a number of numpy's
  const Source* number = nullptr;  ///< the graph's input that has what the call gives, pinned to a tensor of its type and sizes; null: Nothing
  int64_t index = -1;              ///< of `number` among the entry's sources; -1: nobody uses it
};

/// Why and where capture stopped before the frame's end.
struct GraphBreak {
  std::string kind;    ///< "data-dependent branching", "unsupported call", …
  std::string reason;  ///< what happened, naming the object or operator
  std::string hint;    ///< what the user can do
  Place place;
  std::vector<Place> stack;  ///< user's stack, outermost first, when the break was inside inlined callees
  bool isError = false;      ///< torch._dynamo.error_on_graph_break(True) held there
};

/// Modes of libtorch that a segment leaves different from how it found them (a break inside `with torch.no_grad()`).
struct ModeChange {
  std::optional<bool> gradMode;
  /// Called (C++) after the graph and before the next instruction; null: nothing to do.
  std::function<void()> apply;
};

/// One captured stretch of a frame: guards, graph, and what to do after the graph.
struct Segment {
  std::shared_ptr<GuardSet> guards;
  std::vector<const Source*> graphInputs;      ///< tensors handed to the graph, in order
  std::shared_ptr<aot::AotModule> graph;       ///< null when no tensor operation was seen
  std::vector<size_t> torchNumbers;            ///< symbols whose values come after these, for a backend in Python
  PyRef torchGraph;                            ///< in the place of `graph`, for a backend in Python: fusebox._torch_calls.TorchGraph
  size_t torchResults = 0;                     ///< tensors that what the backend makes of it gives
  std::vector<std::pair<size_t, int>> torchData;  ///< the last of them: symbol whose value it has, as the size of that dimension; -1: as its element
  bool torchWrites = false;                    ///< to memory that was there before it, which its inputs may share
  std::vector<graph::Relation> torchAssumptions;  ///< of these symbols
  bool torchMayRepeat = false;                 ///< it may be run again by the program where it raises, and some of it is inside `try` or assumes something of data
  std::vector<Draw> draws;
  std::vector<SideEffect> effects;
  enum class Exit : uint8_t {
    Return,     ///< `result` is the frame's value
    Break,      ///< continue at `offset` with `locals` and `stack`; the instruction there must be executed for real first
  } exit = Exit::Return;
  RecipePtr result;
  std::vector<RecipePtr> locals, stack;
  std::vector<bool> rebound;                   ///< with Return: locals that no longer hold what they held when the segment began
  int offset = 0;
  ModeChange modes;
  RecipePtr handled;                           ///< the exception under handling, where the segment leaves another than it found
  std::optional<GraphBreak> graphBreak;        ///< with Break
  int64_t bytecodes = 0, frames = 0;           ///< interpreted while capturing
  const char* ofProcess = nullptr;             ///< what of it only this process may rely on; null: nothing
};

/// Captures from `state` on until the frame ends or breaks. Never changes the program's state: every write made while
/// capturing is undone. `breakAt`: offsets of the root frame where to break (forced breaks for tests).
/// Implemented by the evaluator (engine/capture/evaluation/evaluator.cpp).
struct SymbolicPolicy;
/// A loop that is not followed turn by turn.
struct LongLoop {
  int offset = 0;          ///< of the instruction that it jumps back to
  bool isPythons = false;  ///< it does hardly anything with tensors: CPython runs it, and what comes after it
  GraphBreak why;
};
using LongLoops = std::vector<LongLoop>;

struct CaptureOptions {
  bool fullgraph = false;
  aot::CompilerTraits compiler;
  PyObject* functionBackend = nullptr;  ///< a backend in Python (RegionOptions::function)
  int32_t compile = 0; ///< id in the active recording, for the stages inside
  int breakEvery = 0;  ///< force a break at every k-th root instruction that may break (0: never); for tests
  /// Sources of texts that changed between calls: a local one is not guarded before it is read.
  const std::set<std::string>* changedTexts = nullptr;
  /// Sources of floats that changed between calls: values of the graph where the frame is captured whole with them, else constants.
  const std::set<std::string>* runTimeNumbers = nullptr;
  bool floatsAreSymbols = false;  ///< those are numbers that guards compute with: slower to check than values of the graph, and good for all that Python does
  bool* numbersRefused = nullptr;  ///< set where they were constants after all
  SymbolicPolicy* symbolic = nullptr;  ///< which sizes and ints are symbols; null: none
  bool inputsShareMemory = false;  ///< TraceContext::setInputsShareMemory
  bool assumesOfData = true;  ///< for a backend in Python: that numpy warns of nothing may be assumed
  LongLoops* longLoops = nullptr;  ///< known ones of the code object, and where those that are met go; null: every loop is followed to its end
  int64_t loopOperators = 0;       ///< what makes one long
  bool endsAtSetUp = false;   ///< where objects of the program have been set up (CaptureBreak::first), SetUp is thrown instead of starting over
};
struct SetUp {};
Result<Segment> captureSegment(const FrameState& state, const CaptureOptions& options);

/// Executes the one instruction at `state.offset` for real (a call may run any Python code, hooked as usual), following
/// exception handlers of the frame.
struct StepOutcome {
  enum class Kind : uint8_t { Continue, Returned, Raised, Unsupported } kind = Kind::Continue;
  PyRef value;  ///< Returned: the result. Raised: nothing; the Python error indicator is set.
  bool reraised = false;  ///< Raised: what the frame had handled before, and hands on
};
StepOutcome executeInstruction(FrameState& state);

}  // namespace fusebox::capture
