// Remedies for graph breaks, one rule a table row.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "engine/support/text.h"
#include "profiler/query/advice.h"
#include "profiler/query/python_line.h"

namespace fusebox::query {
namespace {

/// A text without the names of the program in it, which say nothing of the kind: prepare_for_backward, numpy.linalg.svd.
std::string withoutNames(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t length = std::min(text.find(' '), text.size());
    std::string_view word = text.substr(0, length);
    text.remove_prefix(std::min(length + 1, text.size()));
    while (!word.empty() && std::string_view(".,:;").find(word.back()) != std::string_view::npos) word.remove_suffix(1);
    if (word.find_first_of("._") == std::string_view::npos) (out += word) += ' ';
  }
  return out;
}

/// A break with the line that it happened on.
struct Place {
  const BreakProblem& problem;
  Sources& sources;
  std::string line;
  std::string_view code;  ///< the line without comment and indentation

  std::string replaced(const std::string& text) const {
    return sources.diff(problem.file, {{LineEdit::Kind::Replace, problem.line, text}});
  }
  std::string indent() const { return std::string(indentOf(line)); }
};

using Out = std::vector<Advice>;

std::string configDiff(const Place& at, const std::string& setting) {
  return at.sources.diff(at.problem.file, afterTorchImport(at.sources.lines(at.problem.file), setting));
}

void adviseExplicit(const Place& at, Out& out) {
  if (!StackPlace{at.problem.file, {}, at.problem.line}.isUsers()) {
    out.push_back({say(FUSEBOX_TEXT("Advice", "Leave it, or call what needs it outside")),
                   say(FUSEBOX_TEXT("Advice", "A library asks for the break, with torch._dynamo.graph_break() in what this line calls: there is nothing to remove in the program. "
                                              "What the library calls next is compiled by itself.")),
                   {}});
    return;
  }
  std::string diff;
  if (at.code.find("graph_break()") != std::string_view::npos && callsOn(at.code).size() == 1)
    diff = at.sources.diff(at.problem.file, {{LineEdit::Kind::Remove, at.problem.line, {}}});
  out.push_back({say(FUSEBOX_TEXT("Advice", "Remove the call")),
                 say(FUSEBOX_TEXT("Advice", "The break was asked for by torch._dynamo.graph_break().")),
                 std::move(diff)});
}

/// The line chooses what Python does next, so a tensor in its place would be read all the same.
bool decides(std::string_view code) {
  return code.starts_with("if ") || code.starts_with("while ") || code.starts_with("elif ") ||
         code.starts_with("assert ") || code.find(" if ") != std::string_view::npos;
}

/// The condition as a tensor: without .item(); empty where Python's own operators would read it.
std::string tensorCondition(std::string_view text) {
  std::string condition(text);
  for (const char* word : {" and ", " or ", "not ", " in ", " is "})
    if (condition.find(word) != std::string::npos) return {};
  constexpr std::string_view kItem = ".item()";
  for (size_t at; (at = condition.find(kItem)) != std::string::npos;) condition.erase(at, kItem.size());
  return condition;
}

/// `if condition:` with one assignment below and no else, as one torch.where; empty for anything else.
std::string whereDiff(const Place& at) {
  if (!at.code.starts_with("if ") || !at.code.ends_with(":")) return {};
  const auto lines = at.sources.lines(at.problem.file);
  const auto index = static_cast<size_t>(at.problem.line);  // of the line below
  if (index >= lines.size()) return {};
  const std::string_view body = codeOf(lines[index]);
  if (indentOf(lines[index]).size() <= at.indent().size()) return {};
  size_t next = index + 1;
  while (next < lines.size() && codeOf(lines[next]).empty()) ++next;
  if (next < lines.size() &&
      (indentOf(lines[next]).size() > at.indent().size() || codeOf(lines[next]).starts_with("el")))
    return {};
  const size_t sign = body.find(" = ");
  if (sign == std::string_view::npos || !isIdentifier(body.substr(0, sign))) return {};
  const std::string name(body.substr(0, sign)), value(body.substr(sign + 3)),
      condition = tensorCondition(at.code.substr(3, at.code.size() - 4));
  if (condition.empty()) return {};
  return at.sources.diff(at.problem.file,
                         {{LineEdit::Kind::Replace, at.problem.line,
                           fmt::format("{}{} = torch.where({}, {}, {})", at.indent(), name, condition, value, name)},
                          {LineEdit::Kind::Remove, at.problem.line + 1, {}}});
}

void adviseDataDependent(const Place& at, Out& out);

void adviseItem(const Place& at, Out& out) {
  if (decides(at.code)) return adviseDataDependent(at, out);
  constexpr std::string_view kItem = ".item()";
  std::string text = at.line, diff;
  // What else takes the number may take no tensor.
  const size_t sign = at.code.find(" = ");
  const bool isAssigned = sign != std::string_view::npos && isIdentifier(at.code.substr(0, sign)) && at.code.ends_with(kItem);
  if (isAssigned) diff = at.replaced(text.erase(text.rfind(kItem), kItem.size()));
  out.push_back(
      {say(FUSEBOX_TEXT("Advice", "Keep the value in a tensor")),
       say(FUSEBOX_TEXT("Advice",
                        "A Python number needs the tensor's data, so the graph must run up to here. As a tensor of no "
                        "dimensions the value stays in the graph; read it with .item() outside, where it is logged.")),
       std::move(diff)});
  if (at.problem.engine == kStock) {
    out.push_back(
        {say(FUSEBOX_TEXT("Advice", "Let scalars be captured")),
         say(FUSEBOX_TEXT("Advice",
                          "PyTorch can carry the number as an unbacked symbol. Conditions on it break all the same.")),
         configDiff(at, "torch._dynamo.config.capture_scalar_outputs = True")});
  }
}

void adviseDataDependent(const Place& at, Out& out) {
  if (!decides(at.code) && at.line.find(".item()") != std::string::npos) return adviseItem(at, out);
  if (at.code.starts_with("if ") || at.code.starts_with("while ") || at.code.starts_with("elif ") ||
      at.code.find(" if ") != std::string_view::npos) {
    out.push_back({say(FUSEBOX_TEXT("Advice", "Compute both sides and choose")),
                   say(FUSEBOX_TEXT("Advice",
                                    "The condition is tensor data, which is not known while compiling. torch.where "
                                    "evaluates both sides and keeps one graph; torch.cond traces both and runs one.")),
                   whereDiff(at)});
    return;
  }
  if (at.code.starts_with("assert ")) {
    const std::string condition = tensorCondition(at.code.substr(7));
    out.push_back({say(FUSEBOX_TEXT("Advice", "Check on the device")),
                   say(FUSEBOX_TEXT(
                       "Advice", "assert looks at tensor data. torch._assert_async checks it as part of the graph.")),
                   at.code.find(',') == std::string_view::npos && !condition.empty()
                       ? at.replaced(fmt::format("{}torch._assert_async({})", at.indent(), condition))
                       : std::string()});
    return;
  }
  out.push_back(
      {say(FUSEBOX_TEXT("Advice", "Leave the decision in tensors")),
       say(FUSEBOX_TEXT("Advice",
                        "Something turns tensor data into a Python value here (bool, int, tolist, formatting, "
                        "comparing). Use tensor operations, or do it after the compiled function.")),
       {}});
}

void adviseOutput(const Place& at, Out& out) {
  Advice guarded{
      say(FUSEBOX_TEXT("Advice", "Print only outside of compiled code")),
      say(FUSEBOX_TEXT(
          "Advice",
          "Output that needs a computed value ends the graph. Under is_compiling() the line stays for eager runs.")),
      {}};
  const auto calls = callsOn(at.code);
  if (!calls.empty() && calls[0].begin == 0 && calls[0].close + 1 == at.code.size()) {
    guarded.diff = at.replaced(
        fmt::format("{}if not torch.compiler.is_compiling():\n{}    {}", at.indent(), at.indent(), at.code));
  }
  out.push_back(std::move(guarded));
  if (at.problem.engine == kStock && !calls.empty() && calls[0].begin == 0) {
    const std::string setting = fmt::format("torch._dynamo.config.reorderable_logging_functions.add({})", calls[0].callee);
    out.push_back(
        {say(FUSEBOX_TEXT("Advice", "Let it run after the graph")),
         say(FUSEBOX_TEXT("Advice", "{} before the first call: functions that this setting holds are called when the graph has run, in order."), setting),
         configDiff(at, setting)});
  }
}

void adviseDynamicShape(const Place& at, Out& out) {
  out.push_back(
      {say(FUSEBOX_TEXT("Advice", "Keep the shape independent of data")),
       say(FUSEBOX_TEXT("Advice",
                        "nonzero, unique, masked indexing and repeat_interleave make a size out of data. "
                        "torch.where(mask, x, 0), a sum over a mask, or an upper bound with padding keep one shape.")),
       {}});
  if (at.problem.engine == kStock) {
    out.push_back({say(FUSEBOX_TEXT("Advice", "Let such operators be captured")),
                   say(FUSEBOX_TEXT("Advice", "The result gets an unbacked size.")),
                   configDiff(at, "torch._dynamo.config.capture_dynamic_output_shape_ops = True")});
  }
}

void adviseDataAccess(const Place&, Out& out) {
  out.push_back(
      {say(FUSEBOX_TEXT("Advice", "Convert after the compiled function")),
       say(FUSEBOX_TEXT("Advice",
                        "numpy(), data_ptr(), tolist() and pickling need memory that a traced tensor does not have. "
                        "Return the tensor and convert outside, or write it with tensor operations.")),
       {}});
}

void adviseImport(const Place& at, Out& out) {
  std::string diff;
  if (!at.indent().empty() && (at.code.starts_with("import ") || at.code.starts_with("from "))) {
    auto edits = afterTorchImport(at.sources.lines(at.problem.file), std::string(at.code));
    if (!edits.empty()) {
      edits.push_back({LineEdit::Kind::Remove, at.problem.line, {}});
      diff = at.sources.diff(at.problem.file, std::move(edits));
    }
  }
  out.push_back(
      {say(FUSEBOX_TEXT("Advice", "Import at the top of the file")),
       say(FUSEBOX_TEXT(
           "Advice",
           "The first import of a module runs its code, which cannot be traced; the second only reads a name.")),
       std::move(diff)});
}

void adviseDisabled(const Place&, Out& out) {
  out.push_back(
      {say(FUSEBOX_TEXT("Advice", "Take the mark away, or call it outside")),
       say(FUSEBOX_TEXT(
           "Advice",
           "The function is marked torch.compiler.disable, so it always runs in Python, between two graphs.")),
       {}});
}

void adviseBackward(const Place&, Out& out) {
  out.push_back({say(FUSEBOX_TEXT("Advice", "Call backward() outside of the compiled function")),
                 say(FUSEBOX_TEXT("Advice",
                                  "Return the loss. Its backward is compiled with the forward; only the walk over "
                                  "gradients belongs to Python.")),
                 {}});
}

void adviseSideEffect(const Place&, Out& out) {
  out.push_back({say(FUSEBOX_TEXT("Advice", "Return the new value")),
                 say(FUSEBOX_TEXT("Advice",
                                  "The line changes an object that existed before in a way that cannot be put off "
                                  "until after the graph. Return the value and store it outside.")),
                 {}});
}

void adviseUnsupportedCall(const Place&, Out& out) {
  out.push_back({say(FUSEBOX_TEXT("Advice", "Call it before or after")),
                 say(FUSEBOX_TEXT("Advice",
                                  "Its code is not Python or cannot be followed. If its result does not depend on "
                                  "tensors, compute it before and pass it in.")),
                 {}});
  out.push_back({say(FUSEBOX_TEXT("Advice", "Make it an operator")),
                 say(FUSEBOX_TEXT("Advice",
                                  "torch.library.custom_op with register_fake tells the compiler its shapes; the call "
                                  "then stays in the graph.")),
                 {}});
}

void adviseSubclass(const Place&, Out& out) {
  out.push_back({say(FUSEBOX_TEXT("Advice", "Unwrap the tensor")),
                 say(FUSEBOX_TEXT("Advice",
                                  "Tensor subclasses with their own __torch_function__ and named tensors run Python "
                                  "for every operator. Pass the plain tensor, and wrap the result outside.")),
                 {}});
}

void adviseIterator(const Place&, Out& out) {
  out.push_back({say(FUSEBOX_TEXT("Advice", "Pass a list")),
                 say(FUSEBOX_TEXT("Advice",
                                  "The iterator was made before this part of the function: outside of it, or before an earlier break (mend that one "
                                  "first). How far it has come is hidden. A list can be followed: list(iterator) before the call, or [x for x in y].")),
                 {}});
}

void adviseGenerator(const Place&, Out& out) {
  out.push_back({say(FUSEBOX_TEXT("Advice", "Build a list")),
                 say(FUSEBOX_TEXT("Advice",
                                  "A generator that lives across a break would have to be frozen in the middle. A list "
                                  "comprehension has no such state.")),
                 {}});
}

void adviseInput(const Place&, Out& out) {
  out.push_back({say(FUSEBOX_TEXT("Advice", "Work on a copy")),
                 say(FUSEBOX_TEXT("Advice",
                                  "Inputs that share memory, or that are resized or given other storage, cannot be "
                                  "written back. clone() the input, or do the change outside.")),
                 {}});
}

void adviseException(const Place&, Out& out) {
  out.push_back({say(FUSEBOX_TEXT("Advice", "Raise outside of the compiled function")),
                 say(FUSEBOX_TEXT("Advice",
                                  "The frame ends in an exception, so there is no graph to return from. Check what can "
                                  "fail before the call.")),
                 {}});
}

void adviseSize(const Place&, Out& out) {
  out.push_back({say(FUSEBOX_TEXT("Advice", "Compile less at once")),
                 say(FUSEBOX_TEXT("Advice",
                                  "Very long loops and deep recursion are unrolled into one graph. Compile the loop's "
                                  "body instead of the loop.")),
                 {}});
}

void adviseIdentity(const Place&, Out& out) {
  out.push_back({say(FUSEBOX_TEXT("Advice", "Compare with `is`")),
                 say(FUSEBOX_TEXT("Advice",
                                  "id() and text that contains an address differ from object to object, so nothing can "
                                  "be compiled for them.")),
                 {}});
}

void adviseBytecode(const Place&, Out& out) {
  out.push_back({say(FUSEBOX_TEXT("Advice", "Write it in another way")),
                 say(FUSEBOX_TEXT("Advice",
                                  "The instruction is not followed: async code, generators as compiled functions and "
                                  "exception groups run in Python. Compile the function that is called from there.")),
                 {}});
}

/// Where a rule's word stands. Names of functions are no words of the reason.
enum class WordOf { Kind, Reason, Name };

struct BreakRule {
  const char* word;
  void (*advise)(const Place&, Out&);
  WordOf where = WordOf::Reason;  ///< Reason: or in the kind
};
// The first that fits counts: more special words stand before more general ones.
constexpr BreakRule kBreakRules[] = {
    {"explicit graph break", adviseExplicit},
    {"torch._dynamo.graph_break", adviseExplicit, WordOf::Name},
    {"Tensor.item()", adviseItem, WordOf::Name},
    {"data-dependent shape", adviseDynamicShape},
    {"Dynamic shape operator", adviseDynamicShape},
    {"Dynamic slicing", adviseDynamicShape},
    {"`print`", adviseOutput},
    {"print of", adviseOutput},
    {"output that depends", adviseOutput},
    {"logging.", adviseOutput, WordOf::Name},
    {"Print outside", adviseOutput},
    {"a tensor is formatted", adviseOutput},
    {"ata-dependent", adviseDataDependent},
    {"data access", adviseDataAccess},
    {"numpy", adviseDataAccess, WordOf::Kind},
    {"disabled function", adviseDisabled},
    {"torch.compiler.disable", adviseDisabled, WordOf::Name},
    {"backward", adviseBackward, WordOf::Kind},
    {"import", adviseImport, WordOf::Kind},
    {"side effect", adviseSideEffect},
    {"Mutat", adviseSideEffect},
    {"tensor subclass", adviseSubclass},
    {"named tensor", adviseSubclass},
    {"iterator from outside", adviseIterator},
    {"generator", adviseGenerator, WordOf::Kind},
    {"input aliasing", adviseInput},
    {"input mutation", adviseInput},
    {"bytecode", adviseBytecode},
    {"exception", adviseException, WordOf::Kind},
    {"recursion", adviseSize},
    {"too much Python", adviseSize},
    {"long loop", adviseSize},
    {"identity", adviseIdentity, WordOf::Kind},
    {"unsupported call", adviseUnsupportedCall},
    {"unsupported operator", adviseUnsupportedCall},
    {"skipped function", adviseUnsupportedCall},
    {"builtin", adviseUnsupportedCall},
};

bool applies(const BreakRule& rule, const BreakProblem& p) {
  const auto holds = [&](const std::string& text) { return text.find(rule.word) != std::string::npos; };
  if (holds(p.kind)) return true;
  return rule.where != WordOf::Kind && holds(rule.where == WordOf::Name ? p.reason : withoutNames(p.reason));
}

/// What happens inside of a library, whose lines are nobody's here to change.
void adviseLibrary(const BreakProblem& p, Out& out) {
  const auto user = std::find_if(p.stack.rbegin(), p.stack.rend(), [](const StackPlace& place) { return place.isUsers(); });
  const auto isParallel = [](const StackPlace& place) { return place.file.ends_with("torch/nn/parallel/distributed.py"); };
  if (p.engine != kStock && std::any_of(p.stack.rbegin(), user, isParallel)) {
    out.push_back({say(FUSEBOX_TEXT("Advice", "Compile the module, then wrap it")),
                   say(FUSEBOX_TEXT("Advice",
                                    "The break is in what DistributedDataParallel does around the module: its hooks and counters are no part of a graph. "
                                    "DistributedDataParallel(torch.compile(module)) compiles the module alone and has none of these breaks.")),
                   {}});
    return;
  }
  out.push_back({say(FUSEBOX_TEXT("Advice", "Leave it, or compile what lies around it")),
                 say(FUSEBOX_TEXT("Advice",
                                  "It happens inside of a library that this line calls, so there is no line of the program to change. What comes before and "
                                  "after is compiled all the same. Where it is passed often, call it outside of the compiled function, or compile the "
                                  "parts that do not need it.")),
                 {}});
}

}  // namespace

