#include "engine/graph/operator_facts.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>
#include <shared_mutex>

namespace fusebox::graph {
namespace {

std::atomic<OperatorFactsSource> theSource{nullptr};

struct Flag {
  const char* name;
  bool OperatorFacts::* field;
  bool usual = false;
};
constexpr Flag kFlags[] = {
    {"random", &OperatorFacts::random},       {"foreign", &OperatorFacts::foreign},
    {"effectful", &OperatorFacts::effectful}, {"not_repeatable", &OperatorFacts::repeatable, true},
    {"python", &OperatorFacts::python},
    {"writes", &OperatorFacts::writes},       {"view", &OperatorFacts::view},
    {"reinterprets", &OperatorFacts::reinterprets}, {"factory", &OperatorFacts::factory},
    {"uninitialised", &OperatorFacts::uninitialised}, {"pointwise", &OperatorFacts::pointwise},
    {"elementwise", &OperatorFacts::elementwise}, {"jumps", &OperatorFacts::jumps}, {"moves", &OperatorFacts::moves},
    {"collective", &OperatorFacts::collective}, {"checks_data", &OperatorFacts::checksData},
};

/// PyTorch's own functional operators, and what graph passes make of them.
bool isOwn(const std::string& op) { return op.starts_with("aten::") || op.starts_with("prims::") || op.starts_with("fusebox::"); }

OperatorFacts makeFacts(const std::string& op) {
  OperatorFacts facts;
  if (const OperatorFactsSource source = theSource.load(); source && source(op, facts)) return facts;
  facts.foreign = facts.effectful = !isOwn(op);
  facts.repeatable = !facts.foreign;
  facts.checksData = op == kInUnitRange;
  return facts;
}

struct Table {
  std::atomic<uint64_t> generation{0};  ///< changes where a name may mean something else
  std::shared_mutex mutex;
  std::unordered_map<std::string, std::unique_ptr<const OperatorFacts>> facts;
  std::vector<std::unique_ptr<const OperatorFacts>> former;  ///< of operators that are no more, which somebody may still read
  static Table& instance() {
    static auto* table = new Table;  // asked until the process ends
    return *table;
  }
};

}  // namespace

namespace {

const OperatorFacts& factsInTable(Table& table, const std::string& op);

/// What this thread was answered last, by a hash of the name: every pass asks of every node, and the table has a lock.
struct Answers {
  struct Answer {
    std::string op;
    const OperatorFacts* facts = nullptr;
  };
  Answer answers[256];
  uint64_t generation = 0;

  Answer& of(const std::string& op, uint64_t now) {
    if (generation != now) {
      for (Answer& answer : answers) answer.facts = nullptr;
      generation = now;
    }
    uint64_t last = 0;
    std::memcpy(&last, op.data() + (op.size() < 8 ? 0 : op.size() - 8), std::min<size_t>(op.size(), 8));
    const uint64_t middle = static_cast<unsigned char>(op[op.size() / 2]);
    return answers[((last ^ op.size() << 7 ^ middle << 3) * 0x9E3779B97F4A7C15u) >> 56];
  }
};

}  // namespace

const OperatorFacts& factsOf(const std::string& op) {
  static const OperatorFacts none;  // of what is no call
  if (op.empty()) return none;
  static thread_local Answers answers;
  Table& table = Table::instance();
  Answers::Answer& answer = answers.of(op, table.generation.load(std::memory_order_acquire));
  if (answer.facts && answer.op == op) return *answer.facts;
  const OperatorFacts& facts = factsInTable(table, op);
  answer = {op, &facts};
  return facts;
}

namespace {

const OperatorFacts& factsInTable(Table& table, const std::string& op) {
  {
    std::shared_lock lock(table.mutex);
    if (auto known = table.facts.find(op); known != table.facts.end()) return *known->second;
  }
  auto made = std::make_unique<const OperatorFacts>(makeFacts(op));  // outside the lock: a source takes locks of its own
  std::unique_lock lock(table.mutex);
  return *table.facts.try_emplace(op, std::move(made)).first->second;
}

}  // namespace

void setOperatorFactsSource(OperatorFactsSource source) { theSource = source; }

void forgetFacts(const std::string& op) {
  Table& table = Table::instance();
  std::unique_lock lock(table.mutex);
  const auto known = table.facts.find(op);
  if (known == table.facts.end()) return;
  table.former.push_back(std::move(known->second));
  table.facts.erase(known);
  ++table.generation;
}

void learnFacts(const std::string& op, OperatorFacts facts) {
  if (theSource.load() || op.empty()) return;
  Table& table = Table::instance();
  std::unique_lock lock(table.mutex);
  table.facts.try_emplace(op, std::make_unique<const OperatorFacts>(std::move(facts)));
}

std::vector<std::string> flagNames(const OperatorFacts& facts) {
  std::vector<std::string> names;
  for (const Flag& flag : kFlags)
    if (facts.*flag.field != flag.usual) names.emplace_back(flag.name);
  return names;
}

OperatorFacts factsOfFlags(const std::vector<std::string>& names) {
  OperatorFacts facts;
  for (const Flag& flag : kFlags)
    for (const std::string& name : names)
      if (name == flag.name) facts.*flag.field = !flag.usual;
  return facts;
}

bool drawsRandom(const Node& node) {
  const OperatorFacts& facts = factsOf(node);
  if (!facts.random || facts.dropoutAt < 0 || static_cast<size_t>(facts.dropoutAt) >= node.args.size()) return facts.random;
  const auto* probability = node.args[static_cast<size_t>(facts.dropoutAt)].as<double>();
  return !probability || *probability != 0;
}

bool checksData(const Node& node) {
  if (node.isModel) return false;
  const OperatorFacts& facts = factsOf(node);
  if (!facts.checksData || node.outputs.empty() || node.outputs[0].kind != OutputMeta::Kind::Tensor) return false;
  const TensorMeta& made = node.outputs[0].tensor;
  if (made.device.kind != DeviceKind::Cpu) return false;
  if (!facts.pointwise) return true;
  // Divisions: of integers, by what may be 0.
  if (!isIntegral(made.dtype) || node.args.size() < 2) return false;
  const auto* whole = node.args[1].as<int64_t>();
  return !whole || *whole == 0;
}

bool isOrdered(const Node& node) {
  if (node.isModel) return false;
  const OperatorFacts& facts = factsOf(node);
  return facts.effectful || facts.writes || drawsRandom(node);
}

}  // namespace fusebox::graph
