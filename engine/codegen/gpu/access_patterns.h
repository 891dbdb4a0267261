#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "engine/codegen/gpu/plan.h"

/// How a kernel's accesses to memory suit neighbouring threads, and what else decides on how it is laid over them.
namespace fusebox::codegen::gpu {

constexpr int kVectorBytes = 16;     ///< of one memory access
constexpr int kPointThreads = 128;   ///< of a block whose threads take points of their own

uint64_t natural(double v);
/// Product of the extents, guessed where they are dynamic.
double pointsOf(const std::vector<inductor::Axis>& axes);
/// Values of a section that differ along `axis`, one of its own or an outer one; `isScratch` knows buffers whose elements belong to a point.
std::vector<char> valuesAlong(const inductor::Section& s, inductor::Symbol axis, const std::function<bool(inductor::BufferId)>& isScratch);
/// `axis` and loaded indices that differ along it.
std::function<bool(inductor::Symbol)> variesWith(const inductor::Kernel& k, const inductor::Section& s, inductor::Symbol axis);

enum class Access { Uniform, Consecutive, Near /* one of each pair */, Other };
Access accessAlong(const inductor::Kernel& k, const inductor::Section& s, const inductor::SymExpr& index, inductor::Symbol axis);

/// Elements of one access of `maxBytes` along `axis`: by the widest type that is read or written so. 1 where there is nothing to gain.
int vectorWidth(const inductor::Kernel& k, const std::vector<const inductor::Section*>& sections, const inductor::Axis& axis, int maxBytes, bool aligned);
/// Positions of `count` axes, `last` (-1: none) as the last one.
std::vector<int> orderWithLast(size_t count, int last);
/// Values of the longest section.
size_t longestBody(const inductor::Kernel& k);
/// Copies of a body that one thread can hold.
int instanceLimit(const inductor::Kernel& k);
/// An outer axis along which some access is consecutive that is scattered along `fast`; -1 if none.
int crossingAxis(const inductor::Kernel& k, int fast);
std::vector<const inductor::Section*> all(const inductor::Kernel& k);
/// The outer axis that suits neighbouring threads best, and its score over all sections.
std::pair<int, double> bestOuter(const inductor::Kernel& k);
/// The section's axis that suits neighbouring threads best, and its score.
std::pair<int, double> bestInner(const inductor::Kernel& k, const inductor::Section& s);
bool reducesWithoutAxes(const inductor::Kernel& k);
bool scans(const inductor::Kernel& k);
/// Whether sections with loops read a buffer that an earlier one has read: what stays in registers is then read once.
bool readsAgain(const inductor::Kernel& k);
bool addsAtomically(const inductor::Kernel& k);
/// Whether the section adds atomically other than in what GpuTarget::hasVectorAtomics speaks of: neighbours along `axis`, of few bits. Neighbouring
/// threads then take neighbouring elements.
bool addsSingly(const Plan& plan, const inductor::Section& s, inductor::Symbol axis);
int distinctLoads(const inductor::Kernel& k);
/// `n` times a power of two, within [least, most].
int times(int n, int power, int least, int most);

}  // namespace fusebox::codegen::gpu
