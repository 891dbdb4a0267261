#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include "engine/graph/graph.h"
#include "engine/graph/symbol_values.h"
#include "engine/support/result.h"

namespace fusebox::runtime {

/// Told of each operator after it ran: when it began, and how long it took for the processor.
using NodeObserver = std::function<void(const graph::Node& node, int64_t startNs, int64_t durNs)>;

/// Carries out `graph` node by node through the dispatcher, below autograd: the reference that compiled code is compared with,
/// and what runs when a compile stage fails. `constants` and `generators` are the graph's, by index. Results that are not
/// tensors (None, integers) come back as undefined tensors. An operator's own exception passes through; an operator or argument
/// that cannot be bound is an error. Symbols that `symbols` has no value of are read off the inputs' sizes and strides.
Result<std::vector<at::Tensor>> runEager(const graph::Graph& graph, c10::ArrayRef<at::Tensor> inputs,
                                         c10::ArrayRef<at::Tensor> constants = {},
                                         c10::ArrayRef<at::Generator> generators = {}, const graph::SymbolValues& symbols = {},
                                         const NodeObserver& observer = {});

/// Told of each value that an operator gave, which it may exchange.
using ValueObserver = std::function<void(graph::ValueRef ref, at::Tensor& value)>;

/// The same with autograd watching, in the gradient mode of the caller: results have a history that leads to the inputs. Nodes that
/// were traced without gradients stay without.
Result<std::vector<at::Tensor>> runDifferentiable(const graph::Graph& graph, c10::ArrayRef<at::Tensor> inputs,
                                                  c10::ArrayRef<at::Tensor> constants = {}, const graph::SymbolValues& symbols = {},
                                                  const ValueObserver& observer = {});

}  // namespace fusebox::runtime
