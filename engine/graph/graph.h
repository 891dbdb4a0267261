#pragma once

#include <complex>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <variant>
#include <vector>

#include "engine/graph/sym_expr.h"
#include "engine/support/result.h"

namespace fusebox::graph {

/// Element types. The values are c10::ScalarType's numbers, so that conversion at libtorch's edge is a cast.
enum class DType : int8_t {
  UInt8 = 0, Int8 = 1, Int16 = 2, Int32 = 3, Int64 = 4, Float16 = 5, Float32 = 6, Float64 = 7,
  ComplexHalf = 8, Complex64 = 9, Complex128 = 10, Bool = 11, BFloat16 = 15,
  Float8E5M2 = 23, Float8E4M3 = 24, Float8E5M2Fnuz = 25, Float8E4M3Fnuz = 26, UInt16 = 27, UInt32 = 28, UInt64 = 29, Float8E8M0 = 44,
  Undefined = -1,
};
inline constexpr int kDTypes = 45;  ///< numbers in use lie below
/// Bytes of one element; 0 for Undefined.
int elementSize(DType type);
bool hasArithmetic(DType type);  ///< the loop IR computes with it; others are only stored and handed to operators
bool isFloatingPoint(DType type);
bool isIntegral(DType type);  ///< integers, without Bool
bool isComplex(DType type);
/// "float32", as Python prints it without `torch.`.
std::string_view name(DType type);

enum class DeviceKind : int8_t { Cpu = 0, Cuda = 1, Meta = 2, Other = 3 };
struct Device {
  DeviceKind kind = DeviceKind::Cpu;
  int8_t index = -1;  ///< -1: the current one
  bool operator==(const Device&) const = default;
  std::string str() const;  ///< "cpu", "cuda:0"
};

/// What is known of a tensor value without its data. Sizes, strides and offset count elements.
struct TensorMeta {
  std::vector<SymExpr> sizes;
  std::vector<SymExpr> strides;
  SymExpr storageOffset;
  DType dtype = DType::Undefined;
  Device device;
  bool requiresGrad = false;

  SymExpr numel() const { return product(sizes); }
  bool isContiguous() const;  ///< row-major; dimensions of size 1 do not matter
  /// "float32[2, 3]" with strides appended when not row-major.
  std::string str() const;
};

using NodeId = int32_t;

/// One output of one node. Most nodes have output 0 only; a tensor list is flattened into outputs 0..n-1.
struct ValueRef {
  NodeId node = -1;
  int32_t output = 0;
  auto operator<=>(const ValueRef&) const = default;
};

struct Argument;
using ArgumentList = std::vector<Argument>;
struct Layout { int8_t value; bool operator==(const Layout&) const = default; };              ///< c10::Layout's number
struct MemoryFormat { int8_t value; bool operator==(const MemoryFormat&) const = default; };  ///< c10::MemoryFormat's number
struct GeneratorRef { int32_t index; bool operator==(const GeneratorRef&) const = default; }; ///< into Graph::generators order

/// One argument of an operator, in schema order. None stands for an omitted optional.
struct Argument {
  std::variant<std::monostate, bool, int64_t, double, std::complex<double>, std::string, SymExpr, DType, Device, Layout,
               MemoryFormat, GeneratorRef, ValueRef, ArgumentList>
      value;
  Argument() = default;
  template <class T>
    requires(!std::is_same_v<std::decay_t<T>, Argument>)
  Argument(T&& v) : value(std::forward<T>(v)) {}

