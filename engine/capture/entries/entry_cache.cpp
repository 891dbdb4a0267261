#include "engine/capture/entries/entry_cache.h"

#include <algorithm>
#include <unordered_set>

#include "engine/aot/input_overlap.h"
#include "engine/capture/cpython/frame_internals.h"
#include "engine/capture/entries/hook_skip.h"
#include "engine/capture/evaluation/torch_objects.h"

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

CodeState& stateOf(PyCodeObject* code, PyObject* globals) {
  if (void* known = codeSlot(code, slot())) return *static_cast<CodeState*>(known);
  auto* state = new CodeState();
  state->code = code;
  state->skip = isSkipped(code, globals);
  state->tracing = state->skip && isTracing(code);
  allStates().insert(state);
  setCodeSlot(code, slot(), state);
  return *state;
}

void clearEntries() {
  // Destroying entries may run finalisers that come back here: empty everything first, destroy afterwards.
  std::vector<std::shared_ptr<Entry>> doomed;
  for (CodeState* state : allStates()) {
    if (state->isStored) continue;
    for (auto& point : state->points) {
      for (auto& entry : point->entries) doomed.push_back(std::move(entry));
      point->entries.clear();
      point->compiled = point->failures = point->died = 0;
      point->eager = point->limitExplained = false;
      point->frame = 0;
      point->ranEagerlyFirst = false;
      point->numbers = {};
      point->symbolsRefused.clear();
      point->runTimeNumbers.clear();
      point->changedTexts.clear();
      point->numbersRefused = false;
    }
    state->compiled = state->died = 0;
    state->frame = 0;
    state->limitReported = state->unprofitable = false;
    state->refused = nullptr;
    state->longLoops.clear();
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

namespace {

/// An entry that served this often before an object that it needs died was worth making: it does not count as a recompile.
constexpr int64_t kWorthMaking = 32;

void dropDead(CodeState& code, EntryPoint& point) {
  auto& entries = point.entries;
  std::vector<std::shared_ptr<Entry>> dead;  // destroyed when the list is whole again: that may run finalisers that come here
  std::erase_if(entries, [&](std::shared_ptr<Entry>& entry) {
    if (entry->guards->alive()) return false;
    ++code.died;
    point.died += entry->hits < kWorthMaking;
    dead.push_back(std::move(entry));
    return true;
  });
}

void moveToFront(std::vector<std::shared_ptr<Entry>>& entries, const std::shared_ptr<Entry>& hit) {
  const auto at = std::find(entries.begin(), entries.end(), hit);
  if (at != entries.end()) std::rotate(entries.begin(), at, at + 1);
}

}  // namespace

std::vector<int64_t> sharedMemoryOf(const Entry& entry) {
  if (entry.graphInputs < 2) return {};
  std::vector<at::Tensor> inputs;
  for (size_t i = 0; i < entry.graphInputs; ++i) {
    PyObject* object = entry.guards->output(i);
    inputs.push_back(isTensorObject(object) ? tensorOf(object) : at::Tensor());
  }
  return aot::sharedMemory(inputs);
}

std::shared_ptr<Entry> findEntry(CodeState& code, EntryPoint& point, const FrameView& view, const GlobalState& state,
                                 const RegionOptions* options, PyObject* globals) {
  auto& entries = point.entries;
  bool anyDead = false;
  // A check may collect garbage, whose finalisers may come here and change the list: it is read anew in every step.
  for (size_t i = 0; i < entries.size(); ++i) {
    if (!entries[i]->guards->alive()) {
      anyDead = true;
      continue;
    }
    if (entries[i]->options != options || entries[i]->globals != globals) continue;
    std::shared_ptr<Entry> entry = entries[i];
    if (!entry->guards->check(view, state) || (entry->watchesMemory && sharedMemoryOf(*entry) != entry->sharedMemory)) continue;
    if (i > 0) moveToFront(entries, entry);
    ++entry->hits;
    return entry;
  }
  if (anyDead) dropDead(code, point);
  return nullptr;
}

}  // namespace fusebox::capture
