#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "profiler/query/source_patch.h"
#include "profiler/session/reader.h"

namespace fusebox::query {

/// The engine that stock torch.compile's sessions name.
inline constexpr const char* kStock = "stock";

/// A frame of a recorded stack.
struct StackPlace {
  std::string file, function;
  int line = 0;
  auto operator<=>(const StackPlace&) const = default;
  bool isUsers() const;  ///< not PyTorch's, not Fusebox's, not Python's, of no installed library
};
/// Of the JSON in a `stack` column, innermost last; empty for what is no such list.
std::vector<StackPlace> parseStack(std::string_view json);

/// The program's text as the session holds it. Reads each file once.
class Sources {
 public:
  explicit Sources(const session::Reader& reader);

  /// Empty if the session does not hold the file.
  const std::string& text(const std::string& path);
  /// Line `number` (1-based) without its newline; empty if there is none.
  std::string line(const std::string& path, int number);
  std::vector<std::string_view> lines(const std::string& path);
  /// Paths of the user's own files.
  const std::vector<std::string>& paths() const { return paths_; }
  /// A diff of a file; without context where the session holds only some lines of it.
  std::string diff(const std::string& path, std::vector<LineEdit> edits);

 private:
  const session::Reader& reader_;
  std::vector<std::string> paths_;
  std::map<std::string, std::string> texts_;
  bool partial_ = false;
};

/// One thing that a person can do about a recompile or a graph break.
struct Advice {
  std::string title;  ///< "Make the attribute a buffer"
  std::string text;   ///< why it helps and what it changes
  std::string diff;   ///< unified diff of the recorded script; empty where the remedy is no change of a line
};

/// A guard that failed, as advice sees it.
struct GuardProblem {
  std::string engine;              ///< fusebox or stock
  std::string kind, source, text;  ///< TENSOR_MATCH, L['x'], the guard as recorded
  std::string expected, found, outcome;
  std::string file;  ///< of the line that made the assumption
  int line = 0;
  std::string codeFile;          ///< of the code object
  int codeLine = 0;              ///< its first line
  std::vector<StackPlace> call;  ///< of the call that did not fit; empty where not recorded
  struct Size {
    std::string source;
    int dim = 0;
    bool operator==(const Size&) const = default;
  };
  std::vector<Size> sizes;  ///< of other inputs that changed in the same call
  bool isResumed = false;   ///< the code resumes after a break: its names are no arguments of the call
  bool isInside = false;    ///< compiled code makes the call
  StackPlace entrance;      ///< where the program enters compiled code on the way to the call; of no file where not recorded
  bool takesAny = false;    ///< the entry that was made for the call holds for any value of the source
  std::vector<Advice> use;  ///< what to do about the line that needs the number; empty where none was recorded
};
/// Best first. Never empty: a guard that no rule knows gets what holds for all.
std::vector<Advice> adviseGuard(const GuardProblem& problem, Sources& sources);

/// For a branch of the program that depends on a size or a number.
Advice adviseBranch();

/// What differs between two texts of a tensor: "size 0: 4, now 8"; empty if they are not both tensors or nothing
/// differs.
std::string tensorDifference(const std::string& expected, const std::string& found);

/// A graph break, as advice sees it.
struct BreakProblem {
  std::string engine, kind, reason, hint, opcode;
  std::string file;
  int line = 0;
  std::vector<StackPlace> stack;  ///< innermost last; may be empty
};
/// Best first. Never empty.
std::vector<Advice> adviseBreak(const BreakProblem& problem, Sources& sources);

/// Puts `text` behind the last import at the top of the file that has one of torch; no edit if it has none.
std::vector<LineEdit> afterTorchImport(const std::vector<std::string_view>& lines, const std::string& text);

}  // namespace fusebox::query