  bool isNone() const { return std::holds_alternative<std::monostate>(value); }
  template <class T>
  const T* as() const { return std::get_if<T>(&value); }
  std::string str() const;
};

/// A position in the user's program.
struct SourceLine {
  std::string file;
  int line = 0;
  std::string function;
  bool operator==(const SourceLine&) const = default;
};

/// Where a node came from: user's stack (innermost last), module path ("encoder.layers.0.attn"), and earlier-stage nodes.
struct Provenance {
  std::shared_ptr<const std::vector<SourceLine>> stack;
  std::string modulePath;
  std::vector<NodeId> from;  ///< ids in the graph this one was made from
};

enum class NodeKind : uint8_t {
  Placeholder,  ///< a graph input
  Constant,     ///< a tensor fixed at capture (index into the module's constants)
  Call,         ///< an ATen (or custom) operator
  Output,       ///< the last node; args are the results
};

/// What an output of a node is; a node may produce scalars (SymExpr) or nothing for an omitted output.
struct OutputMeta {
  enum class Kind : uint8_t { Tensor, SymInt, None } kind = Kind::Tensor;
  TensorMeta tensor;
  SymExpr scalar;
};

struct Node {
  NodeId id = -1;
  NodeKind kind = NodeKind::Call;
  std::string name;  ///< unique within the graph, Python identifier: "add_3"
  std::string op;    ///< "aten::add.Tensor"; empty unless Call. Overload omitted when it is the default one.
  ArgumentList args; ///< every schema argument in order, defaults filled in
  std::vector<OutputMeta> outputs;
  int32_t index = -1;  ///< Placeholder: input position; Constant: constant position
  bool isBackward = false;
  bool outputIsList = false;  ///< the schema returns one tensor list, flattened in `outputs`
  bool isModel = false;       ///< stands for what a later node does in a graph of its own, as often as data say; is no effect of this graph
  bool noGrad = false;        ///< forward: traced with gradient mode off, so that its results have no history
  Provenance origin;
};

/// A functional graph in topological order: ids are positions in `nodes`. Every tensor op is out of place.
class Graph {
 public:
  std::string name;

  const std::vector<Node>& nodes() const { return nodes_; }
  const Node& node(NodeId id) const { return nodes_[static_cast<size_t>(id)]; }
  Node& node(NodeId id) { return nodes_[static_cast<size_t>(id)]; }
  const OutputMeta& meta(ValueRef v) const { return node(v.node).outputs[static_cast<size_t>(v.output)]; }

  NodeId addPlaceholder(std::string name, OutputMeta meta, Provenance origin = {});
  NodeId addConstant(std::string name, int32_t index, OutputMeta meta);
  /// Appends a call; `args` refer to earlier nodes only.
  NodeId addCall(std::string op, ArgumentList args, std::vector<OutputMeta> outputs, Provenance origin = {});
  /// Sets the results; there is exactly one Output node, and it is last.
  NodeId setOutputs(ArgumentList results);

  std::vector<NodeId> placeholders() const;
  const Node* output() const;
  /// Ids of nodes that read any output of each node, ascending.
  std::vector<std::vector<NodeId>> users() const;
  /// Calls `fn` with every ValueRef in `args`, lists included.
  static void forEachValue(const ArgumentList& args, const std::function<void(ValueRef)>& fn);
  static void mapValues(ArgumentList& args, const std::function<ValueRef(ValueRef)>& fn);
  /// Checks order, arity and references; an Internal error names the node.
  Result<void> verify() const;
  /// One line a node, in the style of FX's readable form.
  std::string str() const;

 private:
  NodeId append(Node node, const std::string& baseName);
  std::string uniqueName(const std::string& base);
  std::vector<Node> nodes_;
  std::unordered_map<std::string, int32_t> names_;  ///< names as they were asked for, and the last suffix given to each; what is made of both is not in it
};

/// The operator's name without namespace and overload, as a Python identifier: "aten::add.Tensor" gives "add".
std::string shortName(std::string_view op);

/// Every symbol that the graph names, in order of appearance.
std::vector<Symbol> symbolsOf(const Graph& graph);

/// A copy without nodes that no output needs, provenance unchanged (random and effectful operators are kept when `keep` says so).
Graph withoutDeadNodes(const Graph& graph, const std::function<bool(const Node&)>& keep);

}  // namespace fusebox::graph
