#include "views/widgets/advice_page.h"

#include <QCoreApplication>
#include <algorithm>

#include "views/widgets/text.h"

namespace fusebox::views {
void writeAdvice(DetailsPanel& page, const std::vector<query::Advice>& advice) {
  if (advice.empty()) return;
  page.section(QCoreApplication::translate("Advice", "What to do"));
  for (const auto& one : advice) {
    page.emphasis(str(one.title));
    page.paragraph(str(one.text));
    if (!one.diff.empty()) page.diff(str(one.diff));
  }
}

void writeSymbols(DetailsPanel& page, const std::vector<query::ShapeSymbol>& symbols) {
  if (symbols.empty()) return;
  page.section(QCoreApplication::translate("Shapes", "Symbolic sizes"));
  for (const auto& s : symbols) {
    const Location place = s.line > 0 ? Location::sourceLine(s.file, static_cast<int>(s.line)) : Location{};
    page.pair(str(s.name), str(s.legend().substr(std::min(s.legend().size(), s.name.size() + (s.source.empty() ? 2 : 3)))), place);
  }
}

void writeStack(DetailsPanel& page, const std::vector<query::StackPlace>& stack) {
  const bool any = std::any_of(stack.begin(), stack.end(), [](const auto& place) { return place.isUsers(); });
  for (auto at = stack.rbegin(); at != stack.rend(); ++at) {
    if (any && !at->isUsers()) continue;
    page.pair(str(at->function), str(shortPlace(at->file, at->line)), Location::sourceLine(at->file, at->line));
  }
}

}  // namespace fusebox::views
