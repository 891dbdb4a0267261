#pragma once

#include <QMap>
#include <QObject>
#include <QSocketNotifier>
#include <memory>
#include <vector>

#include "app/debug/debug_client.h"

namespace fusebox::window {

/// The debugged program behind the window: owns the control channel and the breakpoints, which outlive runs. Never
/// waits for the program: answers arrive by the event loop, and a program that hangs or dies changes only the state.
class DebugController : public QObject {
  Q_OBJECT
 public:
  using Json = nlohmann::json;
  struct Breakpoint {
    Json description;    ///< as break.add takes it, with `enabled`
    int64_t hostId = 0;  ///< in the program that runs; 0: unknown there
    int64_t hits = 0;    ///< in the program that runs
    int64_t tag = 0;
    bool seen = false;     ///< the program that runs, or ran last, stopped in a function that it names, if it names one
    bool missed = false;   ///< the program that ran last ended without a hit
  };
  struct FusionRule {
    std::string verb, pair;  ///< "forbid" or "force"; "A,B"
  };
  enum class State { Off, Waiting, Running, Stopped };

  explicit DebugController(QObject* parent = nullptr);

  /// Opens a channel for a program about to be started, and gives what its environment needs. `extra`: breakpoints for
  /// its start only.
  Result<QMap<QString, QString>> prepare(const Json& extra);
  /// The program's process has ended.
  void programEnded();

  /// The script that runs or ran last; empty for a module.
  void setScript(std::string path) { script_ = std::move(path); }
  const std::string& script() const { return script_; }

  State state() const;
  /// The message of the current stop; null unless stopped.
  const Json& stop() const { return client_.stop(); }

  /// Any request of the protocol. `answer` may be empty; it is not called after `context` has gone.
  void request(Json message, QObject* context = nullptr, debugging::DebugClient::Answer answer = {});
  void ask(const QString& what, QObject* context, debugging::DebugClient::Answer answer);
  void step(const char* how, bool byInstruction);
  void resume(const char* untilKind = nullptr);
  void pause() { request({{"do", "pause"}}); }
  void skipFrame() { request({{"do", "skip"}}); }
  void fusion(const char* verb, const QString& rule = {});
  /// In the program that runs, as of its last stop or change.
  const std::vector<FusionRule>& rules() const { return rules_; }
  /// "forbid" or "force" where a rule is about the two; empty otherwise.
  std::string ruleOn(const std::string& a, const std::string& b) const;
  void detach();
  /// Ends the program at once, whatever it is doing.
  void kill() {
    emit killAsked();
    request({{"do", "kill"}});
  }

  const std::vector<Breakpoint>& breakpoints() const { return breakpoints_; }
  void addBreakpoint(Json description);
  void removeBreakpoint(size_t index);
  void enableBreakpoint(size_t index, bool on);
  /// Adds or removes the one at a line.
  void toggleLine(const QString& file, int line);
  /// Enabled and disabled lines of one file.
  std::map<int, bool> linesOf(const QString& file) const;

 signals:
  /// The user wants the program killed.
  void killAsked();
  void stateChanged();
  void stopped();
  void breakpointsChanged();
  void rulesChanged();
  /// Something that the person should know.
  void noticed(const QString& text);
  /// The channel to a program that was being debugged ended.
  void disconnected(const QString& why);

 private:
  void watch();
  void learn();
  void noteStop(const Json& stop);

  debugging::DebugClient client_;
  std::unique_ptr<QSocketNotifier> notifier_;
  std::vector<Breakpoint> breakpoints_;
  std::vector<FusionRule> rules_;
  int64_t nextTag_ = 1;
  std::string script_;
  bool left_ = false;  ///< detached: the program goes on
};

}  // namespace fusebox::window
