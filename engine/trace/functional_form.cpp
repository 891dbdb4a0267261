#include "engine/trace/functional_form.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <span>

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

/// `-> None` is a result of the schema, and none of the form.
bool returnsNone(const c10::FunctionSchema& schema) {
  return schema.returns().size() == 1 && schema.returns()[0].type()->kind() == c10::TypeKind::NoneType;
}

/// What a form knows of its operator, which is looked up by name in every call: the program may register it anew.
struct Original {
  c10::OperatorName name;
  std::string schema;
  size_t arity;
  bool hasResults, givesNone;
  bool shares;                  ///< the form has one argument more, a layout: which tensors lie in common memory, and how
  std::vector<size_t> written;  ///< positions of arguments

  Original(const c10::OperatorHandle& op, std::vector<size_t> positions, bool sharesMemory)
      : name(op.operator_name()), schema(c10::toString(op.schema())), arity(op.schema().arguments().size()),
        hasResults(!op.schema().returns().empty() && !returnsNone(op.schema())), givesNone(returnsNone(op.schema())), shares(sharesMemory),
        written(std::move(positions)) {}
  std::optional<c10::OperatorHandle> now() const {
    auto op = c10::Dispatcher::singleton().findSchema(name);
    return op && c10::toString(op->schema()) == schema ? op : std::nullopt;
  }
};

/// How tensors lie in memory that they share. As numbers, for each tensor of a call in turn: the number of its memory, or -1; then where it
/// begins there, and its strides, in elements.
class CommonMemory {
 public:
  explicit CommonMemory(std::vector<int64_t> layout) : layout_(std::move(layout)) {}
  /// Puts tensors that lie as the layout says, with the values of these, in their places among `args`.
  void place(std::span<IValue> args) {
    std::map<int64_t, std::vector<Member>> groups;
    size_t at = 0, index = 0;
    for (IValue& value : args)
      forEachTensor(value, [&](const at::Tensor& t) {
        const int64_t group = layout_.at(at++);
        if (group >= 0) groups[group].push_back({index, t, layout_.at(at), {layout_.begin() + static_cast<ptrdiff_t>(at) + 1, layout_.begin() + static_cast<ptrdiff_t>(at) + 1 + t.dim()}});
        if (group >= 0) at += static_cast<size_t>(1 + t.dim());
        ++index;
      });
    std::map<size_t, at::Tensor> placed;
    for (auto& [number, members] : groups) placeGroup(members, placed);
    index = 0;
    for (IValue& value : args)
      mapTensors(value, [&](const at::Tensor& t) {
        const auto found = placed.find(index++);
        return found == placed.end() ? t : found->second;
      });
  }

 private:
  struct Member {
    size_t index;
    at::Tensor value;
    int64_t offset;
    std::vector<int64_t> strides;
  };
  static void placeGroup(const std::vector<Member>& members, std::map<size_t, at::Tensor>& placed) {
    int64_t first = std::numeric_limits<int64_t>::max(), end = 0;
    for (const Member& m : members) {
      int64_t last = m.offset;
      for (int64_t d = 0; d < m.value.dim(); ++d) last += (m.value.size(d) - 1) * m.strides[static_cast<size_t>(d)];
      first = std::min(first, m.offset);
      end = std::max(end, last + 1);
    }
    const at::Tensor memory = at::empty({std::max<int64_t>(end - first, 0)}, members.front().value.options());
    for (const Member& m : members) {
      const at::Tensor view = memory.as_strided(m.value.sizes(), m.strides, m.offset - first);
      view.copy_(m.value);
      placed.emplace(m.index, view);
    }
  }

  std::vector<int64_t> layout_;
};

