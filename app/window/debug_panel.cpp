#include "app/window/debug_panel.h"

#include <QAction>
#include <QHBoxLayout>
#include <QTimer>
#include <QToolButton>
#include <QVBoxLayout>

#include "app/debug/debug_text.h"
#include "app/window/tensor_pane.h"
#include "views/widgets/theme.h"
#include "views/widgets/text.h"

namespace fusebox::window {
namespace {

using debugging::numberField;
using debugging::textField;
using views::EmptyState;
using views::str;

constexpr int kStillRunningMs = 250, kLeastLines = 8;

}  // namespace

DebugPanel::DebugPanel(DebugController* controller, QWidget* parent)
    : QWidget(parent), controller_(controller), tabs_(new QTabWidget) {
  setObjectName(QStringLiteral("debug"));
  tabs_->setObjectName(QStringLiteral("debug.tabs"));
  tabs_->setAccessibleName(tr("What the stopped compiler tells"));
  tabs_->setDocumentMode(true);
  tabs_->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Ignored);  // the dock keeps its height whatever a tab would like
  tabs_->setMinimumHeight(fontMetrics().height() * kLeastLines);
  auto* all = new QVBoxLayout(this);
  all->setContentsMargins(0, 0, 0, 0);
  all->setSpacing(0);
  all->addWidget(buildBanner());
  all->addWidget(tabs_, 1);
  buildVariables();
  buildFrames();
  buildGuards();
  buildTexts();
  buildFusions();
  buildKernel();
  buildTensor();
  buildBreakpoints();
  buildOptions();
  buildConsole();
  connect(tabs_, &QTabWidget::currentChanged, this, &DebugPanel::fill);
  connect(controller_, &DebugController::stopped, this, &DebugPanel::stopped);
  connect(controller_, &DebugController::stateChanged, this, &DebugPanel::stateChanged);
  connect(controller_, &DebugController::breakpointsChanged, this, &DebugPanel::showBreakpoints);
  connect(controller_, &DebugController::noticed, this, [this](const QString& text) { say(text + QLatin1Char('\n')); });
  // A label keeps the colours that its text had when it was set.
  connect(&views::Theme::instance(), &views::Theme::changed, this, [this] {
    if (controller_->state() == DebugController::State::Stopped) stateChanged();
  });
  stateChanged();
  showBreakpoints();
}

QWidget* DebugPanel::buildBanner() {
  bar_ = new QWidget;
  auto* buttons = new QHBoxLayout(bar_);
  buttons->setContentsMargins(0, 0, 0, 0);
  buttons->setSpacing(2);
  state_ = new QLabel;
  state_->setTextFormat(Qt::RichText);
  state_->setObjectName(QStringLiteral("debug.state"));
  state_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  state_->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);  // one line at every stop; the tooltip has the rest
  place_ = new QLabel;
  place_->setTextFormat(Qt::RichText);
  place_->setObjectName(QStringLiteral("debug.place"));
  place_->setAccessibleName(tr("Place of the stop; opens the line"));
  connect(place_, &QLabel::linkActivated, this, [this] {
    const auto& stop = controller_->stop();
    emit placeChosen(str(textField(stop, "file")), static_cast<int>(numberField(stop, "line")));
  });
  auto* banner = new QWidget;
  banner->setObjectName(QStringLiteral("viewToolbar"));
  banner->setAttribute(Qt::WA_StyledBackground);
  auto* line = new QHBoxLayout(banner);
  line->setContentsMargins(6, 3, 8, 3);
  line->addWidget(bar_);
  line->addSpacing(8);
  line->addWidget(state_, 1);
  line->addWidget(place_);
  return banner;
}

void DebugPanel::setActions(const QList<QAction*>& actions) {
  for (QAction* action : actions) {
    if (!action) {
      static_cast<QHBoxLayout*>(bar_->layout())->addSpacing(8);
      continue;
    }
    auto* made = new QToolButton;
    made->setObjectName(QStringLiteral("debug.button.") + action->objectName());
    made->setDefaultAction(action);
    made->setAutoRaise(true);
    made->setIconSize(QSize(18, 18));
    made->setAccessibleName(action->text().remove(QLatin1Char('&')));
    if (action->icon().isNull()) made->setToolButtonStyle(Qt::ToolButtonTextOnly);
    bar_->layout()->addWidget(made);
  }
}

