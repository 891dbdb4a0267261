#include "engine/compile/program_facts.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>

#include "engine/graph/operator_facts.h"
#include "engine/graph/symbol_values.h"

namespace fusebox {

using inductor::BufferId;
using inductor::BufferRole;
using inductor::ProgramBuffer;
using Kind = inductor::ProgramBuffer::Kind;

namespace {

size_t at(int32_t id) { return static_cast<size_t>(id); }

bool isFloating(inductor::DType type) {
  using T = inductor::DType;
  return type == T::Float32 || type == T::Float64 || type == T::Float16 || type == T::BFloat16;
}

/// Floating-point operations at one point of a section.
int64_t flopsOfPoint(const inductor::Section& section) {
  using inductor::Op;
  int64_t flops = 0;
  for (const inductor::Value& value : section.values) {
    if (!isFloating(value.type)) continue;
    switch (value.op) {
      case Op::Constant:
      case Op::Index:
      case Op::Load:
      case Op::Reduced:
      case Op::Cast:
      case Op::Bitcast:
      case Op::Where:
      case Op::Check:
      case Op::CopySign: break;
      case Op::Fma: flops += 2; break;
      default: ++flops;
    }
  }
  for (const inductor::Statement& statement : section.body) {
    using Kind = inductor::Statement::Kind;
    if (statement.kind == Kind::AtomicAdd || statement.kind == Kind::Accumulate) ++flops;
    if (statement.kind != Kind::Reduce) continue;
    switch (statement.reduce) {
      case inductor::ReduceKind::Welford: flops += 5; break;         // two differences, a quotient, two multiply-adds as one each
      case inductor::ReduceKind::OnlineSoftmax: flops += 4; break;   // maximum, difference, exponential, sum
      case inductor::ReduceKind::Any:
      case inductor::ReduceKind::All: break;
      default: ++flops;
    }
  }
  return flops;
}

/// How often a launch comes to the points of its kernel: at the hints, where a size is only known in the call.
class LaunchPoints {
 public:
  LaunchPoints(const inductor::Kernel& kernel, const inductor::LaunchStep& step) : kernel_(kernel), step_(step) {}

  int64_t of(const inductor::Section& section) const { return count(section.axes) * count(kernel_.outer); }
  int64_t flops() const {
    int64_t flops = 0;
    for (const inductor::Section& section : kernel_.sections) flops += flopsOfPoint(section) * of(section);
    return flops;
  }
  /// Loads of a buffer's elements, or stores to them, masked ones included.
  int64_t loads(BufferId id) const {
    return visits([&](const inductor::Section& section) {
      return std::count_if(section.values.begin(), section.values.end(), [&](const inductor::Value& v) { return v.op == inductor::Op::Load && v.buffer == id; });
    });
  }
  int64_t stores(BufferId id) const {
    return visits([&](const inductor::Section& section) {
      return std::count_if(section.body.begin(), section.body.end(), [&](const inductor::Statement& s) { return s.buffer == id; });
    });
  }

 private:
  int64_t count(const std::vector<inductor::Axis>& axes) const {
    const auto size = [&](inductor::Symbol symbol) -> std::optional<int64_t> {
      for (size_t i = 0; i < kernel_.sizeSymbols.size() && i < step_.sizes.size(); ++i)
        if (kernel_.sizeSymbols[i] == symbol) return graph::hint(step_.sizes[i]);
      return std::nullopt;
    };
    int64_t points = 1;
    for (const inductor::Axis& axis : axes) points *= axis.extent.evaluate(size).value_or(0);
    return points;
  }
  template <class Count>
  int64_t visits(const Count& inSection) const {
    int64_t all = 0;
    for (const inductor::Section& section : kernel_.sections) all += inSection(section) * of(section);
    return all;
  }

  const inductor::Kernel& kernel_;
  const inductor::LaunchStep& step_;
};

class Reader {
 public:
  Reader(const inductor::LoweredGraph& lowered, const inductor::Schedule& schedule)
      : lowered_(lowered), buffers_(schedule.program.buffers), schedule_(schedule) {
    facts_.buffers.resize(buffers_.size());
    facts_.groups.resize(schedule.groups.size());
    facts_.reuses.assign(buffers_.size(), -1);
    facts_.producers.assign(buffers_.size(), -1);
  }

  ProgramFacts read() {
    for (const inductor::Step& step : schedule_.program.steps) {
      if (const auto* launch = std::get_if<inductor::LaunchStep>(&step)) readLaunch(*launch);
      if (const auto* call = std::get_if<inductor::ExternStep>(&step)) readCall(*call);
      if (const auto* freed = std::get_if<inductor::FreeStep>(&step); freed && isBuffer(freed->buffer)) facts_.buffers[at(freed->buffer)].isFreed = true;
    }
    findReuse();
    for (const inductor::Operation& operation : lowered_.operations)
      for (BufferId id : operation.writes)
        if (!operation.origins.empty() && at(id) < facts_.producers.size()) facts_.producers[at(id)] = operation.origins.back();
    return std::move(facts_);
  }

 private:
  bool isBuffer(BufferId id) const { return id >= 0 && at(id) < buffers_.size(); }

  /// A buffer and what it is a view of live as long.
  void touch(BufferId id, int32_t group) {
    for (int depth = 0; isBuffer(id) && depth < 8; ++depth) {
      auto& life = facts_.buffers[at(id)];
      if (life.first < 0) life.first = group;
      life.last = std::max(life.last, group);
      if (buffers_[at(id)].kind != Kind::View) break;
      id = buffers_[at(id)].base;
    }
  }

