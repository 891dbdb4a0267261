#include "app/debug/debug_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>

#include "engine/support/condition.h"
#include "profiler/compare/align.h"
#include "profiler/query/function_names.h"

namespace fusebox::debugging {
namespace {

using nlohmann::json;

constexpr size_t kWidest = 100;
constexpr const char* kNoText = "  what it made is code, not a text: stop at kernel_compile to read it\n";

/// Columns side by side; the last is not padded.
std::string table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i + 1 < row.size(); ++i) widths[i] = std::max(widths[i], std::min(row[i].size(), kWidest));
  }
  std::string text;
  for (const auto& row : rows) {
    text += " ";
    for (size_t i = 0; i < row.size(); ++i)
      text += i + 1 < row.size() ? fmt::format(" {:<{}}", row[i], widths[i]) : " " + row[i];
    text.erase(text.find_last_not_of(' ') + 1);
    text += "\n";
  }
  return text;
}

std::string baseName(const std::string& path) { return path.substr(path.rfind('/') + 1); }

/// "model.py:12"; nothing without a line, which would lead nowhere.
std::string placeText(const json& row) {
  const int64_t line = numberField(row, "line");
  const std::string file = baseName(textField(row, "file"));
  return line > 0 && !file.empty() ? fmt::format("{}:{}", file, line) : std::string();
}

std::string localsText(const json& rows) {
  std::vector<std::vector<std::string>> cells;
  for (const json& row : rows) {
    std::string from = textField(row, "source");
    if (from == textField(row, "name"))
      from.clear();
    else if (!from.empty())
      from = "from " + from;
    if (flagField(row, "unread")) from += from.empty() ? "not read yet" : ", not read yet";
    cells.push_back({textField(row, "name"), textField(row, "value"), from});
  }
  return cells.empty() ? "  no locals\n" : table(cells);
}

std::string stackText(const json& rows) {
  std::vector<std::vector<std::string>> cells;
  for (const json& row : rows)
    cells.push_back({std::to_string(numberField(row, "index")), textField(row, "value"), textField(row, "source")});
  return cells.empty() ? "  the stack is empty\n" : table(cells);
}

std::string framesText(const json& rows) {
  std::string text;
  int number = 0;
  for (const json& row : rows) {
    const std::string place = placeText(row);
    text += fmt::format("  #{} {}{}  {}\n", number++, textField(row, "function"), place.empty() ? "" : " (" + place + ")",
                        textField(row, "instruction"));
  }
  return text;
}

std::string guardsText(const json& answer) {
  std::vector<std::vector<std::string>> cells;
  const json rows = answer.value("guards", json::array());
  for (const json& row : rows)
    cells.push_back({textField(row, "kind"), textField(row, "source"), textField(row, "expected"), placeText(row)});
  return fmt::format("  {} guards so far\n", numberField(answer, "count")) + table(cells);
}

std::string shapesText(const json& answer) {
  std::vector<std::vector<std::string>> cells;
  for (const json& row : answer.value("symbols", json::array())) {
    const int64_t lower = numberField(row, "lower"), upper = numberField(row, "upper");
    const std::string range = fmt::format("{} … {}", lower == INT64_MIN ? "" : std::to_string(lower), upper == INT64_MAX ? "" : std::to_string(upper));
    cells.push_back({textField(row, "name"), fmt::format("{} now", numberField(row, "hint")), range});
  }
  std::string text = cells.empty() ? "  nothing is symbolic\n" : table(cells);
  for (const json& row : answer.value("relations", json::array()))
    text += fmt::format("  {}  ({})\n", textField(row, "relation"), textField(row, "reason"));
  return text;
}

std::string indented(const std::string& text) {
  std::string result = "  ";
  for (char c : text) {
    result += c;
    if (c == '\n') result += "  ";
  }
  result.erase(result.find_last_not_of(" \n") + 1);
  return result + "\n";
}

std::string irText(const json& answer) {
  const std::string before = textField(answer, "before");
  if (!flagField(answer, "done")) return "before:\n" + indented(before);
  if (!answer.contains("after")) return std::string(kNoText) + "before:\n" + indented(before);
  if (!flagField(answer, "changed")) return "unchanged:\n" + indented(before);
  return "before:\n" + indented(before) + "after:\n" + indented(textField(answer, "after"));
}

std::string diffText(const json& answer) {
  if (!flagField(answer, "done")) return "  the pass has not run yet\n";
  if (!answer.contains("after")) return std::string(kNoText);
  if (!flagField(answer, "changed")) return "  the pass changed nothing\n";
  std::string text;
  for (const DiffLine& line : diffLines(textField(answer, "before"), textField(answer, "after")))
    if (line.mark != ' ') text += fmt::format("{} {}\n", line.mark, line.text);
  return text;
}

