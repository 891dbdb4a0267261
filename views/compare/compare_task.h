#pragma once

#include <array>
#include <functional>
#include <mutex>
#include <string>

#include "profiler/compare/comparison.h"
#include "profiler/importers/import_context.h"

namespace fusebox::views {

/// Reads two files and compares them, on the thread that calls `run`; `cancel` from another ends that soon, whatever it is doing.
class CompareTask {
 public:
  enum class Stage { ReadA, ReadB, Compare };
  /// Told on the thread of `run`, 0 .. 1 within the stage.
  std::function<void(Stage, double)> report;

  Result<compare::Comparison> run(const std::string& a, const std::string& b);
  void cancel();

 private:
  Result<std::unique_ptr<session::Reader>> open(const std::string& path, Stage stage);

  importing::ImportProgress import_;
  compare::Progress progress_;
  std::mutex mutex_;
  std::array<const session::Reader*, 2> readers_{};  ///< those being read
};

}  // namespace fusebox::views
