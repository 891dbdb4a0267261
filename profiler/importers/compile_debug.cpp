#include "profiler/importers/compile_debug.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "profiler/importers/graph_inputs.h"
#include "profiler/importers/graph_rows.h"
#include "profiler/importers/trace_record.h"

namespace fusebox::importing {
namespace fs = std::filesystem;
namespace {

constexpr const char* kFolderFormat = "TORCH_COMPILE_DEBUG folder";
constexpr uintmax_t kMostFileBytes = uintmax_t{128} << 20;
constexpr int kMostDepth = 6;
constexpr size_t kMostModels = 20'000;

bool isModelFolder(const fs::path& folder) {
  std::error_code error;
  for (const char* name : {"output_code.py", "fx_graph_readable.py", "fx_graph_transformed.py", "ir_post_fusion.txt"}) {
    if (fs::is_regular_file(folder / name, error)) return true;
  }
  return false;
}

void findModels(const fs::path& folder, int depth, size_t limit, std::vector<fs::path>& models) {
  if (models.size() >= limit || depth > kMostDepth) return;
  if (isModelFolder(folder)) models.push_back(folder);
  std::error_code error;
  std::vector<fs::path> inner;
  for (const auto& entry : fs::directory_iterator(folder, fs::directory_options::skip_permission_denied, error)) {
    if (entry.is_directory(error) && !entry.is_symlink(error)) inner.push_back(entry.path());
    if (inner.size() > kMostModels) break;
  }
  std::sort(inner.begin(), inner.end());
  for (const auto& next : inner) findModels(next, depth + 1, limit, models);
}

std::optional<std::string> textFile(const fs::path& file, SessionBuilder& session) {
  std::error_code error;
  if (!fs::is_regular_file(file, error)) return std::nullopt;
  if (fs::file_size(file, error) > kMostFileBytes) {
    session.loss("files", 1, file.filename().string() + " is longer than 128 MB and was left out");
    return std::nullopt;
  }
  std::ifstream in(file, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(in), {}};
  bool changed = false;
  std::string valid = validUtf8(bytes, changed);
  if (changed)
    session.loss("damaged_files", 1, file.filename().string() + " holds bytes that are no UTF-8; they were replaced");
  return valid;
}

// model__0_forward_1.0 → forward
std::string directionOf(const std::string& name) {
  for (const char* direction : {"inference", "forward", "backward"}) {
    if (name.find(std::string("_") + direction + "_") != std::string::npos) return direction;
  }
  return {};
}

/// Buffers of the scheduler's IR: "buf0.layout = FixedLayout('cpu', torch.float32, size=[32, 1], stride=[1, 32])".
void storeBuffers(SessionBuilder& session, int64_t compile, std::string_view ir) {
  std::set<std::string> seen;
  while (!ir.empty()) {
    const size_t end = ir.find('\n');
    const std::string_view line = ir.substr(0, end);
    ir = end == std::string_view::npos ? std::string_view() : ir.substr(end + 1);
    const size_t layout = line.find(".layout = "), open = line.find("Layout('"), type = line.find("torch."),
                 size = line.find("size=["), stride = line.find(", stride=[");
    if (layout == std::string_view::npos || open == std::string_view::npos || type == std::string_view::npos ||
        size == std::string_view::npos)
      continue;
    const size_t start = line.find_first_not_of(" \t");
    const std::string name(line.substr(start, layout - start));
    if (!seen.insert(name).second || seen.size() > 1'000'000) continue;
    const auto until = [&](size_t at, char stop) { return line.substr(at, line.find(stop, at) - at); };
    // The same form as in annotations of graphs, which knows the sizes of types.
    static const std::pair<std::string_view, std::string_view> kShort[] = {
        {"float32", "f32"}, {"float64", "f64"}, {"float16", "f16"}, {"bfloat16", "bf16"}, {"int64", "i64"},
        {"int32", "i32"},   {"int16", "i16"},   {"int8", "i8"},     {"uint8", "u8"},      {"bool", "b8"}};
    std::string dtype(until(type + 6, ','));
    FxNode shape;
    std::string annotation = dtype;
    for (const auto& [full, brief] : kShort) {
      if (dtype == full) annotation = brief;
    }
    parseAnnotation(annotation + std::string(until(size + 5, ']')) + "]" +
                        (stride == std::string_view::npos ? "" : std::string(until(stride + 9, ']')) + "]"),
                    shape);
    session.put(rows::Buffer{.id = session.newId(RowKind::Buffer), .compile_id = compile, .name = name, .kind = std::string("planned"),
        .dtype = text(dtype), .shape = text(shape.shape), .device = text(until(open + 8, '\'')),
        .bytes = shape.bytes >= 0 ? Cell{shape.bytes} : Cell{}});
  }
}

void importModel(const fs::path& folder, SessionBuilder& session) {
  const std::string name = folder.filename().string();
  const std::string direction = directionOf(name);
  const int64_t frame = session.newId(RowKind::Frame), compile = session.newId(RowKind::Compile);
  const int64_t at = session.time(0);
  session.put(rows::Frame{.id = frame, .name = name, .status = std::string("compiled"), .first_seen_ns = at});
  session.put(rows::Compile{.id = compile, .frame_id = frame, .kind = std::string(direction == "backward" ? "backward" : "graph"),
      .backend = std::string("inductor"), .start_ns = at, .end_ns = at, .status = std::string("ok")});
  std::map<std::string, int64_t> stored;
  std::optional<StoredGraph> before, after;
  const auto read = [&](const std::string& printed) {
    FxGraph graph = readGraph(session, printed);
    session.loss("input_names", GraphInputs::nameLike(graph, {}), "inputs of graphs that keep PyTorch's names, since this folder does not say what they are in the program");
    return graph;
  };
  if (const auto printed = textFile(folder / "fx_graph_readable.py", session)) {
    before = storeGraph(session, compile, direction == "backward" ? "backward" : "forward", direction, read(*printed), *printed, at);
    stored["fx_graph_readable.py"] = before->id;
  }
  if (const auto printed = textFile(folder / "fx_graph_transformed.py", session)) {
    after = storeGraph(session, compile, "post_grad", direction, read(*printed), *printed, at);
    stored["fx_graph_transformed.py"] = after->id;
    if (before) linkByName(session, *after, *before);
  }
  NodeMappings mappings;
  if (const auto json = textFile(folder / "inductor_provenance_tracking_node_mappings.json", session);
      json && !json->empty()) {
    if (!parseNodeMappings(*json, mappings))
      session.loss("provenance", 1, name + ": the provenance mapping is no JSON object");
  }
  if (const auto code = textFile(folder / "output_code.py", session)) {
    session.sourceText((folder / "output_code.py").string(), *code);
    storeFusion(session, compile, parseOutputCode(*code),
                after    ? &*after
                : before ? &*before
                         : nullptr,
                mappings, {}, at);
  }
  if (const auto ir = textFile(folder / "ir_post_fusion.txt", session)) storeBuffers(session, compile, *ir);

  std::vector<fs::path> files;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (entry.is_regular_file(error) && files.size() < 1000) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  for (const auto& file : files) {
    const std::string fileName = file.filename().string();
    const auto graph = stored.find(fileName);
    const auto content = graph == stored.end() ? textFile(file, session) : std::nullopt;
    session.put(rows::Artifact{.id = session.newId(RowKind::Artifact), .compile_id = compile,
        .graph_id = graph == stored.end() ? Cell{} : Cell{graph->second}, .kind = std::string("compile_debug"), .name = fileName,
        .format = std::string(fileName.ends_with(".json") ? "json" : "text"), .text = content ? text(*content) : Cell{}, .time_ns = at});
  }
}

}  // namespace

bool isCompileDebugFolder(const std::string& path) {
  std::vector<fs::path> models;
  findModels(path, 0, 1, models);
  return !models.empty();
}

Result<void> importCompileDebug(const std::string& path, SessionBuilder& session, ImportProgress* progress) {
  std::vector<fs::path> models;
  findModels(path, 0, kMostModels, models);
  session.info("engine", std::string("stock"));
  for (size_t i = 0; i < models.size(); ++i) {
    importModel(models[i], session);
    if (auto on = checkpoint(progress, kFolderFormat, static_cast<double>(i) / static_cast<double>(models.size())); !on)
      return on;
    if (auto good = session.good(); !good) return good;
  }
  if (models.empty()) return fail(ErrorCode::Corrupt, "the folder holds no graph", path);
  return {};
}

}  // namespace fusebox::importing
