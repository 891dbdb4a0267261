#include "tests/views/model_session.h"

#include <fmt/format.h>

#include "profiler/session/schema.h"
#include "profiler/session/writer.h"

namespace fusebox::test {
namespace {

using session::Cell;
namespace rows = session::rows;
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
    writer_.post(rows::Node{.id = id, .graph_id = graph_, .position = count_++, .name = name, .kind = kind, .op = op, .args = args + ")",
        .dtype = std::string("float32"), .shape = shape, .stride = std::string("[1]"), .device = std::string("cpu"), .bytes = int64_t{4096},
        .is_backward = int64_t{0}, .module_path = module, .file = std::string("/home/u/gpt.py"), .line = int64_t{line},
        .function = std::string("forward")});
    for (size_t a = 0; a < inputs.size(); ++a) {
      writer_.post(rows::Edge{.graph_id = graph_, .src = inputs[a], .dst = id, .output = int64_t{0}, .arg = static_cast<int64_t>(a)});
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
  writer.post(rows::Graph{.id = graph, .compile_id = int64_t{1}, .stage = stage, .direction = std::string("inference"),
      .name = std::string("forward"), .node_count = g.count(), .edge_count = g.edges(), .input_count = int64_t{1}, .output_count = int64_t{1},
      .time_ns = kStart});
  return g.nextId();
}

}  // namespace

Result<void> writeModelSession(const std::string& path, int layers, int recompiles) {
  auto made = Writer::create(path);
  if (!made) return tl::unexpected(made.error());
  Writer& w = **made;
  w.post(rows::Info{.key = std::string("schema_version"), .value = int64_t{session::kSchemaVersion}});
  w.post(rows::Info{.key = std::string("script"), .value = std::string("/home/u/gpt.py")});
  w.post(rows::Info{.key = std::string("engine"), .value = std::string("fusebox")});
  w.post(rows::Info{.key = std::string("torch"), .value = std::string("2.11.0")});
  w.post(rows::Info{.key = std::string("start_ns"), .value = kStart});
  w.post(rows::Frame{.id = int64_t{1}, .name = std::string("forward"), .qualname = std::string("GPT.forward"),
      .file = std::string("/home/u/gpt.py"), .line = int64_t{30}, .status = std::string("compiled"), .first_seen_ns = kStart});
  w.post(rows::Compile{.id = int64_t{1}, .frame_id = int64_t{1}, .attempt = int64_t{1}, .kind = std::string("frame"),
      .backend = std::string("inductor"), .mode = std::string("default"), .dynamic = int64_t{0}, .start_ns = kStart,
      .end_ns = kStart + 90'000'000, .status = std::string("ok"), .cache = std::string("miss"), .thread = int64_t{1},
      .file = std::string("/home/u/gpt.py"), .line = int64_t{30}});
  for (int64_t g = 1; g <= 20; ++g) {
    w.post(rows::Guard{.id = g, .compile_id = int64_t{1}, .position = g - 1, .kind = std::string(g == 1 ? "shape" : "identity"),
        .source = fmt::format("L['self'].h[{}]", g), .expected = fmt::format("object {:#x}", g * 4096), .file = std::string("/home/u/gpt.py"),
        .line = 30 + g});
  }
  const std::string file = "/home/u/gpt.py";
  w.post(rows::Symbol{.id = int64_t{1}, .compile_id = int64_t{1}, .position = int64_t{1}, .name = std::string("s0"), .kind = std::string("size"),
      .source = std::string("L['x'].size()[1]"), .hint = int64_t{128}, .lower = int64_t{2}, .upper = int64_t{1024},
      .policy = std::string("automatic"), .reason = std::string("it differed between calls"), .before = std::string("64"),
      .after = std::string("128"), .file = file, .line = int64_t{31}, .time_ns = kStart});
  w.post(rows::Relation{.id = int64_t{1}, .compile_id = int64_t{1}, .position = int64_t{2}, .guard_id = int64_t{1}, .kind = std::string("guard"),
      .op = std::string("<="), .left = std::string("s0"), .right = std::string("1024"), .symbols = std::string("[\"s0\"]"),
      .reason = std::string("aten::slice"), .file = file, .line = int64_t{33}, .time_ns = kStart});
  w.post(rows::Specialisation{.id = int64_t{1}, .compile_id = int64_t{1}, .position = int64_t{3}, .guard_id = int64_t{3},
      .kind = std::string("number"), .expression = std::string("s1"), .symbols = std::string("[\"s1\"]"),
      .source = std::string("L['x'].size()[0]"), .value = int64_t{4}, .operator_ = std::string("range()"), .file = file, .line = int64_t{34},
      .time_ns = kStart});
  for (int64_t f = 1; f <= recompiles; ++f) {
    w.post(rows::GuardFailure{.id = f, .frame_id = int64_t{1}, .compile_id = int64_t{1}, .guard_id = int64_t{1},
        .guard = std::string("L['x'].size()"), .expected = std::string("[1, 128]"), .found = fmt::format("[1, {}]", 128 + f),
        .outcome = std::string("recompile"), .file = std::string("/home/u/gpt.py"), .line = int64_t{31}, .time_ns = kStart + f});
  }
  const int64_t next = writeGraph(w, 1, "captured", 1, layers);
  writeGraph(w, 2, "post_grad", next, layers);
  w.finish();
  return {};
}

}  // namespace fusebox::test