std::vector<Advice> adviseBreak(const BreakProblem& problem, Sources& sources) {
  Place at{problem, sources, sources.line(problem.file, problem.line), {}};
  at.code = codeOf(at.line);
  Out out;
  // The whole line may say more than the reason: print(x.item()) is best moved, not rewritten.
  const bool isUsers = problem.file.empty() || StackPlace{problem.file, {}, problem.line}.isUsers();
  if (isUsers && (at.code.starts_with("print(") || at.code.starts_with("logging.") || at.code.starts_with("warnings.warn("))) {
    adviseOutput(at, out);
  } else {
    const auto rule = std::find_if(std::begin(kBreakRules), std::end(kBreakRules), [&](const BreakRule& r) { return applies(r, problem); });
    const bool isAsked = rule != std::end(kBreakRules) && rule->advise == adviseExplicit;
    if (!isUsers && !isAsked) adviseLibrary(problem, out);
    else if (rule != std::end(kBreakRules)) rule->advise(at, out);
  }
  if (!problem.hint.empty()) out.push_back({say(FUSEBOX_TEXT("Advice", "What the compiler says")), problem.hint, {}});
  if (out.empty()) {
    out.push_back(
        {say(FUSEBOX_TEXT("Advice", "Move the line out of the compiled function")),
         say(FUSEBOX_TEXT("Advice",
                          "Nothing more is known about this reason. Before or after the call it costs no break; "
                          "torch.compiler.disable on a function of its own makes the break a deliberate one.")),
         {}});
  }
  return out;
}

}  // namespace fusebox::query
