#pragma once

#include <map>
#include <string>

namespace fusebox::cli {

/// What PyTorch's own compiler tells about a run under `--engine stock`: its structured log (TORCH_TRACE), written to a folder of ours
/// and added to the session at the end. A folder that the user asked for is left alone, and nothing is added then.
class StockTrace {
 public:
  explicit StockTrace(bool wanted);
  ~StockTrace();  ///< removes the folder
  StockTrace(const StockTrace&) = delete;
  StockTrace& operator=(const StockTrace&) = delete;

  /// Puts the variables into the script's environment.
  void request(std::map<std::string, std::string>& environment) const;
  /// Adds what was written to the session; says on stderr what could not be.
  void attachTo(const std::string& session) const;

 private:
  std::string folder_;
};

}  // namespace fusebox::cli
