#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "engine/aot/compiled_node.h"

namespace fusebox::aot {

/// Gives the results of one call of a compiled region their autograd history, which leads to the edges `next` (one for every entry of
/// AotModule::gradInputs), and keeps what backward reads. Saved-tensor hooks of the program may throw.
///
/// One node stands for the whole region. Where results are computed from others (AotModule::inner), these and what is computed from
/// them get a node of their own ahead of it, which hands its gradient on to the region's node; and, when somebody watches the
/// gradient of an inner result, hands on to that one's node what it contributes there. `seen` gives the tensor that the program sees in place of an inner
/// result (a view, an input that the result was written to), undefined: the result itself. It is asked when what that tensor is made of has its history.
void attachHistory(const std::shared_ptr<AotFunction::Shared>& shared, torch::autograd::edge_list next,
                   const std::vector<at::Tensor>& inputs, std::vector<at::Tensor>& results, std::span<const int64_t> symbolValues,
                   const std::function<at::Tensor(const InnerResult&)>& seen);

}  // namespace fusebox::aot
