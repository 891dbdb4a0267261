// What a recorded error says to the author of the program, and what helps.
#include <fmt/format.h>

#include <cctype>

#include "engine/support/text.h"
#include "profiler/query/coverage.h"
#include "profiler/query/function_names.h"

namespace fusebox::query {
namespace {

bool isClassName(std::string_view word) {
  if (word.empty() || word.size() > 60 || std::isupper(static_cast<unsigned char>(word[0])) == 0) return false;
  for (const char c : word)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '_' && c != '.') return false;
  return true;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0) text.remove_suffix(1);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front())) != 0) text.remove_prefix(1);
  return text;
}

/// `  File "model.py", line 49, in forward`: the last one of the function's file is where the error happened. Those below it are of what
/// it called, or of the compiler.
void readPlace(std::string_view text, Uncompiled& out) {
  constexpr std::string_view kFile = "File \"", kLine = "\", line ";
  const size_t own = out.file.empty() ? std::string_view::npos : text.rfind(std::string(kFile) + out.file + "\"");
  const size_t at = own != std::string_view::npos ? own : text.rfind(kFile);
  if (at == std::string_view::npos) return;
  const std::string_view rest = text.substr(at + kFile.size());
  const size_t end = rest.find(kLine);
  if (end == std::string_view::npos || rest.substr(0, end).find('\n') != std::string_view::npos) return;
  int64_t line = 0;
  for (const char c : rest.substr(end + kLine.size())) {
    if (std::isdigit(static_cast<unsigned char>(c)) == 0 || line > 100'000'000) break;
    line = line * 10 + (c - '0');
  }
  const std::string_view file = rest.substr(0, end);
  // Lines of the compiler's own are no place in the program.
  if (line > 0 && (out.file.empty() || file == out.file)) {
    out.file = file;
    out.line = line;
  }
}

/// A rule applies where `word` occurs in the kind or in the error.
struct Rule {
  std::string_view word;
  Text title, text;
};
const Rule kRules[] = {
    {kGivenUp, FUSEBOX_TEXT("Advice", "Move the line out of its block"),
     FUSEBOX_TEXT("Advice", "Capture stopped at a line where it cannot be taken up again, as in a try, a with or some loops, so the whole function runs in "
                            "Python. Behind or before the block, or in a function that is called from there, the line costs a graph break only.")},
    {"fake impl", FUSEBOX_TEXT("Advice", "Register a fake implementation of the operator"),
     FUSEBOX_TEXT("Advice", "Compiling needs to know the shape and type of the operator's result without running it. A function under "
                            "@my_operator.register_fake says so: it returns an empty tensor of that shape.")},
    {"fake tensor", FUSEBOX_TEXT("Advice", "Make the function run without data"),
     FUSEBOX_TEXT("Advice", "The function was tried on tensors without data and raised. See whether it raises in eager too; an operator of your own "
                            "needs a fake implementation (register_fake).")},
    {"BackendCompilerFailed", FUSEBOX_TEXT("Advice", "Try another backend to find the part that fails"),
     FUSEBOX_TEXT("Advice", "Capture went well and the backend raised. With backend=\"eager\" the captured graph runs as it is, with "
                            "backend=\"aot_eager\" after autograd: what still fails says whose error it is.")},
    {"LoweringException", FUSEBOX_TEXT("Advice", "Keep the operator out of the generated code"),
     FUSEBOX_TEXT("Advice", "The backend has no way to generate code for this operator. An operator made with torch.library.custom_op is called as it is; "
                            "else leave its call outside of the compiled function.")},
    {"recompile", FUSEBOX_TEXT("Advice", "Find out what changes in every call"),
     FUSEBOX_TEXT("Advice", "The function was compiled for as many different inputs as the limit allows, and runs in Python for others. Recompiles says "
                            "which guard failed each time and how to avoid it; torch._dynamo.config.recompile_limit raises the limit.")},
    {"Unsupported", FUSEBOX_TEXT("Advice", "Allow a graph break, or move the line out"),
     FUSEBOX_TEXT("Advice", "With fullgraph=True a line that cannot be captured is an error. Without it the function is compiled in two pieces around "
                            "the line; better still, the line moves out of the compiled function.")},
    {"graph raised", FUSEBOX_TEXT("Advice", "See whether the function raises in eager"),
     FUSEBOX_TEXT("Advice", "The compiled graph raised an error, so the program's own code ran instead, to raise it at its line.")},
};

}  // namespace

void readError(std::string_view error, Uncompiled& out) {
  constexpr size_t kLongest = 600;
  out.error = error;
  std::string_view rest = error;
  const size_t colon = error.find(": ");
  if (colon != std::string_view::npos && isClassName(error.substr(0, colon))) {
    out.kind = error.substr(0, colon);
    rest = error.substr(colon + 2);
  }
  if (out.kind.empty()) out.kind = kUnnamedFailure;
  bool first = true;
  while (!rest.empty()) {
    const size_t end = rest.find('\n');
    const std::string_view line = trimmed(rest.substr(0, end));
    rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
    constexpr std::string_view kExplanation = "Explanation: ", kHint = "Hint: ";
    if (line.starts_with("Developer debug context:")) break;
    if (line.starts_with(kHint)) {
      out.hint += (out.hint.empty() ? "" : "\n") + std::string(line.substr(kHint.size()));
    } else if (line.starts_with(kExplanation)) {
      out.reason += ". " + std::string(line.substr(kExplanation.size()));
    } else if (first || (out.reason.ends_with(':') && !line.empty())) {  // "backend='x' raised:" and what it raised
      out.reason += (first ? "" : " ") + std::string(line);
    }
    first = false;
  }
  out.reason = breakReason(out.reason);
  if (out.reason.size() > kLongest) {
    size_t cut = kLongest;
    while (cut > 0 && (static_cast<unsigned char>(out.reason[cut]) & 0xC0U) == 0x80U) --cut;
    out.reason = out.reason.substr(0, cut) + "…";
  }
  readPlace(error, out);
}

std::vector<Advice> adviseUncompiled(const Uncompiled& what) {
  std::vector<Advice> out;
  for (const Rule& rule : kRules) {
    if (what.kind.find(rule.word) == std::string::npos && what.error.find(rule.word) == std::string::npos) continue;
    out.push_back({say(rule.title), say(rule.text), {}});
    break;
  }
  if (!what.hint.empty()) out.push_back({say(FUSEBOX_TEXT("Advice", "What PyTorch suggests")), what.hint, {}});
  if (out.empty()) {
    out.push_back({say(FUSEBOX_TEXT("Advice", "Compile a smaller part")),
                   say(FUSEBOX_TEXT("Advice", "The function runs as plain Python: right, and no faster than eager. Compile the functions that it calls, "
                                              "one by one, to find the line; the message names what could not be compiled.")),
                   {}});
  }
  return out;
}

}  // namespace fusebox::query
