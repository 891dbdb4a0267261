#include "views/widgets/session_link.h"

#include <QCoreApplication>
#include <QMetaObject>
#include <QWidget>
#include <algorithm>
#include <chrono>
#include <exception>
#include <filesystem>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "profiler/importers/open.h"
#include "profiler/session/reader.h"
#include "views/widgets/signal_stack.h"

namespace fusebox::views {
namespace {

constexpr std::chrono::milliseconds kLookEvery{400};
constexpr int kImportNice = 3;
constexpr int kThreads = 2;

/// Device and inode of a file, so that a deleted or replaced one is noticed; 0 if it is not there.
quint64 identityOf(const QString& path) {
  struct stat status {};
  if (::stat(path.toLocal8Bit().constData(), &status) != 0) return 0;
  return (static_cast<quint64>(status.st_dev) << 48) ^ static_cast<quint64>(status.st_ino);
}

}  // namespace

SessionLink::SessionLink(QString path, QObject* parent) : QObject(parent), path_(std::move(path)) {
  importThread_ = std::thread([this] {
    const SignalStack stack;
    importLoop();
    post([this] { threadEnded(); });
  });
  thread_ = std::thread([this] {
    const SignalStack stack;
    readLoop();
    post([this] { threadEnded(); });
  });
}

void SessionLink::stop() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    queue_.clear();
    if (running_) running_->interrupt();
  }
  import_.cancelled = import_.known = true;  // nobody wants what was read
  wake_.notify_all();
}

SessionLink::~SessionLink() {
  stop();
  thread_.join();
  importThread_.join();
  if (import_.partial && importedPath_ && *importedPath_) importing::removeSession(**importedPath_);
}

void SessionLink::Leave::operator()(SessionLink* link) const {
  link->disconnect();
  link->newest_.clear();
  link->setParent(QCoreApplication::instance());
  link->isLeft_ = true;
  link->stop();
  if (link->endedThreads_ == kThreads) link->deleteLater();
}

void SessionLink::threadEnded() {
  if (++endedThreads_ == kThreads && isLeft_) deleteLater();
}

void SessionLink::stopImporting() { import_.cancelled = true; }

void SessionLink::enqueue(QObject* owner, const char* tag, std::function<void()> stopped, Job job) {
  const uint64_t serial = ++serial_;
  const auto* widget = qobject_cast<const QWidget*>(owner);
  const bool isSeen = !widget || !widget->visibleRegion().isEmpty();
  newest_[{owner, tag}] = {serial, owner, std::move(stopped)};
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(queue_, [&](const Question& q) { return q.ownerKey == owner && q.tag == tag; });
    if (running_ && runningOwner_ == owner && runningTag_ == tag) running_->interrupt();  // nobody waits for its answer
    const auto before = isSeen ? std::find_if(queue_.begin(), queue_.end(), [](const Question& q) { return !q.isSeen; }) : queue_.end();
    queue_.insert(before, {owner, owner, tag, serial, isSeen, std::move(job)});
    pending_ = waiting();
  }
  wake_.notify_all();
  emit pendingChanged(pending_);
}

void SessionLink::forget(QObject* owner) {
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(queue_, [&](const Question& q) { return q.ownerKey == owner; });
    if (running_ && runningOwner_ == owner) running_->interrupt();
    pending_ = waiting();
  }
  std::erase_if(newest_, [&](const auto& entry) { return entry.first.first == owner; });
  emit pendingChanged(pending_);
}

void SessionLink::cancelRunning() {
  std::pair<const void*, std::string> running;
  {
    const std::lock_guard lock(mutex_);
    if (!running_) return;
    running_->interrupt();
    running = {runningOwner_, runningTag_};
    const auto isAskedAgain = [&](const Question& q) { return q.ownerKey == running.first && q.tag == running.second; };
    if (std::any_of(queue_.begin(), queue_.end(), isAskedAgain)) return;
  }
  const auto asked = newest_.extract(running);
  if (!asked.empty() && asked.mapped().owner) asked.mapped().stopped();
}

