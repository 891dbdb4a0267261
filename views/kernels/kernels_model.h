#pragma once

#include <string>
#include <vector>

#include "engine/support/result.h"
#include "views/common/table.h"

namespace fusebox::session {
class Reader;
}

namespace fusebox::views {

/// Columns of the kernel table, in the order of the cells of loadKernels().
enum KernelColumn {
  kKernelName, kKernelKind, kKernelPlace, kKernelLaunches, kKernelTotal, kKernelShare, kKernelMean, kKernelMin, kKernelMax, kKernelBytes,
  kKernelBandwidth, kKernelCompile, kKernelNodes, kKernelColumns
};

/// Code of a kernel at one tier.
struct KernelTier {
  int tier = 0;
  std::string target, llvmIr, assembly, cache;
  int64_t codeBytes = 0, compileNs = 0;
};

struct KernelDetail {
  int64_t id = 0;
  std::string name, kind, op, device, reason, loopIr, file;
  int line = 0;
  int64_t launches = 0, totalNs = 0, minNs = 0, maxNs = 0, bytes = 0, flops = 0, compileNs = 0;
  int64_t group = 0, graph = 0;
  std::vector<KernelTier> tiers;   ///< first tier first
  TableRows nodes;                 ///< op, name, shape, place of the nodes it carries out
  TableRows decisions;             ///< fused or not, a, b, reason
};

Result<TableRows> loadKernels(const session::Reader& reader);
Result<KernelDetail> loadKernel(const session::Reader& reader, int64_t kernel);
/// The kernel of a fusion group or launch; 0 if there is none.
Result<int64_t> kernelOf(const session::Reader& reader, const Location& location);

}  // namespace fusebox::views
