#include "views/cuda_graphs/cuda_graphs_model.h"

#include "engine/support/text.h"
#include "views/common/units.h"

namespace fusebox::views {
namespace {

const Cell kNone{"", 0};

Cell countOrNone(int64_t value) { return value >= 0 ? countCell(value) : kNone; }
Cell bytesOrNone(int64_t value) { return value > 0 ? bytesCell(static_cast<double>(value)) : kNone; }
Cell meanOrNone(int64_t total, int64_t count) {
  return count > 0 && total > 0 ? durationCell(static_cast<double>(total) / static_cast<double>(count)) : kNone;
}
Cell durationOrNone(int64_t ns) { return ns >= 0 ? durationCell(static_cast<double>(ns)) : kNone; }

}  // namespace

std::string cudaGraphEventName(const query::CudaGraphEvent& e) {
  if (e.isRecording()) return say(FUSEBOX_TEXT("CUDA graphs", "recording {}"), e.number);
  if (e.event == "warm_up") return say(FUSEBOX_TEXT("CUDA graphs", "ran plainly first"));
  if (e.event == "moved") return say(FUSEBOX_TEXT("CUDA graphs", "results moved (recording {})"), e.number);
  if (e.event == "busy") return say(FUSEBOX_TEXT("CUDA graphs", "ran plainly, another thread replayed"));
  if (e.event == "refused") return say(FUSEBOX_TEXT("CUDA graphs", "refused"));
  if (e.event == "stopped") return say(FUSEBOX_TEXT("CUDA graphs", "stopped"));
  return e.event;
}

TableRows cudaGraphRows(const std::vector<query::CudaGraphEvent>& events) {
  TableRows rows;
  for (const auto& e : events) {
    TableRow row;
    const int line = static_cast<int>(e.line);
    if (e.isRecording() && e.kernel > 0) row.location = {ObjectKind::Kernel, e.kernel, {}, e.file, line};
    else if (!e.file.empty()) row.location = Location::sourceLine(e.file, line);
    row.cells = {textCell(e.direction == "backward" ? say(FUSEBOX_TEXT("CUDA graphs", "{} (backward)"), e.function) : e.function),
                 textCell(cudaGraphEventName(e)),
                 textCell(e.reason),
                 e.isRecording() ? countCell(e.replays) : kNone,
                 meanOrNone(e.deviceNs, e.timedReplays),
                 meanOrNone(e.hostNs, e.replays),
                 countOrNone(e.nodes),
                 countOrNone(e.pieces),
                 countOrNone(e.plainSteps),
                 countOrNone(e.staticInputs),
                 countOrNone(e.copiedInputs),
                 bytesOrNone(e.copiedBytes),
                 bytesOrNone(e.keptBytes),
                 bytesOrNone(e.poolBytes),
                 e.isRecording() ? durationCell(static_cast<double>(e.durNs)) : kNone,
                 textCell(shortPlace(e.file, e.line))};
    row.tooltip = e.plainReason.empty() ? e.reason : e.reason + (e.reason.empty() ? "" : "\n") + say(FUSEBOX_TEXT("CUDA graphs", "runs plainly: {}"), e.plainReason);
    row.tone = e.event == "refused" || e.event == "stopped" ? 2 : e.isRecording() ? 0 : 4;
    rows.push_back(std::move(row));
  }
  return rows;
}

TableRows cudaGraphNodeRows(const query::CudaGraphEvent& recording, const std::vector<query::CudaGraphNode>& nodes) {
  TableRows rows;
  int64_t all = 0;
  for (const auto& n : nodes) all += n.deviceNs;
  for (const auto& n : nodes) {
    TableRow row;
    row.location = {ObjectKind::Kernel, n.kernel, {}, n.file, static_cast<int>(n.line)};
    const std::string last = n.count > 1 ? "–" + std::to_string(n.first + n.count - 1) : "";
    row.cells = {{std::to_string(n.piece), static_cast<double>(n.piece)},
                 {std::to_string(n.first) + last, static_cast<double>(n.piece) * 1e9 + static_cast<double>(n.first)},
                 textCell(n.name.empty() ? n.op : n.name),
                 textCell(n.kind),
                 meanOrNone(n.deviceNs, recording.timedReplays),
                 n.deviceNs > 0 ? shareCell(static_cast<double>(n.deviceNs), static_cast<double>(all)) : kNone,
                 textCell(n.function),
                 textCell(shortPlace(n.file, n.line))};
    if (recording.timedReplays > 0 && n.events == 0) row.tooltip = say(FUSEBOX_TEXT("CUDA graphs", "no event of a device was tied to this node"));
    rows.push_back(std::move(row));
  }
  return rows;
}

TableRows cudaGraphReplayRows(const std::vector<query::CudaGraphReplay>& replays) {
  TableRows rows;
  const int64_t first = replays.empty() ? 0 : replays.front().startNs;
  int64_t number = 0;
  for (const auto& r : replays) {
    TableRow row;
    row.location = Location::of(ObjectKind::Launch, r.launch);
    row.cells = {countCell(++number),
                 durationCell(static_cast<double>(r.startNs - first)),
                 durationOrNone(r.hostNs),
                 durationOrNone(r.deviceStartNs >= 0 ? r.deviceStartNs - r.startNs : -1),
                 durationOrNone(r.spanNs),
                 durationOrNone(r.deviceNs),
                 r.spanNs > 0 ? shareCell(static_cast<double>(r.deviceNs), static_cast<double>(r.spanNs)) : kNone};
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace fusebox::views
