#include "profiler/query/call_site.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <utility>

#include "profiler/query/python_line.h"

namespace fusebox::query {

std::string localOf(const GuardProblem& p) {
  std::string source = p.source;
  if (source.empty() && p.text.starts_with("tensor '")) source = p.text.substr(8, p.text.find('\'', 8) - 8);
  if (source.starts_with("L['") && source.ends_with("']") && source.find('\'', 3) == source.size() - 2)
    source = source.substr(3, source.size() - 5);
  return isIdentifier(source) ? source : std::string();
}

namespace {

/// The user's innermost caller, outside of the code object itself; the end if it was not recorded.
std::vector<StackPlace>::const_reverse_iterator callerOf(const std::vector<StackPlace>& call) {
  if (call.empty()) return call.rend();
  return std::find_if(call.rbegin() + 1, call.rend(), [](const StackPlace& place) { return place.isUsers(); });
}

/// Whether the program gives what torch.compile() returns this name ("net", "self.net").
bool isCompiledName(std::string_view name, Sources& sources) {
  for (const auto& path : sources.paths()) {
    for (const auto line : sources.lines(path)) {
      const auto call = callOf(line, "torch.compile");
      if (!call) continue;
      std::string_view before = codeOf(line.substr(0, call->begin));
      if (!before.ends_with('=')) continue;
      before = codeOf(before.substr(0, before.size() - 1));
      if (before.ends_with(name) && (before.size() == name.size() || before[before.size() - name.size() - 1] == ' ')) return true;
    }
  }
  return false;
}

/// The call of `function` on the line. By its name or that of what was compiled, else the only one there is.
std::optional<CallText> callOn(const std::string& line, const std::string& function, Sources& sources) {
  std::vector<CallText> named, others;
  for (auto& call : callsOn(line)) {
    if (call.callee.starts_with("torch.") || call.callee == "print") continue;
    const bool isNamed = lastName(call.callee) == function || isCompiledName(call.callee, sources);
    (isNamed ? named : others).push_back(std::move(call));
  }
  auto& found = named.empty() ? others : named;
  return found.size() == 1 ? std::optional(std::move(found[0])) : std::nullopt;
}

}  // namespace

std::optional<CallSite> callSite(const GuardProblem& p, Sources& sources) {
  const std::string name = localOf(p);
  if (name.empty() || p.isResumed) return std::nullopt;
  const Definition definition = definitionAt(sources.lines(p.codeFile), p.codeLine);
  const auto& parameters = definition.parameters;
  const auto found = std::find(parameters.begin(), parameters.end(), name);
  if (found == parameters.end()) return std::nullopt;
  int position = static_cast<int>(found - parameters.begin());
  if (definition.isMethod) --position;
  const auto at = callerOf(p.call);
  if (at == p.call.rend()) return std::nullopt;
  const std::string line = sources.line(at->file, at->line);
  const auto call = callOn(line, definition.name, sources);
  const auto* argument = call ? argumentOf(*call, line, name, position) : nullptr;
  if (!argument) return std::nullopt;
  return CallSite{at->file, line, line.substr(argument->begin, argument->end - argument->begin), at->line, argument->begin, argument->end};
}

void findEntrance(const session::Reader& reader, Sources& sources, GuardProblem& p) {
  struct Compiled {
    std::string file, name;
    int line = 0;
  };
  std::vector<Compiled> compiled;
  (void)reader.each("SELECT file, name, line FROM frames WHERE parent_frame_id IS NULL", {}, [&](const session::Statement& s) {
    compiled.push_back({s.string("file"), s.string("name"), static_cast<int>(s.integer("line"))});
  });
  const auto isCompiled = [&](const StackPlace& place) {
    return std::any_of(compiled.begin(), compiled.end(), [&](const Compiled& c) {
      if (c.file != place.file || lastName(c.name) != lastName(place.function)) return false;
      const auto lines = sources.lines(c.file);
      if (lines.empty()) return c.line <= place.line;
      const int defined = definitionAt(lines, c.line).line;
      // A frame that has not begun is at its first decorator.
      return (place.line >= c.line && place.line <= defined) || defined == definitionAround(lines, place.line, place.function);
    });
  };
  const auto& call = std::as_const(p.call);
  const auto inside = std::find_if(call.begin(), call.end(), isCompiled);
  if (inside == call.end()) return;
  const auto caller = callerOf(call);
  p.isInside = caller != call.rend() && inside < caller.base();
  const auto entrance = std::find_if(std::make_reverse_iterator(inside), call.rend(), [](const StackPlace& place) { return place.isUsers(); });
  if (entrance != call.rend()) p.entrance = *entrance;
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
