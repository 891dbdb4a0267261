#include "engine/compile/staged_executor.h"

#include <fmt/format.h>

#include <map>

#include "engine/compile/asked_kernels.h"
#include "engine/compile/data_stages.h"
#include "engine/graph/symbol_values.h"
#include "engine/runtime/compiled_graph.h"
#include "engine/runtime/graph_interpreter.h"
#include "engine/trace/convert.h"

namespace fusebox {
namespace {

using graph::SymExpr;
using graph::ValueRef;

/// Values of the forward graph, each in a slot of its own; a part reads and writes slots.
struct PartSlots {
  std::vector<size_t> inputs, results;
};

struct StageCode {
  DataStage stage;
  std::vector<graph::Symbol> symbols;
  aot::Executor run;  ///< of `stage.computed`; null: nothing is computed
  PartSlots computed, asked;
};

class StagedGraph {
 public:
  StagedGraph(std::shared_ptr<const aot::AotModule> module, const CompilePart& compile, record::Id recorded)
      : module_(std::move(module)), askedKernels_(recorded) {
    for (DataStage& stage : cutAtData(*module_)) stages_.push_back({std::move(stage), {}, {}, {}, {}});
    for (size_t s = 0; s < stages_.size(); ++s) {
      StageCode& code = stages_[s];
      for (size_t i : code.stage.symbols) code.symbols.push_back(module_->symbols[i]);
      code.computed = slotsOf(code.stage.computed);
      code.asked = slotsOf(code.stage.asked);
      const auto& nodes = code.stage.computed.graph.nodes();
      const bool computes = std::any_of(nodes.begin(), nodes.end(), [](const graph::Node& n) { return n.kind == graph::NodeKind::Call; });
      if (computes) code.run = compile(code.stage.computed.graph, code.symbols, s + 1, stages_.size());
    }
    for (const graph::Argument& result : module_->forward.output()->args) {
      const auto* value = result.as<ValueRef>();
      results_.push_back(value ? static_cast<int64_t>(slotOf(*value)) : -1);
    }
    for (const aot::DataSize& size : module_->dataSizes) dataSlots_.push_back(slotOf(size.value));
  }

  std::vector<at::Tensor> run(c10::ArrayRef<at::Tensor> inputs, std::span<int64_t> values) const {
    runtime::NodeObserver observer;
    if (AskedKernels::isListening()) observer = [this](const graph::Node& node, int64_t startNs, int64_t durNs) { askedKernels_.ran(node, startNs, durNs); };
    std::vector<at::Tensor> slots(slotOf_.size());
    for (const auto& [value, slot] : slotOf_)
      if (const graph::Node& node = module_->forward.node(value.node); node.kind == graph::NodeKind::Placeholder)
        slots[slot] = inputs[static_cast<size_t>(node.index)];
    size_t known = 0;
    for (const StageCode& code : stages_) {
      std::vector<int64_t> given;
      given.reserve(code.symbols.size());
      for (size_t i : code.stage.symbols) given.push_back(values[i]);
      if (code.run) put(code.computed, code.run(gathered(code.computed, slots), given), slots);
      if (!code.stage.asked.empty()) {
        auto answers = ask(code, gathered(code.asked, slots), given, observer, values, known);
        TORCH_CHECK(answers.has_value(), "fusebox cannot run a traced graph: ", answers.error().text());
        put(code.asked, std::move(*answers), slots);
      }
      for (size_t i : code.stage.learnt) learn(i, slots, values);
      known += code.stage.learnt.size();
      if (!code.stage.learnt.empty()) check(code.stage, values, known);
      requireAsTraced(code, slots, values);
    }
    std::vector<at::Tensor> made;
    made.reserve(results_.size());
    for (int64_t slot : results_) made.push_back(slot < 0 ? at::Tensor() : slots[static_cast<size_t>(slot)]);
    return made;
  }

 private:
  size_t slotOf(ValueRef v) { return slotOf_.try_emplace(v, slotOf_.size()).first->second; }
  PartSlots slotsOf(const GraphPart& part) {
    PartSlots made;
    for (const ValueRef& v : part.inputs) made.inputs.push_back(slotOf(v));
    for (const ValueRef& v : part.results) made.results.push_back(slotOf(v));
    return made;
  }
  static std::vector<at::Tensor> gathered(const PartSlots& part, const std::vector<at::Tensor>& slots) {
    std::vector<at::Tensor> made;
    made.reserve(part.inputs.size());
    for (size_t slot : part.inputs) made.push_back(slots[slot]);
    return made;
  }
  static void put(const PartSlots& part, std::vector<at::Tensor> results, std::vector<at::Tensor>& slots) {
    for (size_t i = 0; i < part.results.size(); ++i) slots[part.results[i]] = std::move(results[i]);
  }

