#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>

#include "engine/graph/graph.h"
#include "engine/support/result.h"

namespace fusebox::runtime {

/// Value of every size symbol during one call; nullopt where the program does not know one.
using SymbolValues = std::function<std::optional<int64_t>(graph::Symbol)>;

/// One operator argument, converted as far as it can be before a call: everything but tensors and symbolic integers is a
/// finished IValue. Immutable after binding, so calls on several threads may share it.
struct BoundArgument {
  enum class Kind : uint8_t {
    Fixed,               ///< `fixed`
    Tensor,              ///< slots[0]
    TensorList,          ///< slots, none missing
    OptionalTensorList,  ///< slots, -1 for None
    Integer,             ///< integers[0]
    IntegerList,         ///< integers
    Number,              ///< the one element of slots[0]
    NumberList,          ///< of slots; where one is -1, the element of `fixed`
  } kind = Kind::Fixed;
  c10::IValue fixed;
  std::vector<int32_t> slots;
  std::vector<graph::SymExpr> integers;
};

/// Where the tensors of a call come from: a slot number that the caller chose for a graph value.
using SlotOf = std::function<int32_t(graph::ValueRef)>;

/// Finds "aten::add.Tensor" (or "aten::relu") in the dispatcher.
Result<c10::OperatorHandle> findOperator(const std::string& name);

/// Converts `argument` to what a parameter of `type` (the schema's real type) takes. `generators` are the graph's.
Result<BoundArgument> bindArgument(const graph::Argument& argument, const c10::TypePtr& type, const SlotOf& slotOf,
                                   c10::ArrayRef<at::Generator> generators);

/// Binds a whole argument list in schema order; a list shorter than the schema is filled with the schema's defaults.
Result<std::vector<BoundArgument>> bindArguments(const c10::FunctionSchema& schema, const graph::ArgumentList& arguments,
                                                 const SlotOf& slotOf, c10::ArrayRef<at::Generator> generators);

/// Finishes `argument` for one call. `tensor` maps slots to tensors.
c10::IValue materialise(const BoundArgument& argument, const std::function<const at::Tensor&(int32_t)>& tensor,
                        const SymbolValues& symbols);

/// Value of `expression` during a call; throws c10::Error if it names an unknown symbol.
int64_t evaluateOrThrow(const graph::SymExpr& expression, const SymbolValues& symbols);

}  // namespace fusebox::runtime