void SessionLink::cancelAll() {
  {
    const std::lock_guard lock(mutex_);
    queue_.clear();
    if (running_) running_->interrupt();
  }
  pending_ = 0;
  emit pendingChanged(0);
  for (const auto& [key, asked] : std::exchange(newest_, {})) {
    if (asked.owner) asked.stopped();
  }
}

void SessionLink::answer(const QPointer<QObject>& owner, const void* ownerKey, const std::string& tag, uint64_t serial,
                         const Deliver& deliver) {
  {
    const std::lock_guard lock(mutex_);
    pending_ = waiting();
  }
  emit pendingChanged(pending_);
  const auto newest = newest_.find({ownerKey, tag});
  if (newest == newest_.end() || newest->second.serial != serial) return;
  newest_.erase(newest);
  if (owner) deliver();
}

void SessionLink::noteTrouble(const Error& error) {
  if (troubleSaid_ || (error.code != ErrorCode::Corrupt && error.code != ErrorCode::Io)) return;
  troubleSaid_ = true;
  emit troubled(error);
}

void SessionLink::noteState(session::Reader& reader) {
  auto state = reader.state();
  // A process that ended since the last look may have finished its session before: what is there now is the last word.
  if (state == session::Reader::State::Abandoned && reader.refresh()) state = reader.state();
  const std::string code = reader.info("exit_code");
  hasFailed_ = state == session::Reader::State::Finished && !code.empty() && code != "0";
  switch (state) {
    case session::Reader::State::Recording: recording_ = Recording::Live; break;
    case session::Reader::State::Finished: recording_ = Recording::Finished; break;
    case session::Reader::State::Abandoned: recording_ = Recording::Abandoned; break;
    case session::Reader::State::Elsewhere: recording_ = Recording::Elsewhere; break;
  }
}

void SessionLink::post(std::function<void()> action) {
  QMetaObject::invokeMethod(this, std::move(action), Qt::QueuedConnection);
}

void SessionLink::importLoop() {
  // Of this thread and those that it starts: the window and its answers go before.
  (void)::setpriority(PRIO_PROCESS, static_cast<id_t>(::syscall(SYS_gettid)), kImportNice);
  int said = -1;
  import_.report = [this, &said](const std::string& format, double fraction) {
    const int percent = static_cast<int>(fraction * 100);
    if (percent == said || format.empty()) return;
    said = percent;
    importing_ = true;
    post([this, format, percent] {
      if (importing_ && !import_.cancelled) emit importing(QString::fromStdString(format), percent);
    });
  };
  import_.usable = [this](const std::string& path) {
    const std::lock_guard lock(mutex_);
    growing_ = path;
    wake_.notify_all();
  };
  import_.closing = [this] {
    std::unique_lock lock(mutex_);
    closeWanted_ = true;
    wake_.notify_all();
    wake_.wait(lock, [this] { return readerClosed_ || stop_; });
  };
  const auto import = [this]() -> Result<std::string> {
    try {
      return importing::sessionFor(path_.toStdString(), &import_);
    } catch (const std::exception& thrown) {
      return fail(ErrorCode::Corrupt, "the file cannot be read", thrown.what());
    }
  };
  auto result = import();
  const std::lock_guard lock(mutex_);
  importing_ = false;
  importedPath_ = std::move(result);
  wake_.notify_all();
}

bool SessionLink::openReader(std::unique_ptr<session::Reader>& reader) {
  std::string path;
  {
    std::unique_lock lock(mutex_);
    wake_.wait(lock, [this] { return stop_ || importedPath_ || !growing_.empty(); });
    if (stop_) return false;
    if (importedPath_ && !*importedPath_) {
      post([this, error = importedPath_->error()] { emit failed(error); });
      return false;
    }
    path = importedPath_ ? **importedPath_ : growing_;
  }
  fileIdentity_ = identityOf(path_);
  if (!adopt(reader, path)) return false;
  post([this] {
    open_ = true;
    emit opened();
  });
  return true;
}

