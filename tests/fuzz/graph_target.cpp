#include "engine/graph/serialize.h"
#include "tests/fuzz/mutation.h"
#include "tests/fuzz/targets.h"

namespace fusebox::fuzz {
namespace fs = std::filesystem;
namespace {

std::vector<fs::path> subjects(const fs::path&, const fs::path&) {
  std::vector<fs::path> all;
  for (const auto& entry : fs::directory_iterator(SAVED_GRAPHS)) all.push_back(entry.path());
  return all;
}

std::string read(const fs::path& file, const fs::path&, Outcome& outcome) {
  auto graph = graph::readSavedGraph(readFile(file));
  outcome = graph ? Outcome::Read : Outcome::Refused;
  if (!graph) return graph.error().code == ErrorCode::Internal || graph.error().message.empty() ? "no proper error: " + graph.error().text() : "";
  // What is taken is a graph that can be kept again.
  const std::string text = graph::writeSavedGraph(graph->graph, graph->constants, graph->hints);
  auto again = graph::readSavedGraph(text);
  if (!again) return "what was read cannot be read again: " + again.error().text();
  return graph::writeSavedGraph(again->graph, again->constants, again->hints) == text ? "" : "what was read again is another graph";
}

}  // namespace

const Target kSavedGraphs{"graphs", subjects, read};

}  // namespace fusebox::fuzz
