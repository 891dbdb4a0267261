#include "profiler/query/function_names.h"

#include <fmt/format.h>

#include <cctype>

#include "engine/support/text.h"

namespace fusebox::query {
namespace {

constexpr std::string_view kResume = "torch_dynamo_resume_in_", kDebug = "Developer debug context:";

/// An operator that an engine names, and what a program calls.
struct Call {
  std::string_view op, written;
};
constexpr Call kCalls[] = {{"aten::_local_scalar_dense", "Tensor.item()"},
                           {"aten::nonzero", "torch.nonzero()"},
                           {"aten::is_nonzero", "bool() of a tensor"},
                           {"aten::equal", "torch.equal()"},
                           {"aten::masked_select", "torch.masked_select()"},
                           {"aten::_unique2", "torch.unique()"},
                           {"aten::unique_consecutive", "torch.unique_consecutive()"}};

std::string trimmedName(std::string_view text) {
  const auto blank = [](char c) { return c == ' ' || c == '\n' || c == '\t' || c == ';'; };
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  return std::string(text);
}

}  // namespace

bool isResumeName(std::string_view name) { return name.starts_with(kResume); }

std::string rootFunction(std::string_view name) {
  if (!isResumeName(name)) return std::string(name);
  const size_t at = name.rfind("_at_");
  return std::string(name.substr(kResume.size(), at == std::string_view::npos ? at : at - kResume.size()));
}

std::string breakReason(std::string_view reason) {
  // What PyTorch prints for its own developers says nothing about the program, and differs where nothing else does.
  std::string out = trimmedName(reason.substr(0, reason.find(kDebug)));
  for (const Call& call : kCalls) {
    const size_t at = out.find(call.op);
    const size_t end = at == std::string::npos ? at : at + call.op.size();
    if (at == std::string::npos || (end < out.size() && (std::isalnum(static_cast<unsigned char>(out[end])) || out[end] == '_'))) continue;
    out.replace(at, call.op.size(), call.written);
  }
  return out;
}

std::string sourceWords(std::string_view source) {
  constexpr std::string_view kAhead = "upcoming(S[";
  std::string out(source);
  for (size_t at = out.find(kAhead); at != std::string::npos; at = out.find(kAhead, at)) {
    const size_t end = out.find("])", at);
    if (end == std::string::npos) break;
    const std::string words = say(FUSEBOX_TEXT("Guards", "what is left of the loop"));
    out.replace(at, end + 2 - at, words);
    at += words.size();
  }
  return out;
}

std::string breakWords(std::string_view kind, std::string_view reason) {
  const std::string told = breakReason(reason);
  if (told.empty() || told == kind) return std::string(kind);
  return kind.empty() ? told : fmt::format("{}: {}", kind, told);
}

}  // namespace fusebox::query
