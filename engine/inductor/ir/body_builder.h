#pragma once

#include <initializer_list>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "engine/inductor/ir/loop_ir.h"

namespace fusebox::inductor {

/// The type a value is computed in: float32 for the 16-bit floats, the type itself otherwise.
DType computeType(DType type);

/// Builds the values of one section. Equal values are made once; casts to the same type and operations on constants fold where
/// that is exact. Values of 16-bit floating types are only loaded, stored and cast: arithmetic is in float32.
class BodyBuilder {
 public:
  ValueId constant(double value, DType type);
  ValueId constantInt(int64_t value, DType type);
  /// A number in `type`, from whichever form is exact for it.
  ValueId number(double value, DType type) { return constant(value, type); }
  ValueId index(const SymExpr& expr);
  /// Element `index` of a buffer, under the current mask; 16-bit floats come back as float32.
  ValueId load(BufferId buffer, DType bufferType, const SymExpr& index);
  /// Result `which` of reduction `reduction`, or what setReduced() said.
  ValueId reduced(int32_t reduction, int which, DType type);
  /// Says that reduction `reduction`, which has one result, is no loop but `v`.
  void setReduced(int32_t reduction, ValueId v) { reduced_.emplace(reduction, v); }
  /// Result `which` of the running reduction of `v`; of `type`.
  ValueId scan(ReduceKind kind, int which, DType type, ValueId v);
  ValueId cast(ValueId v, DType type);
  /// As cast, but rounds to a 16-bit floating type where `type` is one, and returns to float32.
  ValueId round(ValueId v, DType type);
  ValueId emit(Op op, DType type, std::initializer_list<ValueId> args);
  /// `v`, which may be any value with operands of this section, its loads' masks included; simplified as by emit() and cast().
  ValueId rebuild(Value v);
  ValueId where(ValueId condition, ValueId a, ValueId b);
  /// `v`, with `fault` reported where `condition` is false and the current mask true.
  ValueId check(ValueId v, ValueId condition, Fault fault);
  /// A symbol for a loaded index that is known to lie in [0, size).
  Symbol indirect(ValueId v, const SymExpr& size);
  /// The values that loaded indices stand for.
  const std::map<Symbol, ValueId>& indirects() const { return section_.indirect; }

  /// Loads made until popMask happen only where the conjunction of the pushed conditions is true.
  void pushMask(ValueId condition);
  void popMask() { masks_.pop_back(); }
  /// `e`, of which the current mask says that it lies in [0, size): so that indices made of it are simplified by that. What is built with it
  /// has `e` itself.
  SymExpr assumed(const SymExpr& e, const SymExpr& size);
  /// Formulas that are read count as buffers from now on: the body of one formula alone, for looking at.
  void readOnly() { isReadOnly_ = true; }
  bool isReadOnly() const { return isReadOnly_; }
  ValueId mask() const { return masks_.empty() ? -1 : masks_.back(); }

  DType type(ValueId v) const { return section_.values[static_cast<size_t>(v)].type; }
  const Value& value(ValueId v) const { return section_.values[static_cast<size_t>(v)]; }
  /// The value if it is a constant, as a double (integers up to 2^53 exactly).
  bool isConstant(ValueId v, double expected) const;

  void store(BufferId buffer, const SymExpr& index, ValueId v, ValueId mask = -1);
  void atomicAdd(BufferId buffer, const SymExpr& index, ValueId v, ValueId mask);
  void reduce(ReduceKind kind, int32_t reduction, std::array<ValueId, 3> inputs);

  /// Remembered results of inlined tensors: `key` identifies the tensor, `index` where it was read.
  ValueId recall(const void* key, const std::vector<SymExpr>& index) const;
  void remember(const void* key, const std::vector<SymExpr>& index, ValueId v);

  /// While it lives, values that are made are a part of the formula of `node`; -1 leaves them where they were.
  class Formula {
   public:
    Formula(BodyBuilder& builder, graph::NodeId node) : builder_(builder), outer_(builder.node_) {
      if (node >= 0) builder.node_ = node;
    }
    ~Formula() { builder_.node_ = outer_; }
    Formula(const Formula&) = delete;

   private:
    BodyBuilder& builder_;
    graph::NodeId outer_;
  };

  /// Graph nodes whose computation was inlined, in order of first use.
  std::vector<graph::NodeId> origins;
  void addOrigins(const std::vector<graph::NodeId>& nodes);

  /// The section without values that no statement needs. The builder is empty afterwards.
  Section finish(std::vector<Axis> axes, bool isReduction);

 private:
  ValueId add(Value value);
  /// Without the symbols that assumed() made.
  SymExpr plain(const SymExpr& e) const;
  ValueId fold(Op op, DType type, const std::initializer_list<ValueId>& args);

  struct Memo {
    const void* key;
    std::vector<SymExpr> index;
    ValueId mask, value;
  };
  Section section_;
  std::unordered_multimap<size_t, ValueId> known_;
  std::unordered_multimap<size_t, Memo> memo_;
  std::unordered_set<graph::NodeId> seenOrigins_;
  std::vector<ValueId> masks_;
  std::unordered_map<ValueId, Symbol> indirect_;
  std::unordered_map<int32_t, ValueId> reduced_;
  struct Assumed {
    SymExpr meant, size;
  };
  std::map<Symbol, Assumed> assumed_;
  bool isReadOnly_ = false;
  graph::NodeId node_ = -1;  ///< whose formula is being made
};

}  // namespace fusebox::inductor
