#pragma once

#include <c10/core/InferenceMode.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/capture/cpython/py_ref.h"

namespace fusebox::capture {

/// `with torch.inference_mode()` inside of what is captured: entered and left in this thread as the program does, so that stand-ins are tensors of the
/// mode as eager's are. What runs after a segment cannot leave a block that the segment has entered: capture ends before the outermost that is open.
class InferenceBlocks {
 public:
  ~InferenceBlocks() { leaveAll(); }
  /// `at`: the root instruction that enters it.
  void enter(PyObject* block, bool on, int64_t at) { open_.push_back({PyRef::borrow(block), std::make_unique<c10::InferenceMode>(on), at}); }
  /// False: it is not the one that was entered last.
  bool leave(PyObject* block) {
    if (open_.empty() || open_.back().block.get() != block) return false;
    open_.pop_back();
    return true;
  }
  void leaveAll() {
    while (!open_.empty()) open_.pop_back();
  }
  /// The root instruction that entered the outermost; -1: none is open.
  int64_t openSince() const { return open_.empty() ? -1 : open_.front().at; }

 private:
  struct Open {
    PyRef block;
    std::unique_ptr<c10::InferenceMode> mode;
    int64_t at;
  };
  std::vector<Open> open_;
};

}  // namespace fusebox::capture
