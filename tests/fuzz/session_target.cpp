#include "profiler/query/breaks.h"
#include "profiler/query/coverage.h"
#include "profiler/query/gpu_gaps.h"
#include "profiler/query/graphs.h"
#include "profiler/query/memory.h"
#include "profiler/query/recompiles.h"
#include "profiler/query/saved_graphs.h"
#include "profiler/query/search.h"
#include "profiler/query/slowness.h"
#include "profiler/query/source.h"
#include "profiler/query/summary.h"
#include "profiler/compare/comparison.h"
#include "profiler/session/reader.h"
#include "tests/fuzz/targets.h"
#include "tests/profiler/synthetic_session.h"
#include "tests/views/model_session.h"
#include "views/artifacts/artifacts_model.h"
#include "views/fusion/fusion_model.h"
#include "views/graph/graph_model.h"
#include "views/guards/guards_model.h"
#include "views/kernels/kernels_model.h"
#include "views/layout/compound_layout.h"
#include "views/overview/overview_model.h"
#include "views/source/source_model.h"
#include "views/timeline/timeline_model.h"

namespace fusebox::fuzz {
namespace fs = std::filesystem;
namespace {

using session::Reader;

constexpr size_t kMostOfEach = 4;  // graphs, kernels, files that are opened one by one
constexpr int kColumns = 900;

/// What a damaged session is answered with: rows, or an error in words. The first answer that is neither.
class Answers {
 public:
  template <class T>
  const Result<T>& take(const char* question, const Result<T>& answer) {
    if (!answer && trouble.empty() && (answer.error().code == ErrorCode::Internal || answer.error().message.empty()))
      trouble = std::string("no proper error of ") + question + ": " + answer.error().text();
    return answer;
  }
  std::string trouble;
};
#define TAKE(answer) answers.take(#answer, answer)

std::vector<fs::path> subjects(const fs::path&, const fs::path& scratch) {
  std::vector<fs::path> all;
  const fs::path synthetic = scratch / "synthetic.fusebox", model = scratch / "model.fusebox";
  if (test::writeSyntheticSession(synthetic.string(), {.launches = 400})) all.push_back(synthetic);
  if (test::writeModelSession(model.string(), 4)) all.push_back(model);
  for (const auto& entry : fs::directory_iterator(GPU_SESSIONS)) {
    if (entry.path().extension() == ".fusebox") all.push_back(entry.path());
  }
  all.push_back(EXAMPLE_SESSION);
  return all;
}

void readGraphs(const Reader& reader, Answers& answers) {
  const auto graphs = query::graphs(reader);
  (void)TAKE(views::loadGraphChoices(reader));
  for (size_t i = 0; graphs && i < std::min(graphs->size(), kMostOfEach); ++i) {
    const int64_t id = (*graphs)[i].id;
    auto data = query::loadGraph(reader, id);
    if (!data) continue;
    if (!data->nodes.empty()) (void)TAKE(views::loadRelations(reader, data->nodes.front().id));
    const auto options = views::defaultOptions(*data);
    const auto picture = views::makePicture(std::move(*data), options);
    (void)views::layoutCompound(picture->tree, views::defaultExpansion(picture->tree), picture->layout);
    (void)TAKE(query::lifetimesOf(reader, id));
    (void)TAKE(views::loadFusion(reader, id));
    (void)TAKE(query::savedGraph(reader, id));
  }
  (void)TAKE(views::loadFusionChoices(reader));
  (void)TAKE(query::memoryOf(reader));
}

void readTimes(const Reader& reader, Answers& answers) {
  const auto outline = views::loadTimelineOutline(reader);
  if (outline) {
    const auto keys = outline->laneKeys();
    const auto [from, to] = std::pair(outline->range.startNs, outline->range.endNs);
    for (const int64_t share : {1, 50, 100'000}) (void)views::loadTimelineBars(reader, keys, from, from + (to - from) / share + 1, kColumns);
    (void)views::loadTimelineArrows(reader, keys, 1, 0);
    (void)views::loadTimelineArrows(reader, keys, 0, 1);
  }
  (void)TAKE(query::whySlow(reader));
  (void)TAKE(query::gpuIdle(reader, 50));
  if (const auto lanes = query::lanes(reader); lanes && !lanes->empty()) (void)query::gpuGapAt(reader, lanes->back().thread, 1'000'000);
  (void)TAKE(views::loadKernels(reader));
  (void)TAKE(views::loadRoofline(reader));
  (void)TAKE(views::loadRoofs(reader));
  for (int64_t kernel = 1; kernel <= static_cast<int64_t>(kMostOfEach); ++kernel) (void)TAKE(views::loadKernel(reader, kernel));
}

void readCapture(const Reader& reader, Answers& answers) {
  if (const auto chains = query::recompileChains(reader, true)) {
    (void)query::toText(reader, *chains);
    (void)query::toJson(reader, *chains);
  }
  const auto breaks = query::breakSummaries(reader);
  const auto coverage = query::coverageOf(reader);
  if (breaks && coverage) {
    (void)query::toText(reader, *breaks, coverage->uncompiled);
    (void)query::toJson(reader, *breaks, coverage->uncompiled);
  }
  (void)TAKE(query::compareGuards(reader, 1, 2));
  (void)TAKE(views::loadGuardedFrames(reader));
  for (int64_t id = 1; id <= static_cast<int64_t>(kMostOfEach); ++id) {
    (void)TAKE(views::loadGuards(reader, id));
    (void)TAKE(views::loadFailures(reader, id));
    (void)TAKE(views::loadArtifact(reader, id));
  }
  (void)TAKE(views::listArtifacts(reader, {}));
  const auto files = query::sourceFiles(reader);
  for (size_t i = 0; files && i < std::min(files->size(), kMostOfEach); ++i) {
    (void)views::loadSource(reader, (*files)[i].path);
    (void)query::lineNotes(reader, (*files)[i].path);
  }
  for (const auto& subject : query::searchSubjects()) {
    (void)query::searchIn(reader, subject.kind, "a", 50);
    (void)query::searchIn(reader, subject.kind, "rl", 50, query::SearchMatch::Letters);
  }
}

std::string read(const fs::path& file, const fs::path&, Outcome& outcome) {
  auto opened = Reader::open(file.string());
  outcome = opened ? Outcome::Read : Outcome::Refused;
  if (!opened) return opened.error().code == ErrorCode::Internal || opened.error().message.empty() ? "no proper error: " + opened.error().text() : "";
  const Reader& reader = **opened;
  Answers answers;
  (void)TAKE(query::summarize(reader));
  (void)TAKE(views::loadOverview(reader));
  readGraphs(reader, answers);
  readTimes(reader, answers);
  readCapture(reader, answers);
  if (const auto sound = Reader::open(EXAMPLE_SESSION)) (void)TAKE(compare::compareSessions(**sound, reader));
  return answers.trouble;
}

}  // namespace

const Target kSessions{"sessions", subjects, read};

}  // namespace fusebox::fuzz
