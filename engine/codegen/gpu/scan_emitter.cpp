#include "engine/codegen/gpu/kernel_emitter.h"

#include <algorithm>

/// Running reductions. Elements go in order of groups, threads that share the point, neighbours; what the loop has come to is carried.
namespace fusebox::codegen::gpu {
using inductor::Op;
using inductor::Section;
using llvm::Value;

std::vector<KernelEmitter::ScanState> KernelEmitter::scansOf(int section) const {
  const Section& s = plan_.kernel.sections[static_cast<size_t>(section)];
  const bool narrow = cpu::fitsInt32(plan_.sections[static_cast<size_t>(section)].points);
  const Instances set = shapeOf(section);
  std::vector<ScanState> scans;
  for (const inductor::Value& v : s.values) {
    if (v.op != Op::Scan) continue;
    const auto kind = inductor::scanKind(v.imm);
    if (std::any_of(scans.begin(), scans.end(), [&](const ScanState& known) { return known.kind == kind && known.input == v.args[0]; })) continue;
    scans.push_back({kind, v.args[0], cpu::ReductionEmitter(lanes_, kind, s.values[static_cast<size_t>(v.args[0])].type, narrow, true), {}, {}});
    scans.back().carry.assign(static_cast<size_t>(set.overPoints ? set.vector : 1), scans.back().emitter.identity(1));
  }
  return scans;
}

/// One round of the section's loop: results of all instances, and what is carried on.
void KernelEmitter::advance(int section, ScanState& scan, BodyEmitter& body, const Instances& set) {
  const cpu::ReductionEmitter& emitter = scan.emitter;
  const SectionPlan& p = plan_.sections[static_cast<size_t>(section)];
  const bool alone = plan_.kernel.sections[static_cast<size_t>(section)].axes.empty();  // a single element
  scan.results.resize(static_cast<size_t>(set.unroll * set.vector));
  auto at = [&](int u, int v) -> cpu::ReductionState& { return scan.results[static_cast<size_t>(u * set.vector + v)]; };
  for (int u = 0; u < set.unroll; ++u) {
    for (int v = 0; v < set.vector; ++v) {
      Value* position = emitter.needsPosition() ? body.position(p.position, emitter.positionType(), u, v) : nullptr;
      at(u, v) = emitter.single({body.value(scan.input, u, v)}, position);
    }
    if (alone) continue;
    if (phase_.map.inner == 1 && set.overPoints) {
      for (int v = 0; v < set.vector; ++v) {
        cpu::ReductionState& carry = scan.carry[static_cast<size_t>(v)];
        carry = at(u, v) = emitter.combine(carry, at(u, v));
      }
      continue;
    }
    for (int v = 1; v < set.vector; ++v) at(u, v) = emitter.combine(at(u, v - 1), at(u, v));
    const BlockCombiner::Prefix prefix = combiner_.prefix(emitter, at(u, set.vector - 1));
    const cpu::ReductionState before = emitter.combine(scan.carry[0], prefix.before);
    for (int v = 0; v < set.vector; ++v) at(u, v) = emitter.combine(before, at(u, v));
    scan.carry[0] = emitter.combine(scan.carry[0], prefix.all);
  }
}

KernelEmitter::Values KernelEmitter::scanned(int section, inductor::ValueId id, BodyEmitter& body, const Instances& set,
                                             std::vector<ScanState>& scans) {
  const inductor::Value& v = plan_.kernel.sections[static_cast<size_t>(section)].values[static_cast<size_t>(id)];
  ScanState& scan = *std::find_if(scans.begin(), scans.end(), [&](const ScanState& known) {
    return known.kind == inductor::scanKind(v.imm) && known.input == v.args[0];
  });
  if (scan.results.empty()) advance(section, scan, body, set);
  const int number = inductor::scanResult(v.imm);
  Values results;
  for (const cpu::ReductionState& state : scan.results)
    results.push_back(scan.emitter.needsPosition() && number == 1 ? state[0] : scan.emitter.result(state, number));
  return results;
}

}  // namespace fusebox::codegen::gpu
