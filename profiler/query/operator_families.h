#pragma once

#include <cstdint>
#include <string_view>

namespace fusebox::query {

/// What an operator does, in kinds that a person tells apart in a picture.
enum class OperatorFamily : uint8_t { Matrix, Convolution, Pointwise, Reduction, View, Normalisation, Memory, Other };

/// Of an operator's plain name ("add", "native_layer_norm_backward", "convert_element_type"): exact names, of which a backward pass
/// and an in-place form belong to their operator. Operators that no list has are Other: nothing is guessed from parts of words.
OperatorFamily operatorFamily(std::string_view name);

}  // namespace fusebox::query
