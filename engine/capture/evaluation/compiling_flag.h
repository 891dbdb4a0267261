#pragma once

namespace fusebox::capture {

// torch.compiler._is_compiling_flag, which torch.compiler.is_compiling() gives: one for all threads. The GIL must be held.

/// It is True while some thread has one of these, and then again what it was before the first.
class CompilingFlag {
 public:
  CompilingFlag();
  ~CompilingFlag();
  CompilingFlag(const CompilingFlag&) = delete;
};

/// It is False while this lives, although something is captured: what runs is the program itself.
class NotCompiling {
 public:
  NotCompiling();
  ~NotCompiling();
  NotCompiling(const NotCompiling&) = delete;
};

}  // namespace fusebox::capture
