#include "profiler/importers/kernel_places.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "profiler/importers/trace_names.h"

namespace fusebox::importing {
namespace {

using session::Database;
using session::Statement;

/// A moment on a thread whose user's function is asked for.
struct Moment {
  int64_t id = 0, thread = 0, ns = 0;  ///< id: of what asks
};
struct Open {
  int64_t endNs = 0, id = 0;
  std::optional<int64_t> sequence;  ///< of a backward operator; else `id` is a function's
};
struct Found {
  int64_t function = 0;
  std::optional<int64_t> sequence;
};

template <class F>
Result<void> each(Statement& statement, F&& take) {
  for (;;) {
    auto row = statement.step();
    if (!row) return tl::unexpected(row.error());
    if (!*row) return {};
    take(statement);
  }
}

// Functions of the user and operators of backward passes, in the order in which they begin. Forward operators have `Fwd thread id` 0.
constexpr const char* kSpans = R"sql(SELECT thread, start_ns, start_ns + dur_ns AS ended_ns, id, NULL AS sequence, file FROM t_cpu_event
    WHERE kind = 'python_function' AND file IS NOT NULL AND file <> ''
  UNION ALL SELECT e.thread, e.start_ns, e.start_ns + e.dur_ns, e.id, s.number, NULL FROM operator_sequence s JOIN t_cpu_event e ON e.id = s.event
    WHERE s.backward
  ORDER BY 1, 2, 3 DESC)sql";

/// What is around each moment; moments must be in order of thread and time.
Result<std::vector<Found>> surroundings(const Database& db, const std::vector<Moment>& moments) {
  std::vector<Found> out(moments.size());
  auto spans = db.prepare(kSpans);
  if (!spans) return tl::unexpected(spans.error());
  std::vector<Open> open;
  int64_t thread = 0;
  size_t next = 0;
  const auto answer = [&](int64_t untilThread, int64_t untilNs) {
    for (; next < moments.size() && std::pair(moments[next].thread, moments[next].ns) < std::pair(untilThread, untilNs); ++next) {
      if (moments[next].thread != thread) continue;
      for (auto span = open.rbegin(); span != open.rend(); ++span) {
        if (span->endNs < moments[next].ns) continue;
        if (!span->sequence) out[next].function = span->id;
        else if (!out[next].sequence) out[next].sequence = span->sequence;
        if (!span->sequence) break;
      }
    }
  };
  auto read = each(*spans, [&](const Statement& row) {
    const int64_t on = row.integer("thread"), start = row.integer("start_ns");
    answer(on, start);
    if (on != thread) open.clear();
    thread = on;
    while (!open.empty() && open.back().endNs <= start) open.pop_back();
    Open span{row.integer("ended_ns"), row.integer("id"), {}};
    if (!row.isNull("sequence")) span.sequence = row.integer("sequence");
    else if (!isUsersFile(row.text("file"))) return;
    open.push_back(span);
  });
  if (!read) return tl::unexpected(read.error());
  answer(INT64_MAX, INT64_MAX);
  return out;
}

Result<std::vector<Moment>> momentsOf(const Database& db, const char* sql) {
  std::vector<Moment> out;
  auto rows = db.prepare(sql);
  if (!rows) return tl::unexpected(rows.error());
  auto read = each(*rows, [&](const Statement& row) { out.push_back({row.integer("id"), row.integer("thread"), row.integer("first_ns")}); });
  if (!read) return tl::unexpected(read.error());
  return out;
}

void order(std::vector<Moment>& moments) {
  std::sort(moments.begin(), moments.end(), [](const Moment& a, const Moment& b) { return std::pair(a.thread, a.ns) < std::pair(b.thread, b.ns); });
}

/// What is to have a place: `moments` gives id, thread and time of each, `update` writes the function ?2 to ?1.
struct Placed {
  const char *moments, *update;
};
constexpr Placed kPlaced[] = {
    // SQLite takes the other columns from the row that has the least.
    {"SELECT kernel_id AS id, thread, min(called_ns) AS first_ns FROM t_gpu_event WHERE kernel_id IS NOT NULL AND called_ns IS NOT NULL "
     "AND thread IS NOT NULL GROUP BY kernel_id",
     "UPDATE t_kernel SET file = e.file, line = e.line FROM t_cpu_event e WHERE e.id = ?2 AND t_kernel.id = ?1 AND t_kernel.file IS NULL"},
    {"SELECT id, thread, start_ns AS first_ns FROM t_cpu_event WHERE kind = 'cpu_op'",
     "UPDATE t_cpu_event SET file = e.file, line = e.line FROM t_cpu_event e WHERE e.id = ?2 AND t_cpu_event.id = ?1 AND t_cpu_event.file IS NULL"}};

Result<void> place(Database& db, const Placed& what) {
  auto moments = momentsOf(db, what.moments);
  if (!moments) return tl::unexpected(moments.error());
  order(*moments);
  auto found = surroundings(db, *moments);
  if (!found) return tl::unexpected(found.error());

  auto update = db.prepare(what.update);
  if (!update) return tl::unexpected(update.error());
  const auto write = [&](const Moment& moment, int64_t function) -> Result<void> {
    if (function == 0) return {};
    update->bindAll(moment.id, function);
    return update->run();
  };
  std::vector<Moment> forward;
  auto begin = db.prepare("SELECT e.thread, e.start_ns FROM operator_sequence s JOIN t_cpu_event e ON e.id = s.event WHERE s.number = ? AND NOT s.backward LIMIT 1");
  if (!begin) return tl::unexpected(begin.error());
  for (size_t i = 0; i < moments->size(); ++i) {
    const Moment& moment = (*moments)[i];
    if (auto done = write(moment, (*found)[i].function); !done) return done;
    if ((*found)[i].function != 0 || !(*found)[i].sequence) continue;
    begin->reset();
    begin->bindAll(*(*found)[i].sequence);
    auto read = each(*begin, [&](const Statement& row) { forward.push_back({moment.id, row.integer("thread"), row.integer("start_ns")}); });
    if (!read) return read;
  }
  order(forward);
  found = surroundings(db, forward);
  if (!found) return tl::unexpected(found.error());
  for (size_t i = 0; i < forward.size(); ++i) {
    if (auto done = write(forward[i], (*found)[i].function); !done) return done;
  }
  return {};
}

}  // namespace

Result<void> placeByStacks(Database& db) {
  const auto any = db.integer("SELECT EXISTS(SELECT 1 FROM t_cpu_event WHERE kind = 'python_function')");
  if (!any || !*any || **any == 0) return {};
  for (const Placed& what : kPlaced) {
    if (auto done = place(db, what); !done) return done;
  }
  return {};
}

}  // namespace fusebox::importing
