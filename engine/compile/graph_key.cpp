#include "engine/compile/graph_key.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "engine/cache/cache_settings.h"
#include "engine/compile/build_identity.h"
#include "engine/graph/operator_facts.h"
#include "engine/graph/symbol_table.h"
#include "engine/inductor/ir/archive_fields.h"
#include "engine/runtime/gpu/cuda_driver.h"
#include "engine/runtime/gpu/cuda_linker.h"

namespace fusebox {
namespace {

using graph::Graph;
using graph::Node;
using graph::NodeKind;
using inductor::ArchiveWriter;

/// Content of one component, and whether it names symbols that no call brings a value for.
class Content {
 public:
  explicit Content(std::span<const graph::Symbol> symbols) : archive_(symbols) {}
  ArchiveWriter& operator*() { return archive_; }
  std::string take(bool& isClosed) {
    isClosed = isClosed && archive_.ownSymbols() == 0;
    return archive_.take();
  }

 private:
  ArchiveWriter archive_;
};

/// "137 operators: 48 addmm, 25 native_layer_norm, …"
std::string operatorText(const Graph& graph) {
  std::map<std::string, int> counts;
  int total = 0;
  for (const Node& node : graph.nodes())
    if (node.kind == NodeKind::Call) ++counts[node.op], ++total;
  std::string text = fmt::format("{} operators", total);
  const char* between = ": ";
  for (const auto& [op, count] : counts) text += fmt::format("{}{} {}", std::exchange(between, ", "), count, op);
  return text;
}

std::string inputText(const Graph& graph) {
  std::string text;
  for (graph::NodeId id : graph.placeholders()) {
    const graph::OutputMeta& meta = graph.node(id).outputs.at(0);
    text += (text.empty() ? "" : ", ") + graph.node(id).name + " " +
            (meta.kind == graph::OutputMeta::Kind::Tensor ? meta.tensor.str() : "number");
  }
  return text.empty() ? "none" : text;
}

std::string factText(const Graph& graph) {
  std::set<std::string> lines;
  for (const Node& node : graph.nodes()) {
    if (node.kind != NodeKind::Call) continue;
    std::string line = node.op + ":";
    for (const std::string& flag : graph::flagNames(graph::factsOf(node))) line += " " + flag;
    lines.insert(std::move(line));
  }
  std::string text;
  for (const std::string& line : lines) text += (text.empty() ? "" : "; ") + line;
  return text;
}

void addDevices(cache::CacheKey& key, const std::set<std::pair<graph::DeviceKind, int>>& devices, std::string& whyNot) {
  std::string text;
  for (const auto& [kind, index] : devices) {
    if (kind == graph::DeviceKind::Cpu) continue;
    const std::string name = graph::Device{kind, static_cast<decltype(graph::Device::index)>(index)}.str();
    if (kind == graph::DeviceKind::Cuda) {
      auto facts = runtime::gpu::deviceText(std::max(0, index));
      if (facts)
        text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", name, *facts);
      else if (whyNot.empty())
        whyNot = "what kind of device " + name + " is: " + facts.error().text();
    } else if (whyNot.empty()) {
      whyNot = "the graph works on " + name + ", whose code is not kept";
    }
  }
  if (text.empty()) return key.add("GPUs", "none");
  key.add("GPUs", text + (runtime::gpu::CudaLinker::get() ? "" : ", whose driver compiles the code"));
}

void addGraph(cache::CacheKey& key, const Graph& traced, const std::vector<graph::Symbol>& symbols,
              std::string& whyNot) {
  Content operators(symbols), inputs(symbols), values(symbols);
  bool isClosed = true;
  std::set<std::pair<graph::DeviceKind, int>> devices;
  (*operators)(traced.nodes().size());
  for (const Node& node : traced.nodes()) {
    (*operators)(node.kind, node.op, node.args, node.index, node.isBackward, node.outputIsList, node.noGrad);
    if (node.kind == NodeKind::Placeholder)
      (*inputs)(node.name, node.outputs);
    else
      (*values)(node.name, node.outputs);
    for (const graph::OutputMeta& output : node.outputs)
      if (output.kind == graph::OutputMeta::Kind::Tensor) devices.insert({output.tensor.device.kind, output.tensor.device.index});
  }
  addDevices(key, devices, whyNot);
  key.add("inputs", inputs.take(isClosed), inputText(traced));
  key.add("operators", operators.take(isClosed), operatorText(traced));
  key.add("sizes and types of values", values.take(isClosed), fmt::format("{} values", traced.nodes().size()));
  key.add("what operators do besides computing", factText(traced));
  if (!isClosed) whyNot = "a size in it is no number that calls bring";
}

void addSymbols(cache::CacheKey& key, const std::vector<graph::Symbol>& symbols) {
  std::string ranges, hints;
  for (const graph::Symbol symbol : symbols) {
    ranges +=
        fmt::format("{}{} in [{}, {}]", ranges.empty() ? "" : ", ", symbol.name(), symbol.lower(), symbol.upper());
    hints += fmt::format("{}{} = {}", hints.empty() ? "" : ", ", symbol.name(),
                         graph::symbolHint(symbol).load(std::memory_order_relaxed));
  }
  key.add("symbols", ranges.empty() ? "none" : ranges);
  // Any would give right code; which of several right ways is taken depends on it.
  key.add("sizes at capture", hints.empty() ? "none" : hints);
}

}  // namespace

cache::CacheKey platformKey(const codegen::cpu::TargetFeatures& cpu) {
  cache::CacheKey key;
  key.add("Fusebox's build", engineBuild());
  key.add("PyTorch", torchBuild());
  key.add("LLVM", codegen::cpu::llvmVersion());
  key.add("CPU", cpu.cpu);
  key.add("CPU features", std::to_string(cpu.vectorBits) + "-bit vectors " + cpu.features);
  return key;
}

cache::CacheKey graphKey(const Graph& traced, const GraphKeyFacts& facts, const codegen::cpu::TargetFeatures& cpu,
                         std::string& whyNot) {
  cache::CacheKey key = platformKey(cpu);
  key.add("cache key tag", facts.keyTag);
  key.add("direction", facts.direction);
  key.add("options", facts.options);
  addSymbols(key, facts.symbols);
  addGraph(key, traced, facts.symbols, whyNot);
  std::string writes = fmt::format("results from {} on are kept for backward", static_cast<int64_t>(facts.firstSaved));
  for (const inductor::InputWrite& write : facts.writes)
    writes += fmt::format("; result {} is input {}'s new value{}", write.result, write.input,
                          write.refusal.empty() ? "" : ", a copy: " + write.refusal);
  key.add("writes to inputs", writes);
  return key;
}

}  // namespace fusebox
