// What the GPU back end makes of a saved graph, without a GPU: reads the JSON of engine/graph/serialize.h from standard input, prints
// each kernel's loop IR, its launches and PTX. graph_ptx [--cuda] [--joint] [--ptx] [--fusions]: --cuda compiles a graph of the CPU as if its tensors lay
// on a GPU, --joint has a graph with its gradients rewritten first, as before it is cut.
#include <fmt/format.h>

#include <cstdio>
#include <cstring>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "engine/codegen/gpu/device_math.h"
#include "engine/codegen/gpu/plan.h"
#include "engine/codegen/gpu/ptx.h"
#include "engine/graph/serialize.h"
#include "engine/graph/symbol_values.h"
#include "engine/inductor/ir/lowered_graph.h"
#include "engine/inductor/passes/joint_graph.h"

using namespace fusebox;

namespace {

/// The same graph with its tensors on the first GPU.
std::string onGpu(const std::string& text) {
  auto graph = nlohmann::json::parse(text);
  for (auto& node : graph["nodes"])
    for (auto& output : node["out"])
      if (output.is_object() && output.contains("dtype")) output["device"] = {1, 0};
  return graph.dump();
}

int stop(const Error& error) {
  std::fprintf(stderr, "%s\n", error.text().c_str());
  return 1;
}

void printKernel(const inductor::Kernel& kernel, bool withPtx) {
  const codegen::gpu::GpuTarget target;
  std::printf("%s\n", kernel.str().c_str());
  const codegen::gpu::Plan plan = kernel.attention ? codegen::gpu::Plan{} : codegen::gpu::makePlan(kernel, target, true);
  for (const auto& phase : plan.phases)
    std::printf("-- phase %d: points %d inner %d vector %d unroll %d pointsFast %d blocks %s\n", static_cast<int>(phase.kind), phase.map.points,
                phase.map.inner, phase.map.vector, phase.map.unroll, phase.map.pointsFast, phase.blocks.str().c_str());
  for (const auto& section : plan.sections)
    std::printf("-- section: vector %d unroll %d whole %d chunk %s\n", section.vector, section.unroll, section.whole, section.chunk.str().c_str());
  auto made = codegen::gpu::compilePtx(kernel, target, true, false);
  if (!made) std::printf("-- no PTX: %s\n", made.error().text().c_str());
  else if (withPtx) std::printf("%s\n", made->text.c_str());
}

}  // namespace

int main(int argc, char** argv) {
  bool cuda = false, joint = false, ptx = false, fusions = false;
  for (int i = 1; i < argc; ++i) {
    cuda |= std::strcmp(argv[i], "--cuda") == 0;
    joint |= std::strcmp(argv[i], "--joint") == 0;
    ptx |= std::strcmp(argv[i], "--ptx") == 0;
    fusions |= std::strcmp(argv[i], "--fusions") == 0;
  }
  std::string text(std::istreambuf_iterator<char>(std::cin), {});
  if (cuda) text = onGpu(text);
  auto saved = graph::readSavedGraph(text);
  if (!saved) return stop(saved.error());
  for (const auto& [symbol, value] : saved->hints) graph::setHint(symbol, value);
  if (joint) {
    std::vector<std::vector<graph::ValueRef>> moved;
    graph::Graph made = inductor::decomposeJoint(saved->graph, moved);
    graph::ArgumentList results = saved->graph.output()->args;
    graph::Graph::mapValues(results, [&](graph::ValueRef v) { return moved[static_cast<size_t>(v.node)][static_cast<size_t>(v.output)]; });
    made.setOutputs(std::move(results));
    saved->graph = std::move(made);
  }
  std::vector<inductor::PassLog> log;
  auto post = inductor::runGraphPasses(std::move(saved->graph), &log);
  if (!post) return stop(post.error());
  for (const auto& pass : log)
    if (!pass.detail.empty()) std::printf("-- %s: %s\n", pass.pass.c_str(), pass.detail.c_str());
  inductor::LowerOptions options;
  options.refusal = [](const graph::Device&) { return std::string(); };
  options.hasCode = [](const graph::Device&, inductor::Op op, graph::DType type) { return codegen::gpu::hasDeviceCode(op, type); };
  auto lowered = inductor::lower(*post, options);
  if (!lowered) return stop(lowered.error());
  auto schedule = inductor::schedule(*lowered, {});
  if (!schedule) return stop(schedule.error());
  for (const auto& group : schedule->groups) {
    std::printf("== %s\n", group.name.c_str());
    if (group.kernel >= 0) printKernel(schedule->program.kernels[static_cast<size_t>(group.kernel)], ptx);
  }
  if (fusions)
    for (const auto& d : schedule->decisions)
      std::printf("%d with %d %s: %s, %s\n", d.a, d.b, d.fused ? "fused" : "apart", d.kind.c_str(), d.reason.c_str());
  return 0;
}