bool SessionLink::adopt(std::unique_ptr<session::Reader>& reader, const std::string& path) {
  reader.reset();
  auto opened = session::Reader::open(path);
  if (!opened) {
    post([this, error = opened.error()] { emit failed(error); });
    return false;
  }
  reader = std::move(*opened);
  noteState(*reader);
  post([this, notice = QString::fromStdString(reader->notice())] { notice_ = notice; });
  return true;
}

/// The session that grew gets its last form: closes it, waits, and opens it again.
void SessionLink::finishImport(std::unique_ptr<session::Reader>& reader) {
  reader.reset();
  {
    std::unique_lock lock(mutex_);
    readerClosed_ = true;
    wake_.notify_all();
    wake_.wait(lock, [this] { return stop_ || importedPath_; });
    if (stop_) return;
    if (!*importedPath_) {
      post([this, error = importedPath_->error()] { emit failed(error); });
      return;
    }
    growing_.clear();
  }
  if (!adopt(reader, **importedPath_)) return;
  post([this, whole = !import_.partial, percent = static_cast<int>(import_.fraction * 100)] {
    emit imported(whole, percent);
    emit grown();
  });
}

void SessionLink::lookForGrowth(session::Reader& reader) {
  if (const quint64 now = identityOf(path_); now != fileIdentity_) {
    // One that is recorded again is gone for a moment.
    if (std::exchange(saidIdentity_, now) != now) {
      const QString why = now == 0 ? tr("The file was deleted or moved.") : tr("Another file was put in its place.");
      post([this, why, now] { emit vanished(why, now != 0); });
    }
    return;
  }
  // One that seems abandoned may have been opened before it said which process records it.
  const Recording was = recording_;
  if (was != Recording::Live && was != Recording::Abandoned) return;
  const bool changed = reader.refresh();
  noteState(reader);
  if (!changed && recording_ == was) return;
  post([this] { emit grown(); });
}

void SessionLink::readLoop() {
  std::unique_ptr<session::Reader> reader;
  if (!openReader(reader)) return;
  const auto importEnds = [this] { return !growing_.empty() && (closeWanted_ || importedPath_); };
  auto nextLook = std::chrono::steady_clock::now() + kLookEvery;
  for (;;) {
    Question question;
    bool ends = false;
    {
      std::unique_lock lock(mutex_);
      wake_.wait_until(lock, nextLook, [&] { return stop_ || !queue_.empty() || importEnds(); });
      if (stop_) return;
      ends = importEnds();
      if (!ends && !queue_.empty()) {
        question = std::move(queue_.front());
        queue_.pop_front();
        running_ = reader.get();
        running_->allow();
        runningOwner_ = question.ownerKey;
        runningTag_ = question.tag;
      }
    }
    if (ends) {
      finishImport(reader);
      if (!reader) return;
      continue;
    }
    if (question.job) {
      Deliver deliver;
      try {
        deliver = question.job(*reader);
      } catch (const std::exception& error) {  // out of memory, or numbers that no recorder writes
        deliver = [this, why = std::string(error.what())] {
          noteTrouble({ErrorCode::Corrupt, "what the session holds cannot be shown: " + why, path_.toStdString()});
        };
      }
      {
        const std::lock_guard lock(mutex_);
        running_ = nullptr;
        reader->allow();
      }
      post([this, owner = question.owner, key = question.ownerKey, tag = question.tag, serial = question.serial,
            deliver = std::move(deliver)] { answer(owner, key, tag, serial, deliver); });
    }
    if (std::chrono::steady_clock::now() >= nextLook) {
      const bool wasLive = isLive();
      lookForGrowth(*reader);
      // Closed and opened again, a session that has just been finished becomes one file, which can be copied.
      if (wasLive && !isLive() && !adopt(reader, std::string(reader->path()))) return;
      nextLook = std::chrono::steady_clock::now() + kLookEvery;
    }
  }
}

}  // namespace fusebox::views
