#include <cmath>

#include "engine/record/recorder_impl.h"

namespace fusebox::record {
namespace {

using session::Cell;
namespace rows = session::rows;
using session::RowSink;

/// Whole numbers are stored as such.
Cell numberCell(double value) {
  constexpr double kExact = 9007199254740992.0;  // 2^53
  if (std::abs(value) <= kExact && std::trunc(value) == value) return static_cast<int64_t>(value);
  return value;
}

Cell optionalCell(const std::optional<int64_t>& value) { return value ? Cell{*value} : Cell{}; }

std::string namesJson(const std::vector<std::string>& names) {
  std::string out;
  for (const auto& name : names) out += (out.empty() ? "[\"" : ", \"") + name + "\"";
  return out.empty() ? out : out + "]";
}

int64_t weight(const SymbolRecord& r) { return static_cast<int64_t>(r.source.size() + r.reason.size() + r.before.size() + r.after.size()); }
int64_t weight(const RelationRecord& r) { return static_cast<int64_t>(r.left.size() + r.right.size() + r.reason.size()); }
int64_t weight(const SpecialisationRecord& r) { return static_cast<int64_t>(r.expression.size() + r.source.size() + r.reason.size()); }

/// Posts a row for each record; `rowOf` makes it, but for its ids and place.
template <class Impl, class Record, class RowOf>
void post(Impl& impl, std::atomic<Id>& ids, Id compile, std::vector<Record> records, RowOf rowOf) {
  if (records.empty()) return;
  impl.guarded([&] {
    const Id first = ids.fetch_add(static_cast<Id>(records.size()));
    impl.tell(first, Listed<Record>{compile, records});
    int64_t bytes = 0;
    for (const Record& r : records) {
      impl.noteFile(r.place);
      for (const Place& p : r.stack) impl.noteFile(p);
      bytes += 300 + weight(r);
    }
    auto job = [&impl, first, compile, rowOf, now = nowNs(), records = std::move(records)](RowSink& sink) {
      int64_t id = first;
      for (const Record& r : records) {
        auto row = rowOf(r);
        row.id = row.position = id++;  // ids rise with time: an entry's rows come in several calls
        row.compile_id = idCell(compile);
        row.file = textCell(r.place.file);
        row.line = lineCell(r.place.line);
        row.stack = stackCell(stackJson(r.stack), impl.stacks, sink);
        row.time_ns = now;
        sink.put(std::move(row));
      }
    };
    impl.post(std::move(job), bytes);
  });
}

}  // namespace

void Recorder::symbols(Id compile, std::vector<SymbolRecord> symbols) {
  post(*impl_, impl_->ids.symbol, compile, std::move(symbols), [](const SymbolRecord& r) {
    return rows::Symbol{.name = textCell(r.name), .kind = textCell(r.kind), .source = textCell(r.source), .hint = r.hint ? numberCell(*r.hint) : Cell{},
        .lower = optionalCell(r.lower), .upper = optionalCell(r.upper), .policy = textCell(r.policy), .reason = textCell(r.reason),
        .before = textCell(r.before), .after = textCell(r.after)};
  });
}

void Recorder::relations(Id compile, std::vector<RelationRecord> relations) {
  post(*impl_, impl_->ids.relation, compile, std::move(relations), [](const RelationRecord& r) {
    return rows::Relation{.guard_id = idCell(r.guard), .kind = textCell(r.kind), .op = textCell(r.op), .left = textCell(r.left),
        .right = textCell(r.right), .symbols = textCell(namesJson(r.symbols)), .reason = textCell(r.reason)};
  });
}

void Recorder::specialisations(Id compile, std::vector<SpecialisationRecord> specialisations) {
  post(*impl_, impl_->ids.specialisation, compile, std::move(specialisations), [](const SpecialisationRecord& r) {
    return rows::Specialisation{.guard_id = idCell(r.guard), .kind = textCell(r.kind), .expression = textCell(r.expression),
        .symbols = textCell(namesJson(r.symbols)), .source = textCell(r.source), .value = numberCell(r.value), .operator_ = textCell(r.op),
        .reason = textCell(r.reason)};
  });
}

}  // namespace fusebox::record
