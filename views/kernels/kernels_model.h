#pragma once

#include <map>
#include <string>
#include <vector>

#include "engine/support/result.h"
#include "profiler/query/symbols.h"
#include "views/common/table.h"

namespace fusebox::session {
class Reader;
}

namespace fusebox::views {

/// Columns of the kernel table, in the order of the cells of loadKernels().
enum KernelColumn {
  kKernelName, kKernelKind, kKernelResult, kKernelModule, kKernelPlace, kKernelLaunches, kKernelTotal, kKernelShare, kKernelInputs, kKernelTypical, kKernelMean, kKernelMin, kKernelMax, kKernelBytes,
  kKernelBandwidth, kKernelRoof, kKernelRegisters, kKernelShared, kKernelSpilled, kKernelOccupancy, kKernelCompile, kKernelNodes,
  kKernelColumns
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
  int64_t runs = 0;                ///< launches, or those with what replays of CUDA graphs ran
  bool knowsLaunches = true;       ///< the source of the session tells of launches at all
  std::string runsNote;            ///< where these are not the launches
  bool isTuning = false;           ///< Fusebox launched it to choose launch shapes
  int64_t timedLaunches = 0;       ///< whose time the device measured; 0: the times are the host's
  int64_t hostNs = 0, registers = 0, sharedBytes = 0, localBytes = 0;
  double occupancy = 0;
  std::string function, grid, block, occupancyLimit;
  bool isOperator = false;         ///< of PyTorch, called by the program or by compiled code
  bool placeIsFunction = false;    ///< a profiler's stack named the place: where the function begins that launched it first
  bool isForeign = false;          ///< another compiler generated it: `loopIr` is its C++ or Triton source
  std::string cubin;               ///< machine code of a GPU kernel, checked to be one; empty: none recorded
  double medianNs = 0, deviationNs = 0;  ///< of all launches on the device; 0 where some of their times are not known
  std::vector<double> times;       ///< ns of launches on the device, in order of time, thinned to some thousands
  std::vector<KernelTier> tiers;   ///< first tier first
  std::vector<query::ShapeSymbol> symbols;  ///< that its loops or its nodes' sizes name
  TableRows nodes;                 ///< op, name, shape, place of the nodes it carries out
  TableRows decisions;             ///< fused or not, a, b, reason
  int64_t allNodes = 0, allDecisions = 0;  ///< of which these are the first
  TableRows counters;              ///< hardware counters: title, how they were read, mean, least, most, launches
  std::string countersAbout;       ///< which were read or sampled, or why none; empty: nobody asked
};

/// What a device can do at most; rates a second, 0 where not known.
struct Roof {
  double bytes = 0;      ///< measured by a copy, else what clocks and widths allow
  bool measured = false;
  double flops = 0;      ///< float32 without tensor cores
  std::string device;
};
/// By device ("cuda:0").
Result<std::map<std::string, Roof>> loadRoofs(const session::Reader& reader);

/// A kernel in the roofline plot.
struct RooflinePoint {
  int64_t kernel = 0;
  std::string name;
  double intensity = 0;  ///< flops a byte
  double rate = 0;       ///< flops a second
  double totalNs = 0;
};
struct Roofline {
  Roof roof;
  std::vector<RooflinePoint> points;
  bool isForeign = false;  ///< what kernels move and compute is not told by a profiler's trace
  size_t without = 0;    ///< kernels with times whose operations or bytes are not counted
};
/// Kernels of the device that took most of the time, of those whose launches the device timed.
Result<Roofline> loadRoofline(const session::Reader& reader);

/// How much of what the device allows a kernel reaches: the larger of its shares of memory and arithmetic. 0 where not known, or
/// where it is faster than float32 arithmetic without tensor cores could be.
double shareOfRoof(const Roof& roof, double bytes, double flops, double ns);

/// Which kernels are listed, where a session holds more than kMostListedKernels.
struct KernelRequest {
  std::string filter;               ///< words as in a list's filter; of name, kind and file
  int column = kKernelTotal;        ///< those come first that are first in this column
  bool ascending = false;
};
struct KernelList {
  TableRows rows;
  int64_t all = 0;   ///< kernels of the session
  bool isWhole() const { return static_cast<int64_t>(rows.size()) == all; }
};
inline constexpr int64_t kMostListedKernels = 20'000;
inline constexpr int64_t kListedOfMore = 5'000;  ///< where there are more: nobody looks through those, but names what is looked for

/// All kernels, or the first `most` of the request's order among those that its filter lets through.
Result<KernelList> listKernels(const session::Reader& reader, const KernelRequest& request, int64_t most = kMostListedKernels);
Result<TableRows> loadKernels(const session::Reader& reader);
/// Of the kernel's nodes and decisions the first `most`, and how many there are.
Result<KernelDetail> loadKernel(const session::Reader& reader, int64_t kernel, int64_t most = kMostListedKernels);
/// The kernel of a fusion group or launch; 0 if there is none.
Result<int64_t> kernelOf(const session::Reader& reader, const Location& location);

}  // namespace fusebox::views
