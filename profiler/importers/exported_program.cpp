#include "profiler/importers/exported_program.h"

#include <fmt/format.h>

#include <filesystem>

#include "engine/support/bounded_json.h"
#include "profiler/importers/exported_graph.h"
#include "profiler/importers/graph_rows.h"
#include "profiler/importers/json_pieces.h"
#include "profiler/importers/saved_program.h"
#include "profiler/importers/trace_json.h"
#include "profiler/importers/zip_archive.h"

namespace fusebox::importing {
namespace {

using Json = nlohmann::json;

constexpr const char* kProgramFormat = "exported program";
constexpr uint64_t kMostModelBytes = uint64_t{512} << 20;
/// Up to PyTorch 2.6.
constexpr const char* kOldModel = "serialized_exported_program.json";

std::vector<const ZipArchive::Entry*> modelsOf(const ZipArchive& archive) {
  std::vector<const ZipArchive::Entry*> models;
  for (const auto& entry : archive.entries())
    if (entry.name == kOldModel || (entry.name.starts_with("models/") && entry.name.ends_with(".json")))
      models.push_back(&entry);
  return models;
}

std::string modelName(const std::string& entry) {
  return entry == kOldModel ? "model" : std::filesystem::path(entry).stem().string();
}

/// "0 <= s0 <= 9", one a line.
std::string rangesText(const Json& ranges) {
  std::string out;
  if (!ranges.is_object()) return out;
  for (const auto& [name, range] : ranges.items()) {
    if (!range.is_object()) continue;
    const auto bound = [&](const char* key) {
      const Json* value = member(range, key);
      return value && value->is_number_integer() ? std::to_string(value->get<int64_t>()) : std::string("?");
    };
    out += fmt::format("{} <= {} <= {}\n", bound("min_val"), name.substr(0, 100), bound("max_val"));
  }
  return out;
}

Result<void> importModel(const ZipArchive& archive, const ZipArchive::Entry& entry, SessionBuilder& session) {
  auto text = archive.read(entry, kMostModelBytes);
  if (!text) return tl::unexpected(text.error());
  bool complete = false;
  const auto parts = jsonMembers(*text, complete);
  if (!complete) return fail(ErrorCode::Corrupt, entry.name + " is damaged: it is no JSON object");
  const auto part = [&](std::string_view key) {
    const auto found = parts.find(key);
    return found == parts.end() ? std::string_view("null") : found->second;
  };
  const std::string name = modelName(entry.name);
  if (const Json torch = parseBounded(part("torch_version")); torch.is_string()) session.info("torch", torch.get<std::string>());
  ExportedGraphs graphs = readExportedGraphs(part("graph_module"), name);
  const Json ranges = parseBounded(part("range_constraints"));
  std::string().swap(*text);
  if (graphs.fault == JsonFault::TooDeep) return fail(ErrorCode::Corrupt, entry.name + " is nested too deeply");
  if (graphs.fault == JsonFault::TooLarge) return fail(ErrorCode::Corrupt, entry.name + " consists of too many values");
  if (graphs.fault == JsonFault::Damaged) return fail(ErrorCode::Corrupt, entry.name + " is damaged: a part of it is no JSON");
  if (graphs.main.nodes.size() < 2) return fail(ErrorCode::Corrupt, entry.name + " holds no graph");
  session.loss("exported_values", graphs.damaged,
               "values or nodes of an exported program that lack the form of its schema");
  const int64_t compile = putProgram(session, name, "torch.export");
  const StoredGraph main =
      storeGraph(session, compile, "captured", "inference", std::move(graphs.main), rangesText(ranges), session.time(0));
  for (auto& [innerName, graph] : graphs.inner)
    storeGraph(session, compile, "captured", "inference", std::move(graph), {}, session.time(0), main.id);
  return {};
}

}  // namespace

bool isExportedProgram(const std::string& path, std::string_view head) {
  if (!looksLikeZip(head)) return false;
  auto archive = ZipArchive::open(path);
  return archive && !modelsOf(**archive).empty();
}

Result<void> importExportedProgram(const std::string& path, SessionBuilder& session, ImportProgress* progress) {
  auto archive = ZipArchive::open(path);
  if (!archive) return tl::unexpected(archive.error());
  const auto models = modelsOf(**archive);
  size_t read = 0;
  Error first;
  for (size_t i = 0; i < models.size(); ++i) {
    if (auto on = checkpoint(progress, kProgramFormat, static_cast<double>(i) / static_cast<double>(models.size())); !on)
      return on;
    auto done = importModel(**archive, *models[i], session);
    if (auto good = session.good(); !good) return good;
    if (done) {
      ++read;
      continue;
    }
    session.loss("damaged_models", 1, done.error().message);
    if (first.message.empty()) first = done.error();
  }
  if (read == 0) return fail(first.code, first.message, path);
  return {};
}

}  // namespace fusebox::importing
