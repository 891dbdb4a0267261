#include "profiler/export/output_file.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "profiler/export/gzip_output.h"

namespace fusebox::exporting {
namespace {

namespace fs = std::filesystem;

tl::unexpected<Error> notWritten(const std::string& place) {
  return fail(ErrorCode::Io, std::string("cannot be written: ") + std::strerror(errno), place);
}

Result<int64_t> writePlain(const std::string& place, const std::string& path, const std::function<Result<int64_t>(std::ostream&)>& write) {
  std::ofstream out(path, std::ios::binary);
  if (!out) return notWritten(place);
  auto written = write(out);
  out.close();
  if (written && !out) return notWritten(place);
  return written;
}

Result<int64_t> writeCompressed(const std::string& place, const std::string& path, const std::function<Result<int64_t>(std::ostream&)>& write) {
  GzipOutput out(path);
  if (out.failed()) return notWritten(place);
  auto written = write(out.stream());
  out.close();
  if (written && out.failed()) return notWritten(place);
  return written;
}

}  // namespace

OutputFile::OutputFile(std::string place) : place_(std::move(place)), path_(place_) {
  std::error_code error;
  const bool exists = fs::exists(place_, error);
  if (exists && !fs::is_regular_file(place_, error)) return;
  if (exists) place_ = fs::canonical(place_, error).string();  // a link stays one
  const fs::path whole(place_);
  path_ = (whole.parent_path() / (".part-" + std::to_string(::getpid()) + "-" + whole.filename().string())).string();
}

OutputFile::~OutputFile() {
  std::error_code ignored;
  if (isFinished_ || path_ == place_) return;
  for (const char* ending : {"", "-journal", "-wal", "-shm"}) fs::remove(path_ + ending, ignored);
}

Result<void> OutputFile::finish() {
  std::error_code error;
  if (path_ == place_) return {};
  if (const auto before = fs::status(place_, error); fs::exists(before)) fs::permissions(path_, before.permissions(), error);
  fs::rename(path_, place_, error);
  if (error) return fail(ErrorCode::Io, "cannot be written: " + error.message(), place_);
  isFinished_ = true;
  return {};
}

Result<int64_t> writeOutput(const std::string& place, const std::function<Result<int64_t>(std::ostream&)>& write) {
  OutputFile file(place);
  auto written = (place.ends_with(".gz") ? writeCompressed : writePlain)(place, file.path(), write);
  if (!written) return written;
  if (auto finished = file.finish(); !finished) return tl::unexpected(finished.error());
  return written;
}

Result<void> writeOutput(const std::string& place, const std::string& text) {
  auto written = writeOutput(place, [&](std::ostream& out) -> Result<int64_t> {
    out << text;
    return 0;
  });
  return written ? Result<void>() : Result<void>(tl::unexpected(written.error()));
}

}  // namespace fusebox::exporting
