#include "engine/compile/graph_caching.h"

#include <c10/core/DeviceGuard.h>

#include <exception>

#include "engine/compile/compiled_region.h"
#include "engine/compile/kernel_code.h"
#include "engine/runtime/gpu/gpu_compiler.h"
#include "engine/support/all_cores.h"
#include "engine/support/clock.h"

namespace fusebox {

using codegen::cpu::CompiledKernel;
using record::Recorder;

GraphCaching::GraphCaching(std::shared_ptr<const graph::Graph> traced, GraphKeyFacts facts, NoCache whyNot, bool isShared, record::Id compile,
                           std::string name, std::shared_ptr<StoredGraphs> stored)
    : traced_(std::move(traced)), facts_(std::move(facts)), whyNot_(std::move(whyNot)), name_(std::move(name)), isShared_(isShared), compile_(compile), stored_(std::move(stored)) {
  if (!whyNot_.why.empty()) return;
  auto jit = processJit();
  if (!jit) {
    whyNot_.why = jit.error().text();
    return;
  }
  try {
    auto key = graphKey(*traced_, facts_, (*jit)->target(), whyNot_.why);
    if (whyNot_.why.empty()) key_ = std::move(key);
  } catch (const std::exception& error) {  // symbols named twice, and the like
    whyNot_.why = error.what();
  }
}

void GraphCaching::record(const char* outcome, std::string reason, int64_t savedNs) const {
  if (Recorder* recorder = Recorder::active())
    recorder->cacheEvent({compile_, "graph", outcome, key_ ? key_->id() : std::string(), std::move(reason), savedNs});
}

std::shared_ptr<CompiledRegion> GraphCaching::load(const std::vector<at::Tensor>& constants) {
  if (!key_) {
    countCache(CacheOutcome::Bypass);
    record(whyNot_.isDisabled ? "disabled" : "bypass", whyMissed_ = whyNot_.why);
    return nullptr;
  }
  try {
    return lookUp(constants);
  } catch (const std::exception& error) {  // what goes wrong here must not keep the graph from being compiled
    countCache(CacheOutcome::Miss);
    record("miss", whyMissed_ = error.what());
    return nullptr;
  }
}

std::shared_ptr<CompiledRegion> GraphCaching::lookUp(const std::vector<at::Tensor>& constants) {
  const record::StageTimer timer(Recorder::active(), compile_, record::Phase::Inductor, "cache");
  const int64_t start = nowNs();
  std::string why;
  auto found = stored_ ? stored_->find(*key_, facts_.symbols, why) : GraphCache::instance().find(*key_, facts_.symbols, isShared_, why);
  std::shared_ptr<CompiledRegion> region;
  if (found) {
    const cache::EntryHeader header = found->header;
    const bool isRemote = found->isRemote;
    region = make(std::move(*found), constants, why);
    if (region) {
      countCache(CacheOutcome::Hit);
      record("hit",
             std::string(isRemote ? "from the remote cache" : "") +
                 (header.optimised ? "" : " with code of the first tier"),
             header.compileNs - (nowNs() - start));
      if (!header.optimised && !stored_)
        GraphCache::instance().keep({*key_, name_, header.compileNs, region, traced_, facts_.symbols, isShared_});
      return region;
    }
    if (!stored_) GraphCache::instance().drop(*key_, why);
  }
  countCache(CacheOutcome::Miss);
  whyMissed_ = why;
  if (Recorder::active() && why.empty() && !stored_) {
    why = GraphCache::instance().nearest(*key_);
    why = why.empty() ? "no entry to compare with" : "nearest entry: " + why;
  }
  record("miss", why);
  return nullptr;
}

std::shared_ptr<CompiledRegion> GraphCaching::make(GraphCache::Found found, const std::vector<at::Tensor>& constants,
                                                   std::string& why) {
  KeptGraph& kept = found.graph;
  auto jit = processJit();
  if (!jit) return nullptr;
  std::vector<std::shared_ptr<CompiledKernel>> code(kept.code.size());
  std::vector<std::shared_ptr<runtime::gpu::GpuKernel>> gpu(kept.code.size());
  std::vector<std::string> failed(kept.code.size());
  forEachOnAllCores(code.size(), [&](size_t i) {
    const auto take = [&](auto loaded, auto& place) {
      if (loaded)
        place = std::move(*loaded);
      else
        failed[i] = loaded.error().text();
    };
    const inductor::Kernel& kernel = kept.program.kernels[i];
    if (kept.gpuCode[i])
      take(runtime::gpu::GpuCompiler::instance().load(kernel, std::move(*kept.gpuCode[i])), gpu[i]);
    else
      take((*jit)->load(kernel, std::move(kept.code[i])), code[i]);
  });
  // At once: a driver that refuses the code must not do so in the middle of a call.
  for (size_t i = 0; i < gpu.size(); ++i) {
    if (!gpu[i] || !failed[i].empty()) continue;
    const c10::Device device(c10::kCUDA, static_cast<c10::DeviceIndex>(std::max<int>(0, kept.program.kernels[i].device.index)));
    const c10::DeviceGuard guard(device);
    if (auto loaded = gpu[i]->loadNow(device.index()); !loaded) failed[i] = loaded.error().text();
  }
  for (const std::string& text : failed)
    if (!text.empty()) {
      why = text;
      return nullptr;
    }
  kept.program.name = traced_->name;
  auto program = runtime::CompiledGraph::create(std::move(kept.program), std::move(code), constants, {}, std::move(gpu));
  if (!program) {
    why = program.error().text();
    return nullptr;
  }
  auto read = [bytes = std::move(kept.forms), traced = traced_, graph = std::weak_ptr(*program),
               symbols = facts_.symbols]() -> Result<GraphForms> {
    const auto compiled = graph.lock();
    if (!compiled) return fail(ErrorCode::NotFound, "the program is gone");
    return readForms(bytes, *traced, compiled->program(), symbols);
  };
  return std::make_shared<CompiledRegion>(std::move(read), std::move(kept.results), std::move(*program), name_,
                                          facts_.direction);
}

void GraphCaching::keep(std::shared_ptr<CompiledRegion> region, int64_t compileNs) {
  if (!key_) return;
  GraphCache::Pending made{*key_, name_, compileNs, std::move(region), traced_, facts_.symbols, isShared_};
  if (stored_) return stored_->collect(std::move(made));
  GraphCache::instance().keep(std::move(made));
  record("store", {});
}

}  // namespace fusebox
