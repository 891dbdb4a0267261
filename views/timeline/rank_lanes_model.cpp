#include "views/timeline/rank_lanes_model.h"

#include <algorithm>
#include <filesystem>

#include "engine/support/text.h"
#include "profiler/compare/ranks.h"
#include "profiler/session/rank_files.h"

namespace fusebox::views {
namespace {

constexpr uintmax_t kComparedBytes = uintmax_t{256} << 20;

/// What times of `other` are moved by to be on the clock of `own`. Sessions of one machine have the same.
int64_t shiftBetween(const session::Reader& own, const session::Reader& other) {
  if (own.info("hostname") == other.info("hostname")) return 0;
  const auto epoch = [](const session::Reader& r) { return r.infoInteger("start_unix_ns") - r.infoInteger("start_ns"); };
  return epoch(other) - epoch(own);
}

void nameGroups(std::vector<TimelineLane>& lanes, size_t from, const std::string& rank) {
  const std::string group = say(FUSEBOX_TEXT("Timeline", "rank {}"), rank);
  const bool hasGroups = from < lanes.size() && lanes[from].group != lanes.back().group;
  for (size_t i = from; i < lanes.size(); ++i) lanes[i].group = hasGroups ? group + " · " + lanes[i].group : group;
}

void addLanes(TimelineOutline& outline, TimelineOutline&& of, std::shared_ptr<const TimelineRank> rank) {
  const size_t first = outline.lanes.size();
  for (TimelineLane& lane : of.lanes) {
    for (NamedSpan& span : lane.spans) span.startNs += rank->shiftNs, span.endNs += rank->shiftNs, span.compile = 0;
    for (SpanRow& row : lane.rows)
      for (int64_t& end : row.latestEnds) end += rank->shiftNs;
    lane.rank = rank;
    outline.lanes.push_back(std::move(lane));
  }
  nameGroups(outline.lanes, first, rank->name);
  for (auto& [owner, name] : of.names) outline.names[rank->ownerOf(owner)] = std::move(name);
  outline.range.startNs = std::min(outline.range.startNs, of.range.startNs + rank->shiftNs);
  outline.range.endNs = std::max(outline.range.endNs, of.range.endNs + rank->shiftNs);
}

}  // namespace

void addRankLanes(const session::Reader& reader, TimelineOutline& outline) {
  int index = 0;
  for (const session::RankFile& file : session::otherRanks(reader)) {
    auto opened = session::Reader::open(file.path);
    if (!opened) continue;
    auto of = loadTimelineOutline(**opened);
    if (!of || of->lanes.empty()) continue;
    if (index++ == 0) nameGroups(outline.lanes, 0, reader.info("rank"));
    TimelineRank rank{file.rank, file.path, std::move(*opened), index, 0};
    rank.shiftNs = shiftBetween(reader, *rank.reader);
    addLanes(outline, std::move(*of), std::make_shared<const TimelineRank>(std::move(rank)));
  }
}

std::vector<std::string> differencesOfRanks(const session::Reader& reader) {
  std::vector<std::string> files{reader.path()}, texts;
  for (const session::RankFile& file : session::otherRanks(reader)) files.push_back(file.path);
  uintmax_t bytes = 0;
  std::error_code error;
  for (const std::string& file : files) bytes += std::filesystem::file_size(file, error);
  if (files.size() < 2 || bytes > kComparedBytes) return {};
  const auto report = compare::compareRanks(files);
  if (!report) return {};
  texts = report->told;
  for (const auto& [rank, text] : report->differences) texts.push_back(say(FUSEBOX_TEXT("Timeline", "rank {}: {}"), rank, text));
  return texts;
}

}  // namespace fusebox::views
