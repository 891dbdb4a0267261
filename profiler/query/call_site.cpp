#include "profiler/query/call_site.h"

#include <algorithm>
#include <cctype>

#include "profiler/query/python_line.h"

namespace fusebox::query {

std::string localOf(const GuardProblem& p) {
  std::string source = p.source;
  if (source.empty() && p.text.starts_with("tensor '")) source = p.text.substr(8, p.text.find('\'', 8) - 8);
  if (source.starts_with("L['") && source.ends_with("']") && source.find('\'', 3) == source.size() - 2)
    source = source.substr(3, source.size() - 5);
  return isIdentifier(source) ? source : std::string();
}

std::optional<CallSite> callSite(const GuardProblem& p, Sources& sources) {
  const std::string name = localOf(p);
  if (name.empty()) return std::nullopt;
  const auto parameters = parametersAt(sources.lines(p.codeFile), p.codeLine);
  const auto found = std::find(parameters.begin(), parameters.end(), name);
  if (found == parameters.end()) return std::nullopt;
  int position = static_cast<int>(found - parameters.begin());
  if (!parameters.empty() && parameters[0] == "self") --position;
  // The innermost caller of the user's, outside of the code object itself.
  for (auto at = p.call.rbegin(); at != p.call.rend(); ++at) {
    if (at == p.call.rbegin() || !at->isUsers()) continue;
    const std::string line = sources.line(at->file, at->line);
    for (const auto& call : callsOn(line)) {
      const auto* argument = argumentOf(call, line, name, position);
      if (!argument || call.callee.starts_with("torch.") || call.callee == "print") continue;
      return CallSite{
          at->file,        line,         line.substr(argument->begin, argument->end - argument->begin), at->line,
          argument->begin, argument->end};
    }
    return std::nullopt;
  }
  return std::nullopt;
}

std::string rewriteArgument(const GuardProblem& p, Sources& sources, const std::string& before,
                            const std::string& after) {
  const auto site = callSite(p, sources);
  if (!site) return {};
  // An expression with operators needs brackets before a method.
  const bool simple =
      std::all_of(site->argument.begin(), site->argument.end(),
                  [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.'; }) ||
      (site->argument.ends_with(')') && callsOn(site->argument).size() == 1 && callsOn(site->argument)[0].begin == 0);
  const bool bracket = before.empty() && !simple;
  const std::string value = before + (bracket ? "(" : "") + site->argument + (bracket ? ")" : "") + after;
  const std::string text = site->lineText.substr(0, site->begin) + value + site->lineText.substr(site->end);
  return sources.diff(site->file, {{LineEdit::Kind::Replace, site->line, text}});
}

std::string compileWith(const GuardProblem& p, Sources& sources, const std::string& option,
                        const std::string& keyword) {
  const auto withOption = [&](const std::string& line) -> std::string {
    if (const auto call = callOf(line, "torch.compile")) {
      if (argumentOf(*call, line, keyword, -1)) return {};
      return line.substr(0, call->close) + (call->arguments.empty() ? "" : ", ") + option + line.substr(call->close);
    }
    return codeOf(line) == "@torch.compile" ? std::string(indentOf(line)) + "@torch.compile(" + option + ")"
                                            : std::string();
  };
  const auto lines = sources.lines(p.codeFile);
  for (int n = p.codeLine; n >= 1 && n < p.codeLine + 20 && n <= static_cast<int>(lines.size()); ++n) {
    const std::string line(lines[static_cast<size_t>(n) - 1]);
    if (!codeOf(line).starts_with("@")) break;
    if (const std::string text = withOption(line); !text.empty())
      return sources.diff(p.codeFile, {{LineEdit::Kind::Replace, n, text}});
  }
  std::string only;
  int found = 0;
  for (const auto& path : sources.paths()) {
    const auto all = sources.lines(path);
    for (size_t i = 0; i < all.size(); ++i) {
      // A decorator compiles the function below it, not this one.
      if (all[i].find("torch.compile") == std::string_view::npos || codeOf(all[i]).starts_with("@")) continue;
      const std::string text = withOption(std::string(all[i]));
      if (text.empty()) continue;
      ++found;
      only = sources.diff(path, {{LineEdit::Kind::Replace, static_cast<int>(i) + 1, text}});
    }
  }
  return found == 1 ? only : std::string();
}

std::string dropLast(Sources& sources) {
  for (const auto& path : sources.paths()) {
    const auto lines = sources.lines(path);
    for (size_t i = 0; i < lines.size(); ++i) {
      const std::string line(lines[i]);
      const auto call = callOf(line, "DataLoader");
      if (!call || argumentOf(*call, line, "drop_last", -1) || line.find("class ") != std::string::npos) continue;
      return sources.diff(path, {{LineEdit::Kind::Replace, static_cast<int>(i) + 1,
                                  line.substr(0, call->close) + (call->arguments.empty() ? "" : ", ") +
                                      "drop_last=True" + line.substr(call->close)}});
    }
  }
  return {};
}

}  // namespace fusebox::query
