#include "engine/inductor/schedule/kernel_finish.h"

#include <algorithm>
#include <unordered_map>

#include "engine/inductor/ir/loop_transform.h"
#include "engine/inductor/schedule/schedule_node.h"

namespace fusebox::inductor {
namespace {

/// Buffers in order of first use, and how each is used.
struct AccessList {
  std::vector<BufferId> order;
  std::unordered_map<BufferId, int> flags;
  static constexpr int kRead = 1, kWritten = 2;

  void add(BufferId id, int flag) {
    auto [entry, isNew] = flags.emplace(id, 0);
    entry->second |= flag;
    if (isNew) order.push_back(id);
  }
};

AccessList accessListOf(const Kernel& kernel) {
  AccessList list;
  for (const Section& section : kernel.sections) {
    for (const Value& value : section.values)
      if (value.op == Op::Load) list.add(value.buffer, AccessList::kRead);
    for (const Statement& statement : section.body) {
      if (statement.kind == Statement::Kind::Reduce) continue;
      const bool adds = statement.kind == Statement::Kind::AtomicAdd;
      list.add(statement.buffer, AccessList::kWritten | (adds ? AccessList::kRead : 0));
    }
  }
  return list;
}

BufferRole roleOf(int flags) {
  if (flags == AccessList::kRead) return BufferRole::Input;
  return flags == AccessList::kWritten ? BufferRole::Output : BufferRole::InOut;
}

/// Symbols that indices and extents use and no loop or load defines: sizes.
std::vector<Symbol> sizeSymbolsOf(const Kernel& kernel) {
  std::vector<Symbol> bound, found;
  auto bind = [&](const std::vector<Axis>& axes) {
    for (const Axis& axis : axes) bound.push_back(axis.symbol);
  };
  bind(kernel.outer);
  if (kernel.attention) bind({kernel.attention->width, kernel.attention->depth});
  for (const Section& section : kernel.sections) {
    bind(section.axes);
    for (const auto& [symbol, id] : section.indirect) bound.push_back(symbol);
  }
  std::sort(bound.begin(), bound.end());
  auto collect = [&](const SymExpr& expression) {
    if (expression.isConstant()) return;
    for (Symbol symbol : expression.symbols())
      if (!std::binary_search(bound.begin(), bound.end(), symbol) && std::find(found.begin(), found.end(), symbol) == found.end())
        found.push_back(symbol);
  };
  for (const Axis& axis : kernel.outer) collect(axis.extent);
  for (const KernelBuffer& buffer : kernel.buffers) collect(buffer.numel);
  for (const Section& section : kernel.sections) {
    for (const Axis& axis : section.axes) collect(axis.extent);
    forEachIndex(section, collect);
  }
  return found;
}

/// Reductions numbered from 0 in order of appearance: fused kernels that differ only there are then equal.
void renumberReductions(Kernel& kernel) {
  std::unordered_map<int32_t, int32_t> numbers;
  auto number = [&](int32_t old) { return numbers.emplace(old, static_cast<int32_t>(numbers.size())).first->second; };
  for (Section& section : kernel.sections) {
    for (Value& value : section.values)
      if (value.op == Op::Reduced) value.args[0] = number(value.args[0]);
    for (Statement& statement : section.body)
      if (statement.kind == Statement::Kind::Reduce) statement.reduction = number(statement.reduction);
  }
}

/// "add" from "add_3", "aten::add.Tensor" or "op3_add".
std::string stem(std::string name) {
  if (auto scope = name.rfind("::"); scope != std::string::npos) name = name.substr(scope + 2);
  name = name.substr(0, name.find('.'));
  const size_t end = name.find_last_not_of("0123456789");
  if (end != std::string::npos && end + 1 < name.size() && name[end] == '_') name.resize(end);
  return name;
}

}  // namespace

FinishedKernel finishKernel(const LoweredGraph& lowered, Kernel kernel) {
  std::unordered_map<BufferId, KernelBuffer> scratch;
  for (KernelBuffer& buffer : kernel.buffers)
    if (buffer.role == BufferRole::Scratch) scratch.emplace(buffer.id, buffer);
  kernel.buffers.clear();
  FinishedKernel finished;
  const AccessList accesses = accessListOf(kernel);
  std::unordered_map<BufferId, BufferId> numbers;
  for (BufferId id : accesses.order) {
    KernelBuffer buffer;
    if (auto found = scratch.find(id); found != scratch.end()) {
      buffer = found->second;
    } else {
      const LoweredBuffer& source = lowered.buffers[static_cast<size_t>(id)];
      buffer.name = source.name;
      buffer.dtype = source.meta.dtype;
      buffer.numel = reachableElements(source.meta);
      buffer.role = roleOf(accesses.flags.at(id));
      // Promising more than the element's own alignment would keep kernels from being shared and gain nothing on x86.
      buffer.alignment = graph::elementSize(buffer.dtype);
      finished.buffers.push_back(id);
    }
    buffer.id = static_cast<BufferId>(kernel.buffers.size());
    numbers.emplace(id, buffer.id);
    kernel.buffers.push_back(std::move(buffer));
  }
  for (Section& section : kernel.sections) {
    for (Value& value : section.values)
      if (value.op == Op::Load) value.buffer = numbers.at(value.buffer);
    for (Statement& statement : section.body)
      if (statement.kind != Statement::Kind::Reduce) statement.buffer = numbers.at(statement.buffer);
  }
  renumberReductions(kernel);
  kernel.sizeSymbols = sizeSymbolsOf(kernel);
  finished.sizes.assign(kernel.sizeSymbols.begin(), kernel.sizeSymbols.end());
  finished.kernel = std::move(kernel);
  return finished;
}

std::string fusedName(const LoweredGraph& lowered, const std::vector<int32_t>& operations, size_t number) {
  constexpr size_t kMaxStems = 6;
  std::vector<std::string> stems;
  for (int32_t id : operations) {
    std::string name = stem(lowered.operations[static_cast<size_t>(id)].name);
    if (std::find(stems.begin(), stems.end(), name) == stems.end()) stems.push_back(std::move(name));
  }
  std::string text = "fused";
  for (size_t i = 0; i < stems.size() && i < kMaxStems; ++i) text += "_" + stems[i];
  if (stems.size() > kMaxStems) text += "_more";
  return text + "_" + std::to_string(number);
}

}  // namespace fusebox::inductor
