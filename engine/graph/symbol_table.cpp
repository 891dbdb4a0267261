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
  struct Entry : SymbolRecord {
    std::atomic<int64_t> hint{kNoHint};
    std::atomic<const SymExpr*> extent{nullptr};
  };
  std::array<std::atomic<Entry*>, kChunkCount> chunks{};
  std::mutex mutex;
  uint32_t count = 0;

  Symbol add(SymbolRecord record) {
    std::lock_guard lock(mutex);
    uint32_t chunk = count >> kChunkBits;
    if (chunk >= kChunkCount) throw std::bad_alloc();
    Entry* records = chunks[chunk].load(std::memory_order_relaxed);
    if (!records) {
      records = new Entry[kChunkSize];
      chunks[chunk].store(records, std::memory_order_release);
    }
    static_cast<SymbolRecord&>(records[count & (kChunkSize - 1)]) = std::move(record);
    return Symbol{count++};
  }
};

SymbolTable& table() {
  static SymbolTable* instance = new SymbolTable;  // outlives every static that holds a symbol
  return *instance;
}

}  // namespace

namespace {

SymbolTable::Entry& entryOf(Symbol symbol) {
  return table().chunks[symbol.id >> kChunkBits].load(std::memory_order_acquire)[symbol.id & (kChunkSize - 1)];
}

}  // namespace

const SymbolRecord& symbolRecord(Symbol symbol) { return entryOf(symbol); }

std::atomic<int64_t>& symbolHint(Symbol symbol) { return entryOf(symbol).hint; }

std::atomic<const SymExpr*>& symbolExtent(Symbol symbol) { return entryOf(symbol).extent; }

Symbol Symbol::make(std::string name, int64_t lower, int64_t upper) {
  return table().add({std::move(name), lower, upper});
}
const std::string& Symbol::name() const { return symbolRecord(*this).name; }
int64_t Symbol::lower() const { return symbolRecord(*this).lower; }
int64_t Symbol::upper() const { return symbolRecord(*this).upper; }

}  // namespace fusebox::graph
