#pragma once

#include <string>

namespace fusebox::codegen::gpu {

inline constexpr int kWarp = 32;                      ///< threads
inline constexpr unsigned kGlobal = 1, kShared = 3;  ///< address spaces

/// What code is generated for.
struct GpuTarget {
  int capability = 90;        ///< compute capability times ten: 90 for Hopper
  int multiprocessors = 132;  ///< to judge how many blocks fill the device
  bool operator==(const GpuTarget&) const = default;

  /// Whether blocks can be launched in clusters that reach each other's shared memory.
  bool hasClusters() const { return capability >= 90; }
  /// Whether one instruction adds 16 bytes of floats to memory, each atomically (PTX 8.1).
  bool hasVectorAtomics() const { return capability >= 90; }
  /// Whether a warp group multiplies what lies in shared memory (wgmma), which later devices do in another way.
  bool hasWarpGroups() const { return capability == 90; }
  /// Bytes of shared memory that a multiprocessor's blocks have together.
  int sharedMemory() const;
  /// The newest architecture that LLVM knows and the device runs, as in ".target sm_90". PTX runs on later ones too.
  std::string ptxArchitecture() const;
};

/// Oldest device with code (Volta: independent thread scheduling, atomics of every type).
constexpr int kOldestCapability = 70;

}  // namespace fusebox::codegen::gpu
