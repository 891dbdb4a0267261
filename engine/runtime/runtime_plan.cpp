#include "engine/runtime/runtime_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/inductor/schedule/memory_plan.h"
#include "engine/runtime/parallel.h"

namespace fusebox::runtime {
namespace {

using inductor::AllocateStep;
using inductor::BufferId;
using inductor::ExternStep;
using inductor::FreeStep;
using inductor::LaunchStep;

bool allConstant(const std::vector<graph::SymExpr>& values, std::vector<int64_t>* out) {
  for (const graph::SymExpr& value : values) {
    if (!value.isConstant()) return false;
    out->push_back(value.constant());
  }
  return true;
}

c10::Device toDevice(const graph::Device& device) {
  switch (device.kind) {
    case graph::DeviceKind::Cuda: return {c10::kCUDA, device.index};
    case graph::DeviceKind::Meta: return {c10::kMeta};
    default: return {c10::kCPU};
  }
}

BufferPlan planBuffer(const inductor::ProgramBuffer& buffer) {
  BufferPlan plan;
  plan.kind = buffer.kind;
  plan.index = buffer.index;
  plan.base = buffer.base;
  plan.poolOffset = buffer.poolOffset;
  plan.dtype = static_cast<c10::ScalarType>(buffer.meta.dtype);
  plan.device = toDevice(buffer.meta.device);
  plan.meta = &buffer.meta;
  plan.isStatic = allConstant(buffer.meta.sizes, &plan.sizes) && allConstant(buffer.meta.strides, &plan.strides) &&
                  buffer.meta.storageOffset.isConstant();
  if (plan.isStatic) plan.offset = buffer.meta.storageOffset.constant();
  // As shape functions describe what only a library knows the size of (mkldnn_rnn_layer's workspace, _cudnn_rnn's reserve).
  plan.isOpaque = plan.isStatic && plan.dtype == at::kByte && plan.sizes == std::vector<int64_t>{0};
  return plan;
}

int64_t grainOf(const codegen::cpu::CompiledKernel& kernel) {
  if (kernel.costPerUnit <= 0) return 1;
  return std::max<int64_t>(1, static_cast<int64_t>(std::ceil(nanosecondsPerTask() / kernel.costPerUnit)));
}

}  // namespace

void LaunchPlan::resolve(const int64_t* values) {
  if (gpuKernel) {
    auto made = gpuKernel->shapeFor(values);
    TORCH_CHECK(made.has_value(), "fusebox: no code for tensors of these sizes: ", made.error().text());
    shape = std::move(*made);
    return;
  }
  units = kernel->units(values);
  phaseEnds = kernel->phaseEnds ? kernel->phaseEnds(values) : std::vector<int64_t>{};
  workBytes = kernel->scratchBytes ? kernel->scratchBytes(values) : 0;
}

Result<void> RuntimePlan::build(c10::ArrayRef<at::Generator> generators) {
  if (kernels.size() != program().kernels.size())
    return fail(ErrorCode::Internal, fmt::format("{} kernels compiled, {} in the program", kernels.size(), program().kernels.size()));
  buildBuffers();
  for (const inductor::Step& step : program().steps) {
    Result<void> added;
    if (auto* launch = std::get_if<LaunchStep>(&step)) {
      added = addLaunch(*launch);
    } else if (auto* call = std::get_if<ExternStep>(&step)) {
      added = addExtern(*call, generators);
    } else if (auto* allocate = std::get_if<AllocateStep>(&step)) {
      steps.push_back({StepKind::Allocate, allocate->buffer});
    } else {
      steps.push_back({StepKind::Free, std::get<FreeStep>(step).buffer});
    }
    if (!added) return added;
  }
  finishBatches();
  poolBytes = program().poolBytes;
  devicePoolBytes = program().devicePoolBytes;
  ignoreUnreadResults();
  for (const BufferPlan& buffer : buffers)
    if (buffer.kind == inductor::ProgramBuffer::Kind::Input && buffer.isWritten) written.push_back(buffer.index);
  findLastUses();
  return {};
}

void RuntimePlan::ignoreUnreadResults() {
  std::vector<char> isRead(buffers.size(), 0);
  const auto read = [&](BufferId id) {
    for (; id >= 0 && !isRead[static_cast<size_t>(id)]; id = buffers[static_cast<size_t>(id)].base) isRead[static_cast<size_t>(id)] = 1;
  };
  for (const LaunchPlan& launch : launches)
    for (BufferId id : launch.buffers) read(id);
  for (const ExternPlan& plan : externs)
    for (BufferId id : plan.call.tensors) read(id);
  for (const graph::Argument& result : program().results)
    if (const auto* value = std::get_if<graph::ValueRef>(&result.value)) read(value->node);
  for (ExternPlan& plan : externs) {
    if (plan.call.hasOut) continue;
    for (BufferId& id : plan.call.results)
      if (id >= 0 && !isRead[static_cast<size_t>(id)]) id = -1;
  }
}

void RuntimePlan::noteWritten(BufferId id) {
  for (;;) {
    BufferPlan& buffer = buffers[static_cast<size_t>(id)];
    buffer.isWritten = true;
    if (buffer.kind != inductor::ProgramBuffer::Kind::View) return;
    id = buffer.base;
    buffers[static_cast<size_t>(id)].isTakenOver = true;
  }
}

void RuntimePlan::findLastUses() {
  using Kind = inductor::ProgramBuffer::Kind;
  const auto baseOf = [&](BufferId id) {
    while (buffers[static_cast<size_t>(id)].kind == Kind::View) id = buffers[static_cast<size_t>(id)].base;
    return id;
  };
  std::vector<char> kept(buffers.size(), 0);
  for (const graph::Argument& result : program().results)
    if (auto* ref = result.as<graph::ValueRef>(); ref && ref->node >= 0) kept[static_cast<size_t>(baseOf(ref->node))] = 1;
  for (size_t i = steps.size(); i-- > 0;) {
    StepPlan& step = steps[i];
    if (step.kind == StepKind::Allocate || step.kind == StepKind::Free) continue;
    std::vector<BufferId> touched;
    const auto add = [&](const std::vector<BufferId>& ids) { touched.insert(touched.end(), ids.begin(), ids.end()); };
    if (step.kind == StepKind::Launch) add(launches[static_cast<size_t>(step.index)].buffers);
    if (step.kind == StepKind::Extern) add(externs[static_cast<size_t>(step.index)].call.tensors);
    if (step.kind == StepKind::Batch)
      for (int32_t k = 0; k < batches[static_cast<size_t>(step.index)].count; ++k)
        add(launches[static_cast<size_t>(batches[static_cast<size_t>(step.index)].first + k)].buffers);
    for (BufferId id : touched) {
      const BufferId base = baseOf(id);
      if (buffers[static_cast<size_t>(base)].kind == Kind::Input && !std::exchange(kept[static_cast<size_t>(base)], 1)) step.lastOf.push_back(base);
    }
  }
}

void RuntimePlan::finishBatches() {
  for (BatchPlan& batch : batches) {
    batch.isOneLoop = true;
    batch.ends.clear();
    int64_t end = 0;
    for (int32_t i = batch.first; i < batch.first + batch.count; ++i) {
      const LaunchPlan& launch = launches[static_cast<size_t>(i)];
      batch.isOneLoop = batch.isOneLoop && launch.kernel && launch.isStatic && !launch.kernel->serial && !launch.kernel->checks &&
                        launch.phaseEnds.empty() && launch.workBytes == 0 && !launch.kernel->scratchBytes;
      if (!batch.isOneLoop) break;
      end += std::max<int64_t>(1, static_cast<int64_t>(static_cast<double>(launch.units) * launch.kernel->costPerUnit));
      batch.ends.push_back(end);
    }
  }
}

void RuntimePlan::buildBuffers() {
  poolDevice = toDevice(program().poolDevice);
  for (const inductor::ProgramBuffer& buffer : program().buffers) {
    buffers.push_back(planBuffer(buffer));
    isStatic = isStatic && buffers.back().isStatic;
  }
  using Kind = inductor::ProgramBuffer::Kind;
  for (size_t i = 0; i < buffers.size(); ++i) {
    const BufferPlan& buffer = buffers[i];
    const auto id = static_cast<BufferId>(i);
    const bool isView = buffer.kind == Kind::View;
    if (isView) buffers[static_cast<size_t>(buffer.base)].views.push_back(id);
    if (buffer.kind == Kind::Input || buffer.kind == Kind::Constant) bound.push_back(id);
    if (buffer.kind == Kind::Planned) planned.push_back(id);
    buffers[i].onDevicePool = buffer.kind == Kind::Planned && buffer.device.type() != c10::DeviceType::CPU;
    const bool overPool = isView && buffers[static_cast<size_t>(buffer.base)].kind == Kind::Planned;
    if (buffer.kind == Kind::Owned || (isView && !overPool)) perCall.push_back(id);
  }
}

std::unique_ptr<RuntimePlan> RuntimePlan::withValues(const graph::SymbolValues& symbols) const {
  auto made = std::make_unique<RuntimePlan>(*this);
  for (BufferPlan& buffer : made->buffers) {
    if (buffer.isStatic) continue;
    buffer.sizes = symbols(buffer.meta->sizes);
    buffer.strides = symbols(buffer.meta->strides);
    buffer.offset = symbols(buffer.meta->storageOffset);
    buffer.isStatic = true;
  }
  for (LaunchPlan& launch : made->launches) {
    if (launch.isStatic) continue;
    launch.constantSizes = symbols(launch.sizes);
    launch.resolve(launch.constantSizes.data());
    launch.isStatic = true;
    made->workBytes = std::max(made->workBytes, launch.workBytes);
  }
  for (ExternPlan& plan : made->externs)
    for (BoundArgument& argument : plan.call.arguments) argument = runtime::withValues(argument, symbols);
  made->finishBatches();
  made->placePools(symbols);
  made->isStatic = true;
  return made;
}

void RuntimePlan::placePools(const graph::SymbolValues& symbols) {
  const auto& places = program().places;
  if (places.empty()) return;
  std::vector<inductor::PoolRequest> requests[2];
  std::vector<size_t> requestOf;
  for (const inductor::PoolPlace& place : places) {
    const int64_t bytes = std::max<int64_t>(0, symbols(place.bytes));
    requestOf.push_back(requests[place.onDevice].size());
    requests[place.onDevice].push_back({place.onDevice ? inductor::onDeviceBytes(bytes) : bytes, place.first, place.last});
  }
  const inductor::PoolPlan plans[2] = {inductor::planPool(requests[0]), inductor::planPool(requests[1])};
  poolBytes = plans[0].bytes;
  devicePoolBytes = plans[1].bytes;
  for (BufferId id : planned) {
    const int32_t place = program().buffers[static_cast<size_t>(id)].place;
    if (place < 0) continue;
    const bool onDevice = places[static_cast<size_t>(place)].onDevice;
    buffers[static_cast<size_t>(id)].poolOffset = plans[onDevice].offsets[requestOf[static_cast<size_t>(place)]];
  }
}

Result<void> RuntimePlan::addLaunch(const LaunchStep& step) {
  LaunchPlan plan;
  const auto kernelIndex = static_cast<size_t>(step.kernel);
  const inductor::Kernel& kernel = program().kernels[kernelIndex];
  plan.kernel = kernels[kernelIndex].get();
  if (kernelIndex < gpuKernels.size()) plan.gpuKernel = gpuKernels[kernelIndex].get();
  if (!plan.kernel == !plan.gpuKernel) return fail(ErrorCode::Internal, "kernel has no code, or code for two devices", kernel.name);
  plan.device = toDevice(kernel.device);
  plan.kernelIndex = step.kernel;
  plan.group = step.group;
  plan.buffers = step.buffers;
  plan.sizes = step.sizes;
  if (plan.sizes.empty()) plan.sizes.assign(kernel.sizeSymbols.begin(), kernel.sizeSymbols.end());
  if (plan.kernel) plan.grain = grainOf(*plan.kernel);
  std::vector<int64_t> constants;
  plan.isStatic = allConstant(plan.sizes, &constants);
  if (plan.isStatic) plan.resolve(constants.data());
  if (plan.isStatic) plan.constantSizes = std::move(constants);
  isStatic = isStatic && plan.isStatic;
  workBytes = std::max(workBytes, plan.workBytes);
  size_t position = 0;
  for (const inductor::KernelBuffer& buffer : kernel.buffers) {
    if (buffer.role == inductor::BufferRole::Scratch) continue;
    if (position >= plan.buffers.size()) return fail(ErrorCode::Internal, "launch binds too few buffers", kernel.name);
    const BufferId id = plan.buffers[position++];
    if (buffer.role != inductor::BufferRole::Input) noteWritten(id);
    for (BufferId memory = id; memory >= 0; memory = buffers[static_cast<size_t>(memory)].base) {
      buffers[static_cast<size_t>(memory)].inKernels = true;
      if (buffers[static_cast<size_t>(memory)].kind != inductor::ProgramBuffer::Kind::View) break;
    }
  }
  if (position != plan.buffers.size()) return fail(ErrorCode::Internal, "launch binds too many buffers", kernel.name);
  const auto index = static_cast<int32_t>(launches.size());
  const bool joins = step.batch >= 0 && step.batch < static_cast<int32_t>(batches.size());
  if (step.batch < 0) steps.push_back({StepKind::Launch, index});
  else if (!joins) steps.push_back({StepKind::Batch, static_cast<int32_t>(batches.size())}), batches.push_back({index, 1, false, {}});
  else ++batches.back().count;
  if (joins && (step.batch + 1 != static_cast<int32_t>(batches.size()) || batches.back().first + batches.back().count != index + 1))
    return fail(ErrorCode::Internal, "launches of one batch do not follow one another", kernel.name);
  if (joins && plan.gpuKernel != launches[static_cast<size_t>(batches.back().first)].gpuKernel)
    return fail(ErrorCode::Internal, "one batch of a GPU has different kernels", kernel.name);
  launches.push_back(std::move(plan));
  return {};
}

Result<void> RuntimePlan::addExtern(const ExternStep& step, c10::ArrayRef<at::Generator> generators) {
  auto call = prepareExternCall(step, generators);
  if (!call) return tl::unexpected(call.error());
  for (const BoundArgument& argument : call->arguments)
    for (const graph::SymExpr& value : argument.integers) isStatic = isStatic && value.isConstant();
  if (step.changes >= 0) noteWritten(step.changes);
  predictsIntegers = predictsIntegers || !step.integers.empty();
  steps.push_back({StepKind::Extern, static_cast<int32_t>(externs.size())});
  externs.push_back({std::move(*call), step.group});
  return {};
}

}  // namespace fusebox::runtime
