// Remedies for failing guards, one rule a table row.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <cstdlib>
#include <iterator>

#include "engine/support/text.h"
#include "profiler/query/advice.h"
#include "profiler/query/call_site.h"
#include "profiler/query/guard_difference.h"
#include "profiler/query/python_line.h"

namespace fusebox::query {
namespace {

// Stock traces seldom say what was found.
std::string unknown() { return say(FUSEBOX_TEXT("Advice", "something else")); }

bool isTensorGuard(const GuardProblem& p) {
  return p.kind.find("TENSOR_MATCH") != std::string::npos ||
         (p.text.starts_with("tensor '") && p.text.find("mismatch") != std::string::npos);
}

std::string sourceOf(const GuardProblem& p) {
  return p.source.empty() ? say(FUSEBOX_TEXT("Advice", "the tensor")) : p.source;
}

using Out = std::vector<Advice>;

/// The diff that marks all of these before the call; none where one of them is no name there.
std::string markAll(const GuardProblem& p, const std::vector<GuardProblem::Size>& marks, Sources& sources) {
  std::string text, file;
  int line = 0;
  for (const auto& size : marks) {
    GuardProblem other = p;
    other.source = size.source;
    const auto site = callSite(other, sources);
    if (!site || !isIdentifier(site->argument)) return {};
    file = site->file, line = site->line;
    text += fmt::format("{}{}torch._dynamo.mark_dynamic({}, {})", text.empty() ? "" : "\n", indentOf(site->lineText), site->argument, size.dim);
  }
  return sources.diff(file, {{LineEdit::Kind::InsertBefore, line, text}});
}

/// Sizes that have entries of their own whatever is marked.
bool isApart(std::string_view size) { return size == "0" || size == "1"; }

/// `change` is a sentence: what the size was and is.
Advice adviseApart(std::string_view size, const std::string& change) {
  return {say(FUSEBOX_TEXT("Advice", "Expect an entry of its own for size {}"), size),
          change + " " + say(FUSEBOX_TEXT("Advice",
                                          "Sizes 0 and 1 are compiled apart whatever is marked dynamic: what has one element "
                                          "broadcasts. It is one entry more; call the function with both sizes before it has to be quick, or pad to 2.")),
          {}};
}

Advice adviseMark(const GuardProblem& p, Sources& sources, const TensorChange& change, const std::string& dims) {
  std::vector<GuardProblem::Size> marks;
  for (const int dim : change.dims) marks.push_back({p.source, dim});
  std::string others;
  for (const auto& size : p.sizes) {
    if (size.source == p.source) continue;
    marks.push_back(size);
    others += (others.empty() ? "" : ", ") + say(FUSEBOX_TEXT("Advice", "dimension {} of {}"), size.dim, size.source);
  }
  Advice mark{say(FUSEBOX_TEXT("Advice", "Mark the dimension dynamic")),
              say(FUSEBOX_TEXT("Advice",
                               "One entry then serves every size of dimension {} of {} (0 and 1 stay entries of "
                               "their own). Call it on the tensor before the compiled function sees it."),
                  dims, sourceOf(p)),
              markAll(p, marks, sources)};
  if (!others.empty()) (mark.text += ' ') += say(FUSEBOX_TEXT("Advice", "Mark also what changed with it, or that makes the function compile again: {}."), others);
  return mark;
}

/// Compiled code cannot mark what it hands on.
Advice adviseMarkOutside(const GuardProblem& p, const std::string& source) {
  return {say(FUSEBOX_TEXT("Advice", "Mark what the program hands in")),
          say(FUSEBOX_TEXT("Advice",
                           "Compiled code hands {} on. A tensor that the program passes at {}:{} can be marked before that line with "
                           "torch._dynamo.mark_dynamic. One that compiled code computes cannot be: it compiles once more, and then any size fits."),
              source, p.entrance.file, p.entrance.line),
          {}};
}

void adviseSize(const GuardProblem& p, Sources& sources, const TensorChange& change, Out& out) {
  const std::string source = sourceOf(p);
  const std::string dims = fmt::format("{}", fmt::join(change.dims, ", "));
  const auto apart = std::find_if(change.numbers.begin(), change.numbers.end(), [&](const auto& n) { return isApart(n.first) || isApart(n.second); });
  if (apart != change.numbers.end()) {
    const int dim = change.dims[static_cast<size_t>(apart - change.numbers.begin())];
    out.push_back(adviseApart(isApart(apart->first) ? apart->first : apart->second,
                              say(FUSEBOX_TEXT("Advice", "Dimension {} of {} was {}, now {}."), dim, source, apart->first, apart->second)));
    return;
  }
  const Advice option{say(FUSEBOX_TEXT("Advice", "Compile with dynamic shapes from the start")),
                      say(FUSEBOX_TEXT("Advice",
                                       "dynamic=True makes every size symbolic at the first compile, so no second one is needed to "
                                       "find out what varies. Kernels for symbolic sizes can be a little slower.")),
                      compileWith(p, sources, "dynamic=True", "dynamic")};
  if (p.isInside || p.isResumed) {
    out.push_back(option);
    if (!p.entrance.file.empty()) out.push_back(adviseMarkOutside(p, source));
  } else {
    const bool isAlone = std::all_of(p.sizes.begin(), p.sizes.end(), [&](const auto& size) { return size.source == p.source; });
    const Advice mark = adviseMark(p, sources, change, dims);
    // Where an argument has no name to be marked by, the option does it for all of them.
    if (isAlone || !mark.diff.empty()) out.insert(out.end(), {mark, option});
    else out.insert(out.end(), {option, mark});
  }
  if (change.dims.size() == 1 && change.dims[0] == 0) {
    std::string diff = dropLast(sources);
    if (!diff.empty())
      out.push_back(
          {say(FUSEBOX_TEXT("Advice", "Drop the last, smaller batch")),
           say(FUSEBOX_TEXT("Advice",
                            "If the odd size is the end of an epoch, every batch has the same size without it.")),
           std::move(diff)});
  }
  if (p.engine != kStock) {
    const long long least = std::min(std::atoll(change.from.c_str()), std::atoll(change.to.c_str()));
    const uint64_t fitting = std::bit_ceil(static_cast<uint64_t>(std::clamp(least, 1LL, 1LL << 40)));
    out.push_back(
        {say(FUSEBOX_TEXT("Advice", "Pad to a few sizes")),
         say(FUSEBOX_TEXT(
                 "Advice",
                 "Where the size must stay a number (see the shapes of the entry): dimension {} of {} was {}, now {}. Padding it to the "
                 "next of a few fixed sizes ({}, {}, {}, …) bounds the number of entries; mask what was added."),
             dims, source, change.from, change.to, fitting, 2 * fitting, 4 * fitting),
         {}});
  }
}

void adviseTensor(const GuardProblem& p, Sources& sources, Out& out) {
  const TensorChange change = changeOf(p);
  using What = TensorChange::What;
  const std::string source = sourceOf(p);
  switch (change.what) {
    case What::Size:
      return adviseSize(p, sources, change, out);
    case What::Rank:
      out.push_back(
          {say(FUSEBOX_TEXT("Advice", "Give the tensor the same number of dimensions")),
           say(FUSEBOX_TEXT("Advice",
                            "{} had {} dimensions, now {}. Each number is a program of its own: add the missing "
                            "dimension with unsqueeze(0) or view(), or compile one function for each."),
               source, change.from, change.to),
           {}});
      return;
    case What::Dtype:
      out.push_back(
          {say(FUSEBOX_TEXT("Advice", "Cast where the function is called")),
           say(FUSEBOX_TEXT("Advice",
                            "{} was {}, now {}. If both mean the same to the model, a cast outside keeps one entry."),
               source, change.from, change.to),
           rewriteArgument(p, sources, "", fmt::format(".to(torch.{})", change.from))});
      return;
    case What::Device:
      out.push_back({say(FUSEBOX_TEXT("Advice", "Move the tensor where the function is called")),
                     say(FUSEBOX_TEXT("Advice", "{} was on {}, now on {}. Code is made for one device."), source,
                         change.from, change.to),
                     rewriteArgument(p, sources, "", fmt::format(".to(\"{}\")", change.from))});
      return;
    case What::Stride:
      out.push_back({say(FUSEBOX_TEXT("Advice", "Make the tensor contiguous where the function is called")),
                     say(FUSEBOX_TEXT("Advice",
                                      "Its elements lay with strides {}, now {}: a view, a transpose or a slice came "
                                      "in. contiguous() copies only if it has to."),
                         change.from, change.to),
                     rewriteArgument(p, sources, "", ".contiguous()")});
      return;
    case What::Gradient:
      out.push_back(
          {say(FUSEBOX_TEXT("Advice", "Expect an entry with a gradient and one without")),
           say(FUSEBOX_TEXT(
                   "Advice",
                   "requires_grad of {} was {}, now {}: with and without a backward are two programs, compiled once each. Where one call gets "
                   "data and the next what was computed from it (layers in a loop), compile the function that makes these calls: it is one "
                   "program. Where no gradient is wanted, make all calls under torch.no_grad(). Do not detach what was computed: training would "
                   "not reach what is before it."),
               source, change.from, change.to),
           {}});
      return;
    case What::Keys:
    case What::None:
      out.push_back({say(FUSEBOX_TEXT("Advice", "Pass the same kind of tensor")),
                     say(FUSEBOX_TEXT("Advice",
                                      "{}: expected {}, found {}. Subclasses, inference tensors, and tensors inside "
                                      "functorch transforms are different programs."),
                         source, p.expected, p.found),
                     {}});
  }
}

bool isNumber(const std::string& text) {
  if (text.empty()) return false;
  char* end = nullptr;
  std::strtod(text.c_str(), &end);
  return end && *end == '\0';
}

/// "scale" of L['self'].scale; empty for sources that are no attribute.
std::string attributeOf(const std::string& source) {
  const size_t dot = source.rfind('.');
  const std::string name = dot == std::string::npos ? std::string() : source.substr(dot + 1);
  return isIdentifier(name) ? name : std::string();
}

void adviseNumber(const GuardProblem& p, Sources& sources, Out& out) {
  if (p.takesAny) {
    out.push_back({say(FUSEBOX_TEXT("Advice", "Expect one entry more")),
                   say(FUSEBOX_TEXT("Advice",
                                    "{} was {}, now {}. A number is a constant until a second value of it comes; the entry that was made then takes any "
                                    "value. Only what the program decides by it makes further ones."),
                       p.source, p.expected, p.found),
                   {}});
    return;
  }
  if (!p.use.empty()) {
    out.insert(out.end(), p.use.begin(), p.use.end());
    return;
  }
  const std::string attribute = attributeOf(p.source);
  if (!attribute.empty() && p.source.starts_with("L['self']")) {
    out.push_back(
        {say(FUSEBOX_TEXT("Advice", "Make {} a buffer, if it is only calculated with"), attribute),
         say(FUSEBOX_TEXT(
                 "Advice",
                 "{} was {}, now {}: an entry for each. As a tensor it is an input, and one entry serves all values: self.register_buffer(\"{}\", "
                 "torch.tensor({})) in __init__, and self.{}.fill_(value) wherever it is assigned. Where `if`, `range`, an index or a size needs "
                 "it, it must stay a number: a tensor would break the graph there."),
             p.source, p.expected, p.found, attribute, p.expected, attribute),
         {}});
    return;
  }
  out.push_back(
      {say(FUSEBOX_TEXT("Advice", "Pass a tensor, if it is only calculated with")),
       say(FUSEBOX_TEXT("Advice",
                        "{} was {}, now {}: an entry for each. As an argument that is a tensor of no dimensions it is an input, and one entry serves all "
                        "values. Where `if`, `range`, an index or a size needs it, it must stay a number: a tensor would break the graph there."),
           p.source, p.expected, p.found),
       {}});
  if (p.engine == kStock && p.expected.find_first_of(".en") == std::string::npos) {
    out.push_back(
        {say(FUSEBOX_TEXT("Advice", "Let the integer be dynamic")),
         say(FUSEBOX_TEXT("Advice", "With dynamic=True integers become symbols at the first compile.")),
         compileWith(p, sources, "dynamic=True", "dynamic")});
  }
}

void adviseConstant(const GuardProblem& p, Sources& sources, Out& out) {
  if (attributeOf(p.source) == "training") {
    out.push_back({say(FUSEBOX_TEXT("Advice", "Train and evaluate with an entry each")),
                   say(FUSEBOX_TEXT(
                       "Advice",
                       "train() and eval() are two programs and need one entry each; that is two compiles in all, not "
                       "one for every switch. Nothing to change unless the module is switched inside of a step.")),
                   {}});
    return;
  }
  if (isNumber(p.expected) && (p.found == unknown() || isNumber(p.found))) return adviseNumber(p, sources, out);
  out.push_back({say(FUSEBOX_TEXT("Advice", "Decide outside of the compiled function")),
                 say(FUSEBOX_TEXT("Advice",
                                  "{} was {}, now {}. Each value of a string, flag or None that is read, not only handed on, is a program of its own: "
                                  "fine for a few, else make the choice before the call and compile what is chosen."),
                     p.source.empty() ? p.text : p.source, p.expected, p.found),
                 {}});
}

void adviseGlobalState(const GuardProblem& p, Sources&, Out& out) {
  out.push_back({say(FUSEBOX_TEXT("Advice", "Call it in one mode")),
                 say(FUSEBOX_TEXT("Advice",
                                  "{}. Grad mode, autocast, default dtype and deterministic mode are part of the "
                                  "program: enter the context outside in the same way each time, or compile one "
                                  "function for training and one for evaluation."),
                     p.found == unknown() ? p.text : say(FUSEBOX_TEXT("Advice", "{}, now {}"), p.expected, p.found)),
                 {}});
}

void adviseIdentity(const GuardProblem& p, Sources&, Out& out) {
  out.push_back(
      {say(FUSEBOX_TEXT("Advice", "Make the object once")),
       say(FUSEBOX_TEXT(
               "Advice",
               "{} is another object than when it was compiled. Functions, lambdas, partials and modules that are made "
               "anew for each call never match: make them at module level or in __init__ and pass the same one."),
           p.source.empty() ? p.text : p.source),
       {}});
}

void adviseType(const GuardProblem& p, Sources&, Out& out) {
  out.push_back(
      {say(FUSEBOX_TEXT("Advice", "Pass one type")),
       say(FUSEBOX_TEXT(
               "Advice",
               "{}: expected {}, found {}. Convert before the call, or give each type its own compiled function."),
           p.source, p.expected, p.found),
       {}});
}

void adviseLength(const GuardProblem& p, Sources&, Out& out) {
  out.push_back({say(FUSEBOX_TEXT("Advice", "Keep the number of items")),
                 say(FUSEBOX_TEXT("Advice",
                                  "{}: {}, now {}. Loops over Python containers are unrolled, so each length is a "
                                  "program. Stack the items into one tensor, or pad the container to a fixed length."),
                     p.source.empty() ? p.text : p.source, p.expected, p.found),
                 {}});
}

void adviseDict(const GuardProblem& p, Sources&, Out& out) {
  out.push_back(
      {say(FUSEBOX_TEXT("Advice", "Create the keys and attributes beforehand")),
       say(FUSEBOX_TEXT("Advice",
                        "{}: {}, now {}. State that appears at the first call (caches, hooks, optimizer state) makes "
                        "the second call another program: create it in __init__, or run one step before compiling."),
           p.source.empty() ? p.text : p.source, p.expected, p.found),
       {}});
}

void adviseAliasing(const GuardProblem&, Sources&, Out& out) {
  out.push_back({say(FUSEBOX_TEXT("Advice", "Do not pass one tensor twice")),
                 say(FUSEBOX_TEXT("Advice",
                                  "Two arguments that are the same tensor are a program of their own, since writes "
                                  "through one are seen through the other. Where the function writes to neither, pass a clone() of one.")),
                 {}});
}

void adviseClass(const GuardProblem& p, Sources&, Out& out) {
  out.push_back({say(FUSEBOX_TEXT("Advice", "Finish the class before the first call")),
                 say(FUSEBOX_TEXT("Advice",
                                  "An attribute of the class behind {} was set after the compile. Patch classes before "
                                  "the compiled function runs."),
                     p.source),
                 {}});
}

/// "L['n'] == 3, asked by …": the code holds for one number, not for a range.
bool isConstantSize(const std::string& expected) {
  const size_t at = expected.find(" == ");
  if (at == std::string::npos || expected.starts_with('(')) return false;
  const size_t end = expected.find_first_not_of("-0123456789", at + 4);
  return end != at + 4 && (end == std::string::npos || expected[end] == ',');
}

/// Whether the program itself asks ("asked by a comparison of the program"), or about something that is no size: its branches are programs.
bool isBranch(const std::string& expected) {
  const size_t asked = expected.find(", asked by ");
  const std::string_view by = asked == std::string::npos ? std::string_view() : std::string_view(expected).substr(asked);
  if (by.find("comparison") != std::string_view::npos || by.find("condition") != std::string_view::npos) return true;
  return expected.find(".size()[") == std::string::npos && expected.find(".stride()[") == std::string::npos;
}

/// "2 <= x.size()[0] <= 2147483647": a size of any number, but for those that are apart.
bool isWholeRange(const std::string& relation) {
  constexpr long long kAnyNumber = (1LL << 31) - 1;
  return relation.starts_with("2 <= ") && std::atoll(relation.c_str() + relation.rfind(' ')) >= kAnyNumber;
}

void adviseShape(const GuardProblem& p, Sources& sources, Out& out) {
  if (isWholeRange(p.expected)) {
    out.push_back(adviseApart(say(FUSEBOX_TEXT("Advice", "0 or 1")), p.expected + "."));
    return;
  }
  if (isConstantSize(p.expected)) {
    out.push_back({say(FUSEBOX_TEXT("Advice", "Move what needs the number out of the compiled function")),
                   say(FUSEBOX_TEXT("Advice", "This line needs the number, not a symbol for it. Compute its result before the call and pass it, or make it an operator on tensors.")),
                   {}});
    return;
  }
  if (isBranch(p.expected)) {
    out.push_back(adviseBranch());
    return;
  }
  out.push_back({say(FUSEBOX_TEXT("Advice", "Say the range beforehand")),
                 say(FUSEBOX_TEXT("Advice",
                                  "{}: a symbolic size left the range that it was compiled for (0 and 1 always do). "
                                  "torch._dynamo.mark_dynamic(x, dim, min=…, max=…) before the first call fixes the "
                                  "range; a size of 1 needs an entry of its own."),
                     p.text),
                 {}});
  if (p.engine == kStock) {
    out.push_back({say(FUSEBOX_TEXT("Advice", "Compile with dynamic shapes from the start")),
                   say(FUSEBOX_TEXT("Advice", "dynamic=True makes every size symbolic at the first compile.")),
                   compileWith(p, sources, "dynamic=True", "dynamic")});
  }
}

/// "L['x'].size()[0] (s0) >= 2", found "L['x'].size()[0] = 1".
void adviseRange(const GuardProblem& p, Sources& sources, Out& out) {
  const std::string_view size = std::string_view(p.found).substr(p.found.rfind(' ') + 1);
  if (!isApart(size)) return adviseShape(p, sources, out);
  out.push_back(adviseApart(size, p.found + "."));
}

struct GuardRule {
  const char* kind;  ///< part of the kind
  void (*advise)(const GuardProblem&, Sources&, Out&);
};
constexpr GuardRule kGuardRules[] = {
    {"SHAPE", adviseShape},
    {"SYMBOL_RANGE", adviseRange},
    {"GLOBAL_STATE", adviseGlobalState},
    {"GRAD_MODE", adviseGlobalState},
    {"TORCH_FUNCTION_MODE", adviseGlobalState},
    {"DEFAULT_DEVICE", adviseGlobalState},
    {"DETERMINISTIC", adviseGlobalState},
    {"AUTOCAST", adviseGlobalState},
    {"NO_TENSOR_ALIASING", adviseAliasing},
    {"NOT_SAME_OBJECT", adviseAliasing},
    {"OBJECT_ALIASING", adviseAliasing},
    {"DUPLICATE_INPUT", adviseAliasing},
    {"SEQUENCE_LENGTH", adviseLength},
    {"LENGTH_CHECK", adviseLength},
    {"TUPLE_ITERATOR_LEN", adviseLength},
    {"RANGE_ITERATOR", adviseLength},
    {"DICT", adviseDict},
    {"HASATTR", adviseDict},
    {"EMPTY_NN_MODULE", adviseDict},
    {"TYPE_VERSION", adviseClass},
    {"TYPE_MATCH", adviseType},
    {"CONSTANT_MATCH", adviseConstant},
    {"EQUALS_MATCH", adviseConstant},
    {"BOOL_FALSE", adviseConstant},
    {"NAN", adviseConstant},
    {"ID_MATCH", adviseIdentity},
    {"CODE_MATCH", adviseIdentity},
    {"WEAKREF", adviseIdentity},
    {"SAME_OBJECT", adviseIdentity},
    {"CLOSURE_MATCH", adviseIdentity},
    {"FUNCTION_MATCH", adviseIdentity},
};

/// "2 <= x.size()[0] <= 32", "(step % 3) != 0": what PyTorch asks of symbolic sizes and numbers.
bool isRelation(const std::string& text) {
  constexpr const char* kSigns[] = {".size()[", ".stride()[", " % ", " != ", " < ", " <= ", " > ", " >= "};
  return std::any_of(std::begin(kSigns), std::end(kSigns), [&](const char* sign) { return text.find(sign) != std::string::npos; });
}

/// PyTorch's reasons often come as the check's expression alone.
std::string kindOfText(const std::string& text) {
  constexpr std::pair<const char*, const char*> kForms[] = {{"len(", "SEQUENCE_LENGTH"},
                                                            {"___check_type_id", "TYPE_MATCH"},
                                                            {"___check_obj_id", "ID_MATCH"},
                                                            {"___dict_contains", "DICT_CONTAINS"},
                                                            {"hasattr(", "HASATTR"},
                                                            {"dict.keys", "DICT_KEYS"},
                                                            {"GLOBAL_STATE changed", "GLOBAL_STATE"},
                                                            {" == ", "EQUALS_MATCH"},
                                                            {" is ", "ID_MATCH"}};
  for (const auto& [form, kind] : kForms) {
    if (text.find(form) != std::string::npos) return kind;
  }
  return {};
}

}  // namespace

std::vector<Advice> adviseGuard(const GuardProblem& problem, Sources& sources) {
  Out out;
  GuardProblem p = problem;
  if (p.expected.empty()) p.expected = say(FUSEBOX_TEXT("Advice", "as captured"));
  if (p.found.empty()) p.found = unknown();
  if (isTensorGuard(p)) {
    adviseTensor(p, sources, out);
  } else {
    if ((p.kind.empty() || p.kind == "LAMBDA_GUARD") && isRelation(p.text)) p.kind = "SHAPE", p.expected = p.text;
    if (p.kind.empty()) p.kind = kindOfText(p.text);
    for (const GuardRule& rule : kGuardRules) {
      if (p.kind.find(rule.kind) == std::string::npos) continue;
      rule.advise(p, sources, out);
      break;
    }
  }
  if (p.outcome == "limit") {
    Advice limit{say(FUSEBOX_TEXT("Advice", "Raise the limit")),
                 say(FUSEBOX_TEXT("Advice",
                                  "The frame runs in eager from here on. A higher limit allows more entries; it does "
                                  "not make their number finite, and every entry is checked before a miss.")),
                 {}};
    const std::string path = sources.paths().empty() ? std::string() : p.codeFile;
    limit.diff = sources.diff(path, afterTorchImport(sources.lines(path), "torch._dynamo.config.recompile_limit = 32"));
    out.push_back(std::move(limit));
  }
  if (out.empty()) {
    out.push_back({say(FUSEBOX_TEXT("Advice", "Keep it as it was")),
                   say(FUSEBOX_TEXT("Advice",
                                    "{}: expected {}, found {}. What changes between calls is best passed as a tensor "
                                    "argument; what does not change is best made once, before the first call."),
                       p.text, p.expected, p.found),
                   {}});
  }
  return out;
}

}  // namespace fusebox::query
