#include "app/window/settings_thread.h"

#include <QCoreApplication>
#include <QPointer>
#include <chrono>
#include <future>
#include <memory>

namespace fusebox::window {
namespace {

constexpr std::chrono::seconds kPatience{1};

/// What the GUI thread knows of the settings.
class KnownSettings {
 public:
  KnownSettings() : answer_(ask()) { answer_.wait_for(kPatience); }

  bool isRead() const { return answer_.wait_for(std::chrono::seconds(0)) == std::future_status::ready; }

  QVariant value(const QString& key, const QVariant& otherwise) const {
    if (const auto kept = kept_.find(key); kept != kept_.end()) return kept->isValid() ? *kept : otherwise;
    return isRead() ? answer_.get().value(key, otherwise) : otherwise;
  }

  void keep(const QVariantMap& values) { kept_.insert(values); }

 private:
  static std::shared_future<QVariantMap> ask() {
    auto promise = std::make_shared<std::promise<QVariantMap>>();
    changeSettings([promise](QSettings& settings) {
      QVariantMap all;
      for (const QString& key : settings.allKeys()) all.insert(key, settings.value(key));
      promise->set_value(all);
    });
    return promise->get_future().share();
  }

  std::shared_future<QVariantMap> answer_;
  QVariantMap kept_;
};

std::unique_ptr<KnownSettings>& known() {
  static std::unique_ptr<KnownSettings> one;
  if (!one) one = std::make_unique<KnownSettings>();
  return one;
}

}  // namespace

QThreadPool& settingsThread() {
  static QPointer<QThreadPool> thread;
  if (!thread) {
    thread = new QThreadPool(qApp);  // its destructor waits
    thread->setMaxThreadCount(1);
  }
  return *thread;
}

void changeSettings(std::function<void(QSettings&)> change) {
  settingsThread().start([change = std::move(change)] {
    QSettings settings;
    change(settings);
  });
}

QVariant setting(const QString& key, const QVariant& otherwise) { return known()->value(key, otherwise); }

bool areSettingsRead() { return known()->isRead(); }

void keepSettings(const QVariantMap& values) {
  known()->keep(values);
  changeSettings([values](QSettings& settings) {
    for (auto value = values.begin(); value != values.end(); ++value) {
      if (value->isValid()) settings.setValue(value.key(), *value);
      else settings.remove(value.key());
    }
  });
}

void forgetSettings() {
  settingsThread().waitForDone();
  QSettings().clear();
  known().reset();
}

}  // namespace fusebox::window