  Result<std::vector<at::Tensor>> ask(const StageCode& code, c10::ArrayRef<at::Tensor> inputs, const std::vector<int64_t>& given,
                                      const runtime::NodeObserver& observer, std::span<const int64_t> values, size_t known) const {
    try {
      return runtime::runEager(code.stage.asked.graph, inputs, module_->constants, {}, {code.symbols, given}, observer);
    } catch (const runtime::Mispredicted& wrong) {
      // A size that was checked to be one number is that number in the graph.
      for (const graph::Relation& r : module_->assumptions) {
        const bool isFixed = r.op == graph::Compare::Eq && r.reason == graph::ShapeEnv::kRaisesOtherwise;
        for (size_t i : isFixed ? code.stage.learnt : std::vector<size_t>()) {
          const graph::Symbol symbol = module_->symbols[module_->dataSizes[i].symbol];
          if (r.left.contains(symbol) || r.right.contains(symbol)) misfit(wrong.what(), values, known, true);
        }
      }
      throw;
    }
  }

  void learn(size_t i, const std::vector<at::Tensor>& slots, std::span<int64_t> values) const {
    const aot::DataSize& size = module_->dataSizes[i];
    const at::Tensor& read = slots[dataSlots_[i]];
    values[size.symbol] = size.dim < 0 ? read.item<int64_t>() : read.size(size.dim);
  }

  [[noreturn]] void misfit(const std::string& what, std::span<const int64_t> values, size_t known, bool programRaises = false) const {
    std::vector<int64_t> found;
    std::string text = "what was captured does not fit the data of this call: " + what;
    for (size_t i = 0; i < module_->dataSizes.size(); ++i) {
      const aot::DataSize& size = module_->dataSizes[i];
      const bool isTruth = module_->symbols[size.symbol].upper() == 1;
      found.push_back(isTruth ? INT64_MAX : i < known ? values[size.symbol] : -1);
      if (i < known) text += fmt::format(", {} = {} is {}", module_->symbols[size.symbol].name(), values[size.symbol], size.text);
    }
    throw aot::DataMisfit(text, std::move(found), programRaises);
  }

  void check(const DataStage& stage, std::span<const int64_t> values, size_t known) const {
    for (size_t i : stage.learnt) {
      const graph::Symbol symbol = module_->symbols[module_->dataSizes[i].symbol];
      const int64_t value = values[module_->dataSizes[i].symbol];
      if (value < symbol.lower() || value > symbol.upper())
        misfit(fmt::format("{} is not between {} and {}", symbol.name(), symbol.lower(), symbol.upper()), values, known);
    }
    if (stage.assumed.empty()) return;
    const graph::SymbolValues all(module_->symbols, values);
    for (size_t i : stage.assumed) {
      const graph::Relation& r = module_->assumptions[i];
      const auto left = all.evaluate(r.left), right = all.evaluate(r.right);
      if (!left || !right || !graph::holds(r.op, *left, *right)) 
        misfit(r.str() + " was assumed (" + r.reason + ")", values, known, r.reason == graph::ShapeEnv::kRaisesOtherwise);
    }
  }

  /// What the asked operators gave, besides the sizes that were asked for.
  void requireAsTraced(const StageCode& code, const std::vector<at::Tensor>& slots, std::span<const int64_t> values) const {
    if (code.stage.asked.empty()) return;
    const graph::SymbolValues all(module_->symbols, values);
    for (size_t i = 0; i < code.asked.results.size(); ++i) {
      const ValueRef value = code.stage.asked.results[i];
      const graph::TensorMeta& meta = module_->forward.meta(value).tensor;
      const at::Tensor& t = slots[code.asked.results[i]];
      bool fits = t.defined() && t.scalar_type() == static_cast<at::ScalarType>(meta.dtype) && t.dim() == static_cast<int64_t>(meta.sizes.size());
      for (int64_t d = 0; fits && d < t.dim(); ++d)
        fits = t.size(d) == all(meta.sizes[static_cast<size_t>(d)]) && (t.numel() == 0 || t.size(d) < 2 || t.stride(d) == all(meta.strides[static_cast<size_t>(d)]));
      if (!fits) throw runtime::Mispredicted(module_->forward.node(value.node).op, module_->forward.node(value.node).op + " gave something else than was predicted");
    }
  }

  std::shared_ptr<const aot::AotModule> module_;
  std::vector<StageCode> stages_;
  std::map<ValueRef, size_t> slotOf_;
  std::vector<int64_t> results_;  ///< slots; -1: None
  std::vector<size_t> dataSlots_;
  mutable AskedKernels askedKernels_;
};

}  // namespace

aot::ForwardExecutor stagedExecutor(std::shared_ptr<const aot::AotModule> module, const CompilePart& compile, record::Id recorded) {
  return [graph = std::make_shared<const StagedGraph>(std::move(module), compile, recorded)](c10::ArrayRef<at::Tensor> inputs, std::span<int64_t> values) {
    return graph->run(inputs, values);
  };
}

}  // namespace fusebox
