#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "profiler/importers/chrome_import.h"
#include "profiler/importers/session_builder.h"

namespace fusebox::importing {

/// What a writer has declared for its later packets.
struct PerfettoSequence {
  std::unordered_map<uint64_t, std::string> categories, names, annotationNames, annotationValues;
  uint64_t defaultTrack = 0, defaultClock = 0;
  std::map<uint64_t, std::pair<int64_t, int64_t>> clocks;  ///< own clocks: trace time at a snapshot, and the clock's
  std::map<uint64_t, int64_t> units;
  std::map<uint64_t, bool> incremental;
  size_t interned = 0;
};

struct PerfettoTrack {
  std::string name;
  uint64_t parent = 0;
  int64_t pid = 0, tid = 0;
  bool isProcess = false, isCounter = false;
};

/// Turns packets of a Perfetto trace into spans, which ChromeImport brings into the session.
class PerfettoImport {
 public:
  PerfettoImport(SessionBuilder& session, ChromeImport& import) : session_(session), import_(import) {}
  void packet(std::string_view bytes, int depth = 0);
  void finish();
  int64_t events() const { return events_; }

 private:
  struct Open {
    std::string name, category, arguments;
    int64_t startNs = 0;
  };
  PerfettoSequence& sequence(uint64_t id);
  void clocks(std::string_view bytes, PerfettoSequence& writer);
  void interned(std::string_view bytes, PerfettoSequence& writer);
  void defaults(std::string_view bytes, PerfettoSequence& writer);
  void descriptor(std::string_view bytes);
  void trackEvent(std::string_view bytes, PerfettoSequence& writer, int64_t timeNs);
  nlohmann::ordered_json annotation(std::string_view bytes, const PerfettoSequence& writer, std::string& name,
                                    int depth);
  void compressed(std::string_view bytes, int depth);
  int64_t traceTime(uint64_t clock, int64_t stamp, PerfettoSequence& writer);
  void emit(char phase, uint64_t track, const Open& what, int64_t durationNs);
  void flow(uint64_t id, bool start, uint64_t track, int64_t at);
  std::string lookUp(const std::unordered_map<uint64_t, std::string>& table, uint64_t id, const char* what);

  SessionBuilder& session_;
  ChromeImport& import_;
  std::unordered_map<uint64_t, PerfettoSequence> sequences_;
  std::unordered_map<uint64_t, PerfettoTrack> tracks_;
  std::unordered_map<uint64_t, std::vector<Open>> open_;
  std::unordered_map<uint64_t, std::pair<uint64_t, int64_t>> flows_;
  std::map<uint32_t, int64_t> otherPackets_;
  int64_t events_ = 0;
  size_t openCount_ = 0;
};

}  // namespace fusebox::importing
