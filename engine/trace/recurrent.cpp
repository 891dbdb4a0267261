#include "engine/trace/recurrent.h"

#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>
#include <torch/csrc/autograd/VariableTypeUtils.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/library.h>

#include <algorithm>

#include "engine/trace/dispatch_state.h"
#include "engine/trace/sym_int.h"
#include "engine/trace/trace_tensor.h"

namespace fusebox::trace {
namespace {

using at::Tensor;
using at::TensorList;
using torch::autograd::SavedVariable;
using torch::autograd::variable_list;
using torch::jit::Stack;
using Tensors = std::vector<Tensor>;
using OptionalTensor = std::optional<Tensor>;

enum Kind : int64_t { kLstm, kGru, kTanh, kRelu };

/// What is no tensor.
struct Form {
  int64_t kind = kLstm;
  bool biases = true;
  int64_t layers = 1;
  bool train = false, bidirectional = false, batchFirst = false;
  int64_t directions() const { return bidirectional ? 2 : 1; }
};

Tensors flat(std::tuple<Tensor, Tensor, Tensor> r) { return {std::get<0>(r), std::get<1>(r), std::get<2>(r)}; }
Tensors flat(std::tuple<Tensor, Tensor> r) { return {std::get<0>(r), std::get<1>(r)}; }

/// libtorch's operator. `batchSizes`: of packed sequences.
Tensors runNetwork(const Form& f, const Tensor& x, const OptionalTensor& batchSizes, TensorList hx, TensorList params) {
  const auto equally = [&](auto fn, const auto& hidden) { return flat(fn(x, hidden, params, f.biases, f.layers, 0.0, f.train, f.bidirectional, f.batchFirst)); };
  const auto packed = [&](auto fn, const auto& hidden) { return flat(fn(x, *batchSizes, hidden, params, f.biases, f.layers, 0.0, f.train, f.bidirectional)); };
  if (batchSizes) {
    switch (f.kind) {
      case kLstm: return packed([](auto&&... a) { return at::lstm(a...); }, hx);
      case kGru: return packed([](auto&&... a) { return at::gru(a...); }, hx[0]);
      case kTanh: return packed([](auto&&... a) { return at::rnn_tanh(a...); }, hx[0]);
      default: return packed([](auto&&... a) { return at::rnn_relu(a...); }, hx[0]);
    }
  }
  switch (f.kind) {
    case kLstm: return equally([](auto&&... a) { return at::lstm(a...); }, hx);
    case kGru: return equally([](auto&&... a) { return at::gru(a...); }, hx[0]);
    case kTanh: return equally([](auto&&... a) { return at::rnn_tanh(a...); }, hx[0]);
    default: return equally([](auto&&... a) { return at::rnn_relu(a...); }, hx[0]);
  }
}

// --- the operator and its derivative ------------------------------------------------------------------------------------

constexpr const char* kSchema =
    "recurrent(int kind, Tensor input, Tensor? batch_sizes, Tensor[] hx, Tensor[] params, bool has_biases, int num_layers, bool train, "
    "bool bidirectional, bool batch_first) -> Tensor[]";
constexpr const char* kBackwardSchema =
    "recurrent_backward(Tensor[] grads, int kind, Tensor input, Tensor? batch_sizes, Tensor[] hx, Tensor[] params, bool has_biases, int num_layers, "
    "bool train, bool bidirectional, bool batch_first, bool[] wanted) -> Tensor[]";
/// Where their arguments begin.
constexpr size_t kFirst = 0, kFirstOfBackward = 1;

using Forward = Tensors(int64_t, const Tensor&, const OptionalTensor&, TensorList, TensorList, bool, int64_t, bool, bool, bool);
using Backward = Tensors(TensorList, int64_t, const Tensor&, const OptionalTensor&, TensorList, TensorList, bool, int64_t, bool, bool, bool, c10::List<bool>);

const auto& forwardOperator() {
  static const auto op = c10::Dispatcher::singleton().findSchemaOrThrow("fusebox::recurrent", "").typed<Forward>();
  return op;
}
const auto& backwardOperator() {
  static const auto op = c10::Dispatcher::singleton().findSchemaOrThrow("fusebox::recurrent_backward", "").typed<Backward>();
  return op;
}

Tensors forward(int64_t kind, const Tensor& x, const OptionalTensor& batchSizes, TensorList hx, TensorList params, bool biases, int64_t layers, bool train,
                bool bidirectional, bool batchFirst) {
  return runNetwork({kind, biases, layers, train, bidirectional, batchFirst}, x, batchSizes, hx, params);
}

/// The results lie step by step, also where batches come first.
Tensors forwardShape(int64_t, const Tensor& x, const OptionalTensor& batchSizes, TensorList hx, TensorList, bool, int64_t, bool, bool bidirectional,
                     bool batchFirst) {
  const int64_t width = hx[0].size(-1) * (bidirectional ? 2 : 1);
  Tensors made;
  if (batchSizes) {
    made.push_back(at::empty({x.size(0), width}, x.options()));
  } else {
    const int64_t batch = x.size(batchFirst ? 0 : 1), steps = x.size(batchFirst ? 1 : 0);
    Tensor out = at::empty({steps, batch, width}, x.options());
    made.push_back(batchFirst ? out.transpose(0, 1) : out);
  }
  for (const Tensor& h : hx) made.push_back(at::empty(h.sizes(), h.options()));
  return made;
}

/// libtorch's engine wants it so.
class WithoutGil {
 public:
  WithoutGil() : state_(PyGILState_Check() ? PyEval_SaveThread() : nullptr) {}
  ~WithoutGil() {
    if (state_) PyEval_RestoreThread(state_);
  }
  WithoutGil(const WithoutGil&) = delete;

