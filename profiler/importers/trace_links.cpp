#include "profiler/importers/trace_links.h"

#include "profiler/importers/kernel_places.h"

namespace fusebox::importing {
namespace {

constexpr const char* kTables = R"sql(
CREATE TEMP TABLE device_call(correlation INTEGER PRIMARY KEY, event INTEGER, thread INTEGER, start_ns INTEGER, dur_ns INTEGER);
CREATE TEMP TABLE operator_name(external_id INTEGER PRIMARY KEY, event INTEGER, name TEXT);
CREATE TEMP TABLE operator_sequence(event INTEGER PRIMARY KEY, number INTEGER, backward INTEGER);
CREATE TEMP TABLE kernel_operator(kernel INTEGER PRIMARY KEY, external_id INTEGER);
CREATE TEMP TABLE arrow_end(key TEXT, kind TEXT, name TEXT, start INTEGER, thread INTEGER, time_ns INTEGER);
)sql";

// A start may have several ends (a replayed graph's kernels) and is joined with each.
constexpr const char* kFinish = R"sql(
INSERT INTO t_flow(kind, from_thread, from_ns, to_thread, to_ns, from_event, to_event)
  SELECT 'launch', c.thread, c.start_ns, (SELECT thread FROM t_launch l WHERE l.id = g.launch_id), g.start_ns, c.event, g.id
  FROM t_gpu_event g JOIN device_call c ON c.correlation = g.correlation;
UPDATE t_gpu_event SET thread = c.thread, called_ns = c.start_ns, call_dur_ns = c.dur_ns FROM device_call c
  WHERE c.correlation = t_gpu_event.correlation AND called_ns IS NULL;
CREATE INDEX temp.arrow_end_by_key ON arrow_end(key, start);
INSERT INTO t_flow(kind, name, from_thread, from_ns, to_thread, to_ns)
  SELECT a.kind, a.name, a.thread, a.time_ns, b.thread, b.time_ns FROM arrow_end a JOIN arrow_end b
  ON b.key = a.key AND b.start = 0 WHERE a.start = 1 LIMIT 50000000;
UPDATE t_kernel SET op = (SELECT o.name FROM kernel_operator k JOIN operator_name o ON o.external_id = k.external_id
  WHERE k.kernel = t_kernel.id) WHERE kind = 'extern' AND op IS NULL;
UPDATE t_gpu_event SET cpu_event = (SELECT o.event FROM operator_name o WHERE o.external_id = -1 - t_gpu_event.cpu_event) WHERE cpu_event < 0;
CREATE INDEX temp.operator_by_sequence ON operator_sequence(number, backward);
)sql";
constexpr const char* kDrop =
    "DROP TABLE device_call; DROP TABLE operator_name; DROP TABLE operator_sequence; DROP TABLE kernel_operator; DROP TABLE arrow_end;";

}  // namespace

Result<std::unique_ptr<TraceLinks>> TraceLinks::create(SessionBuilder& session) {
  auto& database = session.database();
  if (auto made = database.execute(kTables); !made) return tl::unexpected(made.error());
  std::unique_ptr<TraceLinks> links(new TraceLinks(session));
  struct Entry {
    session::Statement* statement;
    const char* sql;
  };
  for (const auto& [statement, sql] : {Entry{&links->call_, "INSERT OR REPLACE INTO device_call VALUES(?,?,?,?,?)"},
                                       Entry{&links->driverCall_, "INSERT OR IGNORE INTO device_call VALUES(?,?,?,?,?)"},
                                       Entry{&links->operator_, "INSERT OR REPLACE INTO operator_name VALUES(?,?,?)"},
                                       Entry{&links->sequence_, "INSERT OR REPLACE INTO operator_sequence VALUES(?,?,?)"},
                                       Entry{&links->kernel_, "INSERT OR IGNORE INTO kernel_operator VALUES(?,?)"},
                                       Entry{&links->arrow_, "INSERT INTO arrow_end VALUES(?,?,?,?,?,?)"}}) {
    auto prepared = database.prepare(sql);
    if (!prepared) return tl::unexpected(prepared.error());
    *statement = std::move(*prepared);
  }
  return links;
}

void TraceLinks::deviceCall(int64_t correlation, int64_t cpuEvent, int64_t thread, int64_t startNs, int64_t durNs, bool driver) {
  (void)(driver ? driverCall_ : call_).bindAll(correlation, cpuEvent, thread, startNs, durNs).run();
}

void TraceLinks::operatorSpan(int64_t externalId, int64_t cpuEvent, std::string_view name) {
  (void)operator_.bindAll(externalId, cpuEvent, name).run();
}

void TraceLinks::sequence(int64_t cpuEvent, int64_t number, bool backward) { (void)sequence_.bindAll(cpuEvent, number, backward).run(); }

void TraceLinks::kernelOf(int64_t kernel, int64_t externalId) { (void)kernel_.bindAll(kernel, externalId).run(); }

void TraceLinks::arrow(std::string_view key, std::string_view kind, std::string_view name, bool start, int64_t thread,
                       int64_t timeNs) {
  (void)arrow_.bindAll(key, kind, name, start, thread, timeNs).run();
}

Result<void> TraceLinks::finish() {
  session_.settle();
  if (session_.isShown()) {  // who cancels what follows keeps what was read
    if (auto kept = session_.database().execute("COMMIT; BEGIN"); !kept) return kept;
  }
  for (session::Statement* s : {&call_, &driverCall_, &operator_, &sequence_, &kernel_, &arrow_}) *s = session::Statement();
  if (auto joined = session_.database().execute(kFinish); !joined) return joined;
  if (auto placed = placeByStacks(session_.database()); !placed) return placed;
  return session_.database().execute(kDrop);
}

}  // namespace fusebox::importing
