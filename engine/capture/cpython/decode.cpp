#include <array>
#include <string_view>
#include <unordered_map>

#include "engine/capture/cpython/frame_internals.h"
#include "engine/capture/cpython/instruction.h"
#include "engine/capture/cpython/once.h"

namespace fusebox::capture {

namespace {

constexpr std::array<const char*, static_cast<size_t>(Op::UNKNOWN) + 1> kOpNames = {
#define X(name) #name,
    FUSEBOX_OPS(X)
#undef X
};

enum class Jump : uint8_t { None, Forward, Backward };

struct OpcodeRow {
  Op op = Op::UNKNOWN;
  Jump jump = Jump::None;
  uint8_t caches = 0;
  std::string name;
};

/// Rows by CPython's opcode number, read from the interpreter's own `opcode` module so that one decoder serves all versions.
struct OpcodeTable {
  std::array<OpcodeRow, 256> rows;
  OpcodeTable();
};

/// Names that differ between versions but mean the same.
const std::unordered_map<std::string_view, Op>& synonyms() {
  static const std::unordered_map<std::string_view, Op> table = {
      {"JUMP_FORWARD", Op::JUMP},
      {"JUMP_BACKWARD", Op::JUMP},
      {"JUMP_BACKWARD_NO_INTERRUPT", Op::JUMP},
      {"POP_JUMP_FORWARD_IF_FALSE", Op::POP_JUMP_IF_FALSE},
      {"POP_JUMP_BACKWARD_IF_FALSE", Op::POP_JUMP_IF_FALSE},
      {"POP_JUMP_FORWARD_IF_TRUE", Op::POP_JUMP_IF_TRUE},
      {"POP_JUMP_BACKWARD_IF_TRUE", Op::POP_JUMP_IF_TRUE},
      {"POP_JUMP_FORWARD_IF_NONE", Op::POP_JUMP_IF_NONE},
      {"POP_JUMP_BACKWARD_IF_NONE", Op::POP_JUMP_IF_NONE},
      {"POP_JUMP_FORWARD_IF_NOT_NONE", Op::POP_JUMP_IF_NOT_NONE},
      {"POP_JUMP_BACKWARD_IF_NOT_NONE", Op::POP_JUMP_IF_NOT_NONE},
  };
  return table;
}

Op opOfName(std::string_view name) {
  if (auto it = synonyms().find(name); it != synonyms().end()) return it->second;
  for (size_t i = 0; i < kOpNames.size(); ++i)
    if (name == kOpNames[i]) return static_cast<Op>(i);
  return Op::UNKNOWN;
}

OpcodeTable::OpcodeTable() {
  PyRef module = PyRef::steal(PyImport_ImportModule("opcode"));
  PyRef names = PyRef::steal(PyObject_GetAttrString(module.get(), "opname"));
  PyRef caches = PyRef::steal(PyObject_GetAttrString(module.get(), "_inline_cache_entries"));
  PyRef relative = PyRef::steal(PyObject_GetAttrString(module.get(), "hasjrel"));
  for (size_t i = 0; i < rows.size(); ++i) {
    OpcodeRow& row = rows[i];
    row.name = utf8Of(PyList_GetItem(names.get(), static_cast<Py_ssize_t>(i)));
    row.op = opOfName(row.name);
    row.caches = static_cast<uint8_t>(PyLong_AsLong(PyList_GetItem(caches.get(), static_cast<Py_ssize_t>(i))));
    PyRef number = PyRef::steal(PyLong_FromSize_t(i));
    if (PySequence_Contains(relative.get(), number.get()) == 1)
      row.jump = row.name.find("BACKWARD") != std::string::npos ? Jump::Backward : Jump::Forward;
  }
}

const OpcodeTable& opcodeTable() {
  static Once<OpcodeTable> table;
  return table.get([] { return OpcodeTable(); });
}

/// The exception table's variable-length integers, six bits a byte, most significant first.
class TableReader {
 public:
  explicit TableReader(PyObject* bytes)
      : at_(reinterpret_cast<const unsigned char*>(PyBytes_AS_STRING(bytes))), end_(at_ + PyBytes_GET_SIZE(bytes)) {}
  bool atEnd() const { return at_ >= end_; }
  int next() {
    int value = *at_ & 63;
    while (*at_++ & 64) value = (value << 6) | (*at_ & 63);
    return value;
  }

