#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

#include "engine/graph/operator_facts.h"
#include "engine/inductor/lowering/lowering.h"
#include "engine/inductor/passes/passes.h"

/// Numbers that the CPU computes and kernels of a GPU read (an optimiser's steps and rates): 0-dimensional tensors of the CPU among the operands of
/// pointwise operators on a GPU. All that are ready go to the device in one copy, and are elements of one tensor there.
namespace fusebox::inductor {
namespace {

using graph::Node;
using graph::NodeKind;
using graph::OutputMeta;
using graph::ValueRef;
using Kind = graph::DeviceKind;

bool isOn(const OutputMeta& o, Kind kind) { return o.kind == OutputMeta::Kind::Tensor && o.tensor.device.kind == kind; }

bool isHostNumber(const OutputMeta& o) { return isOn(o, Kind::Cpu) && o.tensor.sizes.empty() && graph::hasArithmetic(o.tensor.dtype); }

class Sender {
 public:
  explicit Sender(const graph::Graph& graph) : graph_(graph), copy_(graph) {}

  PassResult run() {
    findReads();
    PassResult out;
    if (read_.empty()) return out;
    emitEarly();
    for (const Node& node : graph_.nodes()) {
      if (isEarly_[static_cast<size_t>(node.id)]) continue;
      emit(node);
    }
    out.changed = true;
    out.graph = std::move(copy_.to());
    out.detail = std::to_string(read_.size()) + " numbers of the CPU go to the GPU in " + std::to_string(copies_) + (copies_ == 1 ? " copy" : " copies");
    return out;
  }

 private:
  using Key = std::tuple<graph::DType, int8_t>;

  /// The device of a pointwise operator on a GPU that reads numbers of the CPU.
  const graph::Device* reader(const Node& node) const {
    if (node.kind != NodeKind::Call || node.outputs.size() != 1 || !isOn(node.outputs[0], Kind::Cuda) || graph::isOrdered(node)) return nullptr;
    if (!loweringTable().contains(node.op)) return nullptr;
    bool reads = false, onDevice = false;
    for (const graph::Argument& a : node.args) {
      const auto* v = a.as<ValueRef>();
      if (!v) continue;
      if (isHostNumber(graph_.meta(*v))) reads = true;
      else if (isOn(graph_.meta(*v), Kind::Cuda)) onDevice = true;
      else return nullptr;
    }
    return reads && onDevice ? &node.outputs[0].tensor.device : nullptr;
  }

  void findReads() {
    for (const Node& node : graph_.nodes())
      if (const graph::Device* device = reader(node))
        for (const graph::Argument& a : node.args)
          if (const auto* v = a.as<ValueRef>(); v && isHostNumber(graph_.meta(*v))) read_.emplace(*v, *device);
  }

  /// Inputs, and what the CPU computes of them alone, come first: then their numbers are ready together.
  void emitEarly() {
    isEarly_.assign(graph_.nodes().size(), false);
    for (const Node& node : graph_.nodes()) {
      bool early = node.kind == NodeKind::Placeholder || node.kind == NodeKind::Constant;
      if (node.kind == NodeKind::Call && !graph::isOrdered(node)) {
        early = std::all_of(node.outputs.begin(), node.outputs.end(), [](const OutputMeta& o) { return isOn(o, Kind::Cpu); });
        graph::Graph::forEachValue(node.args, [&](ValueRef v) { early = early && isEarly_[static_cast<size_t>(v.node)] && isOn(graph_.meta(v), Kind::Cpu); });
      }
      isEarly_[static_cast<size_t>(node.id)] = early;
      if (early) copy_.keep(node);
    }
    emitted_ = isEarly_;
  }

  void emit(const Node& node) {
    if (const graph::Device* device = reader(node)) {
      std::map<ValueRef, ValueRef> own;
      for (const graph::Argument& a : node.args)
        if (const auto* v = a.as<ValueRef>(); v && isHostNumber(graph_.meta(*v))) own.emplace(copy_.mapped(*v), onDevice(node, *v, *device));
      graph::ArgumentList args = copy_.mappedArgs(node);
      graph::Graph::mapValues(args, [&](ValueRef v) { return own.contains(v) ? own.at(v) : v; });
      const bool isQuotient = divides(node);
      if (isQuotient) args[1] = reciprocal(node, *args[1].as<ValueRef>(), *device);
      copy_.replace(node, {call(node, isQuotient ? "aten::mul.Tensor" : node.op, std::move(args), node.outputs[0])});
    } else {
      copy_.keep(node);
    }
    emitted_[static_cast<size_t>(node.id)] = true;
  }

