#pragma once

#include <ATen/ATen.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/aot/aot_function.h"
#include "engine/support/result.h"

namespace fusebox {

/// What a program that was compiled ahead of time does: tensors in, tensors out, with its weights inside. No gradients.
struct ProgramForm {
  struct Number {
    bool isStride = false;
    int32_t input = -1, dim = 0;
    graph::SymExpr is;
    bool defines = false;
  };
  struct Result {
    int32_t output = -1, input = -1;  ///< of the region, or an argument handed on
  };
  std::string name;
  std::string text;                      ///< for whoever loads it: how arguments and results are nested
  std::shared_ptr<const aot::AotModule> module;
  int32_t arguments = 0;                 ///< tensors that a call brings
  std::vector<int32_t> inputs;           ///< of the module: the argument, or -1 - position in `weights`
  std::vector<at::Tensor> weights;
  std::vector<Number> numbers;           ///< sizes and strides of arguments that are expressions
  std::vector<graph::Relation> relations;
  std::vector<Result> results;
};

/// A program in a file (`.fbx`). Nothing here needs Python.
class StoredProgram {
 public:
  /// One file of it. `graphs`: entries of its compiled graphs. Errors: what cannot be written down.
  static Result<std::string> write(const ProgramForm& form, const std::vector<std::string>& graphs);
  /// Nothing is compiled. Errors: Corrupt for damage, InvalidArgument for another build, processor or signature, in words.
  static Result<std::shared_ptr<StoredProgram>> read(std::string_view bytes);
  static Result<std::shared_ptr<StoredProgram>> open(const std::string& path);

  const std::string& name() const { return form_.name; }
  const std::string& text() const { return form_.text; }
  size_t argumentCount() const { return static_cast<size_t>(form_.arguments); }

  /// One tensor for every argument; sizes and types must fit, strides are made to. Buffers of the program that it writes to change. Errors:
  /// InvalidArgument, naming the argument; what an operator raises is thrown.
  Result<std::vector<at::Tensor>> run(const std::vector<at::Tensor>& arguments) const;

 private:
  Result<std::vector<int64_t>> symbolsOf(const std::vector<at::Tensor>& arguments) const;

  ProgramForm form_;
  std::shared_ptr<aot::AotFunction> function_;
};

}  // namespace fusebox
