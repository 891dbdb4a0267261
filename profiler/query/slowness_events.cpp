#include "profiler/query/slowness_events.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "profiler/query/bounded.h"

namespace fusebox::query {
namespace {

using session::Reader;
using session::Statement;

void add(std::vector<TimeSpan>& out, const Step& step, int64_t start, int64_t end, TimeKind kind, int64_t id) {
  start = std::max(start, step.startNs);
  end = std::min(end, step.endNs);
  if (end > start) out.push_back({start, end, kind, id});
}

/// A row with start_ns and dur_ns.
void add(std::vector<TimeSpan>& out, const Step& step, const Statement& s, TimeKind kind, int64_t id) {
  const int64_t start = s.integer("start_ns");
  add(out, step, boundedTime(start), boundedEnd(start, s.integer("dur_ns")), kind, id);
}

int64_t eventPart(std::map<std::string, int64_t, std::less<>>& known, std::string_view name, int64_t event) {
  const auto at = known.find(name);
  return at != known.end() ? at->second : known.emplace(name, -std::max<int64_t>(event, 0)).first->second;
}

template <class T>
const T* lookUp(const std::vector<std::pair<int64_t, T>>& sorted, int64_t key) {
  const auto at = std::lower_bound(sorted.begin(), sorted.end(), key, [](const auto& x, int64_t k) { return x.first < k; });
  return at != sorted.end() && at->first == key ? &at->second : nullptr;
}

}  // namespace

Result<SpanReader> SpanReader::open(const Reader& reader) {
  SpanReader out(reader);
  auto done = reader.each(
      "SELECT id FROM t_kernel WHERE id IN (SELECT kernel_id FROM t_launch_stats UNION SELECT kernel_id FROM t_gpu_stats) AND (op IN ('aten::copy_', 'aten::_to_copy', 'aten::clone', 'aten::contiguous', 'aten::to', 'aten::copy') OR name LIKE 'Memcpy%' OR name LIKE 'Memset%') ORDER BY id", {},
      [&](const Statement& s) { out.copyKernels_.push_back(s.integer("id")); });
  if (done) {
    // A function that broke stays in pieces; the piece that a call ran is not recorded, so every pause after one of its calls counts.
    std::map<int64_t, int64_t> first;  // break, by frame
    done = reader.each("SELECT frame_id, id FROM t_graph_break ORDER BY id", {}, [&](const Statement& s) { first.try_emplace(s.integer("frame_id"), s.integer("id")); });
    if (done && !first.empty()) {
      done = reader.each("SELECT id, frame_id FROM t_compile WHERE kind <> 'backward' ORDER BY id", {}, [&](const Statement& s) {
        if (const auto broken = first.find(s.integer("frame_id")); broken != first.end()) out.brokenFrames_.emplace_back(s.integer("id"), broken->second);
      });
    }
  }
  if (done) {
    done = reader.each("SELECT compile_id, total_ns, calls FROM t_call_stats WHERE kind = 1 AND calls > 0 ORDER BY compile_id", {},
                       [&](const Statement& s) { out.guardChecks_.emplace_back(s.integer("compile_id"), s.real("total_ns") / s.real("calls")); });
  }
  if (done) {
    done = reader.each("SELECT id FROM t_kernel WHERE device <> '' AND device NOT LIKE 'cpu%' AND id IN (SELECT kernel_id FROM t_launch_stats) ORDER BY id", {},
                       [&](const Statement& s) { out.deviceKernels_.push_back(s.integer("id")); });
  }
  if (done) done = reader.each("SELECT EXISTS(SELECT 1 FROM t_gpu_event WHERE kind = 'kernel') AS is_there", {}, [&](const Statement& s) { out.deviceTimes_ = s.integer("is_there") != 0; });
  if (done) {
    done = reader.each("SELECT EXISTS(SELECT 1 FROM t_launch) OR EXISTS(SELECT 1 FROM t_gpu_event) AS is_there", {}, [&](const Statement& s) { out.knowsKernels_ = s.integer("is_there") != 0; });
  }
  if (done) done = reader.each("SELECT EXISTS(SELECT 1 FROM t_block WHERE track = 2) AS is_there", {}, [&](const Statement& s) { out.hasDeviceBlocks_ = s.integer("is_there") != 0; });
  if (!done) return tl::unexpected(done.error());
  auto compiles = compileSpans(reader);
  if (!compiles) return tl::unexpected(compiles.error());
  out.compiles_ = std::move(*compiles);
  return out;
}

Result<void> SpanReader::calls(const Step& step, WindowFacts& out) const {
  // Blocks (one thread each, in order of time) that reach into the window; an event that started before it is at most as long as the longest.
  struct Call {
    int64_t startNs, endNs, compile;
    bool backward;
  };
  std::vector<Call> calls;
  auto read = reader_->each(
      "SELECT l.start_ns, l.dur_ns, l.compile_id, c.kind = 'backward' AS is_backward FROM t_block b JOIN t_call l ON l.id BETWEEN b.first_id AND b.last_id "
      "LEFT JOIN t_compile c ON c.id = l.compile_id WHERE b.track = 1 AND b.end_ns > ?1 AND b.start_ns < ?2 AND l.start_ns < ?2 AND l.start_ns + l.dur_ns > ?1",
      {step.startNs, step.endNs}, [&](const Statement& s) { calls.push_back({boundedTime(s.integer("start_ns")), boundedEnd(s.integer("start_ns"), s.integer("dur_ns")), s.integer("compile_id"), s.integer("is_backward") != 0}); });
  if (!read) return read;
  std::sort(calls.begin(), calls.end(), [](const Call& a, const Call& b) { return a.startNs < b.startNs; });
  int64_t reached = 0;
  for (size_t i = 0; i < calls.size(); ++i) {
    const Call& c = calls[i];
    add(out.spans, step, c.startNs, c.endNs, TimeKind::LaunchGaps, c.compile);
    ++out.calls;
    if (const double* check = lookUp(guardChecks_, c.compile)) {
      out.guardNs += *check;
      out.guardsByCompile.emplace_back(c.compile, *check);
    }
    reached = std::max(reached, c.endNs);
    const int64_t* broken = lookUp(brokenFrames_, c.compile);
    if (broken && i + 1 < calls.size() && !calls[i + 1].backward && calls[i + 1].startNs > reached) add(out.spans, step, reached, calls[i + 1].startNs, TimeKind::Breaks, *broken);
  }
  return {};
}

Result<void> SpanReader::readEvents(const char* sql, const std::function<void(const Statement&, const Step&, WindowFacts&)>& row) {
  if (windows_.empty()) return {};
  return reader_->each(sql, {windows_.front().startNs, windows_.back().endNs}, [&](const Statement& s) {
    const int64_t start = boundedTime(s.integer("start_ns")), end = boundedEnd(s.integer("start_ns"), s.integer("dur_ns"));
    auto at = std::upper_bound(windows_.begin(), windows_.end(), start, [](int64_t ns, const Step& w) { return ns < w.endNs; });
    for (; at != windows_.end() && at->startNs < end; ++at) row(s, *at, events_[static_cast<size_t>(at - windows_.begin())]);
  });
}

Result<void> SpanReader::load(std::vector<Step> windows) {
  windows_ = std::move(windows);
  events_.assign(windows_.size(), {});
  const auto device = [&](const Statement& s, const Step& step, WindowFacts& out) {
    const int64_t kernel = s.integer("kernel_id"), id = kernel > 0 ? kernel : eventPart(deviceEvents_, s.text("name"), s.integer("id"));
    add(out.spans, step, s, s.text("kind") == "kernel" ? TimeKind::DeviceKernels : TimeKind::DeviceCopies, id);
  };
  Result<void> done;
  if (hasDeviceBlocks_) {
    for (size_t i = 0; i < windows_.size() && done; ++i) {
      done = reader_->each(
          "SELECT e.start_ns, e.dur_ns, coalesce(e.kernel_id, 0) AS kernel_id, e.kind, e.id, e.name FROM t_block b CROSS JOIN t_gpu_event e "
          "ON e.id BETWEEN b.first_id AND b.last_id WHERE b.track = 2 AND b.end_ns > ?1 AND b.start_ns < ?2 AND e.lane = b.thread "
          "AND e.start_ns < ?2 AND e.start_ns + e.dur_ns > ?1 AND e.kind IN ('kernel', 'memcpy', 'memset')",
          {windows_[i].startNs, windows_[i].endNs}, [&](const Statement& s) { device(s, windows_[i], events_[i]); });
    }
  } else {  // an import: its events cannot be found by time
    done = readEvents(
        "SELECT start_ns, dur_ns, coalesce(kernel_id, 0) AS kernel_id, kind, id, name FROM t_gpu_event "
        "WHERE start_ns < ?2 AND start_ns + dur_ns > ?1 AND kind IN ('kernel', 'memcpy', 'memset')",
        device);
  }
  if (!done) return done;
  return readEvents(
      "SELECT start_ns, dur_ns, id, name, kind, CASE kind WHEN 'python_call' THEN file || ':' || line END AS place FROM t_cpu_event WHERE start_ns < ?2 AND start_ns + dur_ns > ?1 "
      "AND (kind IN ('cpu_op', 'python_call') OR name GLOB 'cuda*Synchronize' OR name GLOB 'cu*Synchronize')",
      [&](const Statement& s, const Step& step, WindowFacts& out) {
        if (s.text("kind") == "cpu_op") add(out.spans, step, s, TimeKind::Kernels, eventPart(operators_, s.text("name"), s.integer("id")));
        else if (s.text("kind") == "python_call") add(out.spans, step, s, TimeKind::Outside, eventPart(pythonCalls_, s.text("place"), s.integer("id")));
        else add(out.spans, step, s, TimeKind::Waiting, 0);
      });
}

Result<WindowFacts> SpanReader::window(size_t i) {
  const Step& step = windows_[i];
  WindowFacts out = std::move(events_[i]);
  const auto launch = [&](const Statement& s) {
    const int64_t kernel = s.integer("kernel_id");
    if (std::binary_search(deviceKernels_.begin(), deviceKernels_.end(), kernel)) return;  // gpu_events tell
    const bool copy = std::binary_search(copyKernels_.begin(), copyKernels_.end(), kernel);
    add(out.spans, step, s, copy ? TimeKind::Copies : TimeKind::Kernels, kernel);
  };
  auto done = reader_->each(
      "SELECT l.start_ns, l.dur_ns, l.kernel_id FROM t_block b JOIN t_launch l ON l.id BETWEEN b.first_id AND b.last_id "
      "WHERE b.track = 0 AND b.end_ns > ?1 AND b.start_ns < ?2 AND l.start_ns < ?2 AND l.start_ns + l.dur_ns > ?1",
      {step.startNs, step.endNs}, launch);
  for (const TimeSpan& c : compiles_) {
    const size_t before = out.spans.size();
    add(out.spans, step, c.startNs, c.endNs, c.kind, c.id);
    if (out.spans.size() > before) out.spans.back().counted = c.counted;
  }
  if (done) done = calls(step, out);
  if (!done) return tl::unexpected(done.error());
  return out;
}

Result<std::vector<TimeSpan>> compileSpans(const Reader& reader) {
  std::vector<TimeSpan> out;
  // A backward pass is compiled with its forward; it is a recompilation where that is one.
  auto read = reader.each(
      "SELECT c.start_ns, c.end_ns, c.id, coalesce(c.failure_id, p.failure_id) IS NOT NULL AS is_recompile, c.kind = 'backward' AS is_backward FROM t_compile c "
      "LEFT JOIN t_compile p ON p.id = c.parent_id WHERE c.end_ns > c.start_ns ORDER BY c.start_ns",
      {}, [&](const Statement& s) {
        out.push_back({boundedTime(s.integer("start_ns")), boundedTime(s.integer("end_ns")), s.integer("is_recompile") != 0 ? TimeKind::Recompiles : TimeKind::Compile, s.integer("id"), s.integer("is_backward") == 0});
      });
  if (!read) return tl::unexpected(read.error());
  return out;
}

Split splitTime(const Step& window, std::vector<TimeSpan> spans) {
  constexpr auto kKinds = static_cast<size_t>(TimeKind::Count);
  struct Edge {
    int64_t ns;
    bool begins;
    uint32_t span;
  };
  std::vector<Edge> edges;
  for (uint32_t i = 0; i < spans.size(); ++i) {
    edges.push_back({spans[i].startNs, true, i});
    edges.push_back({spans[i].endNs, false, i});
  }
  std::sort(edges.begin(), edges.end(), [](const Edge& a, const Edge& b) { return a.ns != b.ns ? a.ns < b.ns : a.begins < b.begins; });
  Split out;
  std::map<std::pair<TimeKind, int64_t>, std::pair<double, int64_t>> parts;
  std::array<std::vector<uint32_t>, kKinds> open;
  int64_t now = window.startNs;
  const auto advance = [&](int64_t to) {
    if (to <= now) return;
    const double ns = static_cast<double>(to - now);
    now = to;
    for (size_t k = 0; k < kKinds; ++k) {
      if (open[k].empty()) continue;
      out.ns[k] += ns;
      parts[{static_cast<TimeKind>(k), spans[open[k].back()].id}].first += ns;
      return;
    }
    out.ns[static_cast<size_t>(TimeKind::Outside)] += ns;
  };
  for (const Edge& edge : edges) {
    advance(edge.ns);
    const TimeSpan& span = spans[edge.span];
    auto& list = open[static_cast<size_t>(span.kind)];
    if (edge.begins) {
      list.push_back(edge.span);
      out.spans[static_cast<size_t>(span.kind)] += span.counted ? 1 : 0;
      parts[{span.kind, span.id}].second += span.counted ? 1 : 0;
    } else {
      list.erase(std::find(list.begin(), list.end(), edge.span));
    }
  }
  advance(window.endNs);
  for (const auto& [key, value] : parts) out.parts.emplace_back(key.first, key.second, value.first, value.second);
  return out;
}

}  // namespace fusebox::query
