#include "profiler/importers/torch_script.h"

#include <algorithm>
#include <filesystem>

#include "profiler/importers/graph_rows.h"
#include "profiler/importers/saved_program.h"
#include "profiler/importers/torch_script_graph.h"
#include "profiler/importers/trace_record.h"
#include "profiler/importers/zip_archive.h"

namespace fusebox::importing {
namespace {

constexpr const char* kScriptFormat = "TorchScript program";
constexpr uint64_t kMostCodeBytes = uint64_t{64} << 20, kMostAllCodeBytes = uint64_t{256} << 20;
constexpr size_t kHeadBytes = 8192;  // of data.pkl: a name, and no zip bomb behind it

bool isCode(const std::string& name) { return name.starts_with("code/") && name.ends_with(".py"); }

/// The class of the outermost object: the first thing in the pickle is PROTO 2, GLOBAL "module\nname\n".
std::string rootClassOf(const ZipArchive& archive) {
  const auto* entry = archive.find("data.pkl");
  auto pickle =
      entry ? archive.readHead(*entry, kHeadBytes) : Result<std::string>(fail(ErrorCode::NotFound, "no data.pkl"));
  if (!pickle || !pickle->starts_with("\x80\x02"
                                      "c__torch__"))
    return {};
  const size_t module = pickle->find('\n', 3), name = pickle->find('\n', module + 1);
  if (name == std::string::npos || name > 4000) return {};
  return pickle->substr(3, module - 3) + "." + pickle->substr(module + 1, name - module - 1);
}

/// Where the pickle does not say: a class with forward that no other class holds.
std::string outermostClass(const ScriptCode& code) {
  std::vector<std::string> found;
  for (const auto& [name, made] : code.classes) {
    const bool isHeld = std::any_of(code.classes.begin(), code.classes.end(), [&](const auto& other) {
      return std::any_of(other.second.fields.begin(), other.second.fields.end(),
                         [&](const auto& field) { return field.second == name; });
    });
    if (!isHeld && made.methods.contains("forward")) found.push_back(name);
    if (found.size() > 1000) break;
  }
  return found.empty() ? std::string() : *std::min_element(found.begin(), found.end());
}

using Texts = std::vector<std::pair<std::string, std::string>>;  ///< file and content

Result<ScriptCode> readCode(const ZipArchive& archive, SessionBuilder& session, Texts& texts,
                            ImportProgress* progress) {
  ScriptCode code;
  uint64_t total = 0;
  for (const auto& entry : archive.entries()) {
    if (!isCode(entry.name)) continue;
    auto text = archive.read(entry, kMostCodeBytes);
    if (!text || (total += text->size()) > kMostAllCodeBytes) {
      session.loss("damaged_files", 1, text ? "code beyond 256 MB was left out" : text.error().message);
      continue;
    }
    bool changed = false;
    std::string valid = validUtf8(*text, changed);
    if (changed) session.loss("damaged_files", 1, entry.name + " holds bytes that are no UTF-8; they were replaced");
    parseScriptCode(entry.name, valid, code);
    texts.emplace_back(entry.name, std::move(valid));
    if (auto on = checkpoint(progress, kScriptFormat, 0.5); !on) return tl::unexpected(on.error());
  }
  return code;
}

}  // namespace

bool isTorchScript(const std::string& path, std::string_view head) {
  if (!looksLikeZip(head)) return false;
  auto archive = ZipArchive::open(path);
  return archive && (*archive)->find("data.pkl");
}

Result<void> importTorchScript(const std::string& path, SessionBuilder& session, ImportProgress* progress) {
  auto archive = ZipArchive::open(path);
  if (!archive) return tl::unexpected(archive.error());
  const auto& entries = (*archive)->entries();
  if (std::none_of(entries.begin(), entries.end(), [](const auto& entry) { return isCode(entry.name); })) {
    return fail(ErrorCode::Corrupt,
                "this file of torch.save holds tensors or objects, but no graph; Fusebox opens what torch.jit.save and "
                "torch.export.save write",
                path);
  }
  Texts texts;
  auto code = readCode(**archive, session, texts, progress);
  if (!code) return tl::unexpected(code.error());
  std::string root = rootClassOf(**archive);
  if (!code->classes.contains(root)) root = outermostClass(*code);
  FxGraph graph = scriptGraph(*code, root);
  if (graph.nodes.size() < 2)
    return fail(ErrorCode::Corrupt, "the TorchScript program has no forward that can be read", path);
  session.loss("script_statements", code->unread + graph.unread,
               "statements of TorchScript code that were not understood or too many; the code is kept");
  const std::string name = std::filesystem::path(path).stem().string();
  const int64_t compile = putProgram(session, name, "torch.jit");
  storeGraph(session, compile, "captured", "inference", std::move(graph), {}, session.time(0));
  for (const auto& [file, text] : texts) session.sourceText(file, text);
  return session.good();
}

}  // namespace fusebox::importing
