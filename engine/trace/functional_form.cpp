#include "engine/trace/functional_form.h"

#include <algorithm>
#include <memory>
#include <mutex>

#include "engine/trace/convert.h"
#include "engine/trace/operator_facts.h"

namespace fusebox::trace {
namespace {

using c10::IValue;
using torch::jit::Stack;

bool isWritten(const c10::Argument& argument) { return argument.alias_info() && argument.alias_info()->isWrite(); }

/// Positions of the arguments that a call writes to: an optional one may be missing.
std::vector<size_t> writtenBy(const c10::FunctionSchema& schema, c10::ArrayRef<IValue> args) {
  std::vector<size_t> written;
  for (size_t i = 0; i < args.size(); ++i)
    if (isWritten(schema.arguments()[i]) && !args[i].isNone()) written.push_back(i);
  return written;
}

/// What a form knows of its operator, which is looked up by name in every call: the program may register it anew.
struct Original {
  c10::OperatorName name;
  std::string schema;
  size_t arity;
  bool hasResults;
  std::vector<size_t> written;  ///< positions of arguments

  Original(const c10::OperatorHandle& op, std::vector<size_t> positions)
      : name(op.operator_name()), schema(c10::toString(op.schema())), arity(op.schema().arguments().size()),
        hasResults(!op.schema().returns().empty()), written(std::move(positions)) {}
  std::optional<c10::OperatorHandle> now() const {
    auto op = c10::Dispatcher::singleton().findSchema(name);
    return op && c10::toString(op->schema()) == schema ? op : std::nullopt;
  }
};

/// Puts copies in the place of what is written.
std::vector<IValue> copyWritten(const Original& original, Stack& stack) {
  const size_t first = stack.size() - original.arity;
  std::vector<IValue> copies;
  for (size_t i : original.written) {
    IValue& value = stack[first + i];
    mapTensors(value, [](const at::Tensor& t) { return t.clone(); });
    copies.push_back(value);
  }
  return copies;
}

/// Calls the operator on copies of what it writes to.
class OnCopies final : public c10::OperatorKernel {
 public:
  explicit OnCopies(Original original) : original_(std::move(original)) {}
  void operator()(const c10::OperatorHandle&, c10::DispatchKeySet, Stack* stack) const {
    const auto op = original_.now();
    TORCH_CHECK(op, original_.name, " is no longer registered as it was");
    std::vector<IValue> copies = copyWritten(original_, *stack);
    op->callBoxed(stack);
    for (auto& copy : copies) stack->emplace_back(std::move(copy));
  }

 private:
  Original original_;
};

/// The same without data. An operator without results need not know how.
class OnMeta final : public c10::OperatorKernel {
 public:
  explicit OnMeta(Original original) : original_(original), withResults_(std::move(original)) {}
  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet keys, Stack* stack) const {
    if (original_.hasResults) return withResults_(op, keys, stack);
    std::vector<IValue> copies = copyWritten(original_, *stack);
    torch::jit::drop(*stack, original_.arity);
    for (auto& copy : copies) stack->emplace_back(std::move(copy));
  }

