#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "profiler/importers/chrome_event.h"
#include "profiler/importers/session_builder.h"
#include "profiler/importers/trace_links.h"

namespace fusebox::importing {

struct CategoryMeaning;

/// Turns events of a profiler's trace, as Chrome's format describes them, into a session's rows. Readers of other
/// formats with the same notions (threads, nested spans, arrows) hand their events over in this form.
class ChromeImport {
 public:
  ChromeImport(SessionBuilder& session, TraceLinks& links) : session_(session), links_(links) {}
  void event(const ChromeEvent& e);
  void member(const std::string& key, std::string_view json);
  /// Names a row, whatever its process and thread are called. `device`: its spans are work of a device.
  void nameRow(std::string_view process, std::string_view thread, std::string_view name);
  void finish();
  ChromeEventParser parser;

 private:
  struct OpenSpan {
    std::string name, category, detail;
    int64_t startNs;
  };
  struct Row {
    int64_t thread;
    std::string process, name;  ///< as written
    bool device = false;
    std::vector<OpenSpan> open;
  };
  Row& row(const ChromeEvent& e);
  void complete(const ChromeEvent& e);
  void deviceWork(const ChromeEvent& e, const CategoryMeaning& meaning);
  void span(Row& row, std::string_view category, std::string_view name, int64_t start, int64_t duration,
            std::string_view detail);
  void begin(const ChromeEvent& e);
  void end(const ChromeEvent& e);
  void asyncBegin(const ChromeEvent& e);
  void asyncEnd(const ChromeEvent& e);
  void instant(const ChromeEvent& e);
  void counter(const ChromeEvent& e);
  void arrow(const ChromeEvent& e);
  void metadata(const ChromeEvent& e);
  void ignore(const ChromeEvent&) {}
  int64_t regionCompile(std::string_view region);

  struct Phase {
    char phase;
    void (ChromeImport::*take)(const ChromeEvent&);
    bool timed = true;
  };
  static const Phase kPhases[];

  SessionBuilder& session_;
  TraceLinks& links_;
  std::unordered_map<std::string, Row> rows_;
  std::unordered_map<std::string, std::string> names_;  ///< of processes and threads, by what names them
  std::unordered_map<std::string, OpenSpan> async_;
  std::unordered_map<std::string, int64_t> regions_;
  size_t openSpans_ = 0;
};

}  // namespace fusebox::importing
