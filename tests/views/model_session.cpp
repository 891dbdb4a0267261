#include "tests/views/model_session.h"

#include <fmt/format.h>

#include "profiler/session/schema.h"
#include "profiler/session/writer.h"

namespace fusebox::test {
namespace {

using session::Cell;
using session::RowKind;
using session::Writer;

constexpr std::monostate kNull;
constexpr int64_t kStart = 1'000'000'000;

/// Builds one graph row by row.
class GraphWriter {
 public:
  GraphWriter(Writer& writer, int64_t graph, int64_t firstNode) : writer_(writer), graph_(graph), next_(firstNode) {}

  int64_t node(const std::string& kind, const std::string& op, const std::vector<int64_t>& inputs, const std::string& shape,
               const std::string& module, int line) {
    const int64_t id = next_++;
    const std::string name = kind == "call" ? fmt::format("{}_{}", op.substr(5, op.find('.', 5) - 5), count_) : fmt::format("arg{}", count_);
    std::string args = "(";
    for (int64_t input : inputs) args += fmt::format("%{}, ", input);
    writer_.post(RowKind::Node, {id, graph_, count_++, name, kind, op, args + ")", std::string("float32"), shape, std::string("[1]"),
                                 std::string("cpu"), kNull, int64_t{4096}, int64_t{0}, module, std::string("/home/u/gpt.py"),
                                 int64_t{line}, std::string("forward"), kNull});
    for (size_t a = 0; a < inputs.size(); ++a) {
      writer_.post(RowKind::Edge, {graph_, inputs[a], id, int64_t{0}, static_cast<int64_t>(a)});
      ++edges_;
    }
    return id;
  }
  int64_t count() const { return count_; }
  int64_t edges() const { return edges_; }
  int64_t nextId() const { return next_; }

