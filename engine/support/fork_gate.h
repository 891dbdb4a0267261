#pragma once

namespace fusebox {

/// Keeps `fork()` away from work that holds locks without Python's: LLVM's and the engine's own, of which a child would wait for a holder that only its
/// parent has. Every thread that compiles is inside; a fork waits until nobody else is. Where somebody stays inside for longer than the bounds (a
/// debugger stopped it there), the fork goes on. Thread-safe; in a child the gate is open and holds nobody but the thread that forked.
class ForkGate {
 public:
  /// While one lives, its thread is inside; more than one on a thread count once.
  class Inside {
   public:
    Inside();
    ~Inside();
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;
  };

  /// Called before a fork, without Python's lock, whose next holder may be who is inside: waits until no other thread is. Until done(), rest() waits.
  /// That a fork which was not announced closes the gate too is pthread_atfork's doing.
  static void announce();
  /// After it, in the parent.
  static void done();
  /// Waits while a fork is announced: between two works of a thread that always has more. Not from inside.
  static void rest();
};

}  // namespace fusebox
