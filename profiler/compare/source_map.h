#pragma once

#include <map>
#include <string>
#include <vector>

#include "profiler/compare/snapshot.h"

namespace fusebox::compare {

/// Which file and line of session B is which of session A: files by the end of their paths, lines by a diff of the recorded
/// texts. Files without a text on both sides (imported traces quote single lines only) keep their line numbers.
class SourceMap {
 public:
  SourceMap(const Snapshot& a, const Snapshot& b);

  /// The place of A that a place of B was before; line 0 where the line is new.
  Place inA(const Place& b) const;
  bool sameFile(const std::string& a, const std::string& b) const;
  /// Same file, and the same line or a line that only moved.
  bool same(const Place& a, const Place& b) const;

  /// Lines of A that others of B stand for, or none.
  struct Change {
    std::string textA, textB;  ///< of the first of each, without indentation
    std::vector<int64_t> linesA, linesB;
    std::string told(bool inA) const;  ///< "12: if x.sum() > 0:", or a dash
    bool holds(int64_t line, bool inA) const;
  };
  struct Edit {
    std::string fileA, fileB;
    std::vector<Change> changes;  ///< in their order; never empty
  };
  /// Files whose code differs (comments and docstrings are none), without those of Fusebox's own package.
  const std::vector<Edit>& edits() const { return edits_; }
  /// Files of the user's program: not in site-packages, the standard library or Fusebox's package.
  static bool isUsers(const std::string& file);

 private:
  void compareTexts(const std::string& fileA, const std::string& textA, const std::string& fileB, const std::string& textB);

  std::map<std::string, std::string> fileInA_;                ///< by file of B
  std::map<std::string, std::vector<int64_t>> lineInA_;       ///< by file of B: line of A for each line of B, 0 for new ones
  std::vector<Edit> edits_;
};

}  // namespace fusebox::compare