  /// Whether CUDA's kernel multiplies with the reciprocal of a number of the CPU, as it does with one that the program writes down.
  bool divides(const Node& node) const {
    const auto* number = node.op == "aten::div.Tensor" ? node.args[1].as<ValueRef>() : nullptr;
    return number && isHostNumber(graph_.meta(*number)) && graph::isFloatingPoint(node.outputs[0].tensor.dtype);
  }

  /// 1 / number in the type that quotients are computed in.
  ValueRef reciprocal(const Node& reader, ValueRef number, const graph::Device& device) {
    OutputMeta one = copy_.to().meta(number);
    const graph::DType type = reader.outputs[0].tensor.dtype == graph::DType::Float64 ? graph::DType::Float64 : graph::DType::Float32;
    if (one.tensor.dtype != type) {
      one.tensor.dtype = type;
      one.tensor.storageOffset = 0;
      number = call(reader, "aten::_to_copy", {number, type, {}, device, {}, false, {}}, one);
    }
    one.tensor.storageOffset = 0;
    return call(reader, "aten::reciprocal", {number}, one);
  }

  ValueRef call(const Node& reader, const std::string& op, graph::ArgumentList args, OutputMeta meta) {
    const graph::NodeId id = copy_.to().addCall(op, std::move(args), {std::move(meta)}, reader.origin);
    copy_.to().node(id).isBackward = reader.isBackward;
    copy_.to().node(id).noGrad = reader.noGrad;
    return {id, 0};
  }

  ValueRef onDevice(const Node& reader, ValueRef number, const graph::Device& device) {
    const auto key = std::pair(number, device.index);
    if (const auto known = sent_.find(key); known != sent_.end()) return known->second;
    std::vector<ValueRef> ready;
    for (const auto& [value, target] : read_)
      if (target == device && emitted_[static_cast<size_t>(value.node)] && graph_.meta(value).tensor.dtype == graph_.meta(number).tensor.dtype &&
          !sent_.contains({value, device.index}))
        ready.push_back(value);
    if (std::find(ready.begin(), ready.end(), number) == ready.end()) ready.push_back(number);  // read on several devices
    send(reader, ready, device);
    return sent_.at(key);
  }

  void send(const Node& reader, const std::vector<ValueRef>& numbers, const graph::Device& device) {
    ++copies_;
    const auto made = [&](const char* op, graph::ArgumentList args, const graph::TensorMeta& meta) {
      OutputMeta o;
      o.tensor = meta;
      return call(reader, op, std::move(args), std::move(o));
    };
    graph::TensorMeta one = graph_.meta(numbers[0]).tensor, all = one;
    one.requiresGrad = all.requiresGrad = false;
    one.storageOffset = all.storageOffset = 0;
    graph::ArgumentList list;
    for (ValueRef v : numbers) list.emplace_back(copy_.mapped(v));
    all.sizes = {static_cast<int64_t>(numbers.size())};
    all.strides = {1};
    const bool single = numbers.size() == 1;
    const ValueRef packed = single ? *list[0].as<ValueRef>() : made("aten::stack", {list, int64_t{0}}, all);
    graph::TensorMeta there = single ? one : all;
    there.device = one.device = device;
    // The copy reads pageable memory before it returns, so nobody waits for the device.
    const ValueRef sent = made("aten::_to_copy", {packed, {}, {}, device, {}, true, {}}, there);
    for (size_t i = 0; i < numbers.size(); ++i) {
      one.storageOffset = single ? 0 : static_cast<int64_t>(i);
      sent_[{numbers[i], device.index}] = single ? sent : made("aten::select.int", {sent, int64_t{0}, static_cast<int64_t>(i)}, one);
    }
  }

  const graph::Graph& graph_;
  GraphCopy copy_;
  std::map<ValueRef, graph::Device> read_;  ///< numbers of the CPU that a GPU reads, and the first that does
  std::map<std::pair<ValueRef, int8_t>, ValueRef> sent_;
  std::vector<bool> isEarly_, emitted_;
  int copies_ = 0;
};

}  // namespace

PassResult sendHostNumbers(const graph::Graph& graph) { return Sender(graph).run(); }

}  // namespace fusebox::inductor
