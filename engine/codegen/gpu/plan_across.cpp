#include "engine/codegen/gpu/plan_across.h"

#include <algorithm>

#include "engine/codegen/gpu/plan_axes.h"

namespace fusebox::codegen::gpu {
using inductor::Axis;
using inductor::BufferId;
using inductor::BufferRole;
using inductor::DType;
using inductor::Kernel;
using inductor::KernelBuffer;
using inductor::Op;
using inductor::Section;
using inductor::Statement;
using inductor::Symbol;
using inductor::SymExpr;
using inductor::Value;
using inductor::ValueId;

namespace {

constexpr int kWalkingThreads = 1024;     // of a multiprocessor
constexpr int kWalkingFewElements = 4;    // of a thread, so that it needs few registers
constexpr int kWalkingManyThreads = 1536; // of a multiprocessor then

/// What partial results are kept as.
DType partialType(DType value) { return value == DType::Float16 || value == DType::BFloat16 ? DType::Float32 : value; }

/// Writes the kernel that reduces the walkers' partial results of one section.
class Behind {
 public:
  Behind(const Plan& plan, int section, const SymExpr& walkers) : plan_(plan), section_(plan.kernel.sections[static_cast<size_t>(section)]) {
    kernel.name = plan.kernel.name + "_columns";
    kernel.device = plan.kernel.device;
    kernel.sizeSymbols = plan.kernel.sizeSymbols;
    kernel.buffers = plan.kernel.buffers;
    for (const KernelBuffer& b : kernel.buffers) next_ = std::max(next_, b.id + 1);
    SymExpr place(0), elements(1);
    for (int axis : plan.sections[static_cast<size_t>(section)].order) {
      const Axis& a = section_.axes[static_cast<size_t>(axis)];
      kernel.outer.push_back(a);
      place = place * a.extent + SymExpr(a.symbol);
      elements *= a.extent;
    }
    const Symbol walker = Symbol::make("w", 0, std::max<int64_t>(0, walkers.bounds().second - 1));
    index_ = SymExpr(walker) * elements + place;
    numel_ = walkers * elements;
    kernel.sections.resize(2);
    kernel.sections[0].isReduction = true;
    kernel.sections[0].axes = {{walker, walkers}};
  }

  void add(const AcrossPlace& across) {
    const Statement& st = section_.body[static_cast<size_t>(across.statement)];
    const DType type = partialType(section_.values[static_cast<size_t>(st.value)].type);
    KernelBuffer partial;
    partial.id = next_++;
    partial.name = "partial" + std::to_string(reductions_);
    partial.dtype = type;
    partial.numel = numel_;
    kernel.buffers.push_back(partial);
    inWork.emplace(partial.id, across.partial);
    Section &reduce = kernel.sections[0], &store = kernel.sections[1];
    Value load;
    load.op = Op::Load;
    load.type = type;
    load.buffer = partial.id;
    load.index = index_;
    Statement step;
    step.kind = Statement::Kind::Reduce;
    step.reduce = st.reduce;
    step.reduction = reductions_;
    step.inputs[0] = append(reduce, load);
    reduce.body.push_back(step);
    Value result;
    result.op = Op::Reduced;
    result.type = type;
    result.args[0] = reductions_++;
    ValueId value = append(store, result);
    const DType to = bufferOf(plan_.kernel, st.buffer).dtype;
    if (to != type) {
      Value cast;
      cast.op = Op::Cast;
      cast.type = to;
      cast.args[0] = value;
      value = append(store, cast);
    }
    Statement put;
    put.buffer = st.buffer;
    put.index = st.index;
    put.value = value;
    store.body.push_back(put);
  }

  Kernel kernel;
  std::map<BufferId, SymExpr> inWork;

 private:
  static ValueId append(Section& section, Value value) {
    section.values.push_back(std::move(value));
    return static_cast<ValueId>(section.values.size()) - 1;
  }

  const Plan& plan_;
  const Section& section_;
  SymExpr index_, numel_;
  BufferId next_ = 0;
  int32_t reductions_ = 0;
};

}  // namespace

bool accumulates(const Section& section) {
  return std::any_of(section.body.begin(), section.body.end(), [](const Statement& st) { return st.kind == Statement::Kind::Accumulate; });
}

bool accumulates(const Kernel& kernel) {
  return std::any_of(kernel.sections.begin(), kernel.sections.end(), [](const Section& s) { return accumulates(s); });
}

void planAcross(Plan& plan, const GpuTarget& target, bool isAligned, const LaunchShape& shape) {
  if (!accumulates(plan.kernel)) return;
  Phase& phase = plan.phases.front();
  int elements = 0;
  for (const SectionPlan& p : plan.sections) elements = std::max(elements, p.vector * p.unroll);
  const int threads = elements <= kWalkingFewElements ? kWalkingManyThreads : kWalkingThreads;
  const int resident = shape.resident > 0 ? shape.resident : std::max(1, threads / phase.map.threads());
  const int walking = std::max(1, shape.chunks >= 0 ? target.multiprocessors * resident << shape.chunks : target.multiprocessors * resident >> -shape.chunks);
  plan.resident = shape.chunks < 0 ? std::max(1, resident >> -shape.chunks) : resident;  // all of them at the same time
  phase.walks = true;
  phase.blocks = graph::min(phase.blocks, SymExpr(walking));
  plan.ahead = shape.ahead < 0 ? 0 : kAhead << shape.ahead;
  const SymExpr walkers = phase.blocks * SymExpr(phase.map.points);
  std::vector<std::pair<Kernel, std::map<BufferId, SymExpr>>> behind;
  for (size_t s = 0; s < plan.kernel.sections.size(); ++s) {
    const Section& section = plan.kernel.sections[s];
    if (!accumulates(section)) continue;
    Behind writer(plan, static_cast<int>(s), walkers);
    for (size_t i = 0; i < section.body.size(); ++i) {
      const Statement& st = section.body[i];
      if (st.kind != Statement::Kind::Accumulate) continue;
      const DType type = partialType(section.values[static_cast<size_t>(st.value)].type);
      plan.across.push_back({static_cast<int>(s), static_cast<int>(i), plan.workBytes});
      plan.workBytes += wholeLines(walkers * plan.sections[s].points * SymExpr(graph::elementSize(type)));
      writer.add(plan.across.back());
    }
    behind.emplace_back(std::move(writer.kernel), std::move(writer.inWork));
  }
  for (auto& [kernel, inWork] : behind) {
    plan.after.push_back(planBehind(kernel, target, isAligned, std::move(inWork), plan.workBytes));
    plan.workBytes = plan.after.back().workBytes;
  }
}

}  // namespace fusebox::codegen::gpu
