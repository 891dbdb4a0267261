#include "app/window/manual_window.h"

#include <QFile>
#include <QHBoxLayout>
#include <QResizeEvent>
#include <QScrollBar>
#include <QSplitter>
#include <QUrl>
#include <QVBoxLayout>

#include <functional>

#include "app/window/language.h"
#include "views/common/fuzzy_match.h"
#include "views/widgets/theme.h"

namespace fusebox::window {
namespace {

using views::ObjectKind;

struct PageOfKind {
  ObjectKind kind;
  const char* page;
};
constexpr PageOfKind kPages[] = {
    {ObjectKind::Break, "breaks"},       {ObjectKind::Failure, "recompiles"}, {ObjectKind::Guard, "guards"},
    {ObjectKind::Kernel, "kernels"},     {ObjectKind::Node, "graph"},         {ObjectKind::Group, "fusion"},
    {ObjectKind::Graph, "graph"},        {ObjectKind::SourceLine, "source"},  {ObjectKind::Launch, "timeline"},
    {ObjectKind::Artifact, "artifacts"}, {ObjectKind::Compile, "recompiles"}, {ObjectKind::Frame, "recompiles"},
};

/// A file of the manual in the window's language, where it is translated.
QString translated(const QString& name) {
  const QString there = QStringLiteral(":/manual/%1/%2").arg(spokenLanguage(), name);
  return QFile::exists(there) ? there : QStringLiteral(":/manual/") + name;
}

QString pathOf(const QString& name) { return translated(name + QStringLiteral(".md")); }

/// The first heading of a page.
QString titleOf(const QString& text) {
  const QString line = text.section(QLatin1Char('\n'), 0, 0);
  return line.startsWith(QLatin1String("# ")) ? line.mid(2) : line;
}

/// A picture of the manual in the theme of the window.
QImage pictureOf(const QString& name) {
  const QString dark = translated(QStringLiteral("dark/") + name);
  return QImage(views::Theme::instance().dark() && QFile::exists(dark) ? dark : translated(name));
}

/// Shows a page with its pictures, none wider than the page.
class PageBrowser : public QTextBrowser {
 public:
  std::function<void()> widthChanged;

  QVariant loadResource(int type, const QUrl& name) override {
    if (type != QTextDocument::ImageResource) return QTextBrowser::loadResource(type, name);
    QImage image = pictureOf(name.path());
    const double scale = devicePixelRatioF(), margins = 2 * document()->documentMargin() + verticalScrollBar()->sizeHint().width();
    const int widest = static_cast<int>((width() - margins) * scale);
    if (widest > 0 && image.width() > widest) image = image.scaledToWidth(widest, Qt::SmoothTransformation);
    image.setDevicePixelRatio(scale);
    return image;
  }

 protected:
  void resizeEvent(QResizeEvent* event) override {
    QTextBrowser::resizeEvent(event);
    if (width() == shownWidth_) return;  // a scroll bar came or went
    shownWidth_ = width();
    QMetaObject::invokeMethod(this, [this] { widthChanged(); }, Qt::QueuedConnection);
  }