 private:
  const unsigned char *at_, *end_;
};

void decodeHandlers(DecodedCode& out) {
  TableReader reader(out.code->co_exceptiontable);
  auto indexOf = [&](int unit) {
    return unit < static_cast<int>(out.indexOfOffset.size()) ? out.indexOfOffset[static_cast<size_t>(unit)]
                                                               : static_cast<int>(out.instructions.size());
  };
  while (!reader.atEnd()) {
    const int start = reader.next(), length = reader.next(), target = reader.next(), depthLasti = reader.next();
    out.handlers.push_back(
        {indexOf(start), indexOf(start + length), indexOf(target), depthLasti >> 1, (depthLasti & 1) != 0});
  }
}

void decodeInstructions(DecodedCode& out, const unsigned char* bytes, int units) {
  const OpcodeTable& table = opcodeTable();
  std::vector<int> targetUnits;
  out.indexOfOffset.assign(static_cast<size_t>(units), 0);
  int extended = 0, firstUnit = -1;
  for (int unit = 0; unit < units;) {
    const OpcodeRow& row = table.rows[bytes[2 * unit]];
    const int arg = (extended << 8) | bytes[2 * unit + 1];
    if (firstUnit < 0) firstUnit = unit;
    out.indexOfOffset[static_cast<size_t>(unit)] = static_cast<int>(out.instructions.size());
    if (row.op == Op::EXTENDED_ARG) {
      extended = arg;
      ++unit;
      continue;
    }
    const int next = unit + 1 + row.caches;
    for (int i = unit + 1; i < next && i < units; ++i)
      out.indexOfOffset[static_cast<size_t>(i)] = static_cast<int>(out.instructions.size()) + 1;
    out.instructions.push_back({row.op, arg, -1, firstUnit, bytes[2 * unit]});
    targetUnits.push_back(row.jump == Jump::None ? -1 : row.jump == Jump::Forward ? next + arg : next - arg);
    extended = 0;
    firstUnit = -1;
    unit = next;
  }
  for (size_t i = 0; i < targetUnits.size(); ++i)
    if (targetUnits[i] >= 0 && targetUnits[i] < units)
      out.instructions[i].target = out.indexOfOffset[static_cast<size_t>(targetUnits[i])];
}

}  // namespace

const char* name(Op op) { return kOpNames[static_cast<size_t>(op)]; }

std::string opcodeName(int opcode) { return opcodeTable().rows[static_cast<size_t>(opcode & 255)].name; }

const HandlerRange* DecodedCode::handlerOf(int index) const {
  for (const HandlerRange& range : handlers)
    if (range.first <= index && index < range.last) return &range;
  return nullptr;
}

int DecodedCode::lineOf(int index) const {
  constexpr int32_t kUnasked = -2;  // -1: the instruction has no line
  if (lines_.empty()) lines_.assign(instructions.size(), kUnasked);
  int32_t& line = lines_[static_cast<size_t>(index)];
  if (line == kUnasked) line = PyCode_Addr2Line(code, instructions[static_cast<size_t>(index)].offset * 2);
  return line;
}

namespace {

void freeDecoded(void* decoded) { delete static_cast<std::shared_ptr<const DecodedCode>*>(decoded); }

}  // namespace

std::shared_ptr<const DecodedCode> decodeCode(PyCodeObject* code) {
  static const Py_ssize_t slot = requestCodeSlot(freeDecoded);
  if (void* known = codeSlot(code, slot)) return *static_cast<std::shared_ptr<const DecodedCode>*>(known);
  auto decoded = std::make_shared<DecodedCode>();
  decoded->code = code;
  PyRef bytes = PyRef::steal(PyCode_GetCode(code));  // de-specialised
  decodeInstructions(*decoded, reinterpret_cast<const unsigned char*>(PyBytes_AS_STRING(bytes.get())),
                     static_cast<int>(PyBytes_GET_SIZE(bytes.get()) / 2));
  decodeHandlers(*decoded);
  decoded->names = PyRef::borrow(code->co_names);
  decoded->consts = PyRef::borrow(code->co_consts);
  decoded->freeOffset = code->co_nlocalsplus - code->co_nfreevars;
  setCodeSlot(code, slot, new std::shared_ptr<const DecodedCode>(decoded));
  return decoded;
}

}  // namespace fusebox::capture
