#include "engine/codegen/cpu/disassembly.h"

#include <llvm/DebugInfo/DWARF/DWARFContext.h>
#include <llvm/MC/MCAsmInfo.h>
#include <llvm/MC/MCContext.h>
#include <llvm/MC/MCDisassembler/MCDisassembler.h>
#include <llvm/MC/MCInst.h>
#include <llvm/MC/MCInstPrinter.h>
#include <llvm/MC/MCInstrAnalysis.h>
#include <llvm/MC/MCInstrInfo.h>
#include <llvm/MC/MCRegisterInfo.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/MCTargetOptions.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Object/ELFObjectFile.h>
#include <llvm/Object/ObjectFile.h>
#include <llvm/Support/TargetSelect.h>

#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace fusebox::codegen::cpu {
namespace {

using llvm::object::ObjectFile;
using llvm::object::SectionRef;

constexpr unsigned kIntelSyntax = 1;

/// LLVM's tables for one target.
struct Tools {
  std::unique_ptr<llvm::MCRegisterInfo> registers;
  std::unique_ptr<llvm::MCAsmInfo> assembly;
  std::unique_ptr<llvm::MCSubtargetInfo> subtarget;
  std::unique_ptr<llvm::MCInstrInfo> instructions;
  std::unique_ptr<llvm::MCContext> context;
  std::unique_ptr<llvm::MCDisassembler> decoder;
  std::unique_ptr<llvm::MCInstPrinter> printer;
  std::unique_ptr<llvm::MCInstrAnalysis> analysis;

  bool make(const llvm::Triple& triple, const TargetFeatures& target) {
    static std::once_flag once;
    std::call_once(once, [] { llvm::InitializeNativeTargetDisassembler(); });
    std::string error;
    const llvm::Target* found = llvm::TargetRegistry::lookupTarget(triple.str(), error);
    if (!found) return false;
    registers.reset(found->createMCRegInfo(triple.str()));
    if (!registers) return false;
    assembly.reset(found->createMCAsmInfo(*registers, triple.str(), llvm::MCTargetOptions()));
    subtarget.reset(found->createMCSubtargetInfo(triple.str(), target.cpu, target.features));
    instructions.reset(found->createMCInstrInfo());
    if (!assembly || !subtarget || !instructions) return false;
    context = std::make_unique<llvm::MCContext>(triple, assembly.get(), registers.get(), subtarget.get());
    decoder.reset(found->createMCDisassembler(*subtarget, *context));
    printer.reset(found->createMCInstPrinter(triple, kIntelSyntax, *assembly, *instructions, *registers));
    analysis.reset(found->createMCInstrAnalysis(instructions.get()));
    if (printer) printer->setPrintImmHex(false);
    return decoder && printer;
  }
};

struct Line {
  uint64_t address = 0, size = 0;
  std::string text;
  std::optional<uint64_t> target;  ///< of a branch inside the section
};

std::vector<Line> decode(Tools& tools, llvm::ArrayRef<uint8_t> bytes) {
  std::vector<Line> lines;
  for (uint64_t at = 0; at < bytes.size();) {
    llvm::MCInst instruction;
    uint64_t size = 0;
    Line line;
    line.address = at;
    if (tools.decoder->getInstruction(instruction, size, bytes.slice(at), at, llvm::nulls()) == llvm::MCDisassembler::Fail) {
      line.size = 1;
      line.text = "\t.byte " + std::to_string(bytes[at]);
    } else {
      line.size = size;
      llvm::raw_string_ostream stream(line.text);
      tools.printer->printInst(&instruction, at, "", *tools.subtarget, stream);
      uint64_t target = 0;
      const bool jumps = tools.instructions->get(instruction.getOpcode()).isBranch();
      if (jumps && tools.analysis && tools.analysis->evaluateBranch(instruction, at, size, target) && target < bytes.size()) {
        line.target = target;
      }
    }
    at += std::max<uint64_t>(1, line.size);
    lines.push_back(std::move(line));
  }
  return lines;
}

/// Names of functions and of what the linker puts in, by offset in the section.
struct Names {
  std::map<uint64_t, std::string> functions, references;
};

Names namesOf(const ObjectFile& object, const SectionRef& section) {
  Names names;
  for (const auto& symbol : object.symbols()) {
    auto type = symbol.getType();
    auto where = symbol.getSection();
    auto name = symbol.getName();
    auto address = symbol.getAddress();
    const bool good = type && where && name && address;
    if (good && *type == llvm::object::SymbolRef::ST_Function && *where != object.section_end() && **where == section) {
      names.functions[*address] = name->str();
    }
    if (!type) llvm::consumeError(type.takeError());
    if (!where) llvm::consumeError(where.takeError());
    if (!name) llvm::consumeError(name.takeError());
    if (!address) llvm::consumeError(address.takeError());
  }
  for (const SectionRef& relocated : object.sections()) {
    auto of = relocated.getRelocatedSection();
    if (!of) {
      llvm::consumeError(of.takeError());
      continue;
    }
    if (*of == object.section_end() || **of != section) continue;
    for (const auto& relocation : relocated.relocations()) {
      if (relocation.getSymbol() == object.symbol_end()) continue;
      auto name = relocation.getSymbol()->getName();
      if (!name) {
        llvm::consumeError(name.takeError());
        continue;
      }
      std::string text = name->str();
      if (text.empty()) {
        auto target = relocation.getSymbol()->getSection();
        if (!target) {
          llvm::consumeError(target.takeError());
        } else if (*target != object.section_end()) {
          auto sectionName = (*target)->getName();
          if (sectionName) text = sectionName->str();
          else llvm::consumeError(sectionName.takeError());
        }
      }
      names.references[relocation.getOffset()] = text;
    }
  }
  return names;
}

/// Lines of the loop IR by the address in the section from which on they are carried out; 0: none.
std::map<uint64_t, uint32_t> sourceLines(llvm::DWARFContext& debug, const SectionRef& section) {
  std::map<uint64_t, uint32_t> lines;
  for (const auto& unit : debug.compile_units()) {
    const auto* table = debug.getLineTableForUnit(unit.get());
    if (!table) continue;
    for (const auto& row : table->Rows)
      if (row.Address.SectionIndex == section.getIndex() && !row.EndSequence) lines[row.Address.Address] = row.Line;
  }
  return lines;
}

void print(const std::vector<Line>& lines, const Names& names, const std::map<uint64_t, uint32_t>& sources, std::string& out) {
  uint32_t source = 0;
  std::set<uint64_t> targets;
  for (const Line& line : lines)
    if (line.target) targets.insert(*line.target);
  std::map<uint64_t, int> labels;
  for (uint64_t target : targets) labels.emplace(target, static_cast<int>(labels.size()));
  for (const Line& line : lines) {
    if (auto function = names.functions.find(line.address); function != names.functions.end()) {
      out += (out.empty() ? "" : "\n") + function->second + ":\n";
    }
    if (auto label = labels.find(line.address); label != labels.end()) out += ".L" + std::to_string(label->second) + ":\n";
    if (const auto found = sources.find(line.address); found != sources.end() && std::exchange(source, found->second) != found->second)
      out += "\t.loc\t1 " + std::to_string(source) + " 0\n";
    std::string text = line.text;
    if (line.target) {
      const size_t operand = text.find_last_of(" \t");
      if (operand != std::string::npos) text = text.substr(0, operand + 1) + ".L" + std::to_string(labels[*line.target]);
    }
    if (!text.starts_with('\t')) text.insert(0, "\t");
    out += text;
    const auto reference = names.references.lower_bound(line.address);
    if (reference != names.references.end() && reference->first < line.address + line.size) out += "\t; " + reference->second;
    out += '\n';
  }
}

}  // namespace

