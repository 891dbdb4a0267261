#include "engine/compile/stored_program.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <ctime>
#include <fstream>
#include <sstream>

#include "engine/cache/bundle.h"
#include "engine/cache/cache_settings.h"
#include "engine/compile/compile.h"
#include "engine/compile/stored_file.h"
#include "engine/compile/stored_graphs.h"
#include "engine/compile/stored_module.h"
#include "engine/graph/symbol_values.h"
#include "engine/inductor/ir/archive_fields.h"
#include "engine/trace/convert.h"

namespace fusebox {

using graph::In;
using inductor::ArchiveError;

template <class A> void fields(A& a, In<A, ProgramForm::Number>& v) {
  auto& [isStride, input, dim, is, defines] = v;
  a(isStride, input, dim, is, defines);
}
template <class A> void fields(A& a, In<A, ProgramForm::Result>& v) {
  auto& [output, input] = v;
  a(output, input);
}

namespace {

constexpr const char* kProgramKind = "program";

template <class A>
void formFields(A& a, In<A, ProgramForm>& v) {
  auto& [name, text, module, arguments, inputs, weights, numbers, relations, results] = v;  // the others have their own places in the file
  a(arguments, inputs, numbers, relations, results);
}

void requireConsistent(const ProgramForm& form) {
  const aot::AotModule& module = *form.module;
  const auto isIn = [](int64_t position, size_t count) { return position >= 0 && static_cast<size_t>(position) < count; };
  const auto arguments = static_cast<size_t>(std::max(form.arguments, 0));
  bool fits = form.arguments >= 0 && form.inputs.size() == module.inputs.size() && module.dataSizes.empty();
  for (const int32_t input : form.inputs) fits = fits && (input >= 0 ? isIn(input, arguments) : isIn(-1 - int64_t{input}, form.weights.size()));
  for (const auto& number : form.numbers) fits = fits && isIn(number.input, arguments) && number.dim >= 0;
  for (const auto& result : form.results)
    fits = fits && (result.output >= 0 ? isIn(result.output, module.outputs.size()) : isIn(result.input, arguments));
  if (!fits) throw ArchiveError("its parts do not fit together");
}

bool isWritten(const aot::AotModule& module, size_t input) {
  return std::any_of(module.mutations.begin(), module.mutations.end(), [&](const auto& m) { return static_cast<size_t>(m.input) == input; });
}

}  // namespace

Result<std::string> StoredProgram::write(const ProgramForm& form, const std::vector<std::string>& graphs) {
  if (const std::string why = whyNotStored(*form.module); !why.empty()) return fail(ErrorCode::Unsupported, why);
  if (!form.module->dataSizes.empty()) return fail(ErrorCode::Unsupported, "data decide on its sizes");
  if (!std::all_of(form.weights.begin(), form.weights.end(), isPlain)) return fail(ErrorCode::Unsupported, "a weight is no plain tensor");
  inductor::ArchiveWriter archive;
  archive(form.text);
  writeModule(archive, *form.module);
  formFields(archive, form);
  archive(form.weights.size());
  for (const at::Tensor& weight : form.weights) writeTensor(archive, weight);
  return writeStoredFile(kProgramKind, form.name, archive.take(), graphs);
}

Result<std::shared_ptr<StoredProgram>> StoredProgram::read(std::string_view bytes) {
  auto file = readStoredFile(bytes, kProgramKind, "program");
  if (!file) return tl::unexpected(file.error());
  auto graphs = StoredGraphs::of(file->graphs, file->trust, cache::cacheSecret());
  if (!graphs) return tl::unexpected(graphs.error());
  auto program = std::make_shared<StoredProgram>();
  ProgramForm& form = program->form_;
  form.name = file->name;
  try {
    inductor::ArchiveReader archive(file->payload);
    archive(form.text);
    form.module = std::make_shared<const aot::AotModule>(readModule(archive));
    formFields(archive, form);
    size_t weights = 0;
    archive(weights);
    for (; weights > 0; --weights) form.weights.push_back(readTensor(archive));
    if (!archive.atEnd()) throw ArchiveError("there is more than that");
    requireConsistent(form);
    CompileOptions how;
    how.fullgraph = true;
    how.stored = *graphs;
    how.name = form.name;
    program->function_ = compileModule(form.module, how);
  } catch (const ArchiveError& error) {
    return fail(ErrorCode::Corrupt, std::string("the file does not hold a program: ") + error.what());
  } catch (const std::exception& error) {
    return fail(ErrorCode::InvalidArgument, error.what());
  }
  return program;
}

Result<std::shared_ptr<StoredProgram>> StoredProgram::open(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream bytes;
  bytes << in.rdbuf();
  if (!in) return fail(ErrorCode::Io, "cannot be read", path);
  return read(bytes.str());
}

/// The values that sizes and strides of the arguments give the symbols, once every relation holds.
Result<std::vector<int64_t>> StoredProgram::symbolsOf(const std::vector<at::Tensor>& arguments) const {
  graph::SymbolValues values;
  for (const auto& number : form_.numbers) {
    const at::Tensor& tensor = arguments[static_cast<size_t>(number.input)];
    if (number.dim >= tensor.dim()) return fail(ErrorCode::InvalidArgument, fmt::format("argument {} has {} dimensions", number.input, tensor.dim()));
    const int64_t found = number.isStride ? tensor.stride(number.dim) : tensor.size(number.dim);
    if (number.defines) {
      const graph::Symbol symbol = number.is.symbols().at(0);
      if (found < symbol.lower() || found > symbol.upper())
        return fail(ErrorCode::InvalidArgument,
                    fmt::format("size {} of argument {} is {}, where {} to {} is compiled for", number.dim, number.input, found, symbol.lower(), symbol.upper()));
      values.set(symbol, found);
    } else if (!number.isStride && values.evaluate(number.is) != std::optional(found)) {
      return fail(ErrorCode::InvalidArgument, fmt::format("size {} of argument {} is {}, and not {}", number.dim, number.input, found, number.is.str()));
    }
  }
  for (const graph::Relation& relation : form_.relations) {
    const auto left = values.evaluate(relation.left), right = values.evaluate(relation.right);
    if (!left || !right || !graph::holds(relation.op, *left, *right))
      return fail(ErrorCode::InvalidArgument, "these sizes are not compiled for: " + relation.str() + " does not hold");
  }
  std::vector<int64_t> made;
  for (const graph::Symbol symbol : form_.module->symbols) {
    const auto value = values.value(symbol);
    if (!value) return fail(ErrorCode::Corrupt, "a size of the program is unknown");
    made.push_back(*value);
  }
  return made;
}

Result<std::vector<at::Tensor>> StoredProgram::run(const std::vector<at::Tensor>& arguments) const {
  const auto refuse = [&](int32_t argument, const std::string& what) {
    return fail(ErrorCode::InvalidArgument, fmt::format("argument {} of {}: {}", argument, form_.name, what));
  };
  if (arguments.size() != argumentCount())
    return fail(ErrorCode::InvalidArgument, fmt::format("{} takes {} tensors, and {} were given", form_.name, argumentCount(), arguments.size()));
  for (size_t i = 0; i < arguments.size(); ++i)
    if (!isPlain(arguments[i])) return refuse(static_cast<int32_t>(i), "a plain tensor with memory is needed");
  const c10::AutoGradMode noGradients(false);
  auto symbolValues = symbolsOf(arguments);
  if (!symbolValues) return tl::unexpected(symbolValues.error());
  const graph::SymbolValues symbols(form_.module->symbols, *symbolValues);
  std::vector<at::Tensor> inputs;
  for (size_t i = 0; i < form_.inputs.size(); ++i) {
    const int32_t argument = form_.inputs[i];
    if (argument < 0) {
      inputs.push_back(form_.weights[static_cast<size_t>(-1 - argument)]);
      continue;
    }
    const graph::TensorMeta& meta = form_.module->inputs[i];
    at::Tensor tensor = arguments[static_cast<size_t>(argument)].detach();
    const auto type = static_cast<at::ScalarType>(meta.dtype);
    if (tensor.scalar_type() != type) return refuse(argument, fmt::format("{} is needed, not {}", c10::toString(type), c10::toString(tensor.scalar_type())));
    const c10::Device device = trace::fromDevice(meta.device);
    if (tensor.device() != device) return refuse(argument, fmt::format("it has to be on {}, not {}", device.str(), tensor.device().str()));
    const std::vector<int64_t> sizes = symbols(meta.sizes), strides = symbols(meta.strides);
    if (tensor.sizes() != sizes) return refuse(argument, fmt::format("sizes [{}] are needed, not [{}]", fmt::join(sizes, ", "), fmt::join(tensor.sizes(), ", ")));
    if (tensor.strides() != strides) {
      if (isWritten(*form_.module, i)) return refuse(argument, fmt::format("the program writes to it, so that it needs strides [{}]", fmt::join(strides, ", ")));
      tensor = at::empty_strided(sizes, strides, tensor.options()).copy_(tensor);
    }
    inputs.push_back(std::move(tensor));
  }
  const std::vector<at::Tensor> outputs = function_->call(inputs, *symbolValues);
  std::vector<at::Tensor> results;
  for (const auto& result : form_.results)
    results.push_back(result.output >= 0 ? outputs.at(static_cast<size_t>(result.output)) : arguments[static_cast<size_t>(result.input)]);
  return results;
}

}  // namespace fusebox
