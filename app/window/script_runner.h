#pragma once

#include <QMap>
#include <QProcess>
#include <QStringDecoder>
#include <QTimer>

namespace fusebox::window {

/// What to run and how: the words of `fusebox run`.
struct RunRequest {
  QString script;
  QString module;             ///< run as `python -m`; instead of the script
  QStringList arguments;
  QString python;             ///< empty: the one that Fusebox was built for
  QString engine;             ///< fusebox, stock, eager; empty: fusebox
  QString directory;          ///< working directory; empty: the script's, with a module the window's own
  QStringList recording;      ///< options of `fusebox run` that record more
  QMap<QString, QString> variables;    ///< of its environment, as its user set them
  QStringList rawCommand;     ///< words after `fusebox run`, instead of the fields above
  QMap<QString, QString> environment;  ///< what a debugger wants besides, for one start

  /// What is run, in one word: a script's file name or the module's.
  QString name() const;
  /// The script's whole path; empty for a module.
  QString scriptPath() const;
  /// Where it runs.
  QString folder() const;
  /// `-m module` or the script's whole path, then the arguments.
  QStringList program() const;
  /// The window's own environment with what the request adds.
  QProcessEnvironment wholeEnvironment() const;
};

/// How a run ended, in words for the message bar; `what` is empty if all is well.
struct RunOutcome {
  QString what;
  QString details;
  bool failed = false;
  QString file;  ///< of the program, whose line raised; empty if not known
  int line = 0;
};

/// What the user did to end a run.
enum class UserEnd { Nothing, Stopped, Killed };

/// Starts `fusebox run` as a process of its own and follows it. The script's crash, hang or lack of memory stays there.
class ScriptRunner : public QObject {
  Q_OBJECT
 public:
  explicit ScriptRunner(QString program, QObject* parent = nullptr);
  ~ScriptRunner() override;

  void start(const RunRequest& request);
  /// Asks the process to end, and kills it three seconds later.
  void stop();
  /// The user has let the debugger kill the program: its end by a signal will be no surprise.
  void expectKill() { end_ = UserEnd::Killed; }
  void write(const QString& text);
  bool running() const { return process_.state() != QProcess::NotRunning; }
  const QString& program() const { return program_; }
  const QString& sessionPath() const { return session_; }

  /// Explains an exit: pure, so that it can be tested. `errors` is what was written to stderr.
  static RunOutcome explain(const QString& script, int exitCode, QProcess::ExitStatus status, UserEnd byUser, const QString& errors);

 signals:
  void started(const QString& commandLine);
  void output(const QString& text, bool isError);
  /// The session file exists.
  void sessionAppeared(const QString& path);
  void finished(const fusebox::window::RunOutcome& outcome);

 private:
  void look();
  void ended(int exitCode, QProcess::ExitStatus status);

  QString program_;
  QProcess process_;
  QTimer look_;
  QTimer grace_;  ///< runs between a stop and the end of the process
  QString session_, script_, errors_;
  QStringDecoder decodeOutput_{QStringDecoder::System}, decodeErrors_{QStringDecoder::System};  ///< a letter may come in two parts
  bool appeared_ = false;
  UserEnd end_ = UserEnd::Nothing;
};

}  // namespace fusebox::window