Result<Disassembly> disassembleObject(std::string_view bytes, const TargetFeatures& target) {
  auto object = ObjectFile::createObjectFile(llvm::MemoryBufferRef(bytes, "kernel"));
  if (!object) return fail(ErrorCode::Internal, "not an object file", llvm::toString(object.takeError()));
  Tools tools;
  if (!tools.make((*object)->makeTriple(), target)) return fail(ErrorCode::Internal, "no disassembler for this target");
  Disassembly out;
  const auto debug = llvm::DWARFContext::create(**object);
  for (const SectionRef& section : (*object)->sections()) {
    if (!section.isText() || section.getSize() == 0) continue;
    auto contents = section.getContents();
    if (!contents) return fail(ErrorCode::Internal, "unreadable section", llvm::toString(contents.takeError()));
    out.codeBytes += static_cast<int64_t>(contents->size());
    print(decode(tools, llvm::arrayRefFromStringRef(*contents)), namesOf(**object, section), sourceLines(*debug, section), out.text);
  }
  return out;
}

bool hasSameCode(std::string_view a, std::string_view b) {
  const auto codeOf = [](std::string_view bytes) -> std::optional<std::vector<std::string>> {
    auto object = ObjectFile::createObjectFile(llvm::MemoryBufferRef(bytes, "kernel"));
    if (!object) {
      llvm::consumeError(object.takeError());
      return std::nullopt;
    }
    std::vector<std::string> code;
    for (const SectionRef& section : (*object)->sections()) {
      if (!section.isText()) continue;
      auto contents = section.getContents();
      if (contents) code.push_back(contents->str());
      else llvm::consumeError(contents.takeError());
    }
    return code;
  };
  const auto codeOfA = codeOf(a);
  return codeOfA && codeOfA == codeOf(b);
}

}  // namespace fusebox::codegen::cpu
