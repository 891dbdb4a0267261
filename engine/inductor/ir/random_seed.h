#pragma once

#include <limits>

#include "engine/graph/graph.h"

/// The seed of one run's random numbers, as torch's generator of a device draws it: `kSeedDraw` of `seedArguments` gives `seedMeta`.
namespace fusebox::inductor {

inline constexpr const char* kSeedDraw = "aten::randint";

inline graph::ArgumentList seedArguments(const graph::Device& device) {
  const graph::ArgumentList one{graph::Argument(int64_t{1})};
  return {graph::Argument(std::numeric_limits<int64_t>::max()), graph::Argument(one), graph::Argument(graph::DType::Int64), {}, graph::Argument(device), {}};
}

inline graph::TensorMeta seedMeta(const graph::Device& device) {
  graph::TensorMeta meta;
  meta.sizes = {graph::SymExpr(1)};
  meta.strides = {graph::SymExpr(1)};
  meta.dtype = graph::DType::Int64;
  meta.device = device;
  return meta;
}

}  // namespace fusebox::inductor