 private:
  int shownWidth_ = 0;
};

}  // namespace

ManualWindow::ManualWindow(const views::ActionRegistry& registry, QWidget* parent)
    : QDialog(parent, Qt::Window),
      registry_(registry),
      search_(new QLineEdit),
      list_(new QListWidget),
      browser_(nullptr) {
  auto* browser = new PageBrowser;
  browser_ = browser;
  browser->widthChanged = [this] {
    const int scroll = browser_->verticalScrollBar()->value();
    show(page_);
    browser_->verticalScrollBar()->setValue(scroll);
  };
  setObjectName(QStringLiteral("manual"));
  setWindowTitle(tr("Manual"));
  const int em = fontMetrics().height();
  resize(68 * em, 46 * em);
  search_->setObjectName(QStringLiteral("manual.search"));
  search_->setAccessibleName(tr("Search the manual"));
  search_->setPlaceholderText(tr("Search the manual"));
  search_->setClearButtonEnabled(true);
  list_->setObjectName(QStringLiteral("manual.pages"));
  list_->setAccessibleName(tr("Pages of the manual"));
  list_->setFrameShape(QFrame::NoFrame);
  browser_->setObjectName(QStringLiteral("manual.text"));
  browser_->setAccessibleName(tr("Page of the manual"));
  browser_->setFrameShape(QFrame::NoFrame);
  browser_->setOpenLinks(false);
  browser_->document()->setDocumentMargin(18);
  auto* left = new QWidget;
  auto* leftColumn = new QVBoxLayout(left);
  leftColumn->setContentsMargins(8, 8, 8, 8);
  leftColumn->addWidget(search_);
  leftColumn->addWidget(list_, 1);
  auto* split = new QSplitter;
  split->addWidget(left);
  split->addWidget(browser_);
  split->setStretchFactor(1, 1);
  split->setSizes({14 * em, 54 * em});
  auto* row = new QHBoxLayout(this);
  row->setContentsMargins(0, 0, 0, 0);
  row->addWidget(split);
  connect(search_, &QLineEdit::textChanged, this, &ManualWindow::fillList);
  connect(search_, &QLineEdit::returnPressed, this, [this] {
    list_->setFocus();
    if (list_->count() > 0) list_->setCurrentRow(0);
  });
  connect(list_, &QListWidget::currentItemChanged, this, [this](const QListWidgetItem* item) {
    if (item) show(item->data(Qt::UserRole).toString());
  });
  connect(browser_, &QTextBrowser::anchorClicked, this, [this](const QUrl& url) {
    QString name = url.path();
    if (name.endsWith(QLatin1String(".md"))) openPage(name.chopped(3));
  });
  connect(&views::Theme::instance(), &views::Theme::changed, this, [this] { show(page_); });
  fillList({});
}

QStringList ManualWindow::pages() {
  QFile file(QStringLiteral(":/manual/pages.txt"));
  if (!file.open(QIODevice::ReadOnly)) return {};
  return QString::fromUtf8(file.readAll()).split(QLatin1Char('\n'), Qt::SkipEmptyParts);
}

QString ManualWindow::pageFor(const views::Location& selected, const QString& view) {
  for (const auto& row : kPages) {
    if (row.kind == selected.kind) return QString::fromLatin1(row.page);
  }
  return QFile::exists(pathOf(view)) ? view : QStringLiteral("index");
}

QString ManualWindow::textOf(const QString& name) const {
  QFile file(pathOf(name));
  if (!file.open(QIODevice::ReadOnly)) return {};
  QString text = QString::fromUtf8(file.readAll());
  if (name == QLatin1String("keys")) text += keyTable();
  return text;
}

QString ManualWindow::keyTable() const {
  QString text = tr("\n| keys | what they do |\n|---|---|\n");
  for (const auto& entry : registry_.entries()) {
    const QString keys = entry.action->shortcut().toString(QKeySequence::NativeText);
    QString what = entry.action->text();
    what.remove(QLatin1Char('&'));
    if (!keys.isEmpty()) text += QStringLiteral("| %1 | %2: %3 |\n").arg(keys, entry.category, what);
  }
  return text;
}

void ManualWindow::fillList(const QString& words) {
  const QSignalBlocker blocked(list_);
  list_->clear();
  for (const QString& name : pages()) {
    const QString text = textOf(name);
    if (text.isEmpty() || !views::filterMatches(words.toStdString(), text.toStdString())) continue;
    auto* item = new QListWidgetItem(titleOf(text), list_);
    item->setData(Qt::UserRole, name);
    if (name == page_) list_->setCurrentItem(item);
  }
}

void ManualWindow::openPage(const QString& name) {
  const QString wanted = QFile::exists(pathOf(name)) ? name : QStringLiteral("index");
  search_->clear();
  for (int i = 0; i < list_->count(); ++i) {
    if (list_->item(i)->data(Qt::UserRole).toString() == wanted) list_->setCurrentRow(i);
  }
  show(wanted);
}

void ManualWindow::show(const QString& name) {
  if (name.isEmpty()) return;
  page_ = name;
  browser_->clear();  // pictures are made anew, as wide as the page is now
  browser_->setMarkdown(textOf(name));
  browser_->moveCursor(QTextCursor::Start);
  const QString word = search_->text().section(QLatin1Char(' '), 0, 0);
  if (!word.isEmpty() && !word.startsWith(QLatin1Char('-'))) browser_->find(word);
}

}  // namespace fusebox::window