  void readLaunch(const inductor::LaunchStep& step) {
    const auto& kernel = schedule_.program.kernels[at(step.kernel)];
    const LaunchPoints points(kernel, step);
    if (step.group >= 0) facts_.groups[at(step.group)].flops = points.flops();
    size_t argument = 0;
    for (const inductor::KernelBuffer& buffer : kernel.buffers) {
      if (buffer.role == BufferRole::Scratch) continue;
      if (argument >= step.buffers.size()) break;
      const BufferId id = step.buffers[argument++];
      touch(id, step.group);
      if (!isBuffer(id) || step.group < 0) continue;
      // Each element once, of those that the kernel comes to.
      const graph::TensorMeta& meta = buffers_[at(id)].meta;
      const auto bytes = [&](int64_t visits) { return kernel.attention ? bytesOf(meta) : std::min(bytesOf(meta), visits * graph::elementSize(meta.dtype)); };
      auto& traffic = facts_.groups[at(step.group)];
      if (buffer.role != BufferRole::Output) traffic.readBytes += bytes(points.loads(buffer.id));
      if (buffer.role != BufferRole::Input) traffic.writeBytes += bytes(points.stores(buffer.id));
    }
  }

  void readCall(const inductor::ExternStep& step) {
    std::set<BufferId> seen;
    graph::Graph::forEachValue(step.args, [&](graph::ValueRef value) {
      touch(value.node, step.group);
      if (!isBuffer(value.node) || step.group < 0 || !seen.insert(value.node).second) return;
      facts_.groups[at(step.group)].readBytes += bytesOf(buffers_[at(value.node)].meta);
    });
    for (BufferId id : step.results) {
      touch(id, step.group);
      if (isBuffer(id) && step.group >= 0) facts_.groups[at(step.group)].writeBytes += bytesOf(buffers_[at(id)].meta);
    }
  }

  /// The planned buffer that left the memory last before this one came.
  void findReuse() {
    std::vector<BufferId> planned;
    for (const ProgramBuffer& buffer : buffers_)
      if (buffer.kind == Kind::Planned && facts_.buffers[at(buffer.id)].first >= 0) planned.push_back(buffer.id);
    for (BufferId id : planned) {
      const auto& mine = buffers_[at(id)];
      const int64_t end = mine.poolOffset + bytesOf(mine.meta);
      int32_t latest = -1;
      for (BufferId other : planned) {
        const auto& theirs = buffers_[at(other)];
        const auto& life = facts_.buffers[at(other)];
        if (other == id || life.last > facts_.buffers[at(id)].first || life.first >= facts_.buffers[at(id)].first) continue;
        if (theirs.poolOffset >= end || theirs.poolOffset + bytesOf(theirs.meta) <= mine.poolOffset) continue;
        if (life.last > latest) latest = life.last, facts_.reuses[at(id)] = other;
      }
    }
  }

  const inductor::LoweredGraph& lowered_;
  const std::vector<ProgramBuffer>& buffers_;
  const inductor::Schedule& schedule_;
  ProgramFacts facts_;
};

/// Constant sizes of tensor argument `position`; empty where it is none.
std::vector<int64_t> sizesOf(const inductor::ExternStep& call, size_t position, const std::vector<ProgramBuffer>& buffers) {
  std::vector<int64_t> sizes;
  if (position >= call.args.size()) return sizes;
  const auto* value = call.args[position].as<graph::ValueRef>();
  if (!value || value->node < 0 || at(value->node) >= buffers.size()) return sizes;
  for (const auto& size : buffers[at(value->node)].meta.sizes) {
    sizes.push_back(graph::hint(size));
  }
  return sizes;
}

struct Product {
  std::string_view op;
  size_t left, right;  ///< positions of the two matrices
};
constexpr Product kProducts[] = {{"aten::mm", 0, 1}, {"aten::bmm", 0, 1}, {"aten::addmm", 1, 2}, {"aten::baddbmm", 1, 2},
                                 {"aten::mv", 0, 1}, {"aten::addmv", 1, 2}, {graph::kExactProduct, 0, 1}};

}  // namespace

ProgramFacts factsOf(const inductor::LoweredGraph& lowered, const inductor::Schedule& schedule) {
  return Reader(lowered, schedule).read();
}

int64_t flopsOf(const inductor::ExternStep& call, const std::vector<ProgramBuffer>& buffers) {
  for (const Product& product : kProducts) {
    if (product.op != call.op) continue;
    const auto left = sizesOf(call, product.left, buffers), right = sizesOf(call, product.right, buffers);
    if (left.empty() || right.empty()) return 0;
    int64_t flops = 2;
    for (int64_t size : left) flops *= size;
    return right.size() > 1 ? flops * right.back() : flops;  // every element of the left meets one row of the right
  }
  if (call.op == "aten::convolution") {
    // Every output element sums over one filter: input channels of its group and the window.
    const auto weight = sizesOf(call, 1, buffers);
    if (weight.empty() || call.results.empty() || call.results[0] < 0) return 0;
    int64_t flops = 2 * graph::hint(buffers[at(call.results[0])].meta.numel());
    for (size_t i = 1; i < weight.size(); ++i) flops *= weight[i];
    return flops;
  }
  return 0;
}

std::string deviceOf(const inductor::ExternStep& call, const std::vector<ProgramBuffer>& buffers) {
  for (inductor::BufferId id : call.results)
    if (id >= 0) return buffers[static_cast<size_t>(id)].meta.device.str();
  return "cpu";
}

}  // namespace fusebox
