#pragma once

#include <atomic>
#include <exception>
#include <memory>
#include <utility>

#include "engine/record/gpu_recording.h"
#include "engine/record/graph_rows.h"
#include "engine/record/recorder.h"
#include "engine/record/source_files.h"
#include "profiler/session/writer.h"

namespace fusebox::record {

/// What stands behind a Recorder. Private to engine/record.
struct Recorder::Impl {
  std::unique_ptr<session::Writer> writer;  ///< null without a session
  SourceFiles sources;
  StackTable stacks;
  std::unique_ptr<GpuRecording> gpu;
  struct Ids {
    std::atomic<Id> thread{1}, frame{1}, compile{1}, stage{1}, graphBreak{1}, guard{1}, failure{1}, graph{1}, node{1},
        group{1}, decision{1}, buffer{1}, kernel{1}, cache{1}, span{1}, cudaGraph{1}, symbol{1}, relation{1}, specialisation{1};
  } ids;

  /// Runs `body`; an exception (memory) becomes a loss, never the script's.
  template <class Body>
  auto guarded(Body&& body) noexcept -> decltype(body()) {
    try {
      return body();
    } catch (const std::exception&) {
      if (writer) writer->loss("rows", 1, "out of memory");
    }
    if constexpr (!std::is_void_v<decltype(body())>) return {};
  }
  template <class Row>
  void put(Row row) {
    if (writer) writer->post(std::move(row));
  }
  template <class Job>
  void post(Job&& job, int64_t bytes) {
    if (writer) writer->post(std::forward<Job>(job), bytes);
  }
  void noteFile(const Place& place) {
    if (writer) sources.add(*writer, place.file);
  }
  template <class Record>
  void tell(Id id, const Record& record) {
    if (Listener* listener = Recorder::listener()) listener->heard({id, record, nowNs()});
  }
};

/// A JSON list of {file, line, function}; empty for an empty stack.
std::string stackJson(const std::vector<Place>& stack);

/// Empty text and unknown lines are NULL in the session.
inline session::Cell textCell(std::string value) {
  return value.empty() ? session::Cell{} : session::Cell{std::move(value)};
}
inline session::Cell lineCell(int line) { return line > 0 ? session::Cell{int64_t{line}} : session::Cell{}; }
inline session::Cell idCell(Id id) { return id > 0 ? session::Cell{int64_t{id}} : session::Cell{}; }
inline session::Cell positiveCell(int64_t value) { return value >= 0 ? session::Cell{value} : session::Cell{}; }

}  // namespace fusebox::record
