#pragma once

#include <map>
#include <string>
#include <vector>

#include "app/cli/run_arguments.h"
#include "app/cli/script_process.h"
#include "engine/support/result.h"

namespace fusebox::cli {

/// A run that can be started: checked, with its session's place decided.
struct PreparedRun {
  std::vector<std::string> command;
  std::map<std::string, std::string> environment;
  std::string session;  ///< empty: none is recorded
};

/// Changes nothing. InvalidArgument, NotFound or Io say what is wrong with the script, the interpreter or the session's place.
Result<PreparedRun> prepareRun(const RunOptions& options);

/// Right before the script is started a session of an earlier run goes aside, since it must not pass for this one's. It comes back where
/// nothing was recorded in its place.
class ReplacedSession {
 public:
  explicit ReplacedSession(const PreparedRun& run);
  ~ReplacedSession();
  ReplacedSession(const ReplacedSession&) = delete;
  ReplacedSession& operator=(const ReplacedSession&) = delete;
  /// The script left sessions elsewhere in its place (of ranks): the old one goes although there is no file of its name.
  void dropOld() { isReplaced_ = true; }
  /// There is an old one.
  bool isThere() const { return !aside_.empty(); }

 private:
  std::string path_, aside_;
  bool isReplaced_ = false;
};

/// On stderr: which signal ended the script; nothing if none did.
void sayHowItEnded(const ScriptEnd& end);

}  // namespace fusebox::cli
