#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "engine/support/result.h"

namespace fusebox::session {
class Reader;
}

namespace fusebox::query {

/// What became of a compiled graph that CUDA graphs were asked for: a row of cuda_graphs, and of a recording how its replays went.
/// Numbers are -1 where they do not apply.
struct CudaGraphEvent {
  int64_t id = 0, compile = 0;
  std::string function, direction, event, reason, device, plainReason, file;
  int64_t line = 0, number = -1, replaces = -1;
  int64_t nodes = -1, pieces = -1, plainSteps = -1, staticInputs = -1, copiedInputs = -1, copiedBytes = -1, keptBytes = -1;
  int64_t poolBytes = -1;                     ///< that the pool of all recordings of the device held when this one was made
  int64_t timeNs = 0, durNs = 0;
  int64_t kernel = 0;                         ///< the recording as a kernel of kind cuda_graph; 0: none
  int64_t replays = 0, hostNs = 0;            ///< of the recording: replays and the time of their calls
  int64_t timedReplays = 0, deviceNs = 0;     ///< those that the device timed, and what their nodes took there
  bool isRecording() const { return event == "recorded"; }
};
/// In order of compiled graph and time.
Result<std::vector<CudaGraphEvent>> cudaGraphs(const session::Reader& reader);

/// Nodes of a captured piece that one kernel, call or copy made.
struct CudaGraphNode {
  int64_t piece = 0, first = 0, count = 0;    ///< in order of creation within the piece
  int64_t kernel = 0, group = 0;
  std::string name, kind, op, function, file;  ///< function: the device's
  int64_t line = 0;
  int64_t events = 0, deviceNs = 0;           ///< what the device timed of them in all replays
};
Result<std::vector<CudaGraphNode>> cudaGraphNodes(const session::Reader& reader, const CudaGraphEvent& recording);

struct CudaGraphReplay {
  int64_t launch = 0, startNs = 0, hostNs = 0;
  int64_t deviceStartNs = -1, deviceNs = -1;  ///< -1: not timed. deviceNs: the sum of what its nodes took
  int64_t spanNs = -1;                        ///< from the first node's start to the last one's end
};
/// The first `most` replays, in order of time.
Result<std::vector<CudaGraphReplay>> cudaGraphReplays(const session::Reader& reader, const CudaGraphEvent& recording, int64_t most = 20'000);

/// The recording that a kernel (itself, or as one of its nodes) or a launch belongs to: its index in `events`; -1 for none. Of several,
/// the one that was replayed most.
Result<int> recordingOfKernel(const session::Reader& reader, const std::vector<CudaGraphEvent>& events, int64_t kernel);

nlohmann::json toJson(const CudaGraphEvent& event, const std::vector<CudaGraphNode>& nodes);

}  // namespace fusebox::query
