#pragma once

#include <map>
#include <string>
#include <vector>

namespace fusebox::views {

/// Which lines of a kernel's code belong together, as the texts say themselves: `.loc 1 N 0` in assembly stands before what carries out
/// line N of the loop IR, and `# name` behind a line of that names the graph node whose formula it is a part of. Lines count from 1.
class CodeLines {
 public:
  CodeLines() = default;
  CodeLines(const std::string& loopIr, const std::string& assembly);

  /// Of the assembly, that carry out lines of the loop IR.
  std::vector<int> assemblyOf(const std::vector<int>& loopLines) const;
  /// Of the loop IR, that a line of the assembly carries out; 0: none, or not known.
  int loopOf(int assemblyLine) const;
  /// The node's name; empty where a line has none.
  std::string nodeOf(int loopLine) const;
  /// Of the loop IR, that belong to a node of this name.
  std::vector<int> linesOf(const std::string& node) const;

 private:
  std::map<int, int> loops_;           ///< line of the loop IR by line of the assembly
  std::map<int, std::string> nodes_;   ///< by line of the loop IR
};

}  // namespace fusebox::views
