#include "profiler/query/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <iterator>

#include "engine/support/text.h"
#include "profiler/query/function_names.h"
#include "profiler/query/source_patch.h"

namespace fusebox::query {
namespace {

using session::Reader;
using session::Statement;

constexpr SearchSubject kSubjects[] = {
    {SearchKind::Files, "files"},       {SearchKind::Frames, "functions"},    {SearchKind::Breaks, "breaks"},
    {SearchKind::Failures, "failures"}, {SearchKind::Guards, "guards"},       {SearchKind::Kernels, "kernels"},
    {SearchKind::Operators, "operators"},
    {SearchKind::Groups, "groups"},     {SearchKind::Nodes, "nodes"},         {SearchKind::Passes, "passes"},
    {SearchKind::Lines, "lines"},       {SearchKind::Artifacts, "artifacts"}, {SearchKind::Losses, "losses"}};

/// id, title, detail, file, line of the rows that ?1 matches, at most ?2.
struct SearchSql {
  SearchKind kind;
  const char* sql;
};
constexpr SearchSql kSql[] = {
    {SearchKind::Files,
     "SELECT file_id AS id, file AS title, NULL AS detail, file, 1 AS line FROM source_files WHERE file LIKE ?1 ESCAPE '\\' ORDER BY file_id LIMIT ?2"},
    {SearchKind::Frames,
     "SELECT frame_id AS id, coalesce(qualname, name) AS title, status AS detail, file, line FROM frames WHERE coalesce(qualname, name) LIKE ?1 "
     "ESCAPE '\\' "
     "OR file LIKE ?1 ESCAPE '\\' ORDER BY frame_id LIMIT ?2"},
    {SearchKind::Failures,
     "SELECT failure_id AS id, guard AS title, expected || ' → ' || coalesce(found, '') AS detail, file, line FROM guard_failures f WHERE "
     "(guard LIKE ?1 ESCAPE '\\' "
     "OR expected LIKE ?1 ESCAPE '\\' OR found LIKE ?1 ESCAPE '\\') AND (outcome = 'limit' OR EXISTS(SELECT 1 FROM "
     "compiles c "
     "WHERE c.failure_id = f.failure_id)) ORDER BY failure_id LIMIT ?2"},
    {SearchKind::Guards,
     "SELECT guard_id AS id, kind || ' ' || coalesce(source, '') AS title, expected AS detail, file, line FROM guards WHERE source LIKE ?1 "
     "ESCAPE '\\' "
     "OR kind LIKE ?1 ESCAPE '\\' OR expected LIKE ?1 ESCAPE '\\' ORDER BY guard_id LIMIT ?2"},
    {SearchKind::Kernels,
     "SELECT kernel_id AS id, name AS title, kind || coalesce(' ' || op, '') AS detail, file, line FROM kernels WHERE name LIKE ?1 ESCAPE '\\' "
     "OR op LIKE ?1 ESCAPE '\\' ORDER BY kernel_id LIMIT ?2"},
    {SearchKind::Operators,
     "SELECT min(id) AS id, name AS title, kind || ', ' || count(*) || ' ×' AS detail, file, line FROM t_cpu_event WHERE name LIKE ?1 ESCAPE '\\' "
     "GROUP BY name, kind, file, line ORDER BY 1 LIMIT ?2"},
    {SearchKind::Groups,
     "SELECT group_id AS id, name AS title, kind || coalesce(': ' || reason, '') AS detail, file, line FROM fusion_groups WHERE name LIKE ?1 "
     "ESCAPE '\\' "
     "OR reason LIKE ?1 ESCAPE '\\' ORDER BY group_id LIMIT ?2"},
    {SearchKind::Nodes,
     "SELECT n.node_id AS id, n.name AS title, coalesce(n.op, n.kind) || coalesce('  ' || n.shape, '') || '  ' || coalesce(g.stage, "
     "'') AS detail, n.file, n.line FROM nodes n "
     "LEFT JOIN graphs g ON g.graph_id = n.graph_id WHERE n.name LIKE ?1 ESCAPE '\\' OR n.op LIKE ?1 ESCAPE '\\' "
     "OR n.module_path LIKE ?1 ESCAPE '\\' ORDER BY n.node_id LIMIT ?2"},
    {SearchKind::Passes,
     "SELECT compile_id AS id, name AS title, phase AS detail, file, line FROM stages WHERE name LIKE ?1 ESCAPE '\\' "
     "OR error LIKE ?1 ESCAPE '\\' ORDER BY stage_id LIMIT ?2"},
    {SearchKind::Artifacts,
     "SELECT artifact_id AS id, kind || coalesce(' ' || name, '') AS title, coalesce(damaged, format) AS detail, file, line, damaged IS NOT "
     "NULL AS is_damaged FROM artifacts WHERE kind LIKE ?1 ESCAPE '\\' OR name LIKE ?1 ESCAPE '\\' OR text LIKE ?1 ESCAPE '\\' ORDER BY "
     "artifact_id LIMIT ?2"},
    {SearchKind::Losses,
     "SELECT 0 AS id, what AS title, detail, NULL AS file, NULL AS line FROM losses WHERE what LIKE ?1 ESCAPE '\\' OR detail LIKE ?1 ESCAPE '\\' "
     "LIMIT ?2"},
};

/// The detail, in a phrase where it would not be understood alone.
std::string detailOf(SearchKind kind, const Statement& s) {
  std::string detail = s.string("detail");
  if (kind == SearchKind::Passes) {
    const bool known = !s.isNull("id") && !s.isNull("detail");
    return known ? say(FUSEBOX_TEXT("Find", "{} of compile {}"), detail, s.integer("id")) : std::string();
  }
  if (kind == SearchKind::Artifacts && s.integer("is_damaged") != 0) return say(FUSEBOX_TEXT("Find", "damaged: {}"), detail);
  return detail;
}

std::string patternOf(const std::string& text, SearchMatch match) {
  std::string out = "%";
  for (const char c : text) {
    if (c == '%' || c == '_' || c == '\\') out += '\\';
    out += c;
    // Bytes of one letter stay together.
    if (match == SearchMatch::Letters && (static_cast<unsigned char>(c) & 0x80) == 0) out += '%';
  }
  return out.ends_with('%') && match == SearchMatch::Letters && !text.empty() ? out : out + '%';
}

bool containsText(std::string_view line, std::string_view text) {
  const auto same = [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b));
  };
  return std::search(line.begin(), line.end(), text.begin(), text.end(), same) != line.end();
}

