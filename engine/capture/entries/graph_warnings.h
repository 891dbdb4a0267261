#pragma once

#include <Python.h>

#include <c10/util/Exception.h>

#include <string>
#include <vector>

#include "engine/capture/effects/segment.h"

namespace fusebox::capture {

/// What operators warn of while a graph runs, kept to be told as Python's warnings when it has run.
class GraphWarnings final : public c10::WarningHandler {
 public:
  void process(const c10::Warning& warning) override;
  bool any() const { return !kept_.empty(); }
  /// Tells them, each at the line of the operator in `graph`, the traced one, that it came from; what came from no operator at `line`. `globals` are
  /// those of the frame that has `code`. The GIL must be held. False: a filter made an exception of one, which is set.
  bool tell(const graph::Graph& graph, PyCodeObject* code, int line, PyObject* globals) const;

 private:
  struct Kept {
    c10::Warning warning;
    std::string op;  ///< without overload; empty: it came from no extern call
  };
  std::vector<Kept> kept_;
};

/// Whether nobody could tell that a graph has run: it may be run again by the program.
bool mayRunAgain(const aot::AotModule& module);

/// Whether the filters that hold where operators of a segment run are not those that hold around it.
bool changesFilters(const Segment& segment);

}  // namespace fusebox::capture
