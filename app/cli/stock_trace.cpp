#include "app/cli/stock_trace.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>

#include "profiler/importers/attach_trace.h"

namespace fusebox::cli {

namespace fs = std::filesystem;

StockTrace::StockTrace(bool wanted) {
  if (!wanted) return;
  if (const char* users = std::getenv("TORCH_TRACE"); users && *users) {
    fmt::print(stderr, "fusebox: TORCH_TRACE is set to {}: the log goes there, and the session holds no graphs; open that folder, or unset it.\n", users);
    return;
  }
  std::error_code error;
  std::string pattern = (fs::temp_directory_path(error) / "fusebox-trace-XXXXXX").string();
  if (error || !mkdtemp(pattern.data())) {
    fmt::print(stderr, "fusebox: no folder for PyTorch's log can be made: the session will hold no graphs\n");
    return;
  }
  folder_ = pattern;
}

StockTrace::~StockTrace() {
  std::error_code error;
  if (!folder_.empty()) fs::remove_all(folder_, error);
}

void StockTrace::request(std::map<std::string, std::string>& environment) const {
  if (folder_.empty()) return;
  environment["TORCH_TRACE"] = folder_;
  // Which nodes a kernel computes is only written on request.
  if (!std::getenv("INDUCTOR_PROVENANCE")) environment["INDUCTOR_PROVENANCE"] = "1";
}

void StockTrace::attachTo(const std::string& session) const {
  std::error_code error;
  if (folder_.empty() || !fs::exists(session, error) || fs::is_empty(folder_, error)) return;
  if (auto attached = importing::attachTrace(session, folder_); !attached) {
    fmt::print(stderr, "fusebox: what PyTorch logged about its compiler cannot be added to the session: {}\n", attached.error().text());
  }
}

}  // namespace fusebox::cli
