#pragma once

#include <cstring>
#include <map>
#include <random>
#include <vector>

#include "engine/inductor/schedule/kernel_finish.h"
#include "engine/inductor/ir/lowered_graph.h"
#include "tests/engine/codegen/interpret.h"

/// Two slow ways to carry out a lowered graph: operation by operation as lowering wrote it, and as scheduled. Extern calls stand
/// for "negate".
namespace fusebox::inductor::testing {

using Memory = std::vector<char>;

inline int64_t byteSize(const graph::TensorMeta& meta) { return meta.numel().constant() * graph::elementSize(meta.dtype); }

inline void negate(const void* from, void* to, const graph::TensorMeta& meta) {
  const auto count = meta.numel().constant();
  for (int64_t i = 0; i < count; ++i) static_cast<float*>(to)[i] = -static_cast<const float*>(from)[i];
}

inline std::vector<Memory> runLowered(const LoweredGraph& graph, const std::vector<Memory>& inputs) {
  std::vector<Memory> memory;
  for (const LoweredBuffer& buffer : graph.buffers)
    memory.push_back(buffer.kind == LoweredBuffer::Kind::Input ? inputs[static_cast<size_t>(buffer.index)]
                                                               : Memory(static_cast<size_t>(byteSize(buffer.meta)) + 64, 0x55));
  auto address = [&](BufferId id) -> void* { return memory[static_cast<size_t>(id)].data(); };
  for (const Operation& operation : graph.operations) {
    if (operation.kind == Operation::Kind::Extern) {
      negate(address(operation.reads[0]), address(operation.writes[0]), graph.buffers[static_cast<size_t>(operation.writes[0])].meta);
      continue;
    }
    FinishedKernel finished = finishKernel(graph, operation.kernel);
    std::vector<void*> pointers;
    for (BufferId id : finished.buffers) pointers.push_back(address(id));
    codegen::testing::interpret(finished.kernel, pointers, {});
  }
  std::vector<Memory> results;
  for (const graph::Argument& result : graph.results) {
    const BufferId id = result.as<graph::ValueRef>()->node;
    memory[static_cast<size_t>(id)].resize(static_cast<size_t>(byteSize(graph.buffers[static_cast<size_t>(id)].meta)));
    results.push_back(memory[static_cast<size_t>(id)]);
  }
  return results;
}

inline std::vector<Memory> runProgram(const Program& program, std::vector<Memory> inputs) {
  Memory pool(static_cast<size_t>(program.poolBytes) + 64, 0x77);
  std::vector<Memory> owned(program.buffers.size());
  std::map<BufferId, bool> allocated;
  auto address = [&](BufferId id) -> void* {
    const ProgramBuffer& buffer = program.buffers[static_cast<size_t>(id)];
    if (buffer.kind == ProgramBuffer::Kind::Input) return inputs[static_cast<size_t>(buffer.index)].data();
    if (buffer.kind == ProgramBuffer::Kind::Planned) return pool.data() + buffer.poolOffset;
    if (!allocated[id]) qFatal("buffer %s is used without memory", buffer.name.c_str());
    return owned[static_cast<size_t>(id)].data();
  };
  auto allocate = [&](BufferId id) {
    allocated[id] = true;
    owned[static_cast<size_t>(id)].assign(static_cast<size_t>(byteSize(program.buffers[static_cast<size_t>(id)].meta)), 0x33);
  };
  for (const Step& step : program.steps) {
    if (auto* launch = std::get_if<LaunchStep>(&step)) {
      std::vector<void*> pointers;
      for (BufferId id : launch->buffers) pointers.push_back(address(id));
      std::vector<int64_t> sizes;
      for (const SymExpr& size : launch->sizes) sizes.push_back(size.constant());
      codegen::testing::interpret(program.kernels[static_cast<size_t>(launch->kernel)], pointers, sizes);
    } else if (auto* call = std::get_if<ExternStep>(&step)) {
      if (call->outVariant.empty()) allocate(call->results[0]);
      negate(address(call->args[0].as<graph::ValueRef>()->node), address(call->results[0]),
             program.buffers[static_cast<size_t>(call->results[0])].meta);
    } else if (auto* allocateStep = std::get_if<AllocateStep>(&step)) {
      allocate(allocateStep->buffer);
    } else {
      allocated[std::get<FreeStep>(step).buffer] = false;
    }
  }
  std::vector<Memory> results;
  for (const graph::Argument& result : program.results) {
    const BufferId id = result.as<graph::ValueRef>()->node;
    const auto* start = static_cast<const char*>(address(id));
    results.emplace_back(start, start + byteSize(program.buffers[static_cast<size_t>(id)].meta));
  }
  return results;
}

inline std::vector<Memory> randomInputs(const LoweredGraph& graph, std::mt19937& random) {
  std::vector<Memory> inputs;
  for (const LoweredBuffer& buffer : graph.buffers) {
    if (buffer.kind != LoweredBuffer::Kind::Input) continue;
    Memory memory(static_cast<size_t>(byteSize(buffer.meta)));
    for (size_t i = 0; i < memory.size() / static_cast<size_t>(graph::elementSize(buffer.meta.dtype)); ++i) {
      codegen::testing::Number number;
      number.integer = static_cast<int64_t>(random() % 7);
      number.real = static_cast<long double>(static_cast<int>(random() % 2001) - 1000) / 500;
      codegen::testing::storeNumber(memory.data() + i * static_cast<size_t>(graph::elementSize(buffer.meta.dtype)), buffer.meta.dtype, number);
    }
    inputs.push_back(std::move(memory));
  }
  return inputs;
}

}  // namespace fusebox::inductor::testing
