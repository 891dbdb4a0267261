#include "views/widgets/details_panel.h"

#include <QScrollBar>

#include "profiler/query/source_patch.h"
#include "views/widgets/theme.h"

namespace fusebox::views {
namespace {

/// A text of a page; the time to lay out a word grows with the square of its length.
constexpr qsizetype kMostShown = 6000, kMostInLine = 300;

constexpr QLatin1StringView kChange{"change"};  ///< links to changes: this and a number

QString shownOf(const QString& text, qsizetype most = kMostShown) {
  if (text.size() <= most) return text.toHtmlEscaped();
  return (text.left(most) + DetailsPanel::tr("… and %1 characters more").arg(text.size() - most)).toHtmlEscaped();
}

}  // namespace

DetailsPanel::DetailsPanel(const QString& name, QWidget* parent) : QTextBrowser(parent) {
  setObjectName(name);
  setAccessibleName(tr("Details"));
  setOpenLinks(false);
  setFrameShape(NoFrame);
  document()->setDocumentMargin(10);
  connect(this, &QTextBrowser::anchorClicked, this, [this](const QUrl& url) {
    const QString target = url.toString();
    if (target.startsWith(kChange)) {
      const QString diff = changes_.value(target.sliced(kChange.size()).toInt());
      if (!diff.isEmpty()) emit changeWanted(diff);
      return;
    }
    const int index = target.toInt();
    if (index < 0 || index >= static_cast<int>(links_.size())) return;
    const Location place = links_[static_cast<size_t>(index)];  // whoever hears it may show another page
    emit linkActivated(place);
  });
  connect(&Theme::instance(), &Theme::changed, this, &DetailsPanel::rebuild);
}

void DetailsPanel::showPage(std::function<void(DetailsPanel&)> write) {
  write_ = std::move(write);
  rebuild();
}

void DetailsPanel::showHint(const QString& text) {
  showPage([text](DetailsPanel& page) { page.paragraph(text, true); });
}

void DetailsPanel::rebuild() {
  if (!write_) return;
  const int scroll = verticalScrollBar()->value();
  html_.clear();
  links_.clear();
  changes_.clear();
  inTable_ = false;
  write_(*this);
  closeTable();
  setHtml(html_);
  verticalScrollBar()->setValue(scroll);
}

void DetailsPanel::closeTable() {
  if (inTable_) html_ += QStringLiteral("</table>");
  inTable_ = false;
}

void DetailsPanel::heading(const QString& text, const QString& tag) {
  closeTable();
  html_ += QStringLiteral("<p style='margin:0 0 6px 0'><span style='font-size:large; font-weight:600'>%1</span>")
               .arg(shownOf(text, kMostInLine));
  if (!tag.isEmpty()) {
    html_ += QStringLiteral("&nbsp;&nbsp;<span style='color:%1'>%2</span>").arg(themed(Token::TextMuted).name(), shownOf(tag, kMostInLine));
  }
  html_ += QStringLiteral("</p>");
}

void DetailsPanel::section(const QString& text) {
  closeTable();
  html_ += QStringLiteral("<p style='margin:12px 0 3px 0; color:%1; font-weight:600'>%2</p>")
               .arg(themed(Token::TextMuted).name(), shownOf(text));
}

QString DetailsPanel::linkTo(const Location& location, const QString& html) {
  links_.push_back(location);
  return QStringLiteral("<a style='color:%1; text-decoration:none' href='%2'>%3</a>")
      .arg(themed(Token::Accent).name())
      .arg(links_.size() - 1)
      .arg(html);
}

void DetailsPanel::pair(const QString& name, const QString& value, const Location& link) {
  if (value.isEmpty()) return;
  if (!inTable_) html_ += QStringLiteral("<table cellspacing='0' cellpadding='0' width='100%'>");
  inTable_ = true;
  QString shown = shownOf(value).replace(QLatin1Char('\n'), QStringLiteral("<br>"));
  if (link.kind != ObjectKind::None) shown = linkTo(link, shown);
  html_ += QStringLiteral("<tr><td style='padding:1px 12px 1px 0; color:%1; white-space:nowrap'>%2</td>"
                          "<td width='100%' style='padding:1px 0'>%3</td></tr>")
               .arg(themed(Token::TextMuted).name(), shownOf(name, kMostInLine), shown);
}

void DetailsPanel::paragraph(const QString& text, bool muted) {
  closeTable();
  html_ += QStringLiteral("<p style='margin:3px 0; color:%1'>%2</p>")
               .arg(themed(muted ? Token::TextMuted : Token::Text).name(),
                    shownOf(text).replace(QLatin1Char('\n'), QStringLiteral("<br>")));
}

void DetailsPanel::code(const QString& text) {
  closeTable();
  html_ += QStringLiteral("<pre style='margin:3px 0; font-family:\"%1\"; white-space:pre-wrap'>%2</pre>")
               .arg(Theme::monospace().family(), shownOf(text));
}

void DetailsPanel::emphasis(const QString& text) {
  closeTable();
  html_ += QStringLiteral("<p style='margin:9px 0 2px 0; font-weight:600'>%1</p>").arg(shownOf(text));
}

void DetailsPanel::diff(const QString& text) {
  closeTable();
  html_ += QStringLiteral("<pre style='margin:4px 0; font-family:\"%1\"; white-space:pre-wrap'>").arg(Theme::monospace().family());
  for (const QString& line : text.split(QLatin1Char('\n'))) {
    const bool header = line.startsWith(QLatin1String("---")) || line.startsWith(QLatin1String("+++")) || line.startsWith(QLatin1String("@@"));
    const Token token = header ? Token::TextFaint : line.startsWith(QLatin1Char('+')) ? Token::Good : line.startsWith(QLatin1Char('-')) ? Token::Error : Token::Text;
    html_ += QStringLiteral("<span style='color:%1'>%2</span>\n").arg(themed(token).name(), shownOf(line));
  }
  html_ += QStringLiteral("</pre>");
  const std::string path = query::pathOfDiff(text.toStdString());
  if (path.empty()) return;
  html_ += QStringLiteral("<p style='margin:0 0 4px 0'><a style='color:%1; text-decoration:none' href='%2%3'>%4</a></p>")
               .arg(themed(Token::Accent).name(), kChange)
               .arg(changes_.size())
               .arg(shownOf(tr("Change %1 so…").arg(QString::fromStdString(path).section(QLatin1Char('/'), -1)), kMostInLine));
  changes_ << text;
}

}  // namespace fusebox::views