 private:
  Original original_;
  OnCopies withResults_;
};

/// The type of what is written, which is there: a tensor or a list of them. Null for all else.
c10::TypePtr writtenType(const c10::Argument& argument) {
  c10::TypePtr type = argument.type();
  if (type->kind() == c10::TypeKind::OptionalType) type = type->expectRef<c10::OptionalType>().getElementType();
  const bool fits = type->kind() == c10::TypeKind::TensorType || type->isSubtypeOf(*c10::ListType::ofTensors());
  return fits ? type : nullptr;
}

bool isOfThatKind(const c10::FunctionSchema& schema) {
  const auto& arguments = schema.arguments();
  const auto& results = schema.returns();
  const auto fits = [](const c10::Argument& a) { return !a.alias_info() || (isWritten(a) && writtenType(a)); };
  return std::any_of(arguments.begin(), arguments.end(), isWritten) && std::all_of(arguments.begin(), arguments.end(), fits) &&
         std::none_of(results.begin(), results.end(), [](const c10::Argument& result) { return result.alias_info(); });
}

c10::FunctionSchema functionalSchema(const c10::FunctionSchema& schema, const std::string& name, const std::vector<size_t>& written) {
  std::vector<c10::Argument> arguments, returns = schema.returns();
  for (const c10::Argument& a : schema.arguments()) arguments.emplace_back(a.name(), a.type(), a.real_type(), a.N(), a.default_value(), a.kwarg_only());
  for (size_t i : written) returns.emplace_back("", writtenType(schema.arguments()[i]));
  return {name, schema.overload_name(), std::move(arguments), std::move(returns)};
}

struct FunctionalForm {
  Original original;
  c10::OperatorHandle handle;
  std::vector<c10::RegistrationHandleRAII> registrations;
};

/// For as long as the process lives.
struct Forms {
  std::mutex mutex;
  std::vector<std::unique_ptr<FunctionalForm>> all;
};

Forms& forms() {
  static auto* known = new Forms();
  return *known;
}

/// The memory from the first to the last element, in bytes; none where sizes are symbols.
std::optional<std::pair<int64_t, int64_t>> stretchOf(const at::Tensor& t) {
  const auto offset = t.sym_storage_offset().maybe_as_int();
  if (!offset) return std::nullopt;
  int64_t last = *offset;
  for (int64_t d = 0; d < t.dim(); ++d) {
    const auto size = t.sym_size(d).maybe_as_int(), stride = t.sym_stride(d).maybe_as_int();
    if (!size || !stride) return std::nullopt;
    if (*size == 0) return std::pair<int64_t, int64_t>(0, 0);
    last += (*size - 1) * *stride;
  }
  const auto width = static_cast<int64_t>(t.itemsize());
  return std::pair(*offset * width, (last + 1) * width);
}

bool mayShare(const at::Tensor& a, const at::Tensor& b) {
  if (!a.has_storage() || !b.has_storage() || a.storage().unsafeGetStorageImpl() != b.storage().unsafeGetStorageImpl()) return false;
  const auto x = stretchOf(a), y = stretchOf(b);
  return !x || !y || (x->first < y->second && y->first < x->second);
}

/// Whether autograd would note the call, a transform carries it out, or what is read or written elsewhere changes while it is written.
bool isEntangled(const c10::FunctionSchema& schema, c10::ArrayRef<IValue> args) {
  static const c10::DispatchKeySet kTransforms{c10::DispatchKey::FuncTorchBatched, c10::DispatchKey::FuncTorchGradWrapper, c10::DispatchKey::Python};
  std::vector<std::pair<at::Tensor, bool>> tensors;  // and whether it is written
  for (size_t i = 0; i < args.size(); ++i)
    forEachTensor(args[i], [&](const at::Tensor& t) { tensors.emplace_back(t, isWritten(schema.arguments()[i])); });
  for (size_t i = 0; i < tensors.size(); ++i) {
    const auto& [tensor, written] = tensors[i];
    if (tensor.key_set().has_any(kTransforms) || (written && tensor.requires_grad())) return true;
    for (size_t k = 0; k < i; ++k)
      if ((written || tensors[k].second) && mayShare(tensor, tensors[k].first)) return true;
  }
  // Results may have a history.
  return !schema.returns().empty() && c10::GradMode::is_enabled() &&
         std::any_of(tensors.begin(), tensors.end(), [](const auto& t) { return t.first.requires_grad(); });
}

std::string formName(const c10::FunctionSchema& schema, const std::vector<size_t>& written) {
  std::string name = schema.name();
  std::replace(name.begin(), name.end(), ':', '_');
  const auto all = static_cast<size_t>(std::count_if(schema.arguments().begin(), schema.arguments().end(), isWritten));
  if (written.size() < all)
    for (size_t i : written) name += "_" + std::to_string(i);
  return "fusebox_functional::" + name;
}

std::unique_ptr<FunctionalForm> makeForm(const c10::OperatorHandle& op, const Original& original) {
  auto& dispatcher = c10::Dispatcher::singleton();
  std::string name = formName(op.schema(), original.written);
  // An operator that was registered anew, with another schema, has a form beside that of the one before.
  if (dispatcher.findSchema({name, op.operator_name().overload_name})) name += "_" + std::to_string(std::hash<std::string>{}(original.schema));
  std::vector<c10::RegistrationHandleRAII> registrations;
  registrations.push_back(dispatcher.registerDef(functionalSchema(op.schema(), name, original.written), "fusebox"));
  const c10::OperatorHandle handle = dispatcher.findSchemaOrThrow(name.c_str(), op.operator_name().overload_name.c_str());
  const auto add = [&](c10::DispatchKey key, c10::KernelFunction kernel) {
    registrations.push_back(dispatcher.registerImpl(handle.operator_name(), key, std::move(kernel), std::nullopt, nullptr, "fusebox"));
  };
  add(c10::DispatchKey::CompositeExplicitAutograd, c10::KernelFunction::makeFromBoxedFunctor(std::make_unique<OnCopies>(original)));
  add(c10::DispatchKey::Meta, c10::KernelFunction::makeFromBoxedFunctor(std::make_unique<OnMeta>(original)));
  return std::make_unique<FunctionalForm>(FunctionalForm{original, handle, std::move(registrations)});
}

}  // namespace

