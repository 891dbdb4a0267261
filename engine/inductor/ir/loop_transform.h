#pragma once

#include <functional>
#include <map>
#include <vector>

#include "engine/graph/axis_symbol.h"
#include "engine/inductor/ir/loop_ir.h"

/// Mechanical changes to kernels and sections, shared by the scheduler's passes.
namespace fusebox::inductor {

using Substitution = std::map<Symbol, SymExpr>;

/// Calls `fn` with every index expression of the section.
template <class SectionType, class Fn>
void forEachIndex(SectionType& section, Fn&& fn) {
  for (auto& value : section.values)
    if (value.op == Op::Load || value.op == Op::Index) fn(value.index);
  for (auto& statement : section.body)
    if (statement.kind != Statement::Kind::Reduce) fn(statement.index);
}

/// Calls `fn` with every value operand of `value` (loaded masks included).
template <class ValueType, class Fn>
void forEachOperand(ValueType& value, Fn&& fn) {
  if (value.op != Op::Reduced)  // there args[0] names a reduction
    for (auto& arg : value.args)
      if (arg >= 0) fn(arg);
  if (value.mask >= 0) fn(value.mask);
}

/// Calls `fn` with every value that `statement` uses.
template <class StatementType, class Fn>
void forEachOperandOf(StatementType& statement, Fn&& fn) {
  if (statement.value >= 0) fn(statement.value);
  if (statement.mask >= 0) fn(statement.mask);
  for (auto& input : statement.inputs)
    if (input >= 0) fn(input);
}

SymExpr substitute(const SymExpr& expression, const Substitution& map);
/// Replaces symbols in every index of the section (not in its axes).
void substitute(Section& section, const Substitution& map);

/// Appends `from`'s values and statements to `to`, which runs over the same points. Loaded-index symbols get new names.
void appendSection(Section& to, const Section& from);

/// Drops values that no statement, operand or loaded index needs.
void removeDeadValues(Section& section);

/// Merges equal values. At each point a section evaluates its values before it carries out its statements, so equal loads are
/// equal whatever the section stores.
void mergeEqualValues(Section& section);

}  // namespace fusebox::inductor