std::string fusionsText(const json& answer) {
  std::vector<std::vector<std::string>> cells;
  for (const json& row : answer.value("pending", json::array()))
    cells.push_back({textField(row, "a"), textField(row, "b"), textField(row, "kind"),
                     fmt::format("saves {} bytes", numberField(row, "score_bytes"))});
  return fmt::format("  now: {} + {} ({}), saves {} bytes; {}\n  {} pairs wait:\n", textField(answer, "a"),
                     textField(answer, "b"), textField(answer, "kind"), numberField(answer, "score_bytes"),
                     textField(answer, "outlook"), numberField(answer, "pending_count")) +
         table(cells);
}

std::string kernelText(const json& answer) {
  std::string text = indented(textField(answer, "loop_ir"));
  if (const std::string code = textField(answer, "assembly"); !code.empty())
    text += fmt::format("\n  {} bytes for {}:\n", numberField(answer, "code_bytes"), textField(answer, "target")) +
            indented(code);
  return text;
}

std::string argumentsText(const json& rows) {
  std::vector<std::vector<std::string>> cells;
  for (const json& row : rows) {
    std::string values;
    for (const json& value : row.value("first_values", json::array()))
      values += (values.empty() ? "" : " ") + (value.is_string() ? value.get<std::string>() : value.dump());
    cells.push_back({textField(row, "name"), textField(row, "role"),
                     textField(row, "dtype") + row.value("sizes", json("[?]")).dump(), values});
  }
  return table(cells);
}

std::string tensorText(const json& facts) {
  std::vector<std::vector<std::string>> cells;
  for (const auto& [name, value] : tensorLines(facts)) cells.push_back({name, value});
  std::string first;
  for (const json& value : facts.value("first", json::array())) first += " " + (value.is_string() ? value.get<std::string>() : value.dump());
  return table(cells) + (first.empty() ? "" : "  first:" + first + "\n");
}

std::string optionsText(const json& options) {
  std::vector<std::vector<std::string>> cells;
  if (options.is_object())
    for (const auto& [name, value] : options.items()) cells.push_back({name, value.dump()});
  return table(cells);
}

std::string breakpointsText(const json& answer) {
  std::string text;
  for (const json& b : answer.value("breakpoints", json::array()))
    text += fmt::format("  {:>3}  {}{}{}  hit {} time{}{}\n", numberField(b, "breakpoint"), breakpointText(b),
                        flagField(b, "enabled") ? "" : "  (disabled)", flagField(b, "once") ? "  (once)" : "",
                        numberField(b, "hits"), numberField(b, "hits") == 1 ? "" : "s", numberField(b, "ignore") > 0 ? fmt::format(", {} more pass", numberField(b, "ignore")) : "");
  return text.empty() ? "  no breakpoints\n" : text;
}

std::string rulesText(const json& answer) {
  std::string text;
  for (const json& rule : answer.value("fusion_rules", json::array())) text += fmt::format("  {} {}\n", textField(rule, "verb"), textField(rule, "rule"));
  return text.empty() ? "  no fusion is forbidden or forced\n" : text;
}

std::string statusText(const json& answer) {
  const std::string state = flagField(answer, "stopped") ? stopText(answer.value("stop", json::object())) : "running\n";
  return state + breakpointsText(answer);
}

std::string fusionRuleText(const json& answer) {
  return fmt::format("  {} {}\n", textField(answer, "verb"), textField(answer, "rule"));
}

}  // namespace

std::vector<std::pair<std::string, std::string>> tensorLines(const json& facts) {
  const auto at = [&](const char* key) {
    const json place = facts.value(key, json::array());
    return place.empty() ? std::string() : " at " + place.dump();
  };
  const auto places = [&](const char* key) {
    std::string text;
    for (const json& place : facts.value(key, json::array())) text += (text.empty() ? " at " : ", ") + place.dump();
    return text;
  };
  const int64_t elements = numberField(facts, "elements"), counted = numberField(facts, "counted");
  const auto real = [&](const char* key) {
    const auto found = facts.find(key);
    return found != facts.end() && found->is_number() ? fmt::format("{:.7g}", found->get<double>()) : std::string();
  };
  std::vector<std::pair<std::string, std::string>> lines{
      {"type", dtypeInPython(textField(facts, "dtype")) + facts.value("sizes", json::array()).dump()},
      {"elements", counted < elements ? fmt::format("{}, of which the first {} are counted", elements, counted) : std::to_string(elements)}};
  if (facts.contains("least")) {
    lines.push_back({"least", textField(facts, "least") + at("least_at")});
    lines.push_back({"most", textField(facts, "most") + at("most_at")});
    lines.push_back({"mean", real("mean")});
    lines.push_back({"standard deviation", real("deviation")});
  }
  lines.push_back({"zeros", std::to_string(numberField(facts, "zeros"))});
  const int64_t nan = numberField(facts, "nan"), above = numberField(facts, "positive_infinity"), below = numberField(facts, "negative_infinity");
  lines.push_back({"NaN", std::to_string(nan) + places("nan_at")});
  lines.push_back({"infinite", (below > 0 ? fmt::format("{}, {} of them below zero", above + below, below) : std::to_string(above)) + places("infinity_at")});
  return lines;
}