 private:
  PyThreadState* state_;
};

/// libtorch's own gradients; `recorded`: with a history.
Tensors gradients(TensorList grads, const Form& form, const Tensor& x, const OptionalTensor& batchSizes, TensorList hx, TensorList params,
                  const c10::List<bool>& wanted, bool recorded) {
  DispatchState state;
  state.exclude(c10::autocast_dispatch_keyset);
  state.neutral(c10::autograd_dispatch_keyset);
  state.include(c10::DispatchKeySet(c10::DispatchKey::ADInplaceOrView));
  const WithoutGil noGil;
  const at::AutoGradMode heard(true);
  variable_list leaves, sources;
  size_t next = 0;
  const auto leaf = [&](const Tensor& t) {
    const bool isWanted = wanted.get(next++);
    Tensor made = recorded && t.requires_grad() ? t.view_as(t) : t.detach().requires_grad_(isWanted);
    if (isWanted) sources.push_back(made);
    return made;
  };
  const Tensor input = leaf(x);
  Tensors hidden, weights;
  for (const Tensor& h : hx) hidden.push_back(leaf(h));
  for (const Tensor& p : params) weights.push_back(leaf(p));
  const Tensors results = runNetwork(form, input, batchSizes, hidden, weights);
  variable_list outputs, given;
  for (size_t i = 0; i < results.size(); ++i)
    if (results[i].requires_grad()) outputs.push_back(results[i]), given.push_back(grads[i]);
  variable_list made = torch::autograd::grad(outputs, sources, given, /*retain_graph=*/recorded, /*create_graph=*/recorded, /*allow_unused=*/true);
  for (size_t i = 0; i < made.size(); ++i) made[i] = made[i].defined() ? made[i].contiguous() : at::zeros(sources[i].sizes(), sources[i].options());
  return made;
}

Tensors backward(TensorList grads, int64_t kind, const Tensor& x, const OptionalTensor& batchSizes, TensorList hx, TensorList params, bool biases,
                 int64_t layers, bool train, bool bidirectional, bool batchFirst, c10::List<bool> wanted) {
  Tensors made = gradients(grads, {kind, biases, layers, train, bidirectional, batchFirst}, x, batchSizes, hx, params, wanted, false);
  for (Tensor& t : made) t = t.detach();
  return made;
}

/// The positions of arguments whose gradients are wanted, over input, hx and params.
template <class F>
void forEachSource(const Tensor& x, TensorList hx, TensorList params, F&& fn) {
  fn(x);
  for (const Tensor& h : hx) fn(h);
  for (const Tensor& p : params) fn(p);
}

Tensors backwardShape(TensorList, int64_t, const Tensor& x, const OptionalTensor&, TensorList hx, TensorList params, bool, int64_t, bool, bool, bool,
                      c10::List<bool> wanted) {
  Tensors made;
  size_t next = 0;
  forEachSource(x, hx, params, [&](const Tensor& t) {
    if (wanted.get(next++)) made.push_back(at::empty(t.sizes(), t.options()));
  });
  return made;
}

class RecurrentBackward final : public torch::autograd::Node {
 public:
  std::string name() const override { return "RecurrentBackward"; }
  void release_variables() override {
    std::lock_guard lock(mutex_);
    input.reset_data();
    batchSizes.reset_data();
    for (auto& s : hx) s.reset_data();
    for (auto& s : params) s.reset_data();
  }
  variable_list apply(variable_list&& grads) override {
    std::lock_guard lock(mutex_);
    for (size_t i = 0; i < grads.size(); ++i)
      if (!grads[i].defined()) grads[i] = input_metadata(static_cast<int>(i)).zeros_like();
    Tensors hidden, weights;
    for (auto& s : hx) hidden.push_back(s.unpack());
    for (auto& s : params) weights.push_back(s.unpack());
    const Tensor lengths = batchSizes.unpack();
    c10::List<bool> wanted;
    for (size_t i = 0; i < num_outputs(); ++i) wanted.push_back(task_should_compute_output(i));
    const Tensors made = backwardOperator().call(grads, form.kind, input.unpack(), lengths.defined() ? OptionalTensor(lengths) : std::nullopt, hidden, weights,
                                                 form.biases, form.layers, form.train, form.bidirectional, form.batchFirst, wanted);
    variable_list all(num_outputs());
    size_t next = 0;
    for (size_t i = 0; i < all.size(); ++i)
      if (wanted.get(i)) all[i] = made[next++];
    return all;
  }