 private:
  Writer& writer_;
  int64_t graph_, next_, count_ = 0, edges_ = 0;
};

int64_t layer(GraphWriter& g, int64_t x, int index) {
  const std::string m = fmt::format("transformer.h.{}", index);
  const std::string s = "[1, 128, 768]";
  const auto weight = [&](const std::string& name, const std::string& shape) {
    return g.node("placeholder", "", {}, shape, m + "." + name, 20);
  };
  const int64_t ln = g.node("call", "aten.layer_norm.default", {x, weight("ln_1.weight", "[768]"), weight("ln_1.bias", "[768]")}, s, m + ".ln_1", 31);
  const int64_t qkv = g.node("call", "aten.addmm.default", {ln, weight("attn.c_attn.weight", "[768, 2304]")}, "[128, 2304]", m + ".attn.c_attn", 40);
  const int64_t split = g.node("call", "aten.split.Tensor", {qkv}, "[1, 128, 768]", m + ".attn", 41);
  int64_t parts[3];
  for (int64_t& part : parts) {
    const int64_t item = g.node("call", "aten.getitem", {split}, s, m + ".attn", 41);
    const int64_t view = g.node("call", "aten.view.default", {item}, "[1, 128, 12, 64]", m + ".attn", 42);
    part = g.node("call", "aten.transpose.int", {view}, "[1, 12, 128, 64]", m + ".attn", 42);
  }
  const int64_t attn = g.node("call", "aten.scaled_dot_product_attention.default", {parts[0], parts[1], parts[2]}, "[1, 12, 128, 64]", m + ".attn", 44);
  const int64_t back = g.node("call", "aten.transpose.int", {attn}, "[1, 128, 12, 64]", m + ".attn", 45);
  const int64_t flat = g.node("call", "aten.view.default", {back}, s, m + ".attn", 45);
  const int64_t proj = g.node("call", "aten.addmm.default", {flat, weight("attn.c_proj.weight", "[768, 768]")}, s, m + ".attn.c_proj", 46);
  const int64_t res = g.node("call", "aten.add.Tensor", {x, proj}, s, m, 50);
  const int64_t ln2 = g.node("call", "aten.layer_norm.default", {res, weight("ln_2.weight", "[768]")}, s, m + ".ln_2", 51);
  const int64_t fc = g.node("call", "aten.addmm.default", {ln2, weight("mlp.c_fc.weight", "[768, 3072]")}, "[1, 128, 3072]", m + ".mlp.c_fc", 60);
  const int64_t act = g.node("call", "aten.gelu.default", {fc}, "[1, 128, 3072]", m + ".mlp.act", 61);
  const int64_t out = g.node("call", "aten.addmm.default", {act, weight("mlp.c_proj.weight", "[3072, 768]")}, s, m + ".mlp.c_proj", 62);
  return g.node("call", "aten.add.Tensor", {res, out}, s, m, 52);
}

int64_t writeGraph(Writer& writer, int64_t graph, const std::string& stage, int64_t firstNode, int layers) {
  GraphWriter g(writer, graph, firstNode);
  const int64_t ids = g.node("placeholder", "", {}, "[1, 128]", "", 10);
  int64_t x = g.node("call", "aten.embedding.default", {ids, g.node("placeholder", "", {}, "[50257, 768]", "transformer.wte", 10)}, "[1, 128, 768]", "transformer.wte", 12);
  for (int i = 0; i < layers; ++i) x = layer(g, x, i);
  x = g.node("call", "aten.layer_norm.default", {x}, "[1, 128, 768]", "transformer.ln_f", 70);
  g.node("output", "", {x}, "", "", 71);
  writer.post(RowKind::Graph, {graph, int64_t{1}, stage, std::string("inference"), std::string("forward"), kNull, g.count(), g.edges(),
                               int64_t{1}, int64_t{1}, kNull, kStart});
  return g.nextId();
}

}  // namespace

Result<void> writeModelSession(const std::string& path, int layers, int recompiles) {
  auto made = Writer::create(path);
  if (!made) return tl::unexpected(made.error());
  Writer& w = **made;
  w.post(RowKind::Info, {std::string("schema_version"), int64_t{session::kSchemaVersion}});
  w.post(RowKind::Info, {std::string("script"), std::string("/home/u/gpt.py")});
  w.post(RowKind::Info, {std::string("engine"), std::string("fusebox")});
  w.post(RowKind::Info, {std::string("torch"), std::string("2.11.0")});
  w.post(RowKind::Info, {std::string("start_ns"), kStart});
  w.post(RowKind::Frame, {int64_t{1}, kNull, std::string("forward"), std::string("GPT.forward"), std::string("/home/u/gpt.py"), int64_t{30},
                          kNull, std::string("compiled"), kNull, kStart});
  w.post(RowKind::Compile, {int64_t{1}, int64_t{1}, kNull, int64_t{1}, std::string("frame"), std::string("inductor"), std::string("default"),
                            int64_t{0}, kStart, kStart + 90'000'000, std::string("ok"), kNull, std::string("miss"), kNull, kNull, int64_t{1},
                            std::string("/home/u/gpt.py"), int64_t{30}});
  for (int64_t g = 1; g <= 20; ++g) {
    w.post(RowKind::Guard, {g, int64_t{1}, g - 1, std::string(g == 1 ? "shape" : "identity"), fmt::format("L['self'].h[{}]", g),
                            fmt::format("object {:#x}", g * 4096), kNull, kNull, std::string("/home/u/gpt.py"), 30 + g});
  }
  const std::string file = "/home/u/gpt.py";
  w.post(RowKind::Symbol, {int64_t{1}, int64_t{1}, int64_t{1}, std::string("s0"), std::string("size"), std::string("L['x'].size()[1]"), int64_t{128},
                           int64_t{2}, int64_t{1024}, std::string("automatic"), std::string("it differed between calls"), std::string("64"), std::string("128"),
                           file, int64_t{31}, kNull, kStart});
  w.post(RowKind::Relation, {int64_t{1}, int64_t{1}, int64_t{2}, int64_t{1}, std::string("guard"), std::string("<="), std::string("s0"), std::string("1024"),
                             std::string("[\"s0\"]"), std::string("aten::slice"), file, int64_t{33}, kNull, kStart});
  w.post(RowKind::Specialisation, {int64_t{1}, int64_t{1}, int64_t{3}, int64_t{3}, std::string("number"), std::string("s1"), std::string("[\"s1\"]"),
                                   std::string("L['x'].size()[0]"), int64_t{4}, std::string("range()"), kNull, file, int64_t{34}, kNull, kStart});
  for (int64_t f = 1; f <= recompiles; ++f) {
    w.post(RowKind::GuardFailure, {f, int64_t{1}, int64_t{1}, int64_t{1}, std::string("L['x'].size()"), std::string("[1, 128]"),
                                   fmt::format("[1, {}]", 128 + f), std::string("recompile"), std::string("/home/u/gpt.py"), int64_t{31}, kStart + f});
  }
  const int64_t next = writeGraph(w, 1, "captured", 1, layers);
  writeGraph(w, 2, "post_grad", next, layers);
  w.finish();
  return {};
}

}  // namespace fusebox::test
