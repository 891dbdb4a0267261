#include <fmt/format.h>

#include <ostream>

#include "profiler/compare/report.h"
#include "profiler/export/html_text.h"

namespace fusebox::compare {
namespace {

using exporting::escaped;

constexpr std::string_view kStyle = R"(<style>
tr.added td:nth-child(3), tr.changed td:nth-child(3) { background: #0b6bcb22; }
tr.removed td:nth-child(2), tr.changed td:nth-child(2) { background: #d5800022; }
tr.same { opacity: .65; } #all:not(:checked) ~ table tr.same { display: none; } td { width: 25%; } .why { border-left: 3px solid var(--accent); padding-left: 1rem; }
tr.section td { font-weight: 600; padding-top: 1rem; }
</style>)";

void session(std::ostream& out, const char* letter, const Session& s) {
  out << fmt::format("<tr><th>{}</th><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n", letter, escaped(s.path), escaped(s.engine), escaped(s.torch), escaped(s.command));
}

void row(std::ostream& out, const Entry& e) {
  const bool heading = e.subject == Subject::Section || e.subject == Subject::CodeObject;
  std::string note = e.change;
  if (!e.note.empty()) note += (note.empty() ? "" : "; ") + e.note;
  out << fmt::format("<tr class=\"{}{}\"><td style=\"padding-left:{}rem\">{}{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
                     heading ? "section " : "", heading ? "" : kindName(e.kind), 1.2 * e.depth, heading || e.subject == Subject::Count ? "" : fmt::format("<span class=note>{}</span> ", subjectName(e.subject)),
                     escaped(e.name), escaped(e.a.present ? e.a.text : ""), escaped(e.b.present ? e.b.text : ""), escaped(note));
}

}  // namespace

void writeHtml(const Comparison& c, std::ostream& out) {
  out << "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta http-equiv=Content-Security-Policy content=\"default-src 'none'; style-src 'unsafe-inline'\"><title>Two sessions compared</title>\n" << exporting::kHtmlStyle << kStyle << "</head><body>\n<h1>Two sessions compared</h1>\n<table>";
  session(out, "A", c.a);
  session(out, "B", c.b);
  out << "</table>\n<h2>" << (c.cause.found ? "The first difference that explains the rest" : "In short") << "</h2>\n<div class=why><p><b>" << escaped(c.cause.headline) << "</b></p>";
  if (c.cause.chain.size() > 1) {
    out << "<ol>";
    for (const CauseStep& step : c.cause.chain) out << "<li>" << escaped(step.text) << "</li>";
    out << "</ol>";
  }
  if (c.cause.effects > 0) out << fmt::format("<p class=note>{} of {} differences in what was compiled and run lie behind it.</p>", c.cause.explained, c.cause.effects);
  out << "</div>\n<h2>Everything</h2>\n<input type=checkbox id=all> <label for=all>show what is the same</label>\n"
         "<table><tr><th></th><th>A</th><th>B</th><th>Change</th></tr>\n";
  for (const Entry& e : c.entries) row(out, e);
  out << "</table>\n";
  for (const auto& limit : c.limits) out << "<p class=note>" << escaped(limit) << "</p>\n";
  out << "</body></html>\n";
}

}  // namespace fusebox::compare
