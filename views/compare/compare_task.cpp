#include "views/compare/compare_task.h"

#include "profiler/importers/open.h"
#include "profiler/session/reader.h"

namespace fusebox::views {

Result<std::unique_ptr<session::Reader>> CompareTask::open(const std::string& path, Stage stage) {
  import_.report = [this, stage](const std::string&, double fraction) {
    if (report) report(stage, fraction);
  };
  if (report) report(stage, 0);
  auto reader = importing::openAny(path, &import_);
  if (reader && progress_.cancelled) return fail(ErrorCode::InvalidArgument, "cancelled");
  return reader;
}

Result<compare::Comparison> CompareTask::run(const std::string& a, const std::string& b) {
  auto left = open(a, Stage::ReadA);
  if (!left) return tl::unexpected(left.error());
  auto right = open(b, Stage::ReadB);
  if (!right) return tl::unexpected(right.error());
  {
    const std::lock_guard lock(mutex_);
    readers_ = {left->get(), right->get()};
  }
  progress_.report = [this](double fraction) {
    if (report) report(Stage::Compare, fraction);
  };
  auto out = compare::compareSessions(**left, **right, &progress_);
  {
    const std::lock_guard lock(mutex_);
    readers_ = {};
  }
  if (out) out->a.path = a, out->b.path = b;
  return out;
}

void CompareTask::cancel() {
  import_.cancelled = true;
  progress_.cancelled = true;
  const std::lock_guard lock(mutex_);
  for (const session::Reader* reader : readers_) {
    if (reader) reader->interrupt();
  }
}

}  // namespace fusebox::views