/// Puts copies in the place of what is written, and of what shares memory with it.
std::vector<IValue> copyWritten(const Original& original, Stack& stack) {
  if (original.shares) {
    CommonMemory memory(stack.back().toIntVector());
    stack.pop_back();
    memory.place({stack.data() + stack.size() - original.arity, original.arity});
  }
  const size_t first = stack.size() - original.arity;
  std::vector<IValue> copies;
  for (size_t i : original.written) {
    IValue& value = stack[first + i];
    if (!original.shares) mapTensors(value, [](const at::Tensor& t) { return t.clone(); });
    copies.push_back(value);
  }
  return copies;
}

/// The copies as results, of which none shares memory with another.
void pushWritten(const Original& original, std::vector<IValue> copies, Stack& stack) {
  for (IValue& copy : copies) {
    if (original.shares) mapTensors(copy, [](const at::Tensor& t) { return t.clone(); });
    stack.push_back(std::move(copy));
  }
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
    if (original_.givesNone) stack->pop_back();
    pushWritten(original_, std::move(copies), *stack);
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
    pushWritten(original_, std::move(copies), *stack);
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

c10::FunctionSchema functionalSchema(const c10::FunctionSchema& schema, const std::string& name, const Original& original) {
  std::vector<c10::Argument> arguments, returns;
  if (original.hasResults) returns = schema.returns();
  for (const c10::Argument& a : schema.arguments()) arguments.emplace_back(a.name(), a.type(), a.real_type(), a.N(), a.default_value(), a.kwarg_only());
  if (original.shares)
    arguments.emplace_back("fusebox_layout", c10::ListType::ofInts(), c10::ListType::create(c10::SymIntType::get()), std::nullopt, std::nullopt, true);
  for (size_t i : original.written) returns.emplace_back("", writtenType(schema.arguments()[i]));
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

/// Elements of a tensor: a box in a lattice whose steps are nested, each a multiple of what is inside of it.
struct Box {
  std::vector<int64_t> steps, first, count;  ///< from the largest step to the smallest, which ends with 1
};

/// `steps` are multiples of each other. None where the tensor's elements are no box of them.
std::optional<Box> boxOf(const at::Tensor& t, const std::vector<int64_t>& steps) {
  Box box{steps, {}, std::vector<int64_t>(steps.size(), 1)};
  int64_t rest = t.sym_storage_offset().expect_int();
  for (int64_t step : steps) {
    box.first.push_back(rest / step);
    rest %= step;
  }
  for (int64_t d = 0; d < t.dim(); ++d) {
    const int64_t size = t.sym_size(d).expect_int();
    if (size == 1) continue;
    const auto place = static_cast<size_t>(std::find(steps.begin(), steps.end(), t.sym_stride(d).expect_int()) - steps.begin());
    if (place == steps.size() || box.count[place] != 1) return std::nullopt;
    box.count[place] = size;
  }
  for (size_t i = 1; i < steps.size(); ++i)
    if (box.first[i] + box.count[i] > steps[i - 1] / steps[i]) return std::nullopt;
  return box;
}

/// Whether two tensors of known sizes over one storage have no element in common; false where that is not seen.
bool areApart(const at::Tensor& a, const at::Tensor& b) {
  if (a.sym_numel().expect_int() == 0 || b.sym_numel().expect_int() == 0) return true;
  if (a.scalar_type() != b.scalar_type()) return false;
  std::vector<int64_t> steps{1};
  for (const at::Tensor* t : {&a, &b})
    for (int64_t d = 0; d < t->dim(); ++d)
      if (t->sym_size(d).expect_int() > 1) steps.push_back(t->sym_stride(d).expect_int());
  std::sort(steps.begin(), steps.end(), std::greater<>());
  steps.erase(std::unique(steps.begin(), steps.end()), steps.end());
  if (steps.back() == 0) return false;
  for (size_t i = 1; i < steps.size(); ++i)
    if (steps[i - 1] % steps[i] != 0) return false;
  const auto x = boxOf(a, steps), y = boxOf(b, steps);
  if (!x || !y) return false;
  for (size_t i = 0; i < steps.size(); ++i)
    if (x->first[i] + x->count[i] <= y->first[i] || y->first[i] + y->count[i] <= x->first[i]) return true;
  return false;
}

bool hasKnownPlace(const at::Tensor& t) {
  bool known = t.sym_storage_offset().maybe_as_int().has_value();
  for (int64_t d = 0; d < t.dim(); ++d) known = known && t.sym_size(d).maybe_as_int() && t.sym_stride(d).maybe_as_int();
  return known;
}

bool mayShare(const at::Tensor& a, const at::Tensor& b) {
  if (!a.has_storage() || !b.has_storage() || a.storage().unsafeGetStorageImpl() != b.storage().unsafeGetStorageImpl()) return false;
  return !hasKnownPlace(a) || !hasKnownPlace(b) || !areApart(a, b);
}

struct Operand {
  at::Tensor tensor;
  bool written;
};

std::vector<Operand> operandsOf(const c10::FunctionSchema& schema, c10::ArrayRef<IValue> args) {
  std::vector<Operand> operands;
  for (size_t i = 0; i < args.size(); ++i)
    forEachTensor(args[i], [&](const at::Tensor& t) { operands.push_back({t, isWritten(schema.arguments()[i])}); });
  return operands;
}

/// Whether autograd would note the call, or a transform carries it out.
bool isEntangled(const c10::FunctionSchema& schema, const std::vector<Operand>& operands) {
  static const c10::DispatchKeySet kTransforms{c10::DispatchKey::FuncTorchBatched, c10::DispatchKey::FuncTorchGradWrapper, c10::DispatchKey::Python};
  for (const auto& [tensor, written] : operands)
    if (tensor.key_set().has_any(kTransforms) || (written && tensor.requires_grad())) return true;
  // Results may have a history.
  return !schema.returns().empty() && !returnsNone(schema) && c10::GradMode::is_enabled() &&
         std::any_of(operands.begin(), operands.end(), [](const Operand& o) { return o.tensor.requires_grad(); });
}

/// The memory that each operand shares with another, of which one is written; -1 for its own.
std::vector<int64_t> memoriesOf(const std::vector<Operand>& operands) {
  std::vector<int64_t> memories(operands.size(), -1);
  for (size_t i = 0; i < operands.size(); ++i)
    for (size_t k = 0; k < i; ++k) {
      if ((!operands[i].written && !operands[k].written) || !mayShare(operands[i].tensor, operands[k].tensor)) continue;
      const int64_t joined = memories[k] >= 0 ? memories[k] : static_cast<int64_t>(k), other = memories[i];
      memories[i] = memories[k] = joined;
      if (other >= 0) std::replace(memories.begin(), memories.end(), other, joined);
    }
  return memories;
}

bool isShared(const std::vector<int64_t>& memories) {
  return std::any_of(memories.begin(), memories.end(), [](int64_t memory) { return memory >= 0; });
}

/// Whether an element of memory is known to be several of the tensor's.
bool isExpanded(const at::Tensor& t) {
  for (int64_t d = 0; d < t.dim(); ++d)
    if (t.sym_stride(d).maybe_as_int() == 0 && t.sym_size(d).maybe_as_int() != 1) return true;
  return false;
}

/// Whether one stretch of memory can hold each of the groups: its tensors are of one type, and say each element once.
bool canBePlaced(const std::vector<Operand>& operands, const std::vector<int64_t>& memories) {
  for (size_t i = 0; i < operands.size(); ++i) {
    if (memories[i] < 0) continue;
    const at::Tensor& first = operands[static_cast<size_t>(memories[i])].tensor;
    const at::Tensor& tensor = operands[i].tensor;
    if (tensor.scalar_type() != first.scalar_type() || tensor.is_neg() || tensor.is_conj() || isExpanded(tensor)) return false;
  }
  return true;
}

/// See CommonMemory.
IValue layoutOf(const c10::FunctionSchema& schema, c10::ArrayRef<IValue> args) {
  const std::vector<Operand> operands = operandsOf(schema, args);
  const std::vector<int64_t> memories = memoriesOf(operands);
  std::vector<c10::SymInt> layout;
  for (size_t i = 0; i < operands.size(); ++i) {
    layout.emplace_back(memories[i]);
    if (memories[i] < 0) continue;
    layout.push_back(operands[i].tensor.sym_storage_offset());
    for (int64_t d = 0; d < operands[i].tensor.dim(); ++d) layout.push_back(operands[i].tensor.sym_stride(d));
  }
  const bool known = std::all_of(layout.begin(), layout.end(), [](const c10::SymInt& n) { return n.maybe_as_int().has_value(); });
  if (!known) return c10::SymIntArrayRef(layout);
  std::vector<int64_t> numbers;
  for (const c10::SymInt& n : layout) numbers.push_back(n.expect_int());
  return numbers;
}

std::string formName(const c10::FunctionSchema& schema, const Original& original) {
  const std::vector<size_t>& written = original.written;
  std::string name = schema.name();
  std::replace(name.begin(), name.end(), ':', '_');
  const auto all = static_cast<size_t>(std::count_if(schema.arguments().begin(), schema.arguments().end(), isWritten));
  if (written.size() < all)
    for (size_t i : written) name += "_" + std::to_string(i);
  return "fusebox_functional::" + name + (original.shares ? "_shared" : "");
}

std::unique_ptr<FunctionalForm> makeForm(const c10::OperatorHandle& op, const Original& original) {
  auto& dispatcher = c10::Dispatcher::singleton();
  std::string name = formName(op.schema(), original);
  // An operator that was registered anew, with another schema, has a form beside that of the one before.
  if (dispatcher.findSchema({name, op.operator_name().overload_name})) name += "_" + std::to_string(std::hash<std::string>{}(original.schema));
  std::vector<c10::RegistrationHandleRAII> registrations;
  registrations.push_back(dispatcher.registerDef(functionalSchema(op.schema(), name, original), "fusebox"));
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
  if (!isOfThatKind(op.schema()) || hasOwnAutograd(op)) return nullptr;
  const std::vector<Operand> operands = operandsOf(op.schema(), args);
  const std::vector<int64_t> memories = memoriesOf(operands);
  if (isEntangled(op.schema(), operands) || !canBePlaced(operands, memories)) return nullptr;
  const Original original(op, writtenBy(op.schema(), args), isShared(memories));
  if (original.written.empty()) return nullptr;
  const std::lock_guard lock(forms().mutex);
  for (const auto& form : forms().all)
    if (form->original.name == original.name && form->original.schema == original.schema && form->original.written == original.written &&
        form->original.shares == original.shares)
      return &form->handle;
  forms().all.push_back(makeForm(op, original));
  return &forms().all.back()->handle;
}

bool callFunctionalForm(const c10::OperatorHandle& op, const c10::OperatorHandle& functional, Stack* stack, FormCall call) {
  const size_t arity = op.schema().arguments().size(), results = returnsNone(op.schema()) ? 0 : op.schema().returns().size();
  Stack inner(stack->end() - static_cast<ptrdiff_t>(arity), stack->end());
  std::vector<IValue> targets;
  for (size_t i : writtenBy(op.schema(), inner)) targets.push_back(inner[i]);
  if (functional.schema().arguments().size() > arity) inner.push_back(layoutOf(op.schema(), inner));
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
  if (returnsNone(op.schema())) stack->emplace_back();
  return true;
}

bool answerByForm(const c10::OperatorHandle& op, Stack* stack, FormCall answer) {
  std::vector<c10::OperatorHandle> known;
  {
    const std::lock_guard lock(forms().mutex);
    for (const auto& form : forms().all)
      if (form->original.name == op.operator_name() && form->original.now() == op) known.push_back(form->handle);
  }
  return std::any_of(known.begin(), known.end(), [&](const c10::OperatorHandle& form) { return callFunctionalForm(op, form, stack, answer); });
}

bool runForm(const c10::OperatorHandle& functional, Stack* stack) {
  functional.callBoxed(stack);
  return true;
}

}  // namespace fusebox::trace