  Form form;
  SavedVariable input, batchSizes;
  std::vector<SavedVariable> hx, params;
};

Tensors forwardWithHistory(c10::DispatchKeySet keys, int64_t kind, const Tensor& x, const OptionalTensor& batchSizes, TensorList hx, TensorList params,
                           bool biases, int64_t layers, bool train, bool bidirectional, bool batchFirst) {
  std::shared_ptr<RecurrentBackward> node;
  if (torch::autograd::compute_requires_grad(x, hx, params)) {
    node = std::shared_ptr<RecurrentBackward>(new RecurrentBackward(), torch::autograd::deleteNode);
    Tensors sources;
    forEachSource(x, hx, params, [&](const Tensor& t) { sources.push_back(t); });
    node->set_next_edges(torch::autograd::collect_next_edges(sources));
    node->form = {kind, biases, layers, train, bidirectional, batchFirst};
    node->input = SavedVariable(x, false);
    if (batchSizes) node->batchSizes = SavedVariable(*batchSizes, false);
    for (const Tensor& h : hx) node->hx.emplace_back(h, false);
    for (const Tensor& p : params) node->params.emplace_back(p, false);
  }
  Tensors results;
  {
    at::AutoDispatchBelowADInplaceOrView below;
    results = forwardOperator().redispatch(keys & c10::after_autograd_keyset, kind, x, batchSizes, hx, params, biases, layers, train, bidirectional, batchFirst);
  }
  if (node) torch::autograd::set_history(results, node);
  return results;
}

Tensors backwardWithHistory(c10::DispatchKeySet keys, TensorList grads, int64_t kind, const Tensor& x, const OptionalTensor& batchSizes, TensorList hx,
                            TensorList params, bool biases, int64_t layers, bool train, bool bidirectional, bool batchFirst, c10::List<bool> wanted) {
  if (torch::autograd::compute_requires_grad(grads, x, hx, params)) {
    TORCH_CHECK_NOT_IMPLEMENTED(!asTraceThroughWrapper(x), "gradients of gradients of a recurrent network whose number of steps changes are not traced");
    return gradients(grads, {kind, biases, layers, train, bidirectional, batchFirst}, x, batchSizes, hx, params, wanted, true);
  }
  at::AutoDispatchBelowADInplaceOrView below;
  return backwardOperator().redispatch(keys & c10::after_autograd_keyset, grads, kind, x, batchSizes, hx, params, biases, layers, train, bidirectional,
                                       batchFirst, wanted);
}

TORCH_LIBRARY(fusebox, m) {
  m.def(kSchema);
  m.def(kBackwardSchema);
}
TORCH_LIBRARY_IMPL(fusebox, CompositeExplicitAutograd, m) {
  m.impl("recurrent", forward);
  m.impl("recurrent_backward", backward);
}
TORCH_LIBRARY_IMPL(fusebox, Meta, m) {
  m.impl("recurrent", forwardShape);
  m.impl("recurrent_backward", backwardShape);
}
TORCH_LIBRARY_IMPL(fusebox, Autograd, m) {
  m.impl("recurrent", forwardWithHistory);
  m.impl("recurrent_backward", backwardWithHistory);
}

// --- sizes as expressions ------------------------------------------------------------------------------------------------

using Call = SymbolicCall;

Exprs sizesOf(const Tensor& t) { return Call::geometryOf(t).sizes; }

std::vector<ResultShape> recurrentSizes(const Call& call) {
  const size_t at = kFirst;
  const Exprs x = call.sizes(at + 1);
  const Tensors hx = call.value(at + 3).toTensorVector();
  const Exprs hidden = sizesOf(hx[0]);
  const graph::SymExpr width = hidden.back() * (call.flag(at + 8) ? 2 : 1);
  std::vector<ResultShape> made;
  if (call.isTensor(at + 2)) {
    made.emplace_back(Exprs{x[0], width});
  } else {
    const bool batchFirst = call.flag(at + 9);
    const graph::SymExpr batch = x[batchFirst ? 0 : 1], steps = x[batchFirst ? 1 : 0];
    Call::want(call.equal(hidden[1], batch));
    made.push_back(batchFirst ? ResultShape({batch, steps, width}, {width, batch * width, 1}, 0) : ResultShape({steps, batch, width}, {batch * width, width, 1}, 0));
  }
  for (const Tensor& h : hx) made.emplace_back(sizesOf(h));
  return made;
}

std::vector<ResultShape> gradientSizes(const Call& call) {
  const size_t at = kFirstOfBackward;
  const auto wanted = call.value(at + 10).toBoolList();
  std::vector<ResultShape> made;
  size_t next = 0;
  forEachSource(call.tensor(at + 1), call.value(at + 3).toTensorVector(), call.value(at + 4).toTensorVector(), [&](const Tensor& t) {
    if (wanted.get(next++)) made.emplace_back(sizesOf(t));
  });
  return made;
}

// --- in front of the dispatcher ------------------------------------------------------------------------------------------

struct Network {
  Form form;
  Tensor input;
  OptionalTensor batchSizes;
  Tensors hx, params;
  double dropout = 0;
};

std::optional<int64_t> kindOf(const std::string& name) {
  if (name.starts_with("aten::lstm.")) return kLstm;
  if (name.starts_with("aten::gru.")) return kGru;
  if (name.starts_with("aten::rnn_tanh.")) return kTanh;
  if (name.starts_with("aten::rnn_relu.")) return kRelu;
  return std::nullopt;
}

std::optional<Network> readNetwork(const OperatorFacts& facts, size_t arity, const Stack& stack) {
  const auto kind = kindOf(facts.name);
  const bool packed = facts.name.ends_with(".data");
  if (!kind || !(packed || facts.name.ends_with(".input"))) return std::nullopt;
  auto args = torch::jit::last(stack, arity);
  Network n;
  size_t next = 0;
  n.form.kind = *kind;
  n.input = args[next++].toTensor();
  if (packed) n.batchSizes = args[next++].toTensor();
  n.hx = *kind == kLstm ? args[next].toTensorVector() : Tensors{args[next].toTensor()};
  n.params = args[++next].toTensorVector();
  n.form.biases = args[++next].toBool();
  n.form.layers = args[++next].toInt();
  n.dropout = args[++next].toDouble();
  n.form.train = args[++next].toBool();
  n.form.bidirectional = args[++next].toBool();
  if (!packed) n.form.batchFirst = args[++next].toBool();
  return n;
}

bool isSymbolicStandIn(const Tensor& t) {
  auto* traced = asTraceThroughWrapper(t);
  return traced && traced->symbolic();
}

/// Whether eager's autocast would hand the network to oneDNN, which computes all of it in autocast's type. Where the batch is a symbol,
/// libtorch takes another way, in which the state stays float32.
bool isCastForOneDnn(const Network& n) {
  if (n.form.kind != kLstm || n.batchSizes || !at::globalContext().userEnabledMkldnn()) return false;
  bool fits = true;
  forEachSource(n.input, n.hx, n.params, [&](const Tensor& t) {
    fits = fits && t.is_cpu() && (t.scalar_type() == at::kFloat || t.scalar_type() == at::kBFloat16 || t.scalar_type() == at::kHalf);
  });
  return fits;
}

/// Whether libtorch would read what is no number of the trace.
bool wantsOneCall(const Network& n) {
  bool plain = true, symbolic = false;
  const auto look = [&](const Tensor& t) {
    plain = plain && asTraceThroughWrapper(t) != nullptr;
    symbolic = symbolic || isSymbolicStandIn(t);
  };
  forEachSource(n.input, n.hx, n.params, look);
  if (n.batchSizes) look(*n.batchSizes);
  const bool isWhole = n.hx.size() == (n.form.kind == kLstm ? 2 : 1) && n.hx[0].dim() == 3 && n.input.dim() == (n.batchSizes ? 2 : 3);
  if (!plain || !isWhole || (at::autocast::is_autocast_enabled(n.input.device().type()) && !isCastForOneDnn(n))) return false;
  if (n.batchSizes) return true;
  if (!symbolic) return false;
  // A known number of steps on the CPU is unrolled, as it is where all sizes are known; oneDNN's LSTM takes all steps in one call anyway.
  return n.form.kind == kLstm || n.input.is_cuda() || n.input.sym_size(n.form.batchFirst ? 1 : 0).is_symbolic();
}

Tensors callNetwork(const Form& f, const Tensor& x, const OptionalTensor& batchSizes, TensorList hx, TensorList params) {
  return forwardOperator().call(f.kind, x, batchSizes, hx, params, f.biases, f.layers, f.train, f.bidirectional, f.batchFirst);
}

/// Layer by layer with what is drawn between them.
Tensors withDropout(const Network& n) {
  const int64_t directions = n.form.directions();
  const auto each = static_cast<int64_t>(n.params.size()) / n.form.layers;
  Form one = n.form;
  one.layers = 1;
  Tensor x = n.input;
  std::vector<Tensors> last(n.hx.size());
  for (int64_t layer = 0; layer < n.form.layers; ++layer) {
    Tensors hx;
    for (const Tensor& h : n.hx) hx.push_back(h.narrow(0, layer * directions, directions));
    Tensors made = callNetwork(one, x, n.batchSizes, hx, TensorList(n.params).slice(static_cast<size_t>(layer * each), static_cast<size_t>(each)));
    for (size_t i = 0; i < last.size(); ++i) last[i].push_back(made[i + 1]);
    x = made[0];
    if (layer + 1 == n.form.layers) break;
    // libtorch draws step by step also where batches come first.
    x = n.form.batchFirst ? at::dropout(x.transpose(0, 1), n.dropout, true).transpose(0, 1) : at::dropout(x, n.dropout, true);
  }
  Tensors made{x};
  for (auto& states : last) made.push_back(at::cat(states, 0));
  return made;
}

}  // namespace

bool keepRecurrent(const OperatorFacts& facts, size_t arity, Stack* stack) {
  if (!facts.compositeImplicit || !kindOf(facts.name)) return false;
  auto network = readNetwork(facts, arity, *stack);
  if (!network || !wantsOneCall(*network)) return false;
  if (const auto device = network->input.device().type(); at::autocast::is_autocast_enabled(device)) {
    const auto cast = [type = at::autocast::get_autocast_dtype(device)](Tensor& t) { t = t.to(type); };
    cast(network->input);
    std::for_each(network->hx.begin(), network->hx.end(), cast);
    std::for_each(network->params.begin(), network->params.end(), cast);
  }
  const bool draws = network->dropout != 0 && network->form.train && network->form.layers > 1;
  // cuDNN draws with a state of its own.
  if (draws && network->input.is_cuda()) return false;
  Tensors made = draws ? withDropout(*network) : callNetwork(network->form, network->input, network->batchSizes, network->hx, network->params);
  torch::jit::drop(*stack, arity);
  for (auto& t : made) stack->emplace_back(std::move(t));
  return true;
}

const SymbolicTable& symbolicRecurrentRules() {
  static const SymbolicTable table{{"fusebox::recurrent", recurrentSizes}, {"fusebox::recurrent_backward", gradientSizes}};
  return table;
}

}  // namespace fusebox::trace
