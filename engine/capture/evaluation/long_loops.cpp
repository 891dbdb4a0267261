// Loops of so many turns that following them to their end costs more than it brings: where that is noticed, and where segments end instead.
#include "engine/capture/evaluation/evaluation.h"

#include <algorithm>

namespace fusebox::capture {
namespace {

/// Instructions that one loop may have read in a segment, for loops that compute with Python's numbers.
constexpr int64_t kMostInstructions = 2'000'000;

}  // namespace

void Evaluation::willTurn(Frame& f, int head) {
  if (!options_.longLoops || breaksAreErrors) return;
  // Loops inside of this one begin anew in its next turn.
  std::erase_if(f.loops, [&](const Frame::Loop& inner) { return inner.head > head && inner.head <= f.pc; });
  const auto operators = static_cast<int64_t>(trace_->recordedOps());
  const auto loop = std::find_if(f.loops.begin(), f.loops.end(), [&](const Frame::Loop& l) { return l.head == head; });
  if (loop == f.loops.end()) {
    f.loops.push_back({head, operators, bytecodes_});
    return;
  }
  const int64_t did = operators - loop->operators, read = bytecodes_ - loop->instructions;
  if (did <= options_.loopOperators && read <= kMostInstructions) return;
  const int line = f.decoded->lineOf(head);
  Place at = place();
  at.line = line;
  LongLoop found{f.decoded->instructions[static_cast<size_t>(head)].offset, did <= options_.loopOperators / 16, {"long loop", {}, {}, at, stackPlaces()}};
  GraphBreak& why = found.why;
  why.stack.back().line = line;
  why.reason = "the loop at line " + std::to_string(line) + " is not at its end after " + (found.isPythons ? std::to_string(read) + " instructions" : std::to_string(did) + " operators");
  why.hint = found.isPythons ? "Compute such numbers before, or outside compiled code."
                             : "It is compiled turn by turn. Operators on whole tensors would be faster; fullgraph=True and fusebox.config.loop_operators follow it further.";
  CaptureBreak stopped{why};
  if (&f == root_.get()) stopped.loop = std::move(found);
  throw stopped;
}

const LongLoop* Evaluation::longLoopHere(const Frame& root) const {
  if (rootCount_ == 0 || !options_.longLoops) return nullptr;
  const int offset = root.instruction().offset;
  const auto found = std::find_if(options_.longLoops->begin(), options_.longLoops->end(), [&](const LongLoop& l) { return l.offset == offset; });
  return found == options_.longLoops->end() ? nullptr : &*found;
}

}  // namespace fusebox::capture
