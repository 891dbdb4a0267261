#pragma once

#include <QCoreApplication>
#include <QObject>
#include <QPointer>
#include <QThreadPool>
#include <atomic>
#include <functional>
#include <memory>

#include "views/widgets/signal_stack.h"

namespace fusebox::views {

/// One calculation at a time on another thread. Starting a new one cancels the old one, whose result is dropped. What a
/// calculation throws is said by `failed` instead of `done`.
class BackgroundJob : public QObject {
  Q_OBJECT
 public:
  using QObject::QObject;
  ~BackgroundJob() override { cancel(); }

  /// `work` runs elsewhere and should look at its flag; `done` runs on this object's thread, unless cancelled.
  template <class T>
  void start(std::function<T(const std::atomic<bool>&)> work, std::function<void(T&)> done) {
    cancel();
    auto flag = std::make_shared<std::atomic<bool>>(false);
    flag_ = flag;
    emit runningChanged(true);
    QThreadPool::globalInstance()->start([self = QPointer<BackgroundJob>(this), flag, work = std::move(work),
                                          done = std::move(done)]() mutable {
      thread_local const SignalStack stack;
      std::function<void()> tell;
      try {
        tell = [result = std::make_shared<T>(work(*flag)), done = std::move(done)] { done(*result); };
      } catch (const std::exception& thrown) {  // no memory, or numbers that no recorder writes
        tell = [self, why = QString::fromUtf8(thrown.what())] { emit self->failed(why); };
      }
      if (*flag) return;
      QMetaObject::invokeMethod(
          qApp,
          [self, flag, tell = std::move(tell)] {
            if (!self || *flag) return;
            self->flag_.reset();
            emit self->runningChanged(false);
            tell();
          },
          Qt::QueuedConnection);
    });
  }

  void cancel() {
    if (!flag_) return;
    *flag_ = true;
    flag_.reset();
    emit runningChanged(false);
  }
  bool running() const { return flag_ != nullptr; }

 signals:
  void runningChanged(bool running);
  void failed(const QString& why);

 private:
  std::shared_ptr<std::atomic<bool>> flag_;
};

}  // namespace fusebox::views
