// The instructions around a graph break as people read them in dis.
#include <algorithm>
#include <array>

#include "engine/capture/cpython/errors.h"
#include "engine/capture/entries/entry_log.h"
#include "engine/capture/guards/guard_tree.h"
#include "engine/capture/cpython/instruction.h"

namespace fusebox::capture {
namespace {

constexpr int kBefore = 30, kAfter = 20;
constexpr size_t kLongestArgument = 80;

/// What the argument of an instruction is an index into.
enum class Names : uint8_t { Local, Name, HalfName, QuarterName, AttributeName, Constant, Comparison };

struct ArgumentRow {
  Op op;
  Names names;
};
constexpr ArgumentRow kArguments[] = {
    {Op::LOAD_FAST, Names::Local},         {Op::LOAD_FAST_CHECK, Names::Local}, {Op::LOAD_FAST_AND_CLEAR, Names::Local},
    {Op::STORE_FAST, Names::Local},        {Op::DELETE_FAST, Names::Local},     {Op::LOAD_CLOSURE, Names::Local},
    {Op::LOAD_DEREF, Names::Local},        {Op::STORE_DEREF, Names::Local},     {Op::DELETE_DEREF, Names::Local},
    {Op::LOAD_CLASSDEREF, Names::Local},   {Op::MAKE_CELL, Names::Local},       {Op::LOAD_GLOBAL, Names::HalfName},
    {Op::STORE_GLOBAL, Names::Name},       {Op::DELETE_GLOBAL, Names::Name},    {Op::LOAD_NAME, Names::Name},
    {Op::STORE_NAME, Names::Name},         {Op::DELETE_NAME, Names::Name},      {Op::LOAD_ATTR, Names::AttributeName},
    {Op::LOAD_METHOD, Names::Name},        {Op::STORE_ATTR, Names::Name},       {Op::LOAD_SUPER_ATTR, Names::QuarterName},
    {Op::IMPORT_NAME, Names::Name},        {Op::IMPORT_FROM, Names::Name},      {Op::LOAD_CONST, Names::Constant},
    {Op::RETURN_CONST, Names::Constant},   {Op::KW_NAMES, Names::Constant},     {Op::COMPARE_OP, Names::Comparison},
};

constexpr std::array kComparisons{"<", "<=", "==", "!=", ">", ">="};

std::string itemText(PyObject* tuple, int index, bool constant) {
  if (!tuple || index < 0 || index >= PyTuple_GET_SIZE(tuple)) return std::to_string(index);
  PyObject* item = PyTuple_GET_ITEM(tuple, index);
  std::string text;
  if (constant) {
    text = describeObject(item);
  } else if (const char* name = utf8Of(item)) {
    text = name;
  } else {
    clearError();
  }
  if (text.size() > kLongestArgument) {
    size_t cut = kLongestArgument;
    while (cut > 0 && (static_cast<unsigned char>(text[cut]) & 0xC0) == 0x80) --cut;
    text = text.substr(0, cut) + "…";
  }
  return text;
}

std::string argumentText(const DecodedCode& code, const Instruction& i) {
  const auto* row = std::find_if(std::begin(kArguments), std::end(kArguments), [&](const ArgumentRow& r) { return r.op == i.op; });
  if (row == std::end(kArguments)) return i.arg != 0 ? std::to_string(i.arg) : std::string();
#if PY_VERSION_HEX >= 0x030C0000
  constexpr int kAttributeShift = 1, kComparisonShift = 4;
#else
  constexpr int kAttributeShift = 0, kComparisonShift = 0;
#endif
  switch (row->names) {
    case Names::Local: return itemText(code.code->co_localsplusnames, i.arg, false);
    case Names::Name: return itemText(code.names.get(), i.arg, false);
    case Names::HalfName: return itemText(code.names.get(), i.arg >> 1, false);
    case Names::QuarterName: return itemText(code.names.get(), i.arg >> 2, false);
    case Names::AttributeName: return itemText(code.names.get(), i.arg >> kAttributeShift, false);
    case Names::Constant: return itemText(code.consts.get(), i.arg, true);
    case Names::Comparison: {
      const auto index = static_cast<size_t>(i.arg >> kComparisonShift);
      return index < kComparisons.size() ? kComparisons[index] : std::to_string(i.arg);
    }
  }
  return {};
}

}  // namespace

record::GraphBreakRecord::Instruction bytecodeText(const DecodedCode& code, int position) {
  const Instruction& i = code.instructions[static_cast<size_t>(position)];
  record::GraphBreakRecord::Instruction row;
  row.offset = i.offset * 2;
  row.line = std::max(0, code.lineOf(position));
  row.op = opcodeName(i.opcode);
  if (i.target >= 0 && static_cast<size_t>(i.target) < code.instructions.size()) {
    row.to = code.instructions[static_cast<size_t>(i.target)].offset * 2;
  } else {
    row.argument = argumentText(code, i);
  }
  return row;
}

std::vector<record::GraphBreakRecord::Instruction> bytecodeAround(PyCodeObject* code, int offset) {
  std::vector<record::GraphBreakRecord::Instruction> out;
  const auto decoded = decodeCode(code);
  if (offset < 0 || static_cast<size_t>(offset) >= decoded->indexOfOffset.size()) return out;
  const int at = decoded->indexOfOffset[static_cast<size_t>(offset)];
  const int last = std::min<int>(static_cast<int>(decoded->instructions.size()) - 1, at + kAfter);
  for (int k = std::max(0, at - kBefore); k <= last; ++k) out.push_back(bytecodeText(*decoded, k));
  return out;
}

std::vector<record::GraphBreakRecord::Instruction> wholeBytecode(PyCodeObject* code) {
  std::vector<record::GraphBreakRecord::Instruction> out;
  const auto decoded = decodeCode(code);
  for (int k = 0; k < static_cast<int>(decoded->instructions.size()); ++k) out.push_back(bytecodeText(*decoded, k));
  return out;
}

}  // namespace fusebox::capture
