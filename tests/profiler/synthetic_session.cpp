#include "tests/profiler/synthetic_session.h"

#include <fmt/format.h>

#include <fstream>
#include <thread>
#include <vector>

#include "engine/record/recorder.h"

namespace fusebox::test {
namespace {

using graph::Argument;
using graph::Graph;
using graph::NodeId;
using graph::OutputMeta;
using graph::Provenance;
using graph::TensorMeta;
using graph::ValueRef;
using record::GraphSnapshot;
using record::Id;
using record::Phase;
using record::Recorder;
using record::StageTimer;

constexpr const char* kScript = R"(import torch


class Block(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.up = torch.nn.Linear(width, 4 * width)
        self.down = torch.nn.Linear(4 * width, width)

    def forward(self, x):
        h = self.up(x)
        h = torch.nn.functional.gelu(h)
        h = h * 0.5 + x.sum()
        return self.down(h)


def step(model, x):
    y = model(x)
    print("loss", y.sum())
    return torch.relu(y)


model = torch.compile(Block(64))
for size in (8, 8, 16):
    step(model, torch.randn(size, 64))
)";

OutputMeta tensor(std::vector<graph::SymExpr> sizes) {
  TensorMeta meta;
  meta.strides = graph::contiguousStrides(sizes);
  meta.sizes = std::move(sizes);
  meta.dtype = graph::DType::Float32;
  return {.kind = OutputMeta::Kind::Tensor, .tensor = std::move(meta)};
}

Provenance at(const std::string& file, int line, const std::string& module, std::vector<NodeId> from = {}) {
  auto stack = std::make_shared<std::vector<graph::SourceLine>>();
  stack->push_back({file, 24, "<module>"});
  stack->push_back({file, line, "forward"});
  return {std::move(stack), module, std::move(from)};
}

// A chain of matrix products and pointwise operators, `length` of them.
Graph makeGraph(const std::string& file, int length, bool withOrigins) {
  static const struct {
    const char* op;
    int line;
    const char* module;
  } kOps[] = {{"aten::mm", 11, "up"}, {"aten::gelu", 12, ""}, {"aten::mul.Scalar", 13, ""}, {"aten::add.Tensor", 13, ""}};
  Graph graph;
  graph.name = "forward";
  const NodeId x = graph.addPlaceholder("x", tensor({8, 64}), at(file, 10, ""));
  const NodeId w = graph.addPlaceholder("weight", tensor({64, 64}), at(file, 7, "up"));
  NodeId last = x;
  for (int i = 0; i < length; ++i) {
    const auto& op = kOps[i % 4];
    graph::ArgumentList args{Argument(ValueRef{last, 0})};
    if (i % 4 == 0) args.emplace_back(ValueRef{w, 0});
    if (i % 4 == 2) args.emplace_back(0.5);
    if (i % 4 == 3) args.emplace_back(ValueRef{x, 0});
    std::vector<NodeId> from;
    if (withOrigins) from.push_back(static_cast<NodeId>(graph.nodes().size()));
    last = graph.addCall(op.op, std::move(args), {tensor({8, 64})}, at(file, op.line, op.module, std::move(from)));
  }
  graph.setOutputs({Argument(ValueRef{last, 0})});
  return graph;
}

struct Compiled {
  Id compile = 0;
  std::vector<std::pair<Id, Id>> steps;  ///< kernel and group, in order of execution
};

GraphSnapshot recordGraphs(Recorder* r, Id compile, const std::string& file, int length) {
  GraphSnapshot last;
  static const struct {
    const char* stage;
    const char* direction;
    Phase phase;
  } kStages[] = {{"captured", "inference", Phase::Capture}, {"joint", "joint", Phase::Aot},
                 {"forward", "forward", Phase::Aot},        {"backward", "backward", Phase::Aot},
                 {"post_grad", "forward", Phase::Inductor}, {"post_fusion", "forward", Phase::Inductor}};
  for (const auto& stage : kStages) {
    StageTimer timer(r, compile, stage.phase, stage.stage);
    timer.nodes(length, length);
    timer.changed(std::string(stage.stage) != "captured");
    last = r->graph(makeGraph(file, length, last.id != 0),
                    {.compile = compile, .stage = stage.stage, .direction = stage.direction, .from = last});
  }
  return last;
}

void recordKernels(Recorder* r, const GraphSnapshot& graph, int kernels, Compiled& out) {
  StageTimer timer(r, out.compile, Phase::Codegen, "kernels");
  for (int k = 0; k < kernels; ++k) {
    const int32_t first = 2 + k * 4;
    const std::vector<int32_t> product{first}, chain{first + 1, first + 2, first + 3};
    const Id mm = r->kernel({.compile = out.compile, .graph = graph, .name = fmt::format("extern_mm_{}", k), .kind = "extern",
                             .op = "aten::mm", .reason = "matrix products call libtorch", .readBytes = 18432,
                             .writeBytes = 2048, .flops = 65536, .nodes = product});
    const Id mmGroup = r->fusionGroup({.compile = out.compile, .graph = graph, .position = 2 * k, .name = "mm",
                                       .kind = "extern", .kernel = mm, .nodes = product, .readBytes = 18432,
                                       .writeBytes = 2048, .reason = "matrix products call libtorch"});
    const std::string name = fmt::format("fused_add_gelu_mul_{}", k);
    const Id fused = r->kernel({.compile = out.compile, .graph = graph, .name = name,
                                .loopIr = fmt::format("kernel {}\n  for i0 in 512:\n    v0 = load buf{}[i0]\n    "
                                                      "v1 = gelu(v0)  # {}\n    store buf{}[i0] = v1\n", name, k, k == 0 ? "gelu" : fmt::format("gelu_{}", k), k + 1),
                                .readBytes = 4096, .writeBytes = 2048, .nodes = chain});
    const Id group = r->fusionGroup({.compile = out.compile, .graph = graph, .position = 2 * k + 1, .name = name,
                                     .kind = "pointwise", .kernel = fused, .nodes = chain, .readBytes = 4096,
                                     .writeBytes = 2048, .bytesSaved = 8192});
    for (int tier = 0; tier < 2; ++tier) {
      r->kernelCode({.kernel = fused, .tier = tier, .target = "skylake-avx512",
                     .llvmIr = fmt::format("define void @{}(ptr %0, ptr %1, i64 %2) {{\n  ret void\n}}\n", name),
                     .assembly = fmt::format("{}:\n\t.loc\t1 3 0\n\tvmovups\tzmm0, [rdi]\n\t.loc\t1 4 0\n\tvmulps\tzmm0, zmm0, zmm1\n\tvaddps\tzmm0, zmm0, zmm2\n\tret\n", name), .codeBytes = 512,
                     .compileNs = 1'000'000 * (tier + 1)});
    }
    r->fusionDecision({.compile = out.compile, .graph = graph, .position = 2 * k, .a = "gelu", .b = "mul",
                       .aNode = first + 1, .bNode = first + 2, .group = group, .kind = "vertical", .fused = true,
                       .reason = "the consumer reads what the producer writes", .scoreBytes = 4096});
    r->fusionDecision({.compile = out.compile, .graph = graph, .position = 2 * k + 1, .a = "mm", .b = "gelu", .aNode = first,
                       .bNode = first + 1, .kind = "epilogue", .fused = false, .reason = "extern calls take no epilogue"});
    r->buffer({.compile = out.compile, .graph = graph, .name = fmt::format("buf{}", k), .kind = "planned", .node = first,
               .dtype = "float32", .shape = "[8, 64]", .device = "cpu", .bytes = 2048, .firstUse = 2 * k,
               .lastUse = 2 * k + 1, .poolOffset = (k % 2) * 2048});
    out.steps.emplace_back(mm, mmGroup);
    out.steps.emplace_back(fused, group);
  }
}

Compiled recordCompile(Recorder* r, Id frame, Id cause, int attempt, const std::string& file, int kernels) {
  Compiled out;
  out.compile = r->beginCompile({.frame = frame, .attempt = attempt, .backend = "inductor", .cause = cause});
  const GraphSnapshot graph = recordGraphs(r, out.compile, file, kernels * 4);
  recordKernels(r, graph, kernels, out);
  r->cacheEvent({.compile = out.compile, .cache = "graph", .outcome = "miss", .key = fmt::format("key{}", attempt)});
  r->endCompile(out.compile, {.cache = "miss"});
  return out;
}

SyntheticFacts recordLaunches(Recorder* r, const Compiled& compiled, const SyntheticOptions& options) {
  SyntheticFacts facts;
  facts.startNs = nowNs();
  const int64_t each = options.launches / options.threads;
  const auto body = [&] {
    const auto steps = static_cast<int64_t>(compiled.steps.size());
    for (int64_t i = 0; i < each; ++i) {
      const auto& [kernel, group] = compiled.steps[static_cast<size_t>(i % steps)];
      const int64_t start = facts.startNs + i * kPeriodNs;
      r->launch(kernel, group, start, durationNs(i), 6144);
      if (i % steps == steps - 1) r->call(compiled.compile, start - (steps - 1) * kPeriodNs, steps * kPeriodNs - 2'000);
      if (i % 50'000 == 49'999) r->flush();  // no faster than the disk, so that nothing is lost
    }
  };
  if (options.threads == 1) {
    body();
  } else {
    std::vector<std::thread> threads;
    for (int t = 0; t < options.threads; ++t) threads.emplace_back(body);
    for (auto& thread : threads) thread.join();
  }
  for (int64_t i = 0; i < each; ++i) facts.totalNs += durationNs(i) * options.threads;
  facts.launches = each * options.threads;
  return facts;
}

}  // namespace

Result<SyntheticFacts> writeSyntheticSession(const std::string& path, const SyntheticOptions& options) {
  const std::string script = path + ".model.py";
  std::ofstream(script) << kScript;
  auto started = Recorder::start({.path = path,
                                  .facts = {{"engine", "fusebox"}, {"torch", "2.11.0"}, {"python", "3.11.7"},
                                            {"device", "cpu"}, {"script", script}, {"fusebox_version", "0.1.0"}}});
  if (!started) return tl::unexpected(started.error());
  Recorder* r = *started;
  const Id frame = r->frame({.name = "forward", .qualname = "Block.forward", .place = {script, 10, "forward"}});
  const Id step = r->frame({.name = "step", .qualname = "step", .place = {script, 17, "step"}});
  const Compiled first = recordCompile(r, frame, 0, 0, script, options.kernels);
  const Id guards = r->guards(first.compile, {{.kind = "TENSOR_MATCH", .source = "L['x']", .expected = "float32[8, 64]",
                                               .code = "check_tensor(L['x'], float32[8, 64])", .place = {script, 11}},
                                              {.kind = "TYPE_MATCH", .source = "L['self']", .expected = "Block",
                                               .code = "type(L['self']) is Block", .place = {script, 10}}});
  r->graphBreak({.frame = step, .compile = first.compile, .kind = "unsupported call", .reason = "print of a traced tensor",
                 .hint = "move the print out of the compiled code", .place = {script, 19, "step"}, .endLine = 19, .column = 4,
                 .endColumn = 27, .opcode = "CALL", .offset = 34, .stack = {{script, 25, "<module>"}, {script, 19, "step"}},
                 .bytecode = {{.offset = 30, .line = 19, .op = "LOAD_CONST", .argument = "'loss'"},
                              {.offset = 34, .line = 19, .op = "CALL", .argument = "2"},
                              {.offset = 44, .line = 19, .op = "POP_TOP"}}});
  const Id failure = r->guardFailure({.frame = frame, .compile = first.compile, .guard = guards, .text = "TENSOR_MATCH L['x']",
                                      .expected = "float32[8, 64]", .found = "float32[16, 64]", .place = {script, 11}});
  const Compiled second = recordCompile(r, frame, failure, 1, script, options.kernels);
  r->frameStatus(frame, "compiled");
  r->frameStatus(step, "compiled");
  SyntheticFacts facts = recordLaunches(r, second, options);
  facts.script = script;
  options.finish ? Recorder::stop() : r->flush();
  return facts;
}

}  // namespace fusebox::test
