#include "profiler/importers/output_code.h"
#include "profiler/importers/text_lines.h"

#include <algorithm>
#include <charconv>
#include <unordered_map>

namespace fusebox::importing {
namespace {

constexpr size_t kMostKernels = 100'000, kMostCalls = 1'000'000, kMostFragmentNodes = 100'000, kMostArgumentBytes = 100'000;

bool isNameChar(char c) {
  return c == '_' || c == '.' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}
std::string_view leadingName(std::string_view s) {
  size_t n = 0;
  while (n < s.size() && isNameChar(s[n])) ++n;
  return s.substr(0, n);
}

std::vector<std::string> listed(std::string_view text) {
  std::vector<std::string> out;
  while (!text.empty()) {
    const size_t comma = text.find(',');
    if (const auto one = trim(text.substr(0, comma)); !one.empty()) out.emplace_back(one);
    text = comma == std::string_view::npos ? std::string_view() : text.substr(comma + 1);
  }
  return out;
}

/// The comments that stand before a kernel or a call and say what it computes.
struct Origin {
  std::string path;
  std::vector<std::string> sourceNodes, originalAten, nodes;
  int64_t handle = -1;

  void comment(std::string_view text) {
    text = trim(text.substr(1));
    if (text.starts_with("kernel path: ")) path = text.substr(13);
    if (text.starts_with("[Provenance debug handles]")) {
      const size_t colon = text.rfind(':');
      if (colon != std::string_view::npos) std::from_chars(text.data() + colon + 1, text.data() + text.size(), handle);
    }
    constexpr std::string_view kSources = "Topologically Sorted Source Nodes: [", kAten = "Original ATen: [";
    if (const size_t at = text.find(kSources); at != std::string_view::npos) {
      const auto rest = text.substr(at + kSources.size());
      sourceNodes = listed(rest.substr(0, rest.find(']')));
    }
    if (const size_t at = text.find(kAten); at != std::string_view::npos) {
      const auto rest = text.substr(at + kAten.size());
      originalAten = listed(rest.substr(0, rest.find(']')));
    }
    // %mul : Tensor "f32[8]cpu"[num_users=1] = call_function[target=torch.ops.aten.mul.Tensor](…)
    if (text.starts_with('%') && text.find(" = call_") != std::string_view::npos && nodes.size() < kMostFragmentNodes) {
      const auto name = leadingName(text.substr(1));
      if (!name.empty()) nodes.emplace_back(name);
    }
  }
};

std::string kindOf(std::string_view name, std::string_view language) {
  struct Prefix {
    std::string_view prefix, kind;
  };
  constexpr Prefix kPrefixes[] = {{"triton_poi", "pointwise"}, {"triton_per", "reduction"},
                                  {"triton_red", "reduction"}, {"triton_tem", "template"},
                                  {"triton_for", "pointwise"}, {"triton_spl", "reduction"}};
  for (const auto& p : kPrefixes) {
    if (name.starts_with(p.prefix)) return std::string(p.kind);
  }
  return language == "cutlass" || language == "rocm" ? "template" : "loops";
}

class Parser {
 public:
  OutputCode parse(std::string_view text);

 private:
  bool definition(std::string_view line);
  void call(std::string_view line);

  OutputCode code_;
  std::unordered_map<std::string, int64_t> kernels_;
  Origin origin_;
  OutputCode::Kernel open_;
  bool inSource_ = false, inCall_ = false;
};

// name = async_compile.triton('name', '''
bool Parser::definition(std::string_view line) {
  const auto name = leadingName(line);
  constexpr std::string_view kCompile = " = async_compile.";
  if (name.empty() || !line.substr(name.size()).starts_with(kCompile)) return false;
  const auto rest = line.substr(name.size() + kCompile.size());
  std::string_view language = leadingName(rest);
  const size_t quotes = line.find("'''");
  if (quotes == std::string_view::npos || kernels_.size() >= kMostKernels) return false;
  if (language.starts_with("cpp")) language = "cpp";
  open_ = {std::string(name),
           std::string(language),
           {},
           std::move(origin_.path),
           std::move(origin_.nodes),
           std::move(origin_.sourceNodes),
           language == "cpp" ? "cpu" : "",
           kindOf(name, language)};
  origin_ = {};
  inSource_ = true;
  return true;
}

void Parser::call(std::string_view line) {
  // buf0 = extern_kernels.mm(…), kernel.run(…), with a result or without
  std::string_view text = line;
  const auto assigned = leadingName(text);
  if (trim(text.substr(assigned.size())).starts_with("= ")) text = trim(trim(text.substr(assigned.size())).substr(1));
  std::string_view callee = leadingName(text);
  if (callee.empty() || text.size() <= callee.size() || text[callee.size()] != '(') return;
  if (callee.ends_with(".run")) callee.remove_suffix(4);
  if (callee.starts_with("self.")) callee.remove_prefix(5);
  const auto known = kernels_.find(std::string(callee));
  const bool library = callee.starts_with("extern_kernels.") || callee.starts_with("torch.ops.") ||
                       callee.starts_with("aten.") || callee.starts_with("fallback_op");
  if ((known == kernels_.end() && !library) || code_.calls.size() >= kMostCalls) return;
  OutputCode::Call made{std::string(callee), known == kernels_.end() ? -1 : known->second, origin_.handle,
                        std::move(origin_.nodes), std::move(origin_.originalAten), {}};
  if (text.size() <= kMostArgumentBytes) made.arguments = text.substr(text.find('(') + 1);
  origin_ = {};
  code_.calls.push_back(std::move(made));
}

OutputCode Parser::parse(std::string_view text) {
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const std::string_view raw = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    const std::string_view line = trim(raw);
    if (inSource_) {
      if (line.starts_with("'''")) {
        // ''', device_str='cuda')
        constexpr std::string_view kDevice = "device_str='";
        if (const size_t at = line.find(kDevice); at != std::string_view::npos) {
          const auto device = line.substr(at + kDevice.size());
          open_.device = device.substr(0, device.find('\''));
        }
        kernels_[open_.name] = static_cast<int64_t>(code_.kernels.size());
        code_.kernels.push_back(std::move(open_));
        inSource_ = false;
      } else {
        open_.source += std::string(raw) + "\n";
      }
      continue;
    }
    if (line.starts_with('#')) {
      origin_.comment(line);
    } else if (line.starts_with("def call(")) {
      inCall_ = true;
      origin_ = {};
    } else if (line.starts_with("def ") || line.starts_with("if __name__")) {
      inCall_ = false;
    } else if (inCall_) {
      call(line);
    } else {
      definition(line);
    }
  }
  return std::move(code_);
}

}  // namespace

OutputCode parseOutputCode(std::string_view text) { return Parser().parse(text); }

}  // namespace fusebox::importing
