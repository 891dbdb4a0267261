#include <fmt/format.h>

#include "engine/codegen/gpu/plan.h"

namespace fusebox::codegen::gpu {
namespace {

std::string phaseText(const Phase& phase) {
  static constexpr const char* kKinds[] = {"every section", "chunks of section", "joins and runs sections"};
  std::string text = kKinds[static_cast<size_t>(phase.kind)];
  if (phase.kind == Phase::Kind::Chunk) text += fmt::format(" {}", phase.first);
  if (phase.kind == Phase::Kind::Finish) text += fmt::format(" {} to {}", phase.first, phase.last - 1);
  const Mapping& map = phase.map;
  text += fmt::format(": {} blocks of {} points x {} threads a point, {} vectors of {} each", phase.blocks.str(), map.points, map.inner, map.unroll, map.vector);
  if (map.cluster > 1) text += fmt::format(", clusters of {}", map.cluster);
  if (map.tileFast) text += fmt::format(", rectangles {} wide", map.tileFast);
  if (!map.pointsFast) text += ", threads of a point side by side";
  return phase.walks ? text + ", blocks walk over points" : text;
}

std::string raggedText(const Ragged& rows) {
  if (!rows.on) return {};
  if (rows.shift == inductor::SymExpr(0)) return ", the last one reaches beyond the row";
  return ", which begin " + rows.shift.str() + " before the row";
}

std::string sectionText(const SectionPlan& section) {
  std::string text = fmt::format("{} points in vectors of {} x {}", section.points.str(), section.unroll, section.vector);
  if (section.whole) text += ", kept in registers";
  if (!(section.chunk == inductor::SymExpr(0))) text += ", chunks of " + section.chunk.str();
  if (!(section.shift == inductor::SymExpr(0))) text += ", threads begin " + section.shift.str() + " early";
  return text + raggedText(section.ragged);
}

}  // namespace

std::string Plan::str() const {
  std::string text;
  for (const Phase& phase : phases) text += (text.empty() ? "launch: " : "\nlaunch: ") + phaseText(phase);
  if (ragged.on) text += raggedText(ragged);
  for (size_t s = 0; s < sections.size(); ++s)
    if (!sections[s].order.empty()) text += fmt::format("\nsection {}: ", s) + sectionText(sections[s]);
  if (resident > 0) text += fmt::format("\n{} blocks resident", resident);
  if (ahead > 0) text += fmt::format("\nrows fetched {} ahead", ahead);
  for (const Plan& behind : after) text += "\nbehind it:\n" + behind.str();
  return text;
}

}  // namespace fusebox::codegen::gpu
