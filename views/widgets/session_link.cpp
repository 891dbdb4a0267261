#include "views/widgets/session_link.h"

#include <QMetaObject>
#include <chrono>
#include <filesystem>
#include <sys/stat.h>

#include "profiler/importers/open.h"
#include "profiler/session/reader.h"

namespace fusebox::views {
namespace {

constexpr std::chrono::milliseconds kLookEvery{400};

/// Device and inode of a file, so that a deleted or replaced one is noticed; 0 if it is not there.
quint64 identityOf(const QString& path) {
  struct stat status {};
  if (::stat(path.toLocal8Bit().constData(), &status) != 0) return 0;
  return (static_cast<quint64>(status.st_dev) << 48) ^ static_cast<quint64>(status.st_ino);
}

}  // namespace

SessionLink::SessionLink(QString path, QObject* parent) : QObject(parent), path_(std::move(path)) {
  thread_ = std::thread([this] { readLoop(); });
}

SessionLink::~SessionLink() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    queue_.clear();
    if (running_) running_->interrupt();
  }
  import_.cancelled = true;
  wake_.notify_all();
  thread_.join();
}

void SessionLink::enqueue(QObject* owner, const char* tag, Job job) {
  const uint64_t serial = ++serial_;
  newest_[{owner, tag}] = serial;
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(queue_, [&](const Question& q) { return q.ownerKey == owner && q.tag == tag; });
    queue_.push_back({owner, owner, tag, serial, std::move(job)});
    pending_ = static_cast<int>(queue_.size()) + (running_ ? 1 : 0);
  }
  wake_.notify_all();
  emit pendingChanged(pending_);
}

void SessionLink::forget(QObject* owner) {
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(queue_, [&](const Question& q) { return q.ownerKey == owner; });
    if (running_ && runningOwner_ == owner) running_->interrupt();
    pending_ = static_cast<int>(queue_.size()) + (running_ ? 1 : 0);
  }
  std::erase_if(newest_, [&](const auto& entry) { return entry.first.first == owner; });
  emit pendingChanged(pending_);
}

void SessionLink::cancelAll() {
  {
    const std::lock_guard lock(mutex_);
    queue_.clear();
    if (running_) running_->interrupt();
  }
  newest_.clear();
  pending_ = 0;
  emit pendingChanged(0);
}

void SessionLink::answer(const QPointer<QObject>& owner, const void* ownerKey, const std::string& tag, uint64_t serial,
                         const Deliver& deliver) {
  {
    const std::lock_guard lock(mutex_);
    pending_ = static_cast<int>(queue_.size());
  }
  emit pendingChanged(pending_);
  const auto newest = newest_.find({ownerKey, tag});
  if (newest == newest_.end() || newest->second != serial) return;
  newest_.erase(newest);
  if (owner) deliver();
}

void SessionLink::noteTrouble(const Error& error) {
  if (troubleSaid_ || (error.code != ErrorCode::Corrupt && error.code != ErrorCode::Io)) return;
  troubleSaid_ = true;
  emit troubled(error);
}

void SessionLink::noteState(const session::Reader& reader) {
  const auto state = reader.state();
  live_ = state == session::Reader::State::Recording;
  abandoned_ = state == session::Reader::State::Abandoned;
}

void SessionLink::post(std::function<void()> action) {
  QMetaObject::invokeMethod(this, std::move(action), Qt::QueuedConnection);
}

bool SessionLink::openReader(std::unique_ptr<session::Reader>& reader) {
  int said = -1;
  import_.report = [this, &said](const std::string& format, double fraction) {
    const int percent = static_cast<int>(fraction * 100);
    if (percent == said || format.empty()) return;
    said = percent;
    post([this, format, percent] { emit importing(QString::fromStdString(format), percent); });
  };
  auto result = importing::openAny(path_.toStdString(), &import_);
  import_.report = nullptr;
  if (!result) {
    post([this, error = result.error()] { emit failed(error); });
    return false;
  }
  reader = std::move(*result);
  fileIdentity_ = identityOf(path_);
  noteState(*reader);
  notice_ = QString::fromStdString(reader->notice());
  post([this] {
    open_ = true;
    emit opened();
  });
  return true;
}

void SessionLink::lookForGrowth(session::Reader& reader) {
  if (const quint64 now = identityOf(path_); now != fileIdentity_) {
    if (!vanishedSaid_) {
      vanishedSaid_ = true;
      const QString why = now == 0 ? tr("The file was deleted or moved.") : tr("Another file was put in its place.");
      post([this, why] { emit vanished(why); });
    }
    return;
  }
  if (!live_) return;
  const bool changed = reader.refresh();
  noteState(reader);
  if (!changed && live_) return;
  post([this] { emit grown(); });
}

void SessionLink::readLoop() {
  std::unique_ptr<session::Reader> reader;
  if (!openReader(reader)) return;
  auto nextLook = std::chrono::steady_clock::now() + kLookEvery;
  for (;;) {
    Question question;
    {
      std::unique_lock lock(mutex_);
      wake_.wait_until(lock, nextLook, [this] { return stop_ || !queue_.empty(); });
      if (stop_) return;
      if (!queue_.empty()) {
        question = std::move(queue_.front());
        queue_.pop_front();
        running_ = reader.get();
        runningOwner_ = question.ownerKey;
      }
    }
    if (question.job) {
      Deliver deliver = question.job(*reader);
      {
        const std::lock_guard lock(mutex_);
        running_ = nullptr;
      }
      post([this, owner = question.owner, key = question.ownerKey, tag = question.tag, serial = question.serial,
            deliver = std::move(deliver)] { answer(owner, key, tag, serial, deliver); });
    }
    if (std::chrono::steady_clock::now() >= nextLook) {
      lookForGrowth(*reader);
      nextLook = std::chrono::steady_clock::now() + kLookEvery;
    }
  }
}

}  // namespace fusebox::views
