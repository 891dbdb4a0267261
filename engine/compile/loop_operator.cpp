#include "engine/compile/loop_operator.h"

#include <ATen/ATen.h>
#include <torch/library.h>

#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "engine/aot/executor_scope.h"
#include "engine/compile/compile_alone.h"
#include "engine/graph/serialize.h"
#include "engine/graph/symbol_values.h"

namespace fusebox {

namespace {

using at::Tensor;

/// One of the two functions of a loop.
struct Step {
  aot::Executor run;
  size_t symbols = 0;
};

Step compileStep(const std::string& text, const char* name) {
  auto saved = graph::readSavedGraph(text);
  if (!saved) throw std::runtime_error("fusebox::while_loop: " + saved.error().text());
  for (const auto& [symbol, value] : saved->hints) graph::setHint(symbol, value);
  const std::vector<graph::Symbol> symbols = graph::symbolsOf(saved->graph);
  CompileOptions options;
  options.name = name;
  return {executorAlone(std::move(saved->graph), symbols, options), symbols.size()};
}

/// By their texts.
std::shared_ptr<const std::pair<Step, Step>> loopOf(const std::string& condition, const std::string& body) {
  static std::mutex mutex;
  static auto* const known = new std::map<std::pair<std::string, std::string>, std::shared_ptr<const std::pair<Step, Step>>>;
  const std::pair key(condition, body);
  {
    const std::lock_guard lock(mutex);
    if (const auto found = known->find(key); found != known->end()) return found->second;
  }
  auto made = std::make_shared<const std::pair<Step, Step>>(compileStep(condition, "condition of a while_loop"), compileStep(body, "body of a while_loop"));
  const std::lock_guard lock(mutex);
  return known->emplace(key, std::move(made)).first->second;
}

std::vector<Tensor> whileLoop(at::TensorList carried, at::TensorList others, c10::string_view conditionText, c10::string_view bodyText, at::IntArrayRef sizes) {
  const auto loop = loopOf(std::string(conditionText), std::string(bodyText));
  const auto& [condition, body] = *loop;
  TORCH_CHECK(sizes.size() == condition.symbols + body.symbols, "fusebox::while_loop: ", condition.symbols + body.symbols, " sizes are wanted, ", sizes.size(), " given");
  const aot::ExecutorScope scope;
  const std::span<const int64_t> all(sizes.data(), sizes.size()), ofCondition = all.first(condition.symbols), ofBody = all.subspan(condition.symbols);
  std::vector<Tensor> values(carried.begin(), carried.end());
  values.insert(values.end(), others.begin(), others.end());
  bool any = false;
  while (condition.run(values, ofCondition).at(0).item<bool>()) {
    std::vector<Tensor> next = body.run(values, ofBody);
    TORCH_CHECK(next.size() == carried.size(), "fusebox::while_loop: the body gives ", next.size(), " tensors for ", carried.size());
    std::move(next.begin(), next.end(), values.begin());
    any = true;
  }
  values.resize(carried.size());
  if (!any)
    for (Tensor& value : values) value = value.clone();
  return values;
}

std::vector<Tensor> copies(at::TensorList initial) {
  std::vector<Tensor> made;
  for (const Tensor& t : initial) made.push_back(t.clone(at::MemoryFormat::Contiguous));
  return made;
}

std::vector<Tensor> shapes(at::TensorList carried) {
  std::vector<Tensor> made;
  for (const Tensor& t : carried) made.push_back(at::empty_like(t, t.options(), at::MemoryFormat::Contiguous));
  return made;
}

std::vector<Tensor> shapesAfter(at::TensorList carried, at::TensorList, c10::string_view, c10::string_view, at::IntArrayRef) { return shapes(carried); }

}  // namespace

void registerLoopOperator() {
  static const std::pair libraries = [] {
    torch::Library made(torch::Library::FRAGMENT, "fusebox", std::nullopt, __FILE__, __LINE__);
    made.def("while_loop(Tensor[] carried, Tensor[] others, str condition, str body, SymInt[] sizes) -> Tensor[]");
    made.def("carried(Tensor[] initial) -> Tensor[]");
    torch::Library kernels(torch::Library::IMPL, "fusebox", std::nullopt, __FILE__, __LINE__);
    kernels.impl("while_loop", torch::dispatch(c10::DispatchKey::CompositeExplicitAutograd, &whileLoop));
    kernels.impl("while_loop", torch::dispatch(c10::DispatchKey::Meta, &shapesAfter));
    kernels.impl("carried", torch::dispatch(c10::DispatchKey::CompositeExplicitAutograd, &copies));
    kernels.impl("carried", torch::dispatch(c10::DispatchKey::Meta, &shapes));
    return std::pair(std::move(made), std::move(kernels));
  }();
}

}  // namespace fusebox
