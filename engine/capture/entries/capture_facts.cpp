#include "engine/capture/entries/capture_facts.h"

#include <algorithm>

#include "engine/capture/evaluation/torch_objects.h"
#include "engine/capture/guards/size_marks.h"

namespace fusebox::capture {
namespace {

constexpr char kBetween = '\0';

std::string marksOf(const Entry& entry) {
  std::string text;
  for (size_t i = 0; i < entry.graphInputs; ++i) {
    PyObject* tensor = entry.guards->output(i);
    if (!tensor || !isTensorObject(tensor)) continue;
    const std::vector<SizeMark> marks = sizeMarks(tensor, static_cast<size_t>(tensorOf(tensor).dim()));
    for (size_t dim = 0; dim < marks.size(); ++dim) {
      const SizeMark& m = marks[dim];
      text += std::to_string(i) + "." + std::to_string(dim) + ":" + std::to_string(m.dynamic | m.weak << 1 | m.fixed << 2 | m.unbacked << 3 | m.strictUnbacked << 4) + "[" +
              (m.least ? std::to_string(*m.least) : "") + "," + (m.most ? std::to_string(*m.most) : "") + "] ";
    }
  }
  return text;
}

}  // namespace

CaptureFacts CaptureFacts::of(const Entry& entry, const EntryPoint& point) {
  CaptureFacts facts;
  facts.place.numbers = point.numbers.ofNewest();
  facts.place.floats = point.runTimeNumbers;
  facts.marks = marksOf(entry);
  return facts;
}

std::string CaptureFacts::text() const { return marks + kBetween + writeProfile({{"", place}}); }

std::optional<CaptureFacts> CaptureFacts::read(const std::string& text) {
  const size_t between = text.find(kBetween);
  if (between == std::string::npos) return std::nullopt;
  const auto profile = readProfile(std::string_view(text).substr(between + 1));
  if (!profile || !profile->contains("")) return std::nullopt;
  return CaptureFacts{profile->at(""), text.substr(0, between)};
}

std::string differentChoice(const Entry& entry, const CaptureFacts& facts, EntryPoint& point, bool isAutomatic) {
  if (marksOf(entry) != facts.marks) return "sizes of its inputs are marked in another way";
  if (facts.place.floats != point.runTimeNumbers) return "other floats were known to change";
  const GuardSet& set = entry.guards->guards();
  const auto hasChanged = [&](const NumberSource& at, size_t rank, int64_t value) {
    const NumberHistory::Number* known = point.numbers.find(at, at.source->str(), rank);
    return known && (known->changed || std::any_of(known->seen.begin(), known->seen.end(), [&](const auto& seen) { return seen.second != value; }));
  };
  const std::vector<graph::Symbol>& symbols = set.shapes().symbols;
  for (const SymbolOrigin& origin : set.shapes().origins) {
    if (origin.policy != "automatic") continue;
    const size_t at = static_cast<size_t>(
        std::find_if(symbols.begin(), symbols.end(), [&](const graph::Symbol& s) { return graph::SymExpr(s) == graph::SymExpr(origin.symbol); }) - symbols.begin());
    const std::span<const int64_t> values = entry.guards->symbolValues();
    const size_t rank = origin.at.isOfTensor() ? set.rankOf(origin.at.source) : 0;
    if (at >= values.size() || !hasChanged(origin.at, rank, values[at])) return origin.at.str() + " is a symbol there, and has not changed here";
  }
  if (!isAutomatic) return {};
  for (const Guard& guard : set.guards()) {
    if (guard.kind == GuardKind::ConstantMatch && guard.expected && PyLong_CheckExact(guard.expected.get())) {
      int overflow = 0;
      const int64_t value = PyLong_AsLongLongAndOverflow(guard.expected.get(), &overflow);
      if (!overflow && value != 0 && value != 1 && hasChanged({NumberSource::Kind::Value, guard.source, -1}, 0, value)) return guard.source->str() + " is a constant there, and has changed here";
    }
    if (guard.kind != GuardKind::TensorMatch) continue;
    const TensorSpec& spec = set.tensorSpec(guard);
    for (size_t dim = 0; dim < spec.sizes.size() && dim < TensorSpec::kMostFree; ++dim) {
      const NumberSource at{NumberSource::Kind::Size, guard.source, static_cast<int>(dim)};
      const int64_t size = spec.sizes[dim];
      if (!(spec.freeSizes >> dim & 1) && size != 0 && size != 1 && hasChanged(at, spec.sizes.size(), size)) return at.str() + " is a constant there, and has changed here";
    }
  }
  return {};
}

}  // namespace fusebox::capture
