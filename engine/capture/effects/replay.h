#pragma once

#include <functional>
#include <span>
#include <vector>

#include "engine/capture/effects/segment.h"

namespace fusebox::capture {

/// Makes the Python objects that a segment's recipes describe and carries out its side effects, for one call. Objects that
/// several recipes share (`Recipe::id`) are made once; cycles through mutable containers are tied. The GIL must be held.
///
/// `sources` are the objects that FromSource recipes mean, by Recipe::index (numberSources() assigns it); `symbols` the values of the
/// segment's symbols in this call, in their order.
class Replay {
 public:
  Replay(const std::vector<at::Tensor>& outputs, const std::vector<PyRef>& sources, size_t sharedCount, std::span<const int64_t> symbols = {});

  /// The object, or null with a Python error set. For Recipe::Kind::Null: null without error, told apart by isNull().
  PyRef build(const Recipe& recipe);
  static bool isNull(const Recipe& recipe) { return recipe.kind == Recipe::Kind::Null; }
  /// False with a Python error set.
  bool apply(const SideEffect& effect);

 private:
  friend struct Builders;
  PyRef make(const Recipe& recipe);
  bool fillAttributes(const Recipe& recipe, PyObject* object);
  bool fill(const Recipe& recipe, PyObject* object);
  /// Builds `child` and hands it to `place`; when the child is an immutable object whose making is still going on (a cycle),
  /// `place` is called once it is there.
  bool give(const Recipe& child, std::function<bool(PyObject*)> place);
  bool finishPending();
  PyRef buildTuple(const std::vector<RecipePtr>& items);

  struct Pending {
    int32_t id;
    std::function<bool(PyObject*)> place;
  };
  const std::vector<at::Tensor>& outputs_;
  const std::vector<PyRef>& sources_;
  std::span<const int64_t> symbols_;
  std::vector<PyRef> made_;        ///< by Recipe::id
  std::vector<bool> inProgress_;   ///< by Recipe::id
  std::vector<Pending> pending_;
  int depth_ = 0;
};

/// Gives every FromSource recipe of the segment the position of its source in `sources`, to which missing ones are appended.
void numberSources(Segment& segment, std::vector<const Source*>& sources);
/// Which of the first `count` sources FromSource recipes use (after numberSources()).
std::vector<bool> inputsUsedByRecipes(const Segment& segment, size_t count);
/// The objects that recipes and effects name themselves. The pointers are good as long as the segment is not changed.
std::vector<HeldRef*> heldByRecipes(Segment& segment);
/// One more than the greatest Recipe::id of the segment.
size_t sharedCountOf(const Segment& segment);

}  // namespace fusebox::capture
