#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "profiler/compare/snapshot.h"

namespace fusebox::compare {

/// What an entry is about, in the order in which one thing leads to the next: a program, its options and its surroundings make
/// breaks, guards and recompiles, those make graphs, those make kernels, those cost memory and time.
enum class Subject : uint8_t { Section, Environment, Option, Program, Engine, CodeObject, Break, Recompile, Guard, Graph, Node, Kernel, Memory, Line, Time, Count, Symbol, Failure };
const char* subjectName(Subject subject);   ///< "graph break"
std::string subjectTitle(Subject subject);  ///< the same in the reader's language

enum class Kind : uint8_t { Same, Added, Removed, Changed };
const char* kindName(Kind kind);

/// One column of an entry. `id` is of the view that the subject has: break_id, failure_id, guard_id, graph_id, node_id,
/// kernel_id, frame_id; 0 for none.
struct Side {
  bool present = false;
  std::string text;
  int64_t id = 0;
  Place place = {};
  double value = 0;   ///< of counts, bytes and times: what changed
  Spread time = {};
};

/// A line of the comparison. Entries form a tree, in depth-first order: `parent` is always before its children.
struct Entry {
  Subject subject = Subject::Section;
  Kind kind = Kind::Same;
  Verdict verdict = Verdict::Unknown;  ///< of its times, where it has some
  int32_t parent = -1, depth = 0;
  std::string name;                    ///< what is compared: "config.fuse", "Net.forward", "aten::addmm"
  Side a = {}, b = {};
  bool structural = true;              ///< what was compiled differs, not only how long it took
  std::string note = {};               ///< a sentence: why, or what the numbers mean
  std::string change = {};             ///< "+12 %", "2 more"
  bool refusal = false;                ///< the note says that a fusion was refused
};
/// An entry's name for people: names that are words ("kernels and calls", not "Net.forward") in the reader's language.
std::string entryTitle(const Entry& entry);

/// A step of the explanation; `entry` proves it.
struct CauseStep {
  std::string text;
  int32_t entry = -1;
};

/// The first difference that explains the rest.
struct Cause {
  bool found = false;
  std::string headline;          ///< a sentence; without a cause, what can be said instead
  std::vector<CauseStep> chain;  ///< from the cause to what it costs
  int32_t explained = 0, effects = 0;  ///< how many of the compiled program's differences lie behind it, and how many there are
  std::vector<int32_t> others;   ///< entries that could be causes as well
};

/// A fact of both sessions in one line, for the head of a report.
struct Session {
  std::string path, engine, torch, device, command;
  bool imported = false;
};

struct Comparison {
  Session a, b;
  std::vector<Entry> entries;
  Cause cause;
  std::vector<std::string> limits;  ///< what could not be compared, and why

  /// An entry below one that only one side has: it says nothing more.
  bool insideOneSided(int32_t entry) const;
  /// Entries that differ, without sections and without what is inside one-sided ones.
  std::vector<int32_t> differences() const;
};

/// How far a comparison is, and the way to stop it from another thread (besides `Reader::interrupt`, which ends a long query).
struct Progress {
  std::function<void(double fraction)> report;  ///< a few dozen times; 0 .. 1
  std::atomic<bool> cancelled{false};           ///< set it, and the comparison ends with InvalidArgument
};

/// Compares two sessions, whatever made them. Errors: the readers'; that it was cancelled.
Result<Comparison> compareSessions(const session::Reader& a, const session::Reader& b, Progress* progress = nullptr);

}  // namespace fusebox::compare
