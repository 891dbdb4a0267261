// Remedies for numbers that became constants, and for relations that failed: one rule a table row.
#include <fmt/format.h>

#include "engine/support/text.h"
#include "profiler/query/shapes.h"

namespace fusebox::query {
namespace {

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return out;
}

/// A rule applies where `kind` is the row's (empty: any) and `word` occurs in what needed the number, or in its line.
struct Rule {
  std::string_view kind, word;
  Text title, text;
};

constexpr Text kBranchTitle = FUSEBOX_TEXT("Advice", "Decide before the call, or put both sides into the graph");
constexpr Text kBranchText = FUSEBOX_TEXT("Advice", "The branch depends on a size or a number, so each side is an entry of its own. That is two compiles, once. Where it is one too "
                                                    "many, decide outside of the compiled function, or use torch.where or torch.cond.");

const Rule kSpecialised[] = {
    {"number", "range(", FUSEBOX_TEXT("Advice", "Replace the loop over a size by an operator"),
     FUSEBOX_TEXT("Advice", "A loop over range() is unrolled into the graph, so every length is a graph of its own. An operator over the whole "
                            "dimension (or torch.vmap) leaves the size symbolic; a loop that must stay can be left outside of the compiled function.")},
    {"number", "hash", FUSEBOX_TEXT("Advice", "Look the value up before the call"),
     FUSEBOX_TEXT("Advice", "A dict or set needs the number itself. Do the look-up outside of the compiled function and pass what it gave.")},
    {"number", ".get(", FUSEBOX_TEXT("Advice", "Look the value up before the call"),
     FUSEBOX_TEXT("Advice", "A dict or set needs the number itself. Do the look-up outside of the compiled function and pass what it gave.")},
    {"number", "format", FUSEBOX_TEXT("Advice", "Make the text outside of the compiled function"),
     FUSEBOX_TEXT("Advice", "A text that contains the number holds for that number only. Make it before or after the call.")},
    {"number", "str(", FUSEBOX_TEXT("Advice", "Make the text outside of the compiled function"),
     FUSEBOX_TEXT("Advice", "A text that contains the number holds for that number only. Make it before or after the call.")},
    {"number", "index", FUSEBOX_TEXT("Advice", "Pick the element before the call"),
     FUSEBOX_TEXT("Advice", "Indexing a Python list needs the number itself. Pick the element outside and pass it, or stack the elements into a tensor.")},
    {"number", "", FUSEBOX_TEXT("Advice", "Move what needs the number out of the compiled function"),
     FUSEBOX_TEXT("Advice", "This line needs the number, not a symbol for it. Compute its result before the call and pass it, or make it an operator on tensors.")},
    {"comparison", "", FUSEBOX_TEXT("Advice", "Decide before the call"),
     FUSEBOX_TEXT("Advice", "The branch holds for this one value. Decide outside of the compiled function, compare with < or >= where that is meant, "
                            "or put both sides into one graph with torch.where or torch.cond.")},
    {"operator", "", FUSEBOX_TEXT("Advice", "Give the operator a fixed size"),
     FUSEBOX_TEXT("Advice", "There is no rule for symbolic sizes of this operator, so it is captured for one size. Pad its input to a few sizes, or call it "
                            "outside of the compiled function.")},
    {"zero_one", "", FUSEBOX_TEXT("Advice", "Keep sizes 0 and 1 apart, or pad them"),
     FUSEBOX_TEXT("Advice", "0 and 1 mean something else to broadcasting and empty tensors, so they have entries of their own: one more compile, once. "
                            "Where they are frequent and costly, pad to 2, or mark the dimension unbacked (torch._dynamo.decorators.mark_unbacked).")},
    {"static", "", FUSEBOX_TEXT("Advice", "Let the size vary"),
     FUSEBOX_TEXT("Advice", "A setting or a mark keeps it a constant: dynamic=False, mark_static, assume_static_by_default or automatic_dynamic_shapes. Take it "
                            "away, or mark this dimension with torch._dynamo.mark_dynamic.")},
    {"plan", "", FUSEBOX_TEXT("Advice", "Say how large the size becomes"),
     FUSEBOX_TEXT("Advice", "The fastest kernel was chosen for this size. torch._dynamo.mark_dynamic(tensor, dim, min=…, max=…) says which sizes come, so that the "
                            "choice fits all of them.")},
    {"fallback", "", FUSEBOX_TEXT("Advice", "See why symbols were given up"),
     FUSEBOX_TEXT("Advice", "Compiling with symbols failed, so this entry has constants. The reason names what failed; without it the sizes vary freely.")},
};

const Rule kFailed[] = {
    {"duck", "", FUSEBOX_TEXT("Advice", "Two sizes that were equal are not any more"),
     FUSEBOX_TEXT("Advice", "Equal sizes share one symbol until they differ: one recompile, none later. Where they are known to differ, call the function "
                            "with different sizes first, or mark both dimensions.")},
    {"plan", "", FUSEBOX_TEXT("Advice", "Say how large the size becomes"),
     FUSEBOX_TEXT("Advice", "Kernels were made for sizes within this bound (index widths, vector lengths, tiles). torch._dynamo.mark_dynamic(tensor, dim, max=…) "
                            "makes the choice fit all sizes at once.")},
    {"guard", "if ", kBranchTitle, kBranchText},
    {"guard", "", FUSEBOX_TEXT("Advice", "Say what holds of the size"),
     FUSEBOX_TEXT("Advice", "An operator is made differently where this relation does not hold. If it always does, torch._check(…) before this line says so; else it is one "
                            "more entry, once.")},
};

template <size_t N>
std::vector<Advice> apply(const Rule (&rules)[N], std::string_view kind, const std::string& about) {
  const std::string where = lower(about);
  for (const Rule& rule : rules) {
    if (rule.kind != kind || where.find(rule.word) == std::string::npos) continue;
    return {{say(rule.title), say(rule.text), {}}};
  }
  return {};
}

}  // namespace

Advice adviseBranch() { return {say(kBranchTitle), say(kBranchText), {}}; }

std::vector<Advice> adviseShape(const session::Reader& reader, const ShapeSpecialisation& s) {
  Sources sources(reader);
  return apply(kSpecialised, s.kind, s.op + " " + s.reason + " " + sources.line(s.file, static_cast<int>(s.line)));
}

std::vector<Advice> adviseShape(const session::Reader& reader, const ShapeRelation& r) {
  Sources sources(reader);
  return apply(kFailed, r.kind, sources.line(r.file, static_cast<int>(r.line)));
}

}  // namespace fusebox::query