std::optional<c10::OperatorHandle> writingForm(const c10::OperatorHandle& functional) {
  const std::lock_guard lock(forms().mutex);
  for (const auto& form : forms().all)
    if (form->handle == functional) return form->original.now();
  return std::nullopt;
}

std::vector<size_t> writtenArguments(const std::string& functional) {
  const std::lock_guard lock(forms().mutex);
  for (const auto& form : forms().all)
    if (!form->original.hasResults && operatorName(form->handle.schema()) == functional) return form->original.written;
  return {};
}

const c10::OperatorHandle* functionalFormOf(const c10::OperatorHandle& op, c10::ArrayRef<IValue> args) {
  if (!isOfThatKind(op.schema()) || hasOwnAutograd(op) || isEntangled(op.schema(), args)) return nullptr;
  const Original original(op, writtenBy(op.schema(), args));
  if (original.written.empty()) return nullptr;
  const std::lock_guard lock(forms().mutex);
  for (const auto& form : forms().all)
    if (form->original.name == original.name && form->original.schema == original.schema && form->original.written == original.written)
      return &form->handle;
  forms().all.push_back(makeForm(op, original));
  return &forms().all.back()->handle;
}

bool callFunctionalForm(const c10::OperatorHandle& op, const c10::OperatorHandle& functional, Stack* stack, FormCall call) {
  const size_t arity = op.schema().arguments().size(), results = op.schema().returns().size();
  Stack inner(stack->end() - static_cast<ptrdiff_t>(arity), stack->end());
  std::vector<IValue> targets;
  for (size_t i : writtenBy(op.schema(), inner)) targets.push_back(inner[i]);
  {
    const at::NoGradGuard noHistory;
    if (!call(functional, &inner)) return false;
  }
  torch::jit::drop(*stack, arity);
  for (size_t i = 0; i < targets.size(); ++i) {
    std::vector<at::Tensor> before, after;
    forEachTensor(targets[i], [&](const at::Tensor& t) { before.push_back(t); });
    forEachTensor(inner[results + i], [&](const at::Tensor& t) { after.push_back(t); });
    for (size_t k = 0; k < before.size(); ++k) before[k].copy_(after[k]);
  }
  for (size_t i = 0; i < results; ++i) stack->push_back(std::move(inner[i]));
  return true;
}

bool runForm(const c10::OperatorHandle& functional, Stack* stack) {
  functional.callBoxed(stack);
  return true;
}

}  // namespace fusebox::trace
