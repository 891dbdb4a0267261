#include "engine/trace/symbolic_rules.h"

namespace fusebox::trace {
namespace {

using graph::SymExpr;
using Call = SymbolicCall;
using Shapes = std::vector<ResultShape>;

/// What attention's arguments have in common: (batch, heads, length, size) each.
struct Attention {
  Exprs query, key, value;
  explicit Attention(const Call& call, size_t first = 0) : query(call.sizes(first)), key(call.sizes(first + 1)), value(call.sizes(first + 2)) {
    Call::want(query.size() == 4 && key.size() == 4 && value.size() == 4);
    Call::want(call.equal(query[0], key[0]) && call.equal(query[0], value[0]) && call.equal(key[2], value[2]) && call.equal(query[3], key[3]));
  }
  Exprs result() const { return {query[0], query[1], query[2], value[3]}; }
};

/// (output, logsumexp): the CPU's statistics are dense in an order that the hint's strides tell.
Shapes flashForCpu(const Call& call) {
  const Attention a(call);
  if (auto* mask = call.find("attn_mask"); mask && mask->isTensor() && mask->toTensor().defined()) {
    const Exprs scores{a.query[0], a.query[1], a.query[2], a.key[2]};
    Call::want(call.broadcast({scores, Call::geometryOf(mask->toTensor()).sizes}).size() == scores.size());
  }
  return {{a.result()}, {{a.query[0], a.query[1], a.query[2]}}};
}
template <size_t first>
Shapes backwardOfThree(const Call& call) {
  Shapes made{{call.sizes(first)}, {call.sizes(first + 1)}, {call.sizes(first + 2)}};
  Call::want(call.results() >= made.size());
  return made;
}

/// CUDA's: statistics padded to a multiple of 32 (efficient), or for each row; random numbers' state is constant.
Shapes efficient(const Call& call) {
  const Attention a(call);
  Shapes made{{a.result()}};
  for (size_t k = 1; k < call.results(); ++k) {
    const at::Tensor& r = call.result(k);
    if (r.dim() == 3) made.push_back(ResultShape(Exprs{a.query[0], a.query[1], graph::floorDiv(a.query[2] + 31, 32) * 32}));
    else if (r.dim() == 0) made.emplace_back(Exprs{});
    else throw NoSymbolicRule();
  }
  return made;
}

/// flash: (output, logsumexp, cum_seq_q, cum_seq_k, max_q, max_k, rng_state, unused, debug_attn_mask); cuDNN the same with its own statistics.
Shapes flash(const Call& call) {
  const Attention a(call);
  Shapes made{{a.result()}};
  int integers = 0;
  for (size_t k = 1; k < call.results(); ++k) {
    if (call.isScalar(k)) {
      ResultShape length;
      length.scalar = integers++ == 0 ? a.query[2] : a.key[2];
      made.push_back(length);
      continue;
    }
    const at::Tensor& r = call.result(k);
    if (k == 1 && r.dim() == 3) made.push_back(ResultShape(Exprs{a.query[0], a.query[1], a.query[2]}));
    else if (k == 1 && r.dim() == 4) made.push_back(ResultShape(Exprs{a.query[0], a.query[1], a.query[2], 1}));
    else if (r.dim() <= 1) made.emplace_back(Exprs(r.sizes().begin(), r.sizes().end()));
    else throw NoSymbolicRule();
  }
  return made;
}

/// efficient backward: (grad_out, query, key, value, attn_bias, ..., grad_input_mask, ...)
Shapes efficientBackward(const Call& call) {
  Shapes made;
  for (size_t k = 0; k < call.results(); ++k) {
    if (k < 3) made.emplace_back(call.sizes(1 + k));
    else if (call.isTensor(4)) made.emplace_back(call.sizes(4));
  }
  return made;
}

/// _fused_sdp_choice(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa): the kernels differ in head sizes, in what of the
/// sizes is equal, and whether the last strides are 1.
void choice(const SymbolicCall& call) {
  for (size_t i = 0; i < 3; ++i) {
    auto g = call.geometry(i);
    if (g.sizes.empty()) continue;
    call.specialise(g.sizes.back());
    call.equal(g.strides.back(), 1);
  }
  auto q = call.geometry(0), k = call.geometry(1), v = call.geometry(2);
  if (q.sizes.size() != 4 || k.sizes.size() != 4 || v.sizes.size() != 4) return;
  for (size_t d : {0, 1}) {
    call.equal(q.sizes[d], k.sizes[d]);
    call.equal(q.sizes[d], v.sizes[d]);
  }
  call.equal(k.sizes[2], v.sizes[2]);
  if (call.flag(5)) call.equal(q.sizes[2], k.sizes[2]);
  // CUDA's kernels want masks whose rows begin at multiples of 16 bytes.
  if (!call.isTensor(3) || !call.tensor(3).is_cuda()) return;
  auto mask = call.geometry(3);
  for (size_t d = 0; d < mask.strides.size(); ++d) {
    call.equal(mask.strides[d], 1);
    call.equal(graph::mod(mask.strides[d], 8), 0);
  }
  call.equal(graph::mod(mask.sizes.back(), 8), 0);
}

}  // namespace

bool answerSymbolicQuestion(const SymbolicCall& call) {
  if (call.name() == "aten::_fused_sdp_choice") {
    choice(call);
    return true;
  }
  if (call.name() == "aten::is_same_size") {
    auto a = call.sizes(0), b = call.sizes(1);
    for (size_t d = 0; a.size() == b.size() && d < a.size(); ++d) call.equal(a[d], b[d]);
    return true;
  }
  return false;
}

const SymbolicTable& symbolicAttentionRules() {
  static const SymbolicTable table{
      {"aten::_scaled_dot_product_flash_attention_for_cpu", flashForCpu},
      {"aten::_scaled_dot_product_flash_attention_for_cpu_backward", backwardOfThree<1>},
      {"aten::_scaled_dot_product_efficient_attention", efficient},
      {"aten::_scaled_dot_product_efficient_attention_backward", efficientBackward},
      {"aten::_scaled_dot_product_flash_attention", flash},
      {"aten::_scaled_dot_product_flash_attention_backward", backwardOfThree<1>},
      {"aten::_scaled_dot_product_cudnn_attention", flash},
      {"aten::_scaled_dot_product_cudnn_attention_backward", backwardOfThree<1>},
  };
  return table;
}

}  // namespace fusebox::trace
