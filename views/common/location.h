#pragma once

#include <cstdint>
#include <string>

namespace fusebox::views {

/// What a Location points at. Ids are the session's, stable within it.
enum class ObjectKind {
  None,       ///< a view as a whole
  Frame,      ///< a code object that was compiled or tried
  Compile,    ///< one compilation of a frame
  Graph,      ///< one graph of a compile, at one stage
  Node,       ///< one node of a graph
  Group,      ///< a fusion group
  Kernel,     ///< a generated kernel or an extern call
  Launch,     ///< one launch of a kernel
  Break,      ///< a graph break
  Guard,      ///< one guard
  Failure,    ///< one failing guard check
  Artifact,   ///< a record of an imported file
  SourceLine  ///< a line of the user's program (file, line)
};

/// A place a person can go to: the value that selection, history, bookmarks and links are made of.
struct Location {
  ObjectKind kind = ObjectKind::None;
  int64_t id = 0;
  std::string view;  ///< id of the view that showed it; empty lets any view that can
  std::string file;  ///< user's source, for SourceLine and wherever the object has a place
  int line = 0;

  bool sameObject(const Location& other) const {
    if (kind != other.kind) return false;
    if (kind == ObjectKind::SourceLine) return file == other.file && line == other.line;
    return id == other.id;
  }
  bool operator==(const Location& other) const { return sameObject(other) && view == other.view; }

  static Location ofView(std::string view) { return {ObjectKind::None, 0, std::move(view), {}, 0}; }
  static Location of(ObjectKind kind, int64_t id) { return {kind, id, {}, {}, 0}; }
  static Location sourceLine(std::string file, int line) {
    return {ObjectKind::SourceLine, 0, {}, std::move(file), line};
  }
};

}  // namespace fusebox::views
