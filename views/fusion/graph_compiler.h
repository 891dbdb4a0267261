#pragma once

#include <QProcess>
#include <QStringList>

namespace fusebox::views {

/// Runs `fusebox replay` or `fusebox numerics` as a process of its own, one at a time: whatever the engine does there,
/// the window lives.
class GraphCompiler : public QObject {
  Q_OBJECT
 public:
  /// `program`: the fusebox executable.
  explicit GraphCompiler(QString program, QObject* parent = nullptr);
  ~GraphCompiler() override;

  /// Where the session of a graph of `session` goes: the cache folder, where the newest few are kept.
  static QString newSession(const QString& session, const QString& what);

  void start(const QStringList& words);
  void cancel();
  bool running() const { return process_.state() != QProcess::NotRunning; }

 signals:
  void runningChanged(bool running);
  /// `report`: what it printed; `complaint`: why there is none.
  void finished(const QByteArray& report, const QString& complaint);

 private:
  QString program_;
  QProcess process_;
  bool cancelled_ = false;
};

}  // namespace fusebox::views
