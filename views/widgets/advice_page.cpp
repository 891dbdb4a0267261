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

void writeStack(DetailsPanel& page, const std::vector<query::StackPlace>& stack) {
  const bool any = std::any_of(stack.begin(), stack.end(), [](const auto& place) { return place.isUsers(); });
  for (auto at = stack.rbegin(); at != stack.rend(); ++at) {
    if (any && !at->isUsers()) continue;
    page.pair(str(at->function), str(shortPlace(at->file, at->line)), Location::sourceLine(at->file, at->line));
  }
}

}  // namespace fusebox::views