bool DebugPanel::known(const std::string& question) const {
  if (controller_->state() != DebugController::State::Stopped) return false;
  if (question == "options") return true;
  for (const Json& name : controller_->stop().value("questions", Json::array()))
    if (name == question) return true;
  return false;
}

void DebugPanel::stopped() {
  frameUp_ = 0;
  for (Part& part : parts_) part.isStale = true;
  say(str(debugging::stopText(controller_->stop())));
  chooseTab();
  fill();
}

/// Stays where the person is while that tab has something to say; otherwise goes to the first that does.
void DebugPanel::chooseTab() {
  bool isPart = false;
  for (const Part& part : parts_) {
    if (part.tab != tabs_->currentIndex()) continue;
    isPart = true;
    if (known(part.question)) return;
  }
  if (!isPart && tabs_->currentIndex() != breakpointsTab_) return;
  for (const Part& part : parts_) {
    if (!known(part.question)) continue;
    tabs_->setCurrentIndex(part.tab);
    return;
  }
}

void DebugPanel::fill() {
  for (Part& part : parts_) {
    if (part.tab != tabs_->currentIndex()) continue;
    if (!known(part.question)) {
      part.empty->showReason(controller_->state() == DebugController::State::Stopped
                                 ? tr("Nothing to tell at this stop")
                                 : tr("The program is not stopped"),
                             controller_->state() == DebugController::State::Off
                                 ? tr("Start one with Debug script…; it stops before its first compile.")
                             : controller_->state() == DebugController::State::Stopped
                                 ? tr("It is known at stops of another kind; the console command \"help\" lists what can be asked.")
                                 : tr("Pause it, or set a breakpoint."));
      continue;
    }
    if (!part.isStale) continue;
    part.isStale = false;
    if (part.question == "tensor") {
      part.empty->showContent();
      tensor_->refresh();
      continue;
    }
    const bool ofFrame = part.question == "locals" || part.question == "stack" || part.question == "code";
    const auto show = [this, &part](bool ok, const Json& result) {
      if (!ok && controller_->state() != DebugController::State::Stopped) return;  // it went on meanwhile
      if (!ok)
        return part.empty->showReason(tr("This cannot be told"),
                                      result.is_string() ? str(result.get<std::string>()) : QString());
      part.show(result);
      part.empty->showContent();
    };
    if (part.question == "options")
      controller_->request({{"do", "options"}}, this, show);
    else
      controller_->ask(str(part.question) + (ofFrame && frameUp_ > 0 ? QStringLiteral(":%1").arg(frameUp_) : QString()),
                       this, show);
  }
}

void DebugPanel::stateChanged() {
  const auto state = controller_->state();
  const auto& stop = controller_->stop();
  QString text = tr("Not debugging"), place;
  if (state == DebugController::State::Waiting) text = tr("Waiting for the program to load the engine…");
  if (state == DebugController::State::Running) text = tr("Running");
  if (state == DebugController::State::Stopped) {
    text = str(debugging::stopTitle(stop));
    if (const std::string trouble = textField(stop, "condition_trouble"); !trouble.empty())
      text = tr("(whether the condition holds cannot be told: %1)  ").arg(str(trouble)) + text;
    if (const std::string file = textField(stop, "file"); !file.empty())
      place = QStringLiteral("<a href=\"#\" style=\"color:%3\">%1:%2</a>")
                  .arg(str(views::baseName(file)).toHtmlEscaped())
                  .arg(numberField(stop, "line"))
                  .arg(views::themed(views::Token::Accent).name());
  }
  const bool isStopped = state == DebugController::State::Stopped;
  state_->setText(isStopped ? tr("<b>Stopped</b>  %1").arg(text.toHtmlEscaped()) : text.toHtmlEscaped());
  state_->setToolTip(isStopped ? text : QString());
  place_->setText(place);
  if (!isStopped) {
    for (Part& part : parts_) part.isStale = true;
    // A step is over in an instant: what is shown stays until then.
    QTimer::singleShot(kStillRunningMs, this, [this] {
      if (controller_->state() != DebugController::State::Stopped) fill();
    });
  }
}

}  // namespace fusebox::window
