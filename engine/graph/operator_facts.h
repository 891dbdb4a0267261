#pragma once

#include <string>

#include "engine/graph/graph.h"

/// What operators do besides computing their results: the one place that says so. It comes from the dispatcher's tags and schemas
/// (trace/operator_facts), and is looked up by the name that a node carries, so that it holds whoever made the node.
namespace fusebox::graph {

struct OperatorFacts {
  bool random = false;         ///< draws from a generator; see drawsRandom()
  bool foreign = false;        ///< from outside of PyTorch's own functional operators: may do anything, and keep what it is given
  bool effectful = false;      ///< called for what it does: foreign ones, assertions, printing
  bool repeatable = true;      ///< doing it again does no harm (assertions); false for effects that somebody sees twice
  bool python = false;         ///< a function of Python carries it out, which sees the program's objects
  bool writes = false;         ///< changes an argument in place
  bool view = false;           ///< the result may share its first argument's memory
  bool reinterprets = false;   ///< such a view under another element type or with another sign
  bool factory = false;        ///< takes no tensors
  bool uninitialised = false;  ///< gives memory as it is found
  bool pointwise = false;
  bool elementwise = false;    ///< computes of elements of its broadcast operands, before a reduction if it has one; pointwise ones do
  bool jumps = false;          ///< its results are floats that jump where operands change a little, as floor's
  bool moves = false;          ///< gives elements of its operands as they are, in other places
  bool total = false;          ///< gives a result whatever the data are; others may raise because of them
  bool checksData = false;     ///< raises on the CPU where its data do not fit: an index beyond the end, a divisor of 0
  bool collective = false;     ///< other processes take part
  int dropoutAt = -1;          ///< position of the probability that decides whether a random operator draws at all
  std::string notCapturable;   ///< why a CUDA graph cannot hold it; empty: it can
};

/// Facts of an operator by its name in a graph ("aten::add.Tensor"). Where no dispatcher is at hand, or none knows it, what the
/// namespace says. The reference stays valid; any thread.
const OperatorFacts& factsOf(const std::string& op);
inline const OperatorFacts& factsOf(const Node& node) { return factsOf(node.op); }

/// Facts by name from a dispatcher; false where it does not know the operator.
using OperatorFactsSource = bool (*)(const std::string& op, OperatorFacts& facts);
void setOperatorFactsSource(OperatorFactsSource source);

/// Another operator may get the name. References stay valid.
void forgetFacts(const std::string& op);

/// Facts that a saved graph brings along: they count where there is no dispatcher.
void learnFacts(const std::string& op, OperatorFacts facts);

/// Names of what holds of an operator, as a saved graph has them; empty for one that only computes.
std::vector<std::string> flagNames(const OperatorFacts& facts);
OperatorFacts factsOfFlags(const std::vector<std::string>& names);

/// Whether a call takes numbers from a generator.
bool drawsRandom(const Node& node);
/// Whether a call must run exactly once, in the order of the program among all such: it is never removed, merged or repeated.
bool isOrdered(const Node& node);
/// Whether the data may make a call raise as eager does, be its results needed or not.
bool checksData(const Node& node);
/// Whether a call is carried out although nobody reads its results.
inline bool isKept(const Node& node) { return isOrdered(node) || checksData(node); }

/// Whether results of a node have the history of what it reads.
inline bool handsHistoryOn(const Node& node) { return !node.noGrad && node.op != "aten::detach"; }

/// The first operand, in the place of the second, of which it has the history: what was written where autograd did not hear of it. Only in a joint graph.
inline constexpr const char* kOverwritten = "fusebox::overwritten";
/// What graph passes make of an operator that checks its operand: the operand, all of whose elements lie between 0 and 1.
inline constexpr const char* kInUnitRange = "fusebox::in_unit_range";
/// bmm in float32 proper, whatever precision the program allows to products (runtime/own_operators.h).
inline constexpr const char* kExactProduct = "fusebox::exact_bmm";
/// Uniform numbers in [0, 1) of a seed, a stream and a size, which a graph may compute wherever it wants them.
inline constexpr const char* kUniform = "fusebox::uniform";

}  // namespace fusebox::graph
