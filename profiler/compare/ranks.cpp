#include "profiler/compare/ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "profiler/compare/report.h"
#include "profiler/importers/open.h"

namespace fusebox::compare {
namespace {

constexpr size_t kListed = 8;  // of a rank

/// What ranks of one program have in common; their kernels, memory and times follow from it.
bool isOfProgram(Subject subject) {
  constexpr Subject kOfProgram[] = {Subject::Option, Subject::Program, Subject::Engine, Subject::CodeObject, Subject::Break,
                                    Subject::Recompile, Subject::Graph, Subject::Symbol, Subject::Failure};
  return std::find(std::begin(kOfProgram), std::end(kOfProgram), subject) != std::end(kOfProgram);
}

std::vector<std::string> differencesOf(const Comparison& comparison) {
  std::vector<std::string> texts;
  size_t more = 0;
  for (const int32_t i : comparison.differences()) {
    const Entry& entry = comparison.entries[static_cast<size_t>(i)];
    if (!entry.structural || !isOfProgram(entry.subject)) continue;
    if (texts.size() < kListed) texts.push_back(entryLine(entry));
    else ++more;
  }
  if (more) texts.push_back(fmt::format("… and {} more: fusebox compare", more));
  return texts;
}

}  // namespace

Result<RankReport> compareRanks(const std::vector<std::string>& files) {
  RankReport report;
  std::vector<std::unique_ptr<session::Reader>> readers;
  for (const std::string& file : files) {
    auto reader = importing::openAny(file);
    if (!reader) return tl::unexpected(reader.error());
    auto summary = query::summarize(**reader);
    if (!summary) return tl::unexpected(summary.error());
    for (const auto& loss : summary->losses)
      if (loss.what == "ranks differ" && std::find(report.told.begin(), report.told.end(), loss.detail) == report.told.end())
        report.told.push_back(loss.detail);
    report.ranks.push_back({(*reader)->info("rank"), file, std::move(*summary)});
    readers.push_back(std::move(*reader));
  }
  for (size_t i = 1; i < readers.size(); ++i) {
    auto comparison = compareSessions(*readers[0], *readers[i]);
    if (!comparison) return tl::unexpected(comparison.error());
    for (std::string& text : differencesOf(*comparison)) report.differences.push_back({i, std::move(text)});
  }
  return report;
}

bool RankReport::areRanks() const {
  return std::none_of(ranks.begin(), ranks.end(), [](const Rank& each) { return each.rank.empty(); });
}

std::string RankReport::name(size_t position) const {
  return areRanks() ? "rank " + ranks[position].rank : fmt::format("session {}", position + 1);
}

std::string toText(const RankReport& report) {
  const bool areRanks = report.areRanks();
  std::string out = fmt::format("{:>5}  {:>8}  {:>6}  {:>6}  {:>10}  {:>7}  {:>10}  {:>10}  {}\n", areRanks ? "rank" : "", "compiles", "graphs", "breaks", "recompiles",
                                "kernels", "compile ms", "run ms", "session");
  for (size_t i = 0; i < report.ranks.size(); ++i) {
    const auto& [rank, file, s] = report.ranks[i];
    out += fmt::format("{:>5}  {:>8}  {:>6}  {:>6}  {:>10}  {:>7}  {:>10.1f}  {:>10.1f}  {}\n", areRanks ? rank : std::to_string(i + 1), s.compiles, s.graphs, s.graphBreaks.size(),
                       s.compiledAgain, s.kernels, s.totalCompileMs, s.runMs, file);
  }
  if (!report.told.empty()) out += "What ranks found while they ran\n";
  for (const std::string& text : report.told) out += "  " + text + "\n";
  if (!report.differences.empty()) out += fmt::format("Other than {} {}\n", areRanks ? "on" : "in", report.name(0));
  for (const auto& [position, text] : report.differences) out += fmt::format("  {}: {}\n", report.name(position), text);
  if (report.told.empty() && report.differences.empty()) out += fmt::format("All {} compiled the same.\n", areRanks ? "ranks" : "sessions");
  return out;
}

nlohmann::json toJson(const RankReport& report) {
  auto ranks = nlohmann::json::array(), differences = nlohmann::json::array();
  const auto number = [](const RankReport::Rank& each) { return each.rank.empty() ? nlohmann::json() : nlohmann::json(each.rank); };
  for (const auto& each : report.ranks) ranks.push_back({{"rank", number(each)}, {"file", each.file}, {"summary", query::toJson(each.summary)}});
  for (const auto& [position, text] : report.differences) {
    const auto& each = report.ranks[position];
    differences.push_back({{"rank", number(each)}, {"file", each.file}, {"text", text}});
  }
  return {{"ranks", std::move(ranks)}, {"told", report.told}, {"differences", std::move(differences)}};
}

}  // namespace fusebox::compare
