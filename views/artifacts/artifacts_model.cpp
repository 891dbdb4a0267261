#include "views/artifacts/artifacts_model.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "engine/support/bounded_json.h"
#include "profiler/query/filter_words.h"
#include "profiler/session/log_id.h"
#include "profiler/session/reader.h"

namespace fusebox::views {
namespace {

using session::Statement;

constexpr size_t kLongestText = 8'000'000;

// What is looked at in a row of a million first, then the rest of those that are listed. Spans come last in their compilation, since there are many
// and the timeline shows them.
constexpr const char* kChosen = R"(SELECT a.id FROM t_artifact a LEFT JOIN t_compile c ON c.id = a.compile_id
  LEFT JOIN t_frame f ON f.id = c.frame_id WHERE 1)";
constexpr const char* kList =
    R"(SELECT a.artifact_id, c.frame, a.compile_id, a.kind, a.name, length(CAST(coalesce(a.text, g.text, '') AS BLOB)) AS bytes,
  a.time_ns, a.damaged, a.file, a.line, a.format, a.detail FROM json_each(?) j CROSS JOIN artifacts a ON a.artifact_id = j.value
  LEFT JOIN compiles c ON c.compile_id = a.compile_id LEFT JOIN graphs g ON g.graph_id = a.graph_id ORDER BY j.key)";

const char* orderOf(int column) {
  switch (column) {
    case 0: return "a.id";
    case 2: return "a.kind";
    case 3: return "a.name";
    case 5: return "a.time_ns";
    case 6: return "a.damaged";
    default: return nullptr;
  }
}

constexpr const char* kOne =
    R"(SELECT a.kind, a.name, a.format, coalesce(a.text, g.text, '') AS text, a.detail, a.damaged, c.frame, a.compile_id,
  coalesce(a.graph_id, 0) AS graph_id, a.file, a.line FROM artifacts a LEFT JOIN compiles c ON c.compile_id = a.compile_id
  LEFT JOIN graphs g ON g.graph_id = a.graph_id WHERE a.artifact_id = ?)";

/// What compiled a record, as PyTorch's logs name it; empty where the record does not say.
std::string compileId(std::string_view detail) {
  if (detail.find("frame_id") == std::string_view::npos && detail.find("compiled_autograd_id") == std::string_view::npos) return {};
  const auto fields = parseBounded(std::string(detail));
  if (!fields.is_object()) return {};
  const auto number = [&](const char* key) -> std::optional<int64_t> {
    const auto found = fields.find(key);
    return found != fields.end() && found->is_number_integer() ? std::optional(found->get<int64_t>()) : std::nullopt;
  };
  return session::logId(number("compiled_autograd_id"), number("frame_id"), number("frame_compile_id"), number("attempt").value_or(0));
}

std::string compileName(const Statement& s) {
  if (s.isNull("compile_id")) return "–";
  const std::string id = compileId(s.text("detail"));
  return id.empty() ? fmt::format("{} #{}", s.text("frame"), s.text("compile_id")) : fmt::format("{} {}", id, s.text("frame"));
}

/// One line of JSON is unreadable; what is no JSON stays as it is.
std::string indented(std::string text) {
  if (text.size() > kLongestText) return text;
  const auto parsed = parseBounded(text);
  return parsed.is_discarded() ? text : parsed.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

bool ArtifactRequest::isKnownOrder(int column) { return orderOf(column) != nullptr; }

Result<ArtifactList> listArtifacts(const session::Reader& reader, const ArtifactRequest& request, int64_t most) {
  ArtifactList list;
  TableRows& rows = list.rows;
  auto counted = reader.each("SELECT count(*) AS count FROM t_artifact", {}, [&](const Statement& s) { list.all = s.integer("count"); });
  if (!counted) return tl::unexpected(counted.error());
  const bool isPart = list.all > most;
  std::vector<session::Cell> parameters;
  std::string sql = kChosen;
  if (isPart) sql += query::filterCondition(request.filter, "(coalesce(f.name, '') || ' ' || a.kind || ' ' || coalesce(a.name, ''))", parameters);
  sql += " ORDER BY ";
  if (const char* order = isPart ? orderOf(request.column) : nullptr) sql += order + std::string(request.ascending ? "" : " DESC") + ", a.id";
  else sql += "a.compile_id IS NULL, a.compile_id, a.kind = 'chromium_event', a.id";
  sql += " LIMIT " + std::to_string(isPart ? std::min(most, kArtifactsOfMore) : most);
  std::string ids = "[";
  counted = reader.each(sql, parameters, [&](const Statement& s) { ids += (ids.size() > 1 ? "," : "") + std::to_string(s.integer("id")); });
  if (!counted) return tl::unexpected(counted.error());
  const int64_t start = reader.infoInteger("start_ns");
  const auto read = reader.each(kList, {ids + "]"}, [&](const Statement& s) {
    TableRow row;
    row.location = {ObjectKind::Artifact, s.integer("artifact_id"), {}, s.string("file"), static_cast<int>(s.integer("line"))};
    row.cells = {countCell(s.integer("artifact_id")),
                 textCell(compileName(s)),
                 textCell(s.string("kind")),
                 textCell(s.string("name")),
                 bytesCell(static_cast<double>(s.integer("bytes"))),
                 s.isNull("time_ns") ? textCell("") : durationCell(static_cast<double>(s.integer("time_ns") - start)),
                 textCell(s.string("damaged"))};
    row.tooltip =
        s.string("kind") + (s.text("name").empty() ? "" : " " + s.string("name")) + (s.isNull("damaged") ? "" : "\n\n" + s.string("damaged"));
    if (!s.isNull("damaged")) row.tone = 3;
    rows.push_back(std::move(row));
  });
  if (!read) return tl::unexpected(read.error());
  return list;
}

Result<ArtifactText> loadArtifact(const session::Reader& reader, int64_t id) {
  ArtifactText out;
  out.id = id;
  const auto read = reader.each(kOne, {id}, [&](const Statement& s) {
    out.kind = s.string("kind");
    out.name = s.string("name");
    out.format = s.string("format");
    out.text = s.string("text");
    out.detail = indented(s.string("detail"));
    out.damaged = s.string("damaged");
    out.compile = compileName(s);
    out.graph = s.integer("graph_id");
    out.file = s.string("file");
    out.line = s.integer("line");
  });
  if (!read) return tl::unexpected(read.error());
  if (out.format == "json") out.text = indented(std::move(out.text));
  if (out.text.size() > kLongestText) {
    out.text.resize(kLongestText);
    out.cut = true;
  }
  return out;
}

}  // namespace fusebox::views
