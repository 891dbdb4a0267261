#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "profiler/compare/report.h"

namespace fusebox::compare {
namespace {

// Lists are cut here; --json, --html and the window have all of it.
constexpr size_t kListed = 8;
constexpr size_t kListedSmall = 3;  // of guards and nodes, which come in hundreds

std::string sessionLine(const char* letter, const Session& s) {
  std::string text = fmt::format("{}  {}\n   {}", letter, s.path, s.engine);
  if (!s.torch.empty()) text += ", torch " + s.torch;
  if (!s.device.empty()) text += ", " + s.device;
  if (!s.command.empty()) text += ", " + s.command;
  return text + "\n";
}

std::string cut(const std::string& text, size_t most) {
  if (text.size() <= most) return text;
  size_t end = most;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;  // not inside a character
  return text.substr(0, end) + "…";
}

char sign(const Entry& e) { return e.kind == Kind::Added ? '+' : e.kind == Kind::Removed ? '-' : '~'; }

class Writer {
 public:
  explicit Writer(const Comparison& c) : c_(c), below_(c.entries.size(), 0) {
    for (size_t i = c.entries.size(); i-- > 0;) {
      const Entry& e = c.entries[i];
      if (e.kind != Kind::Same && e.subject != Subject::Section) ++below_[i];
      if (e.parent >= 0 && !c.insideOneSided(static_cast<int32_t>(i))) below_[static_cast<size_t>(e.parent)] += below_[i];
    }
  }

  std::string differences() {
    std::map<std::pair<int32_t, Subject>, size_t> listed, left;
    for (size_t i = 0; i < c_.entries.size(); ++i) {
      const Entry& e = c_.entries[i];
      if (below_[i] == 0 || e.subject == Subject::Line || c_.insideOneSided(static_cast<int32_t>(i))) continue;
      const bool differs = e.kind != Kind::Same && e.subject != Subject::Section;
      if (differs && ++listed[{e.parent, e.subject}] > (e.subject == Subject::Guard || e.subject == Subject::Node ? kListedSmall : kListed)) {
        ++left[{e.parent, e.subject}];
        continue;
      }
      write(e, differs);
    }
    for (const auto& [key, count] : left) out_ += fmt::format("  … and {} more of kind {}{}\n", count, subjectName(key.second), key.first < 0 ? "" : " in " + c_.entries[static_cast<size_t>(key.first)].name);
    return out_;
  }

 private:
  void write(const Entry& e, bool differs) {
    const std::string indent(static_cast<size_t>(2 + 2 * e.depth), ' ');
    if (!differs) {
      out_ += fmt::format("{}{}{}\n", indent, e.name, e.a.present && !e.a.text.empty() ? "  " + cut(e.a.text, 80) : "");
      return;
    }
    out_ += indent + entryLine(e) + "\n";
    if (!e.note.empty() && e.subject == Subject::Kernel) out_ += fmt::format("{}    {}\n", indent, cut(e.note, 160));
  }

  const Comparison& c_;
  std::vector<int32_t> below_;
  std::string out_;
};

std::string times(const Comparison& c) {
  struct Row {
    std::string name;
    const Entry& entry;
  };
  std::vector<Row> rows;
  for (size_t i = 0; i < c.entries.size() && rows.size() < kListed; ++i) {
    const Entry& e = c.entries[i];
    const bool step = e.subject == Subject::Time && e.name == "step";
    const bool call = e.subject == Subject::Time && (e.name == "call" || e.name == "backward call");
    if (!(call || step) || !e.a.present || !e.b.present) continue;
    int32_t root = static_cast<int32_t>(i);
    while (c.entries[static_cast<size_t>(root)].parent >= 0) root = c.entries[static_cast<size_t>(root)].parent;
    const std::string which = (e.name == "call" ? std::string() : " (backward)") + (e.note.empty() ? "" : ", " + e.note);
    rows.push_back({step ? "a step of the program" : cut(c.entries[static_cast<size_t>(root)].name, 48) + which, e});
  }
  if (rows.empty()) return {};
  size_t width = 34;
  for (const Row& row : rows) width = std::max(width, row.name.size());
  std::string out = fmt::format("\nTime of a call and of a step, median ± deviation\n  {:<{}} {:>20}  {:>20}\n", "", width, "A", "B");
  for (const auto& [name, e] : rows) out += fmt::format("  {:<{}} {:>20}  {:>20}  {}\n", name, width, e.a.text, e.b.text, e.change);
  return out;
}

}  // namespace

std::string entryLine(const Entry& e) {
  std::string text;
  switch (e.kind) {
    case Kind::Added: text = cut(e.b.text, 150); break;
    case Kind::Removed: text = cut(e.a.text, 150); break;
    default: text = fmt::format("{} → {}", cut(e.a.text, 100), cut(e.b.text, 100));
  }
  if (!e.change.empty()) text += "  " + e.change;
  if (e.kind != Kind::Added && e.kind != Kind::Removed && e.subject == Subject::Time) text += e.verdict == Verdict::Slower ? ", slower" : e.verdict == Verdict::Faster ? ", faster" : "";
  return fmt::format("{} {:<11} {}{}{}", sign(e), e.subject == Subject::Count || e.name == subjectName(e.subject) ? "" : subjectName(e.subject), cut(e.name, 60), text.empty() ? "" : ": ", text);
}

std::string toText(const Comparison& c) {
  std::string out = sessionLine("A", c.a) + sessionLine("B", c.b) + "\n";
  out += c.cause.found ? "The first difference that explains the rest\n  " : "";
  out += c.cause.headline + "\n";
  for (size_t i = 1; i < c.cause.chain.size(); ++i) out += fmt::format("    → {}\n", cut(c.cause.chain[i].text, 240));
  if (c.cause.effects > 0) out += fmt::format("  {} of {} differences in what was compiled and run lie behind it.\n", c.cause.explained, c.cause.effects);
  for (size_t i = 0; i < c.cause.others.size() && i < 5; ++i) {
    const Entry& e = c.entries[static_cast<size_t>(c.cause.others[i])];
    out += fmt::format("  also different: {}: {} → {}\n", e.name, cut(e.a.present ? e.a.text : "–", 60), cut(e.b.present ? e.b.text : "–", 60));
  }
  out += times(c);
  const std::string differences = Writer(c).differences();
  out += differences.empty() ? "\nNo differences.\n" : fmt::format("\nDifferences (- only in A, + only in B, ~ changed)\n{}", differences);
  for (const auto& limit : c.limits) out += fmt::format("note: {}\n", limit);
  return out;
}

}  // namespace fusebox::compare
