#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>

#include "engine/graph/graph.h"
#include "engine/graph/symbol_values.h"
#include "engine/support/result.h"

namespace fusebox::runtime {

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
    Double,              ///< integers[0], as a double
    WrappedNumber,       ///< integers[0], as a tensor that takes part in type promotion as a number does
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

/// Finishes `argument` for one call. `tensor` maps slots to tensors. Throws std::out_of_range for a symbol without a value.
c10::IValue materialise(const BoundArgument& argument, const std::function<const at::Tensor&(int32_t)>& tensor,
                        const graph::SymbolValues& symbols);

/// Whether the argument depends on size symbols, and what it is once they are known.
bool isSymbolic(const BoundArgument& argument);
BoundArgument withValues(const BoundArgument& argument, const graph::SymbolValues& symbols);

}  // namespace fusebox::runtime
