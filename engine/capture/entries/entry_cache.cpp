#include "engine/capture/entries/entry_cache.h"

#include <algorithm>
#include <unordered_set>

#include "engine/capture/cpython/frame_internals.h"
#include "engine/capture/entries/hook_skip.h"

namespace fusebox::capture {
namespace {

std::unordered_set<CodeState*>& allStates() {
  static auto* states = new std::unordered_set<CodeState*>();  // outlives code objects that die at interpreter exit
  return *states;
}

void codeDied(void* state) {
  if (!state) return;
  allStates().erase(static_cast<CodeState*>(state));
  delete static_cast<CodeState*>(state);
}

Py_ssize_t slot() {
  static const Py_ssize_t index = requestCodeSlot(codeDied);
  return index;
}

}  // namespace

const RegionOptions* internOptions(const RegionOptions& options) {
  static auto* known = new std::vector<std::unique_ptr<RegionOptions>>();
  for (const auto& k : *known)
    if (*k == options) return k.get();
  known->push_back(std::make_unique<RegionOptions>(options));
  return known->back().get();
}

CaptureConfig& captureConfig() {
  static CaptureConfig config;
  return config;
}

EntryPoint& CodeState::point(int offset, int depth) {
  for (const auto& p : points)
    if (p->offset == offset && p->depth == depth) return *p;
  points.push_back(std::make_unique<EntryPoint>());
  points.back()->offset = offset;
  points.back()->depth = depth;
  return *points.back();
}

int CodeState::liveEntries() const {
  size_t n = 0;
  for (const auto& p : points) n += p->entries.size();
  return static_cast<int>(n);
}

CodeState& stateOf(PyCodeObject* code) {
  if (void* known = codeSlot(code, slot())) return *static_cast<CodeState*>(known);
  auto* state = new CodeState();
  state->code = code;
  state->skip = isSkipped(code);
  allStates().insert(state);
  setCodeSlot(code, slot(), state);
  return *state;
}

void clearEntries() {
  // Destroying entries may run finalisers that come back here: empty everything first, destroy afterwards.
  std::vector<std::shared_ptr<Entry>> doomed;
  for (CodeState* state : allStates()) {
    for (auto& point : state->points) {
      for (auto& entry : point->entries) doomed.push_back(std::move(entry));
      point->entries.clear();
      point->compiled = point->failures = 0;
      point->eager = point->limitExplained = false;
      point->frame = 0;
    }
    state->compiled = 0;
    state->frame = 0;
    state->limitReported = false;
  }
}

std::pair<size_t, size_t> entryCounts() {
  size_t codes = 0, entries = 0;
  for (CodeState* state : allStates()) {
    const int n = state->liveEntries();
    codes += n > 0;
    entries += static_cast<size_t>(n);
  }
  return {codes, entries};
}

std::shared_ptr<Entry> findEntry(EntryPoint& point, const FrameView& view, const GlobalState& state, const RegionOptions* options,
                                 PyObject* globals) {
  auto& entries = point.entries;
  for (size_t i = 0; i < entries.size(); ++i) {
    Entry& entry = *entries[i];
    if (!entry.guards->alive()) {
      std::shared_ptr<Entry> dead = entries[i];
      entries.erase(entries.begin() + static_cast<std::ptrdiff_t>(i--));
      continue;
    }
    if (entry.options != options || entry.globals.get() != globals || !entry.guards->check(view, state)) continue;
    std::shared_ptr<Entry> hit = entries[i];
    if (i > 0) std::rotate(entries.begin(), entries.begin() + static_cast<std::ptrdiff_t>(i), entries.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    ++hit->hits;
    return hit;
  }
  return nullptr;
}

}  // namespace fusebox::capture
