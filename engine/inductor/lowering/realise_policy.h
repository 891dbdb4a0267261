#pragma once

#include "engine/inductor/ir/lazy_tensor.h"

/// When a formula becomes a buffer of its own. Limits with the name of a setting have PyTorch's default.
namespace fusebox::inductor::realise_policy {

constexpr size_t kReadsWhenShared = 4;     ///< realize_reads_threshold
constexpr size_t kReadsEver = 8;           ///< realize_acc_reads_threshold
constexpr int kOperations = 30;            ///< realize_opcount_threshold
constexpr int64_t kUnrolledReduction = 8;  ///< unroll_reductions_threshold: shorter reductions become arithmetic
constexpr size_t kMaskedCatInputs = 8;     ///< max_pointwise_cat_inputs

constexpr uint32_t kLongestIndex = 64;     ///< symbols in an index by which a formula reads

constexpr int64_t kRunBytes = 32;          ///< written one after the other, at least, where pieces of a tensor are written by loops of their own
constexpr int kRepeated = 12;              ///< operations that are not done again for each of
constexpr int64_t kRepetitions = 16;       ///< so many elements that read the same one, where there are
constexpr int64_t kManyElements = 1 << 20; ///< so many in all

constexpr size_t kTermsAtOnce = 3;         ///< of a sum of large tensors, which then lie in memory together
constexpr int64_t kLargeTerm = 1 << 20;    ///< bytes

/// Whether so many elements read a formula that it may have better lain in memory: a sum over chunks that every position of a chunk reads, biases of
/// relative positions that every window reads, frequencies that every position reads.
inline bool isRepeated(const Storage& s, const graph::TensorMeta& reader) {
  if (s.inAttention) return false;
  const int64_t elements = graph::hint(reader.numel());
  return elements >= kManyElements && elements / kRepetitions >= graph::hint(s.meta.numel());
}

inline bool shouldRealise(const Storage& s, size_t users) {
  if (s.reads.size() > kReadsEver || s.opCount > kOperations) return true;
  return users > 1 && (s.heavy || s.reads.size() > kReadsWhenShared);
}

}  // namespace fusebox::inductor::realise_policy
