#include "engine/capture/entries/rank_decisions.h"

#include <algorithm>

#include "engine/capture/cpython/errors.h"
#include "engine/capture/entries/barrier.h"
#include "engine/capture/entries/dynamic_rules.h"
#include "engine/capture/entries/hook.h"
#include "engine/capture/entries/place_name.h"
#include "engine/capture/guards/number_profile.h"

namespace fusebox::capture {
namespace {

/// An error of ours is told, the program's own stays set.
void endError(const char* doing) {
  if (!PyErr_Occurred() || isInterrupt()) return;
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  const PyRef kind = PyRef::steal(type), error = PyRef::steal(value), trace = PyRef::steal(traceback);
  const PyRef text = PyRef::steal(PyObject_Str(error ? error.get() : kind.get()));
  const char* utf8 = text ? utf8Of(text.get()) : nullptr;
  clearError();
  tellFailure(doing, utf8 ? utf8 : "an error without text");
}

/// Numbers that are known to differ.
size_t changesIn(const NumberHistory& history) {
  const auto& all = history.numbers();
  return static_cast<size_t>(std::count_if(all.begin(), all.end(), [](const auto& number) { return number.second.changed.has_value(); }));
}

void take(EntryPoint& point, const std::string& name, PyObject* text) {
  Py_ssize_t size = 0;
  const char* utf8 = PyUnicode_Check(text) ? PyUnicode_AsUTF8AndSize(text, &size) : nullptr;
  if (!utf8) return clearError();
  const auto profile = readProfile({utf8, static_cast<size_t>(size)});
  const auto theirs = profile ? profile->find(name) : Profile::const_iterator{};
  if (!profile || theirs == profile->end()) return;
  point.numbers.join(theirs->second.numbers);
  point.runTimeNumbers.insert(theirs->second.floats.begin(), theirs->second.floats.end());
}

}  // namespace

RankFunctions& rankFunctions() {
  static auto* functions = new RankFunctions;  // Python may be gone when statics end
  return *functions;
}

aot::GradientBuckets& gradientBuckets() {
  static thread_local aot::GradientBuckets buckets;
  return buckets;
}

bool learnFromRanks(const CodeState& code, EntryPoint& point) {
  const PyRef exchange = rankFunctions().exchangeNumbers;
  if (!exchange || !dynamoSwitch("enable_compiler_collectives", "TORCH_COMPILER_COLLECTIVES", false)) return false;
  const std::string name = placeName(code, point);
  PlaceProfile mine;
  mine.numbers = point.numbers;
  mine.floats = point.runTimeNumbers;
  const std::string text = writeProfile({{name, mine}});
  RegionPause pause;
  const PyRef given = PyRef::steal(PyObject_CallFunction(exchange.get(), "ss", name.c_str(), text.c_str()));
  if (!given) endError("asking other ranks for their sizes");
  if (!given || !PyList_Check(given.get())) return false;
  const size_t changes = changesIn(point.numbers), floats = point.runTimeNumbers.size();
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(given.get()); ++i) take(point, name, PyList_GET_ITEM(given.get(), i));
  return changesIn(point.numbers) != changes || point.runTimeNumbers.size() != floats;
}

bool allRanksHit(const CodeState& code, EntryPoint& point, bool hit) {
  const PyRef ask = rankFunctions().allHit;
  if (!ask) return hit;
  const std::string name = placeName(code, point);
  RegionPause pause;
  const PyRef given = PyRef::steal(PyObject_CallFunction(ask.get(), "sO", name.c_str(), hit ? Py_True : Py_False));
  if (!given) endError("asking other ranks whether they compile again");
  return given ? given.get() == Py_True : hit;
}

}  // namespace fusebox::capture
