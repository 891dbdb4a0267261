#include <fmt/format.h>

#include "engine/codegen/cpu/plan.h"

namespace fusebox::codegen::cpu {
namespace {

std::string axisText(const inductor::Axis& axis) { return axis.symbol.name() + " < " + axis.extent.str(); }

std::string sectionText(const inductor::Section& section, const SectionPlan& plan) {
  std::string text;
  for (size_t d = 0; d < plan.order.size(); ++d) {
    text += (d ? "; for " : ": for ") + axisText(section.axes[static_cast<size_t>(plan.order[d])]);
    if (plan.order[d] == plan.vectorAxis) text += " in vectors";
    if (d == 0 && !(plan.chunk == inductor::SymExpr(0))) text += " in chunks of " + plan.chunk.str();
    for (size_t i = 0; i < plan.runs[d].size(); ++i) text += fmt::format("{}{}", i ? ", " : " in runs of ", plan.runs[d][i]);
  }
  return text.empty() ? ": once" : text;
}

}  // namespace

std::string Plan::str() const {
  std::string text = fmt::format("{} lanes", lanes);
  for (size_t i = 0; i < kernel.outer.size(); ++i) {
    text += (i ? "; " : "\nouter: ") + axisText(kernel.outer[i]);
    if (static_cast<int>(i) == outerVector) text += fmt::format(" in vectors, {} points a unit", outerChunk);
    if (static_cast<int>(i) == tileAxis) text += fmt::format(" in tiles of {}", tileSize);
    if (segments && static_cast<int>(i) == segments->axis)
      for (size_t cut = 0; cut < segments->cuts.size(); ++cut) text += (cut ? ", " : " cut at ") + segments->cuts[cut].str();
  }
  for (size_t s = 0; s < sections.size(); ++s) text += fmt::format("\nsection {}", s) + sectionText(kernel.sections[s], sections[s]);
  for (const Phase& phase : phases) {
    if (phase.kind == Phase::Kind::Chunk) text += fmt::format("\nphase: chunks of section {}", phase.first);
    else if (phase.kind == Phase::Kind::Finish) text += fmt::format("\nphase: joins section {}, then sections {} to {}", phase.first - 1, phase.first, phase.last - 1);
  }
  return text + fmt::format("\na unit: about {:.0f} ns and {} bytes", nsPerUnit, bytesPerUnit);
}

}  // namespace fusebox::codegen::cpu
