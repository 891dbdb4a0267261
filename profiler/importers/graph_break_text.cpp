#include "profiler/importers/graph_break_text.h"

#include <nlohmann/json.hpp>

#include "engine/support/file_owner.h"
#include "profiler/importers/text_lines.h"

namespace fusebox::importing {
namespace {

// `  File "/x/a.py", line 24, in f` of a Python traceback.
bool tracebackPlace(std::string_view line, std::string& file, int64_t& number, std::string& function) {
  line = trim(line);
  constexpr std::string_view kFile = "File \"", kLine = "\", line ", kIn = ", in ";
  if (!line.starts_with(kFile)) return false;
  const size_t end = line.find(kLine);
  if (end == std::string_view::npos) return false;
  file = line.substr(kFile.size(), end - kFile.size());
  number = std::strtoll(std::string(line.substr(end + kLine.size(), 12)).c_str(), nullptr, 10);
  const size_t in = line.find(kIn, end);
  function = in == std::string_view::npos ? std::string_view() : line.substr(in + kIn.size());
  return true;
}

}  // namespace

BreakText parseBreak(std::string_view text) {
  BreakText out;
  nlohmann::ordered_json stack = nlohmann::ordered_json::array();
  std::string_view line;
  bool inStack = false, inReason = false;
  std::string programFile;
  int64_t programLine = 0;
  while (nextLine(text, line)) {
    constexpr std::string_view kIn = "Graph break in user code at ",
                               kReason = "Graph Break Reason: ", kTracing = "attempting to trace ",
                               kGivenUp = "Failed to handle graph break gracefully.";
    const std::string_view bare = trim(line);
    if (line.starts_with("Traceback (most recent") || line.starts_with("NoneType: None")) break;
    if (bare.starts_with(kIn)) {
      const auto place = bare.substr(kIn.size());
      const size_t colon = place.rfind(':');
      out.file = place.substr(0, colon);
      if (colon != std::string_view::npos)
        out.line = std::strtoll(std::string(place.substr(colon + 1, 12)).c_str(), nullptr, 10);
    } else if (bare.starts_with(kReason) || bare.starts_with("Reason: ")) {
      inReason = true;
      const auto reason = bare.substr(bare.find(": ") + 2);
      if (const size_t tracing = reason.find(kTracing); tracing != std::string_view::npos) {
        const auto opcode = reason.substr(tracing + kTracing.size());
        out.opcode = opcode.substr(0, opcode.find(':'));
      } else if (!reason.starts_with(kGivenUp)) {  // what was met follows
        out.kind = reason;
      }
    } else if (bare.starts_with("User code traceback:")) {
      inReason = false;
      inStack = true;
    } else if (inStack) {
      std::string file, function;
      int64_t number = 0;
      if (tracebackPlace(line, file, number, function)) {
        stack.push_back({{"file", file}, {"line", number}, {"function", function}});
        if (isProgramFile(file)) programFile = file, programLine = number;
      } else if (!stack.empty() && !bare.empty() && !bare.starts_with('^') && !bare.starts_with('~')) {
        out.quoted.emplace_back(stack.back()["file"].get<std::string>(), stack.back()["line"].get<int64_t>(), bare);
      }
    } else if (inReason && !bare.empty()) {
      if (bare.starts_with("Hint: ")) {
        out.hint += (out.hint.empty() ? "" : "\n") + std::string(bare.substr(6));
      } else if (bare.starts_with("For more details about this graph break")) {
        const size_t url = bare.find("http");
        if (url != std::string_view::npos) out.hint += (out.hint.empty() ? "" : "\n") + std::string(bare.substr(url));
      } else if (out.kind.empty()) {
        out.kind = bare;
      } else {
        out.reason += (out.reason.empty() ? "" : "; ") + std::string(bare);
      }
    }
  }
  if (!programFile.empty() && !isProgramFile(out.file)) out.file = programFile, out.line = programLine;
  if (!stack.empty()) out.stack = stack.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  if (out.reason.starts_with("Explanation: ")) out.reason.erase(0, 13);
  if (out.reason.empty()) out.reason = out.kind;
  return out;
}

}  // namespace fusebox::importing