/// Its letters in this order, as in a palette.
bool containsLetters(std::string_view line, std::string_view text) {
  for (const char c : text) {
    const size_t at = static_cast<size_t>(std::find_if(line.begin(), line.end(), [&](char other) { return containsText({&other, 1}, {&c, 1}); }) - line.begin());
    if (at == line.size()) return false;
    line.remove_prefix(at + 1);
  }
  return true;
}

/// In the words that are shown, and in those that were recorded.
Result<void> searchBreaks(const Reader& reader, const std::string& text, int limit, SearchMatch match, SearchGroup& out) {
  const auto holds = match == SearchMatch::Letters ? containsLetters : containsText;
  return reader.each("SELECT min(id) AS id, kind, reason, hint, file, line FROM t_graph_break GROUP BY kind, reason, file, line ORDER BY 1", {}, [&](const Statement& s) {
    const std::string reason = breakReason(s.text("reason"));
    const std::string_view texts[] = {s.text("kind"), reason, s.text("reason"), s.text("hint")};
    if (out.more || std::none_of(std::begin(texts), std::end(texts), [&](std::string_view each) { return holds(each, text); })) return;
    if (static_cast<int>(out.hits.size()) == limit) {
      out.more = true;
      return;
    }
    out.hits.push_back({s.integer("id"), s.string("kind"), reason, s.string("file"), s.integer("line")});
  });
}

Result<void> searchLines(const Reader& reader, const std::string& text, int limit, SearchGroup& out) {
  return reader.each("SELECT file, text FROM source_files WHERE text IS NOT NULL ORDER BY file_id", {},
                     [&](const Statement& s) {
                       if (out.more) return;
                       const std::string file = s.string("file");
                       int64_t number = 0;
                       for (const auto line : splitLines(s.text("text"))) {
                         ++number;
                         if (!containsText(line, text)) continue;
                         if (static_cast<int>(out.hits.size()) == limit) {
                           out.more = true;
                           return;
                         }
                         const size_t start = std::min(line.find_first_not_of(" \t"), line.size());
                         out.hits.push_back({0, std::string(line.substr(start, 300)), {}, file, number});
                       }
                     });
}

}  // namespace

std::span<const SearchSubject> searchSubjects() { return kSubjects; }

Result<SearchGroup> searchIn(const Reader& reader, SearchKind kind, const std::string& text, int limit,
                             SearchMatch match) {
  SearchGroup out;
  out.kind = kind;
  if (text.empty() && match == SearchMatch::Substring) return out;
  if (kind == SearchKind::Lines) {
    if (auto read = searchLines(reader, text, limit, out); !read) return tl::unexpected(read.error());
    return out;
  }
  if (kind == SearchKind::Breaks) {
    if (auto read = searchBreaks(reader, text, limit, match, out); !read) return tl::unexpected(read.error());
    return out;
  }
  for (const SearchSql& search : kSql) {
    if (search.kind != kind) continue;
    auto read = reader.each(search.sql, {patternOf(text, match), int64_t{limit} + 1}, [&](const Statement& s) {
      if (static_cast<int>(out.hits.size()) == limit) {
        out.more = true;
        return;
      }
      out.hits.push_back({s.integer("id"), s.string("title"), detailOf(kind, s), s.string("file"), s.integer("line")});
    });
    if (!read) return tl::unexpected(read.error());
  }
  return out;
}

nlohmann::json toJson(const std::vector<SearchGroup>& groups) {
  nlohmann::json out = nlohmann::json::object();
  for (const SearchGroup& group : groups) {
    nlohmann::json hits = nlohmann::json::array();
    for (const SearchHit& h : group.hits)
      hits.push_back({{"id", h.id}, {"title", h.title}, {"detail", h.detail}, {"file", h.file}, {"line", h.line}});
    out[kSubjects[static_cast<size_t>(group.kind)].name] = {{"hits", hits}, {"more", group.more}};
  }
  return out;
}

std::string toText(const std::vector<SearchGroup>& groups) {
  std::string out;
  for (const SearchGroup& group : groups) {
    if (group.hits.empty()) continue;
    out += fmt::format("{}{}\n", kSubjects[static_cast<size_t>(group.kind)].name,
                       group.more ? " (more than are shown)" : "");
    for (const SearchHit& h : group.hits) {
      out += fmt::format("  {}{}{}\n", h.title, h.detail.empty() ? "" : "  " + h.detail,
                         h.file.empty() ? "" : fmt::format("  {}:{}", h.file, h.line));
    }
  }
  return out.empty() ? "Nothing found.\n" : out;
}

}  // namespace fusebox::query