std::string codeText(const json& rows, int* currentLine) {
  std::string text;
  int64_t line = -1;
  int number = 0;
  for (const json& row : rows) {
    ++number;
    const bool isCurrent = flagField(row, "current");
    if (isCurrent && currentLine) *currentLine = number;
    const int64_t here = numberField(row, "line");
    text += fmt::format("{} {:>5} {:>5}  {}\n", isCurrent ? "->" : "  ", here == line ? "" : std::to_string(here),
                        numberField(row, "offset"), textField(row, "text"));
    line = here;
  }
  return text;
}

std::string stopTitle(const json& stop) {
  const std::string title = textField(stop, "title");
  return textField(stop, "kind") == "graph_break" ? query::breakReason(title) : title;
}

std::string stopText(const json& stop) {
  const int64_t breakpoint = numberField(stop, "breakpoint");
  const std::string why = breakpoint ? fmt::format("breakpoint {}", breakpoint) : textField(stop, "reason");
  std::string text = fmt::format("stop {} ({}): {}\n", numberField(stop, "stop"), why, stopTitle(stop));
  if (const std::string file = textField(stop, "file"); !file.empty()) {
    const std::string function = textField(stop, "function");
    const int64_t line = numberField(stop, "line");
    text += fmt::format("  at {}{}{}\n", file, line > 0 ? fmt::format(":{}", line) : "", function.empty() ? "" : " in " + function);
  }
  if (const std::string hint = textField(stop, "hint"); !hint.empty()) text += "  hint: " + hint + "\n";
  if (const std::string trouble = textField(stop, "condition_trouble"); !trouble.empty())
    text += "  whether its condition holds cannot be told: " + trouble + "\n";
  return text;
}

std::string breakpointText(const json& b) {
  const std::string kind = textField(b, "kind"), name = textField(b, "name"), when = textField(b, "when");
  const std::string condition = textField(b, "if"), only = condition.empty() ? "" : " if " + condition;
  if (kind == "line") return (numberField(b, "line") ? fmt::format("{}:{}", textField(b, "file"), numberField(b, "line")) : name) + only;
  return kind + (name.empty() ? "" : " " + name) + (when.empty() ? "" : " " + when) + only;
}

std::string answerText(const std::string& name, const json& result) {
  using Writer = std::string (*)(const json&);
  static const std::map<std::string, Writer> kWriters{
      {"locals", localsText},
      {"stack", stackText},
      {"frames", framesText},
      {"code", [](const json& a) { return codeText(a); }},
      {"guards", guardsText},
      {"shapes", shapesText},
      {"graph", [](const json& a) { return indented(textField(a, "text")); }},
      {"ir", irText},
      {"diff", diffText},
      {"fusions", fusionsText},
      {"kernel", kernelText},
      {"arguments", argumentsText},
      {"tensor", tensorText},
      {"content", [](const json& rows) { return rows.empty() ? std::string("  it is made of nothing that is shown\n") : localsText(rows); }},
      {"options", optionsText},
      {"set", optionsText},
      {"breakpoints", breakpointsText},
      {"status", statusText},
      {"rules", rulesText},
      {"ignore", [](const json& b) { return fmt::format("  {} more hits of breakpoint {} pass\n", numberField(b, "ignore"), numberField(b, "breakpoint")); }},
      {"forbid", fusionRuleText},
      {"force", fusionRuleText},
      {"allow", fusionRuleText},
      {"break",
       [](const json& b) {
         return fmt::format("breakpoint {}: {}\n", numberField(b, "breakpoint"), breakpointText(b));
       }},
      {"tbreak",
       [](const json& b) {
         return fmt::format("breakpoint {}, once: {}\n", numberField(b, "breakpoint"), breakpointText(b));
       }},
      {"pause", [](const json&) { return std::string("pausing at the next event\n"); }},
  };
  const auto writer = kWriters.find(name);
  return writer == kWriters.end() ? std::string() : writer->second(result);
}

std::vector<DiffLine> diffLines(const std::string& before, const std::string& after) {
  const std::vector<std::string_view> a = compare::linesOf(before), b = compare::linesOf(after);
  compare::Vocabulary words;
  const auto numbers = [&words](const std::vector<std::string_view>& lines) {
    std::vector<int32_t> out;
    for (const std::string_view line : lines) out.push_back(words.of(std::string(line)));
    return out;
  };
  const std::vector<int32_t> first = numbers(a), second = numbers(b);
  std::vector<DiffLine> lines, added;
  const auto flush = [&] {
    std::move(added.begin(), added.end(), std::back_inserter(lines));
    added.clear();
  };
  for (const compare::Match& match : compare::alignSequences(first, second)) {
    if (match.a < 0) {
      added.push_back({'+', std::string(b[static_cast<size_t>(match.b)])});
      continue;
    }
    if (match.b >= 0) flush();  // what came in the place of something follows it
    lines.push_back({match.b < 0 ? '-' : ' ', std::string(a[static_cast<size_t>(match.a)])});
  }
  flush();
  return lines;
}

}  // namespace fusebox::debugging
