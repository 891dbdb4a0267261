#pragma once

#include <bit>
#include <optional>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/capture/guards/guard_set.h"
#include "engine/capture/guards/number_history.h"
#include "engine/capture/guards/size_marks.h"

namespace fusebox::capture {

/// Which numbers of inputs may be symbols, as options and configuration say.
struct DynamicRules {
  bool byDefault = false;        ///< all sizes but 0 and 1, and ints among the arguments (dynamic=True, assume_static_by_default=False)
  bool automatic = true;         ///< what differed between captures (not with dynamic=False, automatic_dynamic_shapes=False)
  bool integers = true;          ///< not with specialize_int=True
  bool parametersStatic = true;  ///< force_parameter_static_shapes
  bool shared = true;            ///< equal sizes share a symbol (use_duck_shape of torch.fx.experimental._config)
  std::vector<std::string> dynamicSources, unbackedSources;  ///< names or regular expressions, before everything else
};

/// The rules and what earlier captures found at the place; and what this one found.
struct SymbolicPolicy {
  DynamicRules rules;
  NumberHistory* history = nullptr;  ///< of the place; null: nothing is known or noted
  bool allowed = true;               ///< false: all numbers are constants, but noted
  bool dataAllowed = true;           ///< sizes that data decide may be symbols
  std::vector<int64_t> dataHints;    ///< trace::DataSizes::hints
  int dataStarts = 0;                ///< how often capture started over with others
  bool dataUsed = false;             ///< some size was such a symbol
  bool used = false;                 ///< some number was a symbol
  bool strict = false;               ///< some number was marked so that a constant is an error
};

/// mark_dynamic cannot be honoured: stock's error of that name.
struct ConstraintViolation : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Decides, in one capture, which numbers of inputs are symbols, and guards them. Numbers of inputs that were always equal share a symbol;
/// strides that follow from sizes are expressions of them.
class SymbolicInputs {
 public:
  /// `policy` null: nothing is symbolic. All outlive this.
  SymbolicInputs(SymbolicPolicy* policy, GuardSet& guards, graph::ShapeEnv& shapes) : policy_(policy), guards_(guards), shapes_(shapes) {
    if (policy_) policy_->used = policy_->strict = false;
  }

  /// Sizes, strides and storage offset of an input with symbols in them.
  struct Geometry {
    std::vector<graph::SymExpr> sizes, strides;  ///< empty: all are constants
    graph::SymExpr offset;
    bool empty() const { return sizes.empty(); }
  };
  /// Throws ConstraintViolation where a marked size is beyond the range that the mark gives.
  Geometry geometry(PyObject* tensor, const Source* source);
  /// After the tensor's TensorMatch was added.
  void guard(const Geometry& geometry, const Source* source, const Place& place);
  /// The symbol of an int, guarded; nullopt: it is a constant of the capture.
  std::optional<graph::SymExpr> integer(PyObject* object, const Source* source, const Place& place);
  /// The symbol of the bits of a float that has changed between calls, guarded; nullopt: it is a constant of the capture.
  std::optional<graph::SymExpr> bitsOf(double value, const Source* source, const Place& place) {
    return changing(NumberSource::Kind::Bits, std::bit_cast<int64_t>(value), source, place);
  }
  /// Likewise the value of an int of numpy's, or the bits of a numpy.float64.
  std::optional<graph::SymExpr> ofArrayInt(int64_t value, const Source* source, const Place& place) {
    return changing(NumberSource::Kind::ArrayInt, value, source, place);
  }
  std::optional<graph::SymExpr> bitsOfArrayFloat(double value, const Source* source, const Place& place) {
    return changing(NumberSource::Kind::ArrayBits, std::bit_cast<int64_t>(value), source, place);
  }
  /// Expressions of the ints that are none, by where they are read.
  const std::unordered_map<const Source*, graph::SymExpr>& integers() const { return integers_; }
  /// Capture has ended: everything decided becomes guards. `dependsOnStorage`: TensorMatch guards compare storage offsets. False: a symbol
  /// has no value at run time.
  bool finish(bool dependsOnStorage);

 private:
  struct Choice {
    std::string policy, reason;
    std::optional<std::pair<int64_t, int64_t>> changed;
    int64_t lower = 2, upper = INT64_MAX;
    bool strict = false, shares = false;  ///< shares: one symbol with others of this value, where nobody says that they change on their own
  };
  std::optional<graph::SymExpr> changing(NumberSource::Kind kind, int64_t value, const Source* source, const Place& place);
  std::optional<Choice> choose(const NumberSource& at, const std::string& source, size_t rank, int64_t value, const SizeMark& mark, bool isParameter);
  graph::SymExpr symbolFor(const NumberSource& at, const std::string& source, size_t rank, int64_t value, const Choice& choice);
  std::vector<graph::SymExpr> stridesOf(const std::vector<graph::SymExpr>& sizes, const std::vector<int64_t>& hints,
                                        const std::vector<int64_t>& strides, const Source* source, const std::string& name);
  bool isMarkedStatic(const Source* source) const;
  bool isListed(const std::vector<std::string>& patterns, const std::string& name) const;

  SymbolicPolicy* policy_;
  GuardSet& guards_;
  graph::ShapeEnv& shapes_;
  struct Sharer {
    NumberSource at;
    std::string source;
    size_t rank = 0;
    int64_t value = 0;
    graph::SymExpr symbol;
  };
  std::vector<Sharer> sharers_;
  std::unordered_map<const Source*, graph::SymExpr> integers_;
};

}  // namespace fusebox::capture
