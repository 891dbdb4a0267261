#include "profiler/export/operator_names.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace fusebox::exporting {
namespace {

// Of operators: those that PyTorch registers itself. Of kernels: its C++, CUDA's libraries and what both are built from.
constexpr std::string_view kKnown[] = {
    "aten", "prim", "prims", "torch", "custom", "fusebox", "higher_order", "rngprims", "debugprims", "inductor", "export",
    "quantized", "_quantized", "quantization", "quantized_decomposed", "mkl", "mkldnn", "mkldnn_prepacked", "onednn",
    "xnnpack", "prepacked", "sparse", "static_runtime", "profiler", "streams", "symm_mem", "fsdp", "_dtensor", "c10d",
    "c10d_functional", "_c10d_functional", "_c10d_functional_autograd", "onnx", "onnx_symbolic", "cuda", "_test",
    "_inductor_test", "flex_lib", "debug_mode_ops", "bucketing", "torch_attn", "torchvision", "torchaudio",
    "at", "c10", "std", "cub", "thrust", "cutlass", "cute", "pytorch_flash", "flash", "cudnn",
    "cublas", "cublasLt", "nccl", "xmma", "cask"};

bool isKnown(std::string_view space) { return std::find(std::begin(kKnown), std::end(kKnown), space) != std::end(kKnown); }

bool isLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool isPart(char c) { return isLetter(c) || (c >= '0' && c <= '9'); }

size_t identifierEnd(std::string_view text, size_t at) {
  if (at >= text.size() || !isLetter(text[at])) return at;
  while (at < text.size() && isPart(text[at])) ++at;
  return at;
}

/// An operator in a text: all of it with its overload, and the two parts of its name.
struct Named {
  size_t end = 0;
  std::string_view space, name;  ///< `name` is all behind the first "::"
};

/// The operator that starts at `at`, where an identifier does; `space` is empty where there is none.
Named operatorAt(std::string_view text, size_t at) {
  constexpr std::string_view kPython = "torch.ops.";
  const bool isPython = text.substr(at).starts_with(kPython);
  const std::string_view mark = isPython ? "." : "::";
  const size_t begin = isPython ? at + kPython.size() : at;
  size_t end = identifierEnd(text, begin);
  const std::string_view space = text.substr(begin, end - begin);
  if (space.empty() || !text.substr(end).starts_with(mark)) return {};
  const size_t nameAt = end + mark.size();
  end = identifierEnd(text, nameAt);
  if (end == nameAt) return {};
  while (!isPython && text.substr(end).starts_with("::")) {
    const size_t next = identifierEnd(text, end + 2);
    if (next == end + 2) break;
    end = next;
  }
  const std::string_view name = text.substr(nameAt, end - nameAt);
  if (end < text.size() && text[end] == '.')
    if (const size_t overload = identifierEnd(text, end + 1); overload > end + 1) end = overload;
  return {end, space, name};
}

/// Calls `take` with the position and the parts of every operator in the text.
template <class Take>
void eachOperator(std::string_view text, Take take) {
  for (size_t at = 0; at < text.size();) {
    if (!isPart(text[at])) {
      ++at;
      continue;
    }
    const Named named = operatorAt(text, at);
    if (!named.space.empty()) {
      take(at, named);
      at = named.end;
    } else {
      while (at < text.size() && isPart(text[at])) ++at;
    }
  }
}

std::string keyOf(const Named& named) { return std::string(named.space) + "::" + std::string(named.name); }

/// Words that stand between letters and digits of others ("_" divides), replaced; the longest that fits counts.
std::string withoutWords(const std::string& text, const std::map<std::string, std::string, std::less<>>& words) {
  const std::string_view all = text;
  const auto divides = [&](size_t at) { return at >= all.size() || !isPart(all[at]) || all[at] == '_'; };
  std::string out;
  for (size_t at = 0; at < all.size();) {
    auto longest = words.end();
    if (isPart(all[at]) && (at == 0 || divides(at - 1)))
      for (size_t end = at + 1; end <= all.size() && isPart(all[end - 1]); ++end)
        if (divides(end))
          if (const auto found = words.find(all.substr(at, end - at)); found != words.end()) longest = found;
    out += longest != words.end() ? longest->second : std::string(1, all[at]);
    at += longest != words.end() ? longest->first.size() : 1;
  }
  return out;
}

}  // namespace

void OperatorNames::learn(std::string_view text) {
  eachOperator(text, [&](size_t, const Named& named) {
    if (isKnown(named.space)) {
      known_.insert(std::string(named.name));
      words_.erase(std::string(named.name));
      return;
    }
    const auto [entry, isNew] = custom_.try_emplace(keyOf(named), "op_" + std::to_string(custom_.size() + 1));
    if (!isNew) return;
    words_.try_emplace(std::string(named.space), "custom");
    if (named.name.find(':') == std::string_view::npos && !known_.contains(named.name))
      words_.try_emplace(std::string(named.name), entry->second);
  });
}

std::string OperatorNames::renamed(std::string_view text, bool alsoWords) const {
  std::string out;
  size_t done = 0;
  eachOperator(text, [&](size_t at, const Named& named) {
    const auto found = isKnown(named.space) ? custom_.end() : custom_.find(keyOf(named));
    if (found == custom_.end()) return;
    out.append(text.substr(done, at - done)).append("custom::").append(found->second);
    done = named.end;
  });
  out.append(text.substr(done));
  return alsoWords ? withoutWords(out, words_) : out;
}

}  // namespace fusebox::exporting
