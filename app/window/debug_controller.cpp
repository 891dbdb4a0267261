#include "app/window/debug_controller.h"

#include <QPointer>
#include <QTimer>
#include <algorithm>

#include "app/debug/debug_text.h"
#include "app/debug/script_functions.h"

namespace fusebox::window {

using debugging::numberField;
using debugging::textField;

DebugController::DebugController(QObject* parent) : QObject(parent) {
  client_.onStopped = [this](const Json& stop) {
    noteStop(stop);
    learn();
    emit stateChanged();
    emit stopped();
  };
  client_.onResumed = [this] { emit stateChanged(); };
  client_.onConnected = [this] {
    left_ = false;
    for (Breakpoint& b : breakpoints_) b.seen = b.missed = false;
    learn();
    emit stateChanged();
  };
  client_.onNotice = [this](const std::string& text) { emit noticed(QString::fromStdString(text)); };
  client_.onDisconnected = [this](const std::string& why) {
    for (Breakpoint& b : breakpoints_) {
      b.missed = !left_ && b.hostId > 0 && b.hits == 0 && b.description.value("enabled", true);
      b.hostId = b.hits = 0;
    }
    emit stateChanged();
    emit breakpointsChanged();
    emit disconnected(QString::fromStdString(why));
  };
}

Result<QMap<QString, QString>> DebugController::prepare(const Json& extra) {
  client_.detach();
  Json first = extra.is_array() ? extra : Json::array();
  for (const Breakpoint& b : breakpoints_) {
    Json description = b.description;
    description["tag"] = b.tag;
    first.push_back(std::move(description));
  }
  client_.server().setFirstBreakpoints(std::move(first));
  if (auto listening = client_.server().listen(); !listening) return tl::unexpected(listening.error());
  QMap<QString, QString> environment;
  for (const auto& [name, value] : client_.server().environment())
    environment.insert(QString::fromStdString(name), QString::fromStdString(value));
  watch();
  emit stateChanged();
  return environment;
}

/// Follows the descriptor that is to be read: first the listener, then the connection.
void DebugController::watch() {
  const int fd = client_.server().fd();
  if (notifier_ && notifier_->socket() == fd) return;
  if (notifier_) {
    notifier_->setEnabled(false);
    notifier_.release()->deleteLater();  // it may be calling us
  }
  if (fd < 0) return;
  notifier_ = std::make_unique<QSocketNotifier>(fd, QSocketNotifier::Read);
  connect(notifier_.get(), &QSocketNotifier::activated, this, [this] {
    client_.receive();
    watch();
  });
}

void DebugController::programEnded() {
  if (client_.isConnected()) client_.receive();  // what it said last
  client_.detach();
  watch();
  emit stateChanged();
}

DebugController::State DebugController::state() const {
  if (client_.isConnected()) return client_.isStopped() ? State::Stopped : State::Running;
  return client_.server().fd() >= 0 ? State::Waiting : State::Off;
}

void DebugController::request(Json message, QObject* context, debugging::DebugClient::Answer answer) {
  const QPointer<QObject> alive(context ? context : this);
  client_.request(std::move(message), [this, alive, answer = std::move(answer)](bool ok, const Json& result) {
    if (!alive) return;
    if (answer)
      answer(ok, result);
    else if (!ok)
      emit noticed(QString::fromStdString(result.is_string() ? result.get<std::string>() : result.dump()));
  });
}

void DebugController::ask(const QString& what, QObject* context, debugging::DebugClient::Answer answer) {
  request({{"do", "ask"}, {"what", what.toStdString()}}, context, std::move(answer));
}

void DebugController::step(const char* how, bool byInstruction) {
  Json message{{"do", "step"}, {"how", how}};
  if (byInstruction) message["unit"] = "instruction";
  request(std::move(message));
}

void DebugController::resume(const char* untilKind) {
  Json message{{"do", "continue"}};
  if (untilKind) message["until"] = untilKind;
  request(std::move(message));
}

void DebugController::fusion(const char* verb, const QString& rule) {
  request({{"do", "fusion"}, {"verb", verb}, {"rule", rule.toStdString()}}, this, [this](bool ok, const Json& result) {
    if (!ok)
      emit noticed(QString::fromStdString(result.get<std::string>()));
    else
      emit noticed(tr("%1: %2").arg(QString::fromStdString(textField(result, "verb")),
                                    QString::fromStdString(textField(result, "rule"))));
    learn();
  });
}

void DebugController::detach() {
  left_ = true;
  client_.detach();
  watch();
  emit stateChanged();
}

void DebugController::addBreakpoint(Json description) {
  Breakpoint made;
  made.tag = nextTag_++;
  made.description = std::move(description);
  made.description.erase("do");
  made.description["enabled"] = true;
  breakpoints_.push_back(made);
  if (client_.isConnected()) {
    Json message = made.description;
    message["do"] = "break.add";
    message["tag"] = made.tag;
    request(std::move(message), this, [this, tag = made.tag](bool ok, const Json& result) {
      for (size_t i = 0; i < breakpoints_.size(); ++i) {
        if (breakpoints_[i].tag != tag) continue;
        if (ok) {
          breakpoints_[i].hostId = numberField(result, "breakpoint");
          emit noticed(tr("breakpoint %1: %2").arg(breakpoints_[i].hostId).arg(QString::fromStdString(debugging::breakpointText(result))));
          emit breakpointsChanged();
        } else {
          breakpoints_.erase(breakpoints_.begin() + static_cast<std::ptrdiff_t>(i));
          emit noticed(QString::fromStdString(result.is_string() ? result.get<std::string>() : result.dump()));
          emit breakpointsChanged();
        }
        return;
      }
    });
  }
  emit breakpointsChanged();
}

void DebugController::removeBreakpoint(size_t index) {
  if (index >= breakpoints_.size()) return;
  const int64_t id = breakpoints_[index].hostId;
  breakpoints_.erase(breakpoints_.begin() + static_cast<std::ptrdiff_t>(index));
  if (client_.isConnected() && id)
    request({{"do", "break.remove"}, {"breakpoint", id}}, this, [](bool, const Json&) {});
  emit breakpointsChanged();
}

void DebugController::enableBreakpoint(size_t index, bool on) {
  if (index >= breakpoints_.size()) return;
  breakpoints_[index].description["enabled"] = on;
  if (const int64_t id = breakpoints_[index].hostId; client_.isConnected() && id)
    request({{"do", "break.enable"}, {"breakpoint", id}, {"enabled", on}}, this, [](bool, const Json&) {});
  emit breakpointsChanged();
}

void DebugController::toggleLine(const QString& file, int line) {
  for (size_t i = 0; i < breakpoints_.size(); ++i) {
    const Json& d = breakpoints_[i].description;
    if (textField(d, "file") == file.toStdString() && numberField(d, "line") == line) return removeBreakpoint(i);
  }
  addBreakpoint({{"kind", "line"}, {"file", file.toStdString()}, {"line", line}});
}

std::map<int, bool> DebugController::linesOf(const QString& file) const {
  std::map<int, bool> lines;
  for (const Breakpoint& b : breakpoints_) {
    const std::string wanted = textField(b.description, "file");
    const QString path = QString::fromStdString(wanted);
    if (wanted.empty() || (file != path && !file.endsWith(QLatin1Char('/') + path))) continue;
    lines[static_cast<int>(numberField(b.description, "line"))] = b.description.value("enabled", true);
  }
  return lines;
}

/// Of breakpoints at one place one is hit; the others have come to what they name as well.
void DebugController::noteStop(const Json& stop) {
  const Json names = stop.value("names", Json::array());
  for (Breakpoint& b : breakpoints_) {
    const std::string wanted = textField(b.description, "name");
    b.seen = b.seen || numberField(stop, "breakpoint") == b.hostId ||
             std::any_of(names.begin(), names.end(), [&](const Json& name) { return name.is_string() && debugging::namesFunction(wanted, name.get<std::string>()); });
  }
}

/// The program has numbered the breakpoints that it was greeted with (the tags tell which is which), counts their hits, and knows
/// the rules in force.
void DebugController::learn() {
  request({{"do", "status"}}, this, [this](bool ok, const Json& result) {
    if (!ok) return;
    const Json known = result.value("breakpoints", Json::array());
    const auto describes = [](const Breakpoint& b) { return [&b](const Json& one) { return b.tag == numberField(one, "tag", -1); }; };
    // One for a single stop is gone with it.
    std::erase_if(breakpoints_, [&](const Breakpoint& b) {
      return b.hostId > 0 && b.description.value("once", false) && std::none_of(known.begin(), known.end(), describes(b));
    });
    for (Breakpoint& b : breakpoints_) {
      const auto found = std::find_if(known.begin(), known.end(), describes(b));
      if (found == known.end()) continue;
      b.hostId = numberField(*found, "breakpoint");
      b.hits = numberField(*found, "hits");
    }
    rules_.clear();
    for (const Json& rule : result.value("fusion_rules", Json::array())) rules_.push_back({textField(rule, "verb"), textField(rule, "rule")});
    emit breakpointsChanged();
    emit rulesChanged();
  });
}

std::string DebugController::ruleOn(const std::string& a, const std::string& b) const {
  for (const FusionRule& rule : rules_)
    if (rule.pair == a + "," + b || rule.pair == b + "," + a || rule.pair == a || rule.pair == b) return rule.verb;
  return {};
}

}  // namespace fusebox::window
