#pragma once

#include <cstddef>
#include <string>

#include "engine/capture/evaluation/evaluation.h"
#include "engine/capture/evaluation/fresh_contents.h"

namespace fusebox::capture {

/// Calls of functions that capture makes and the program may not: nobody may notice them. From its construction on.
class UnnoticedCalls {
 public:
  explicit UnnoticedCalls(Evaluation& evaluation);
  /// What the functions do that others may notice ("draw random numbers"); empty: nothing so far.
  std::string whyNoticed() const;
  size_t firstNode() const { return first_; }  ///< of the graph, among those that they made

 private:
  Evaluation& e_;
  Evaluation::Effects before_;
  FreshContents made_;
  size_t first_;
};

}  // namespace fusebox::capture
