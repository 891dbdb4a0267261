#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "profiler/compare/spread.h"
#include "profiler/session/reader.h"

namespace fusebox::compare {

struct Place {
  std::string file;
  int64_t line = 0;
};

/// A call node of a graph; placeholders and outputs are left out.
struct Node {
  int64_t id = 0;
  std::string op, shape, dtype;  ///< op as plainOp() spells it
  Place place;
};

/// What became one kernel or one extern call.
struct Group {
  int64_t id = 0, kernel = 0;
  std::string name, kind, reason;
  std::vector<int32_t> nodes;  ///< positions in Graph::nodes
  int64_t readBytes = 0, writeBytes = 0;
  Spread time;  ///< of a launch
  Place place;
};

/// Two nodes that could have become one kernel and did not.
struct Refusal {
  int64_t decision = 0;
  int32_t a = -1, b = -1;  ///< positions in Graph::nodes
  std::string reason;
};

/// The graph of a compile in one direction, at the latest stage that both sessions have.
struct Graph {
  int64_t id = 0, compile = 0;
  std::string stage, name;
  std::string which = {};  ///< of its function's graphs: "from line 15, entry 1"; empty where it has one only
  bool backward = false;
  std::vector<Node> nodes = {};
  std::vector<Group> groups = {};
  std::vector<Refusal> refusals = {};
  int64_t poolBytes = 0;  ///< planned: what its buffers need at most at one time
  Spread call = {};       ///< of a call of it
};

struct Guard {
  int64_t id = 0;
  std::string kind, source, expected;  ///< source: without one, all that it says, and `expected` is who asked for it
  Place place;
  bool isOfSource = true;
};

/// A number of the calls that is symbolic in an entry, or was made a constant though it could have been.
struct Symbol {
  std::string source, text;  ///< text: "symbolic, at least 2", "specialised to 5"
  Place place;
  bool isConstant = false;
};

struct Compile {
  int64_t id = 0;
  std::string backend, mode, cache, status;
  std::string which = {};  ///< of its function's: see Graph
  bool dynamic = false;
  double durNs = 0;
  std::vector<Guard> guards = {};
  std::vector<Symbol> symbols = {};
  std::vector<Graph> graphs = {};  ///< forward, then backward
};

struct Break {
  int64_t id = 0, count = 1;
  std::string kind, reason;
  Place place;
};

/// A guard that failed and made the frame compile again (or give up).
struct Recompile {
  int64_t id = 0, count = 1;
  std::string guard, expected, found, outcome;
  Place place;
};

/// A function of the user's program with everything that was compiled of it; functions that resume after a break belong to it.
struct CodeObject {
  int64_t frame = 0;
  std::string name, qualname = {};
  Place place;
  std::vector<Compile> compiles = {};
  std::vector<Break> breaks = {};
  std::vector<Break> failures = {};  ///< why it runs in Python; ids of compilations
  std::vector<Recompile> recompiles = {};
  Spread guardCheck = {};
};

/// Run time on a line of the user's program, of all kernels and calls that compute it.
struct LineTime {
  Place place;
  double totalNs = 0;
  int64_t launches = 0;
};

/// What kernels and calls are together.
struct KernelSums {
  int64_t count = 0, launches = 0;
  double ns = 0;
};

/// What compare reads of a session, in memory. Graphs keep call nodes only.
struct Snapshot {
  std::string path;
  std::map<std::string, std::string> facts;  ///< session_info
  bool imported = false;
  std::vector<CodeObject> objects;
  std::vector<Group> loose;                  ///< kernels and calls that belong to no graph that is compared
  std::vector<LineTime> lines;
  std::map<std::string, std::string> sources;
  Spread step;                               ///< of the program's loop (query/steps); count 0 where nothing repeats
  std::set<std::string> stepFunctions;       ///< that a turn of it calls; empty where it is marked by the program
  KernelSums kernels, operators;             ///< of the whole program; those of operators outside compiled functions (kind eager)
  int64_t compiles = 0, guards = 0;
  double compileNs = 0;
  bool hasGroups = false;

  bool hasScript() const;  ///< the text of the file that was started is among the sources
};

/// How far the graphs of a session go: 3 after fusion or the gradient passes, 2 forward and backward, 1 joint, 0 captured, -1
/// none. Graphs of one level can be compared, whichever engine made them.
int highestLevel(const session::Reader& reader);

/// Told how much is done (0 .. 1); an error ends the work with it.
using Checkpoint = std::function<Result<void>(double fraction)>;

/// Reads a session. `level`: the graphs to take; a compile without one of that level gives its next lower one.
Result<Snapshot> takeSnapshot(const session::Reader& reader, int level, const Checkpoint& checkpoint);

}  // namespace fusebox::compare
