#pragma once

#include <QObject>
#include <QPointer>
#include <QString>
#include <any>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "engine/support/result.h"
#include "profiler/importers/import_context.h"

namespace fusebox::session {
class Reader;
}

namespace fusebox::views {

/// One open session as the window sees it: a thread of its own reads the file, views ask it tagged questions, and a newer
/// question with the same owner and tag replaces an older one, which is stopped where it is being answered. Questions of what is in
/// sight go first. Answers arrive on the GUI thread. While the session is being
/// written the link looks for new rows and says `grown`. A foreign file is made into a session by a second thread; if that
/// takes longer than a moment, the session is shown while it grows.
class SessionLink : public QObject {
  Q_OBJECT
 public:
  explicit SessionLink(QString path, QObject* parent = nullptr);
  /// Waits for the threads: what a question computes is not ended in the middle.
  ~SessionLink() override;
  /// Deletes a link once its threads have ended, and does not wait for that; the application does when it ends.
  struct Leave {
    void operator()(SessionLink* link) const;
  };

  QString path() const { return path_; }  // by value: who closes the link by its path still reads it afterwards
  bool isOpen() const { return open_; }
  /// True while the recording program still writes.
  bool isLive() const { return recording_ == Recording::Live; }
  /// True if its process ended without finishing it.
  bool isAbandoned() const { return recording_ == Recording::Abandoned; }
  /// Finished, and its program ended with another exit code than 0.
  bool hasFailed() const { return hasFailed_; }
  /// Not finished, and recorded on another machine that is silent.
  bool isElsewhere() const { return recording_ == Recording::Elsewhere; }
  /// True while a foreign file is being read, before and after `opened`.
  bool isImporting() const { return importing_; }
  /// Ends the reading of a foreign file: what was read stays, see `imported`. Returns at once.
  void stopImporting();
  /// What the reader could not see; empty if nothing.
  QString notice() const { return notice_; }
  int pending() const { return pending_; }

  /// Runs `query` on the reading thread and `done` with its result on the GUI thread, unless `owner` is gone or has asked
  /// again with the same tag by then. Where the user stops all reading, the result is an error (`Cancelled`).
  template <class T>
  void ask(QObject* owner, const char* tag, std::function<Result<T>(session::Reader&)> query,
           std::function<void(Result<T>&)> done) {
    const auto stopped = [done] {
      Result<T> none = fail(ErrorCode::Cancelled, "reading was stopped", "reload the session to read on");
      done(none);
    };
    enqueue(owner, tag, stopped, [this, query = std::move(query), done](session::Reader& reader) {
      auto result = std::make_shared<Result<T>>(answered(query, reader));
      return std::function<void()>([this, result, done] {
        if (!*result) noteTrouble(result->error());
        done(*result);
      });
    });
  }

  /// Stops and forgets what `owner` has asked. Its `done`s are not called.
  void forget(QObject* owner);
  /// Stops the running question, whose `done` gets the error `Cancelled`; those that wait go on.
  void cancelRunning();
  /// Stops the running question and those that wait; each `done` gets the error `Cancelled`.
  void cancelAll();

 signals:
  void opened();
  /// A foreign file is being read; before `opened`, and after it while the session grows. Percent.
  void importing(const QString& format, int percent);
  /// A foreign file that was shown while it grew is read now: whole, or the first `percent` of it.
  void imported(bool whole, int percent);
  void failed(const fusebox::Error& error);
  /// New rows were committed since the last look, or the recording has ended.
  void grown();
  /// The file was deleted or replaced while open; what was read stays. Sent again when another file takes its place.
  void vanished(const QString& why, bool isReplaced);
  /// A question could not be answered because the file is damaged or unreadable; sent once.
  void troubled(const fusebox::Error& error);
  void pendingChanged(int pending);

 private:
  using Deliver = std::function<void()>;
  using Job = std::function<Deliver(session::Reader&)>;
  struct Question {
    QPointer<QObject> owner;
    const void* ownerKey = nullptr;
    std::string tag;
    uint64_t serial = 0;
    bool isSeen = false;  ///< its owner was in sight when it asked: it goes before those that were not
    Job job;
  };

  /// Whatever a damaged file makes a question throw (no memory for an absurd size) is its answer, not the end of the program.
  template <class T>
  static Result<T> answered(const std::function<Result<T>(session::Reader&)>& query, session::Reader& reader) {
    try {
      return query(reader);
    } catch (const std::exception& thrown) {
      return fail(ErrorCode::Corrupt, "the session holds what cannot be read", thrown.what());
    }
  }

  int waiting() const { return static_cast<int>(queue_.size()) + (running_ ? 1 : 0); }  ///< under mutex_
  void enqueue(QObject* owner, const char* tag, std::function<void()> stopped, Job job);
  void answer(const QPointer<QObject>& owner, const void* ownerKey, const std::string& tag, uint64_t serial,
              const Deliver& deliver);
  void noteTrouble(const Error& error);
  void stop();
  void threadEnded();
  void readLoop();
  void importLoop();
  bool openReader(std::unique_ptr<session::Reader>& reader);
  bool adopt(std::unique_ptr<session::Reader>& reader, const std::string& path);
  void finishImport(std::unique_ptr<session::Reader>& reader);
  void noteState(session::Reader& reader);
  void lookForGrowth(session::Reader& reader);
  void post(std::function<void()> action);

  QString path_;
  bool open_ = false;
  /// As the file says and its process shows.
  enum class Recording : uint8_t { Finished, Live, Abandoned, Elsewhere };
  std::atomic<Recording> recording_{Recording::Finished};
  std::atomic<bool> hasFailed_{false};
  QString notice_;            // set before `opened`
  bool troubleSaid_ = false;
  int pending_ = 0;
  uint64_t serial_ = 0;
  struct Asked {
    uint64_t serial = 0;
    QPointer<QObject> owner;
    std::function<void()> stopped;
  };
  std::map<std::pair<const void*, std::string>, Asked> newest_;  // GUI thread only

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Question> queue_;
  bool stop_ = false;
  session::Reader* running_ = nullptr;  // guarded by mutex_, for interrupting
  const void* runningOwner_ = nullptr;  // guarded by mutex_
  std::string runningTag_;              // guarded by mutex_
  int64_t dataVersion_ = -1;
  quint64 fileIdentity_ = 0;
  std::optional<quint64> saidIdentity_;  ///< of what `vanished` spoke of last

  // The import: what its thread leaves for the reading one, guarded by mutex_.
  importing::ImportProgress import_;
  std::string growing_;                               ///< the session that can be opened while it grows
  std::optional<Result<std::string>> importedPath_;   ///< how it ended
  bool closeWanted_ = false, readerClosed_ = false;
  std::atomic<bool> importing_{false};
  int endedThreads_ = 0;  // GUI thread
  bool isLeft_ = false;   // GUI thread
  std::thread thread_, importThread_;
};

}  // namespace fusebox::views
