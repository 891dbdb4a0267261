#include "views/memory/memory_model.h"

#include <algorithm>

#include "engine/support/text.h"
#include "views/common/units.h"

namespace fusebox::views {
namespace {

Cell memoryCell(int64_t bytes) { return bytes > 0 ? bytesCell(static_cast<double>(bytes)) : Cell{"", 0}; }

constexpr size_t kMostFitted = 3000;  // first fit takes the square of it

/// Places boxes by first fit above `base`; returns the height reached.
int64_t placeAbove(std::vector<LifeBox>& boxes, size_t from, int64_t base) {
  int64_t top = base;
  const bool stack = boxes.size() - from > kMostFitted;
  std::vector<const LifeBox*> placed;
  for (size_t i = from; i < boxes.size(); ++i) {
    LifeBox& box = boxes[i];
    box.offset = stack ? top : base;
    if (!stack) {
      std::vector<const LifeBox*> alive;
      for (const LifeBox* p : placed) {
        if (p->last >= box.first && p->first <= box.last) alive.push_back(p);
      }
      std::sort(alive.begin(), alive.end(), [](const LifeBox* a, const LifeBox* b) { return a->offset < b->offset; });
      for (const LifeBox* p : alive) {
        if (p->offset >= box.offset + box.bytes) break;
        box.offset = std::max(box.offset, p->offset + p->bytes);
      }
      placed.push_back(&box);
    }
    top = std::max(top, box.offset + box.bytes);
  }
  return top;
}

}  // namespace

std::string memoryGraphName(const query::MemoryGraph& g) {
  std::string name = g.resumesAt > 0 ? say(FUSEBOX_TEXT("Memory", "{}, from line {}"), g.name, g.resumesAt) : g.name;
  if (g.backward) name = say(FUSEBOX_TEXT("Memory", "{} (backward)"), name);
  if (g.entry >= 0) name = say(FUSEBOX_TEXT("Memory", "{}, entry {}"), name, g.entry);
  return g.part.isWhole() ? name : say(FUSEBOX_TEXT("Memory", "{}, part {} of {}"), name, g.part.part, g.part.of);
}

TableRows memoryGraphRows(const query::Memory& memory) {
  TableRows rows;
  for (const auto& g : memory.graphs) {
    TableRow row;
    row.cells = {textCell(memoryGraphName(g)), memoryCell(g.peakBytes), countCell(g.peakStep), memoryCell(g.poolBytes), memoryCell(g.plannedBytes),
                 memoryCell(g.allocatedBytes), memoryCell(g.resultBytes), memoryCell(g.inputBytes), memoryCell(g.savedBytes), textCell(shortPlace(g.file, g.line))};
    row.location = {ObjectKind::Graph, g.graph, {}, g.file, static_cast<int>(g.line)};
    rows.push_back(std::move(row));
  }
  return rows;
}

TableRows bufferRows(const query::GraphLifetimes& lifetimes) {
  TableRows rows;
  for (const auto& b : lifetimes.buffers) {
    TableRow row;
    row.cells = {textCell(b.name), textCell(b.kind == "owned" ? "result" : b.kind), memoryCell(b.bytes), b.first < 0 ? Cell{"", -1} : countCell(b.first), b.first < 0 ? Cell{"", -1} : countCell(b.last),
                 textCell(b.dtype + b.shape), textCell(shortPlace(b.file, b.line))};
    row.location = {b.node > 0 ? ObjectKind::Node : ObjectKind::None, b.node, {}, b.file, static_cast<int>(b.line)};
    row.tooltip = b.name + (b.poolOffset >= 0 ? "\n" + say(FUSEBOX_TEXT("Memory", "at byte {} of the pool"), b.poolOffset) : std::string());
    if (!b.countsInPeak()) row.tone = 4;
    rows.push_back(std::move(row));
  }
  return rows;
}

TableRows savedRows(const query::GraphLifetimes& lifetimes) {
  TableRows rows;
  for (const auto& s : lifetimes.saved) {
    TableRow row;
    row.cells = {textCell(s.name), memoryCell(s.bytes), textCell(say(s.kept ? FUSEBOX_TEXT("Memory", "input or parameter") : FUSEBOX_TEXT("Memory", "saved"))), textCell(s.dtype + s.shape), textCell(shortPlace(s.file, s.line))};
    row.location = {ObjectKind::Node, s.node, {}, s.file, static_cast<int>(s.line)};
    if (s.kept) row.tone = 4;
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string measuredText(const query::MeasuredMemory& m) {
  const auto bytes = [](int64_t n) { return formatBytes(static_cast<double>(n)); };
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : "; ") + part; };
  if (m.peakRssBytes > 0 && m.startRssBytes > 0) add(say(FUSEBOX_TEXT("Memory", "the process held {} at most, {} when recording began"), bytes(m.peakRssBytes), bytes(m.startRssBytes)));
  else if (m.peakRssBytes > 0) add(say(FUSEBOX_TEXT("Memory", "the process held {} at most"), bytes(m.peakRssBytes)));
  for (const auto& d : m.devices) add(say(FUSEBOX_TEXT("Memory", "{} {} in use at most, {} taken from the device"), d.name, bytes(d.allocatedBytes), bytes(d.reservedBytes)));
  return text.empty() ? say(FUSEBOX_TEXT("Memory", "Measured: this session does not hold it.")) : say(FUSEBOX_TEXT("Memory", "Measured: {}."), text);
}

LifePicture layOutLifetimes(const query::GraphLifetimes& lifetimes) {
  LifePicture out;
  int64_t pool = 0;
  for (const bool planned : {true, false}) {
    for (size_t i = 0; i < lifetimes.buffers.size(); ++i) {
      const auto& b = lifetimes.buffers[i];
      if (!b.countsInPeak() || b.bytes <= 0 || (b.poolOffset >= 0) != planned) continue;
      out.boxes.push_back({i, b.first, std::max(b.first, b.last), planned ? b.poolOffset : 0, b.bytes});
      if (planned) pool = std::max(pool, b.poolOffset + b.bytes);
    }
    if (planned) out.height = pool;
  }
  const auto above = std::find_if(out.boxes.begin(), out.boxes.end(), [&](const LifeBox& box) { return lifetimes.buffers[box.buffer].poolOffset < 0; });
  out.height = placeAbove(out.boxes, static_cast<size_t>(above - out.boxes.begin()), pool);
  return out;
}

}  // namespace fusebox::views
