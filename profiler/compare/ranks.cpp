#include "profiler/compare/ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "profiler/compare/report.h"

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

int64_t breaksOf(const query::Summary& summary) {
  int64_t count = 0;
  for (const auto& each : summary.graphBreaks) count += each.count;
  return count;
}

}  // namespace

Result<RankReport> compareRanks(const std::vector<std::string>& files) {
  RankReport report;
  std::vector<std::unique_ptr<session::Reader>> readers;
  for (const std::string& file : files) {
    auto reader = session::Reader::open(file);
    if (!reader) return tl::unexpected(reader.error());
    auto summary = query::summarize(**reader);
    if (!summary) return tl::unexpected(summary.error());
    for (const auto& loss : summary->losses)
      if (loss.what == "ranks differ" && std::find(report.told.begin(), report.told.end(), loss.detail) == report.told.end())
        report.told.push_back(loss.detail);
    const std::string rank = (*reader)->info("rank");
    report.ranks.push_back({rank.empty() ? std::to_string(readers.size()) : rank, file, std::move(*summary)});
    readers.push_back(std::move(*reader));
  }
  for (size_t i = 1; i < readers.size(); ++i) {
    auto comparison = compareSessions(*readers[0], *readers[i]);
    if (!comparison) return tl::unexpected(comparison.error());
    for (std::string& text : differencesOf(*comparison)) report.differences.push_back({report.ranks[i].rank, std::move(text)});
  }
  return report;
}

std::string toText(const RankReport& report) {
  std::string out = fmt::format("{:>5}  {:>8}  {:>6}  {:>6}  {:>10}  {:>7}  {:>10}  {:>10}  {}\n", "rank", "compiles", "graphs", "breaks", "recompiles", "kernels",
                                "compile ms", "run ms", "session");
  for (const auto& [rank, file, s] : report.ranks)
    out += fmt::format("{:>5}  {:>8}  {:>6}  {:>6}  {:>10}  {:>7}  {:>10.1f}  {:>10.1f}  {}\n", rank, s.compiles, s.graphs, breaksOf(s), s.compiledAgain, s.kernels,
                       s.totalCompileMs, s.runMs, file);
  if (!report.told.empty()) out += "What ranks found while they ran\n";
  for (const std::string& text : report.told) out += "  " + text + "\n";
  if (!report.differences.empty()) out += fmt::format("Other than on rank {}\n", report.ranks.front().rank);
  for (const auto& [rank, text] : report.differences) out += fmt::format("  rank {}: {}\n", rank, text);
  if (report.told.empty() && report.differences.empty()) out += "All ranks compiled the same.\n";
  return out;
}

nlohmann::json toJson(const RankReport& report) {
  auto ranks = nlohmann::json::array(), differences = nlohmann::json::array();
  for (const auto& [rank, file, summary] : report.ranks) ranks.push_back({{"rank", rank}, {"file", file}, {"summary", query::toJson(summary)}});
  for (const auto& [rank, text] : report.differences) differences.push_back({{"rank", rank}, {"text", text}});
  return {{"ranks", std::move(ranks)}, {"told", report.told}, {"differences", std::move(differences)}};
}

}  // namespace fusebox::compare
