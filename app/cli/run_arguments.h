#pragma once

#include <string>
#include <vector>

namespace fusebox::cli {

/// What `fusebox run` was asked. `script` is the script form exactly as given: a path, or -m module, or -c code, then its
/// arguments.
struct RunOptions {
  std::string session, engine = "fusebox", python, summary;
  std::string gpuCounters;  ///< metrics to read around kernels; empty: none
  std::string gpuSampling;  ///< microseconds between samples of the GPU's counters; empty: none
  std::string gpuSamplingMetrics;
  bool operators = false;   ///< record what torch runs outside compiled code too
  bool noRecord = false, json = false;
  bool quiet = false;  ///< no summary at the end
  std::vector<std::string> script;
};

/// What `fusebox debug` was asked. `run.json` is the console's form of output.
struct DebugOptions {
  RunOptions run;
  std::vector<std::string> breakpoints;  ///< as the console's `break` takes them
  bool console = false, go = false;      ///< `go`: do not stop before the first compile
};

/// Where, in the words after `run`, fusebox's own options end and the script form begins: the first word that is -m, -c or no
/// option. Everything from there on belongs to the script, whatever it looks like.
size_t scriptFormStart(const std::vector<std::string>& words);

}  // namespace fusebox::cli
