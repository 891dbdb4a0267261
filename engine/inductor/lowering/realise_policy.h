#pragma once

#include "engine/inductor/ir/lazy_tensor.h"

/// When a formula becomes a buffer of its own. The limits are PyTorch's defaults (realize_reads_threshold and its neighbours).
namespace fusebox::inductor::realise_policy {

constexpr size_t kReadsWhenShared = 4;     ///< realize_reads_threshold
constexpr size_t kReadsEver = 8;           ///< realize_acc_reads_threshold
constexpr int kOperations = 30;            ///< realize_opcount_threshold
constexpr int64_t kUnrolledReduction = 8;  ///< unroll_reductions_threshold: shorter reductions become arithmetic
constexpr size_t kMaskedCatInputs = 8;     ///< max_pointwise_cat_inputs

inline bool shouldRealise(const Storage& s, size_t users) {
  if (s.reads.size() > kReadsEver || s.opCount > kOperations) return true;
  return users > 1 && (s.heavy || s.reads.size() > kReadsWhenShared);
}

}  // namespace fusebox::inductor::realise_policy
