// Track events: spans, marks, counters and arrows.
#include <fmt/format.h>

#include <algorithm>

#include "profiler/importers/json_slices.h"
#include "profiler/importers/perfetto_fields.h"
#include "profiler/importers/perfetto_import.h"
#include "profiler/importers/proto_reader.h"

namespace fusebox::importing {
namespace {

using Field = ProtoReader::Field;

constexpr size_t kMostFlows = 2'000'000, kMostOpen = 1'000'000;
constexpr int kMostDepth = 16;

}  // namespace

nlohmann::ordered_json PerfettoImport::annotation(std::string_view bytes, const PerfettoSequence& writer,
                                                  std::string& name, int depth) {
  nlohmann::ordered_json value;
  ProtoReader all(bytes);
  for (Field f; all.next(f);) {
    switch (f.id) {
      case 1:
        name = lookUp(writer.annotationNames, f.number, "names of arguments");
        break;
      case 2:
        value = f.number != 0;
        break;
      case 3:
      case 7:
        value = f.number;
        break;
      case 4:
        value = f.integer();
        break;
      case 5:
        value = f.real();
        break;
      case 6:
      case 9:
        value = std::string(f.bytes.substr(0, 16384));
        break;
      case 10:
        name = f.bytes.substr(0, 400);
        break;
      case 11:
      case 12: {
        const bool fits = value.is_null() || (f.id == 11 ? value.is_object() : value.is_array());
        if (depth > kMostDepth || !fits) break;
        std::string key;
        auto inner = annotation(f.bytes, writer, key, depth + 1);
        if (f.id == 11)
          value[key] = std::move(inner);
        else
          value.push_back(std::move(inner));
        break;
      }
      case 17:
        value = lookUp(writer.annotationValues, f.number, "values of arguments");
        break;
      default:
        break;
    }
  }
  return value;
}

void PerfettoImport::emit(char phase, uint64_t track, const Open& what, int64_t durationNs) {
  ++events_;
  const std::string process = std::to_string(track);
  std::string padded = what.arguments;
  padded.append(JsonSlices::kPadding, '\0');
  ChromeEvent e;
  e.phase = phase;
  e.name = what.name;
  e.category = what.category;
  e.process = process;
  e.timeNs = what.startNs;
  e.durationNs = durationNs;
  e.arguments = std::string_view(padded.data(), what.arguments.size());
  import_.event(e);
}

void PerfettoImport::flow(uint64_t id, bool start, uint64_t track, int64_t at) {
  ChromeEvent e;
  const std::string process = std::to_string(track), key = std::to_string(id);
  e.phase = start ? 's' : 'f';
  e.name = e.category = "flow";
  e.id = key;
  e.process = process;
  e.timeNs = at;
  import_.event(e);
}

void PerfettoImport::trackEvent(std::string_view bytes, PerfettoSequence& writer, int64_t timeNs) {
  uint64_t type = 0, track = writer.defaultTrack;
  Open what;
  nlohmann::ordered_json arguments = nlohmann::ordered_json::object();
  std::vector<std::pair<uint64_t, bool>> flows;
  int64_t legacyDuration = -1;
  char legacyPhase = 0;
  ProtoReader all(bytes);
  for (Field f; all.next(f);) {
    switch (f.id) {
      case event::kType:
        type = f.number;
        break;
      case event::kTrack:
        track = f.number;
        break;
      case event::kName:
        what.name = f.bytes.substr(0, 4096);
        break;
      case event::kNameId:
        what.name = lookUp(writer.names, f.number, "names of events");
        break;
      case event::kCategory:
        what.category = f.bytes.substr(0, 400);
        break;
      case event::kCategoryIds: {
        uint64_t id = f.number;
        auto packed = f.bytes;
        if (f.wire == ProtoReader::Wire::Bytes && !ProtoReader::takeVarint(packed, id)) break;
        what.category = lookUp(writer.categories, id, "categories");
        break;
      }
      case event::kDelta:
        timeNs += f.integer() * 1000;
        break;
      case event::kAbsolute:
        if (f.integer() < int64_t{1} << 50) timeNs = f.integer() * 1000;
        break;
      case event::kCounter:
        arguments["value"] = f.integer();
        break;
      case event::kCounterReal:
        arguments["value"] = f.real();
        break;
      case event::kFlow:
      case event::kOldFlow:
        flows.emplace_back(f.number, false);
        break;
      case event::kEndingFlow:
        flows.emplace_back(f.number, true);
        break;
      case event::kAnnotation: {
        std::string name;
        auto value = annotation(f.bytes, writer, name, 0);
        if (arguments.size() < 1000) arguments[name] = std::move(value);
        break;
      }
      case event::kLegacy: {
        ProtoReader legacy(f.bytes);
        for (Field l; legacy.next(l);) {
          if (l.id == 1) what.name = lookUp(writer.names, l.number, "names of events");
          if (l.id == 2) legacyPhase = static_cast<char>(l.number);
          if (l.id == 3 && l.integer() < int64_t{1} << 50) legacyDuration = l.integer() * 1000;
        }
        break;
      }
      default:
        break;
    }
  }
  if (!all.ok()) session_.loss("damaged_packets", 1, "events that are cut or not well formed");
  if (!arguments.empty())
    what.arguments = arguments.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  what.startNs = timeNs;
  auto& stack = open_[track];
  if (type == event::kBegin || legacyPhase == 'B') {
    if (++openCount_ > kMostOpen) {
      --openCount_;
      session_.loss("spans", 1, "more than a million spans are open at once");
    } else {
      stack.push_back(what);
    }
  } else if (type == event::kEnd || legacyPhase == 'E') {
    if (stack.empty()) {
      session_.loss("unmatched_ends", 1, "ends of spans whose begin is not in the file");
    } else {
      --openCount_;
      const Open begun = std::move(stack.back());
      stack.pop_back();
      emit('X', track, begun, std::max<int64_t>(0, timeNs - begun.startNs));
    }
  } else if (legacyPhase == 'X') {
    emit('X', track, what, std::max<int64_t>(0, legacyDuration));
  } else if (type == event::kCounterType) {
    emit('C', track, what, 0);
  } else {
    emit('i', track, what, 0);
  }
  // The first event with a flow's number is its start; each further one ends an arrow and begins the next.
  for (const auto& [id, ends] : flows) {
    const auto known = flows_.find(id);
    if (known != flows_.end()) flow(id, false, track, what.startNs);
    if (known == flows_.end() && flows_.size() < kMostFlows) {
      flows_.emplace(id, std::pair(track, what.startNs));
      flow(id, true, track, what.startNs);
    }
    if (ends) flows_.erase(id);
  }
}

}  // namespace fusebox::importing
