#include <cmath>

#include "engine/record/recorder_impl.h"

namespace fusebox::record {
namespace {

using session::Cell;
using session::RowKind;
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

/// Posts one row of `kind` for each record; `cells` appends what stands between (id, compile, position) and the place.
template <class Impl, class Record, class Cells>
void post(Impl& impl, RowKind kind, std::atomic<Id>& ids, Id compile, std::vector<Record> records, Cells cells) {
  if (records.empty()) return;
  impl.guarded([&] {
    const Id first = ids.fetch_add(static_cast<Id>(records.size()));
    int64_t bytes = 0;
    for (const Record& r : records) {
      impl.noteFile(r.place);
      for (const Place& p : r.stack) impl.noteFile(p);
      bytes += 300 + weight(r);
    }
    auto job = [&impl, kind, first, compile, cells, now = nowNs(), records = std::move(records)](RowSink& sink) {
      int64_t id = first;
      for (const Record& r : records) {
        // Ids rise with time, so they are the position too: an entry's rows come in several calls.
        std::vector<Cell> row{id, idCell(compile), id};
        cells(r, row);
        row.insert(row.end(), {textCell(r.place.file), lineCell(r.place.line), stackCell(stackJson(r.stack), impl.stacks, sink), now});
        sink.put(kind, row);
        ++id;
      }
    };
    impl.writer->post(std::move(job), bytes);
  });
}

}  // namespace

void Recorder::symbols(Id compile, std::vector<SymbolRecord> symbols) {
  post(*impl_, RowKind::Symbol, impl_->ids.symbol, compile, std::move(symbols), [](const SymbolRecord& r, std::vector<Cell>& row) {
    row.insert(row.end(), {textCell(r.name), textCell(r.kind), textCell(r.source), r.hint ? numberCell(*r.hint) : Cell{},
                           optionalCell(r.lower), optionalCell(r.upper), textCell(r.policy), textCell(r.reason), textCell(r.before),
                           textCell(r.after)});
  });
}

void Recorder::relations(Id compile, std::vector<RelationRecord> relations) {
  post(*impl_, RowKind::Relation, impl_->ids.relation, compile, std::move(relations), [](const RelationRecord& r, std::vector<Cell>& row) {
    row.insert(row.end(), {idCell(r.guard), textCell(r.kind), textCell(r.op), textCell(r.left), textCell(r.right),
                           textCell(namesJson(r.symbols)), textCell(r.reason)});
  });
}

void Recorder::specialisations(Id compile, std::vector<SpecialisationRecord> specialisations) {
  post(*impl_, RowKind::Specialisation, impl_->ids.specialisation, compile, std::move(specialisations),
       [](const SpecialisationRecord& r, std::vector<Cell>& row) {
         row.insert(row.end(), {idCell(r.guard), textCell(r.kind), textCell(r.expression), textCell(namesJson(r.symbols)),
                                textCell(r.source), numberCell(r.value), textCell(r.op), textCell(r.reason)});
       });
}

}  // namespace fusebox::record
