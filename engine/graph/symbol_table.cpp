#include "engine/graph/symbol_table.h"

#include <array>
#include <atomic>
#include <mutex>
#include <new>

namespace fusebox::graph {
namespace {

constexpr uint32_t kChunkBits = 12;
constexpr uint32_t kChunkSize = 1u << kChunkBits;
constexpr uint32_t kChunkCount = 1u << 15;

/// Records live in chunks that are never freed, so readers need no lock: an id only reaches another thread after its record
/// was written.
struct SymbolTable {
  std::array<std::atomic<SymbolRecord*>, kChunkCount> chunks{};
  std::mutex mutex;
  uint32_t count = 0;

  Symbol add(SymbolRecord record) {
    std::lock_guard lock(mutex);
    uint32_t chunk = count >> kChunkBits;
    if (chunk >= kChunkCount) throw std::bad_alloc();
    SymbolRecord* records = chunks[chunk].load(std::memory_order_relaxed);
    if (!records) {
      records = new SymbolRecord[kChunkSize];
      chunks[chunk].store(records, std::memory_order_release);
    }
    records[count & (kChunkSize - 1)] = std::move(record);
    return Symbol{count++};
  }
};

SymbolTable& table() {
  static SymbolTable* instance = new SymbolTable;  // outlives every static that holds a symbol
  return *instance;
}

}  // namespace

const SymbolRecord& symbolRecord(Symbol symbol) {
  return table().chunks[symbol.id >> kChunkBits].load(std::memory_order_acquire)[symbol.id & (kChunkSize - 1)];
}

Symbol Symbol::make(std::string name, int64_t lower, int64_t upper) {
  return table().add({std::move(name), lower, upper});
}
const std::string& Symbol::name() const { return symbolRecord(*this).name; }
int64_t Symbol::lower() const { return symbolRecord(*this).lower; }
int64_t Symbol::upper() const { return symbolRecord(*this).upper; }

}  // namespace fusebox::graph
