#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "profiler/query/graph_part.h"
#include "profiler/session/reader.h"

namespace fusebox::query {

/// A buffer of a compiled graph and the steps (fusion groups in order of execution) in which it holds something.
struct BufferLife {
  int64_t id = 0, node = 0, bytes = 0;
  std::string name, kind, dtype, shape, device, file;  ///< kind: input, constant, planned, allocated (by itself, freed after its last use), owned (handed out as a result), view
  int64_t line = 0;
  int64_t first = -1, last = -1;  ///< steps, both included; results live to the end; -1: not touched
  int64_t poolOffset = -1;        ///< planned ones: where in the pool
  int64_t reuses = 0;             ///< the buffer whose place in the pool it takes
  bool countsInPeak() const { return first >= 0 && (kind == "planned" || kind == "allocated" || kind == "owned"); }
};

/// A tensor that the forward pass keeps for the backward pass.
struct SavedTensor {
  int64_t node = 0, bytes = 0;  ///< node of the backward graph; bytes 0 where the size is not known
  std::string name, dtype, shape, file;
  int64_t line = 0;
  bool kept = false;            ///< an input or parameter, which lives on anyway
};

struct MemoryGraph {
  int64_t graph = 0, compile = 0, line = 0;
  std::string name, file;       ///< of the function
  bool backward = false;
  int64_t resumesAt = 0;        ///< line from which on it computes the function, after a break; 0: from its beginning
  int64_t entry = -1;           ///< of the function's compiled entries; -1 where it has one only
  GraphPart part;               ///< of the function's graph, where data decide sizes in it
  int64_t steps = 0;            ///< fusion groups
  int64_t peakBytes = 0, peakStep = 0;  ///< most bytes of buffers and results alive at one step
  int64_t poolBytes = 0;        ///< size of the pool that the planned ones share
  int64_t plannedBytes = 0;     ///< sum of the planned ones: what they would need without sharing
  int64_t allocatedBytes = 0;   ///< sum of those that have memory of their own and are freed within the graph
  int64_t resultBytes = 0, inputBytes = 0;
  int64_t savedBytes = 0;       ///< of a backward graph: activations kept for it
};

/// Peaks that were measured while the program ran; 0 where they were not.
struct MeasuredMemory {
  int64_t startRssBytes = 0, peakRssBytes = 0;  ///< of the process: when recording began, and the most until it ended
  struct Device {
    std::string name;
    int64_t allocatedBytes = 0, reservedBytes = 0;  ///< torch's allocator: most in use, most taken from the device
  };
  std::vector<Device> devices;
};

struct Memory {
  std::vector<MemoryGraph> graphs;  ///< in order of compiling
  MeasuredMemory measured;
};
Result<Memory> memoryOf(const session::Reader& reader);

struct GraphLifetimes {
  MemoryGraph graph;
  std::vector<BufferLife> buffers;   ///< by first step
  std::vector<std::string> stepNames;
  std::vector<int64_t> stepKernels;
  std::vector<int64_t> alive;        ///< bytes alive at each step
  std::vector<SavedTensor> saved;    ///< what the backward pass of the same function takes, largest first
};
/// NotFound for a graph without buffers.
Result<GraphLifetimes> lifetimesOf(const session::Reader& reader, int64_t graph);

nlohmann::json toJson(const Memory& memory);
nlohmann::json toJson(const GraphLifetimes& lifetimes);
std::string toText(const Memory& memory);
std::string toText(const GraphLifetimes& lifetimes);

}  // namespace fusebox::query
