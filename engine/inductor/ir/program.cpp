#include "engine/inductor/ir/program.h"

#include <fmt/format.h>

namespace fusebox::inductor {
namespace {

std::string bufferName(const Program& program, BufferId id) {
  return id < 0 ? "_" : program.buffers[static_cast<size_t>(id)].name;
}

std::string place(const Program& program, const ProgramBuffer& buffer) {
  switch (buffer.kind) {
    case ProgramBuffer::Kind::Input: return fmt::format("input {}", buffer.index);
    case ProgramBuffer::Kind::Constant: return fmt::format("constant {}", buffer.index);
    case ProgramBuffer::Kind::Planned: return fmt::format("pool + {}", buffer.poolOffset);
    case ProgramBuffer::Kind::Owned: return "owned";
    case ProgramBuffer::Kind::View:
      return fmt::format("view of {} + {}", bufferName(program, buffer.base), buffer.meta.storageOffset.str());
  }
  return "";
}

std::string names(const Program& program, const std::vector<BufferId>& ids) {
  std::string text;
  for (BufferId id : ids) text += (text.empty() ? "" : ", ") + bufferName(program, id);
  return text;
}

/// Arguments as text, with buffers by name.
std::string argumentText(const Program& program, const graph::Argument& argument) {
  if (auto* ref = argument.as<graph::ValueRef>()) return bufferName(program, ref->node);
  auto* list = argument.as<graph::ArgumentList>();
  if (!list) return argument.str();
  std::string text;
  for (const graph::Argument& item : *list) text += (text.empty() ? "" : ", ") + argumentText(program, item);
  return fmt::format("[{}]", text);
}

struct StepWriter {
  const Program& program;
  std::string operator()(const LaunchStep& step) const {
    const std::string batch = step.batch < 0 ? std::string() : fmt::format(" in batch {}", step.batch);
    return fmt::format("launch {}({}){}", program.kernels[static_cast<size_t>(step.kernel)].name, names(program, step.buffers), batch);
  }
  std::string operator()(const ExternStep& step) const {
    std::string arguments;
    for (const graph::Argument& argument : step.args)
      arguments += (arguments.empty() ? "" : ", ") + argumentText(program, argument);
    return fmt::format("{} = {}({})", names(program, step.results), step.outVariant.empty() ? step.op : step.outVariant,
                       arguments);
  }
  std::string operator()(const AllocateStep& step) const { return fmt::format("allocate {}", bufferName(program, step.buffer)); }
  std::string operator()(const FreeStep& step) const { return fmt::format("free {}", bufferName(program, step.buffer)); }
};

}  // namespace

std::string Program::str() const {
  std::string text = fmt::format("program {}: {} inputs, pool of {} bytes\n", name, inputCount, poolBytes);
  for (const ProgramBuffer& buffer : buffers)
    text += fmt::format("  {}: {} {}\n", buffer.name, buffer.meta.str(), place(*this, buffer));
  for (const Step& step : steps) text += fmt::format("  {}\n", std::visit(StepWriter{*this}, step));
  std::string outputs;
  for (const graph::Argument& result : results) outputs += (outputs.empty() ? "" : ", ") + argumentText(*this, result);
  return text + "  return " + outputs + "\n";
}

}  // namespace fusebox::inductor
