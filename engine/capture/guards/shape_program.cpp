#include "engine/capture/guards/shape_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>

#include "engine/capture/cpython/errors.h"
#include "engine/capture/evaluation/torch_objects.h"

namespace fusebox::capture {
namespace {

constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
constexpr uint32_t kNowhere = UINT32_MAX;

/// False: there is no such number (not an int or float, or an int beyond 64 bits).
bool readNumber(NumberSource::Kind kind, int32_t dim, PyObject* object, int64_t* value) {
  if (kind == NumberSource::Kind::Value) {
    if (!PyLong_CheckExact(object)) return false;
    int overflow = 0;
    *value = PyLong_AsLongLongAndOverflow(object, &overflow);
    return overflow == 0;
  }
  if (kind == NumberSource::Kind::ArrayInt) {
    const PyRef whole = PyRef::steal(PyNumber_Index(object));
    if (!whole) return clearError(), false;
    return readNumber(NumberSource::Kind::Value, dim, whole.get(), value);
  }
  if (kind == NumberSource::Kind::Bits || kind == NumberSource::Kind::ArrayBits) {
    if (kind == NumberSource::Kind::Bits ? !PyFloat_CheckExact(object) : !PyFloat_Check(object)) return false;
    *value = std::bit_cast<int64_t>(PyFloat_AS_DOUBLE(object));
    return true;
  }
  const c10::TensorImpl& tensor = *tensorOf(object).unsafeGetTensorImpl();
  if (kind == NumberSource::Kind::Offset) {
    *value = tensor.storage_offset();
    return true;
  }
  const c10::IntArrayRef numbers = kind == NumberSource::Kind::Size ? tensor.sizes() : tensor.strides();
  if (static_cast<size_t>(dim) >= numbers.size()) return false;
  *value = numbers[static_cast<size_t>(dim)];
  return true;
}

bool floorDivide(int64_t a, int64_t b, int64_t* quotient) {
  if (b == 0 || (a == kLeast && b == -1)) return false;
  *quotient = a / b - ((a % b != 0) && ((a < 0) != (b < 0)));
  return true;
}

bool floorModulo(int64_t a, int64_t b, int64_t* rest) {
  if (b == 0) return false;
  if (b == -1) return *rest = 0, true;
  const int64_t r = a % b;
  *rest = r != 0 && ((r < 0) != (b < 0)) ? r + b : r;
  return true;
}

}  // namespace

ShapeProgram::ShapeProgram(const ShapeGuards& shapes, const Places& places) :
    relationGuards_(places.relationGuards), symbolCount_(shapes.symbols.size()) {
  registers_.assign(symbolCount_, 0);
  for (uint32_t i = 0; i < symbolCount_; ++i) ofSymbol_.emplace(shapes.symbols[i].id, i);
  const auto compare = [&](Code code, uint32_t a, uint32_t b, uint32_t guard) {
    if (guard != kNowhere) steps_.push_back({code, a, b, guard});  // else switched off by a test
  };
  for (size_t i = 0; i < shapes.numbers.size(); ++i) {
    const NumberGuard& n = shapes.numbers[i];
    Read read{n.at.kind, n.at.dim, places.objects[i], kNowhere, places.numberGuards[i], kLeast, kMost};
    if (n.defines) {
      const graph::Symbol symbol = n.is.symbols().front();
      read.to = ofSymbol_.at(symbol.id);
      if (read.guard != kNowhere) {
        read.lower = symbol.lower();
        read.upper = symbol.upper();
      }
    } else {
      read.to = static_cast<uint32_t>(registers_.size());
      registers_.push_back(0);
    }
    reads_.push_back(read);
  }
  for (const graph::ComputedSymbol& c : shapes.computed) {
    Made made{{}, ofSymbol_.at(c.symbol.id), 0, c.compute};
    for (const graph::Symbol s : c.from) made.from.push_back(ofSymbol_.at(s.id));
    // Without a value, the first relation that wants it fails, or else what it is computed from.
    for (const Read& read : reads_)
      if (std::find(made.from.begin(), made.from.end(), read.to) != made.from.end()) made.guard = read.guard;
    for (size_t i = shapes.relations.size(); i-- > 0;)
      if (shapes.relations[i].left.contains(c.symbol) || shapes.relations[i].right.contains(c.symbol)) made.guard = places.relationGuards[i];
    made_.push_back(std::move(made));
  }
  for (size_t i = 0; i < shapes.numbers.size(); ++i)
    if (!shapes.numbers[i].defines) compare(Code::Equal, reads_[i].to, value(shapes.numbers[i].is), reads_[i].guard);
  for (size_t i = 0; i < shapes.relations.size(); ++i) {
    const graph::Relation& r = shapes.relations[i];
    static constexpr Code kCodes[] = {Code::Equal, Code::NotEqual, Code::Less, Code::LessEqual};
    const uint32_t left = value(r.left), right = value(r.right);
    compare(kCodes[static_cast<size_t>(r.op)], left, right, places.relationGuards[i]);
  }
}

size_t ShapeProgram::relationOf(int64_t guard) const {
  return static_cast<size_t>(std::find(relationGuards_.begin(), relationGuards_.end(), guard) - relationGuards_.begin());
}

uint32_t ShapeProgram::number(int64_t constant) {
  const auto [at, isNew] = ofConstant_.emplace(constant, static_cast<uint32_t>(registers_.size()));
  if (isNew) registers_.push_back(constant);
  return at->second;
}

uint32_t ShapeProgram::compute(Code code, uint32_t a, uint32_t b) {
  if (b < a && (code == Code::Add || code == Code::Multiply || code == Code::Min || code == Code::Max)) std::swap(a, b);
  const auto [at, isNew] = computed_.emplace(std::tuple(code, a, b), static_cast<uint32_t>(registers_.size()));
  if (isNew) {
    registers_.push_back(0);
    steps_.push_back({code, a, b, at->second});
  }
  return at->second;
}

uint32_t ShapeProgram::value(const graph::SymAtom& atom) {
  using Kind = graph::SymAtom::Kind;
  if (atom.kind == Kind::Symbol) return ofSymbol_.at(atom.symbol.id);
  const uint32_t a = value(atom.a), b = value(atom.b);
  switch (atom.kind) {
    case Kind::FloorDiv: return compute(Code::FloorDiv, a, b);
    case Kind::Mod: return compute(Code::Mod, a, b);
    case Kind::Min: return compute(Code::Min, a, b);
    default: return compute(Code::Max, a, b);
  }
}

uint32_t ShapeProgram::value(const graph::SymExpr& e) {
  if (e.isConstant()) return number(e.constant());
  uint32_t sum = kNowhere;
  for (const graph::SymExpr::Term& term : e.terms()) {
    uint32_t product = term.coefficient == 1 && !term.factors.empty() ? kNowhere : number(term.coefficient);
    for (const graph::SymAtom& factor : term.factors) {
      const uint32_t f = value(factor);
      product = product == kNowhere ? f : compute(Code::Multiply, product, f);
    }
    sum = sum == kNowhere ? product : compute(Code::Add, sum, product);
  }
  return sum;
}

int64_t ShapeProgram::run(PyObject* const* objects) {
  int64_t* const r = registers_.data();
  failedRead_ = SIZE_MAX;
  for (const Read& read : reads_) {
    int64_t value;
    if (!readNumber(read.kind, read.dim, objects[read.object], &value)) {
      failedRead_ = static_cast<size_t>(&read - reads_.data());
      return read.guard;
    }
    r[read.to] = value;
    if (value < read.lower || value > read.upper) return read.guard;
  }
  for (const Made& made : made_) {
    given_.clear();
    for (const uint32_t from : made.from) given_.push_back(r[from]);
    const auto value = made.compute(given_);
    if (!value) return made.guard == kNowhere ? -2 : made.guard;
    r[made.to] = *value;
  }
  for (const Step& step : steps_) {
    const int64_t a = r[step.a], b = r[step.b];
    bool ok = true;
    switch (step.code) {
      case Code::Add: ok = !__builtin_add_overflow(a, b, &r[step.to]); break;
      case Code::Multiply: ok = !__builtin_mul_overflow(a, b, &r[step.to]); break;
      case Code::FloorDiv: ok = floorDivide(a, b, &r[step.to]); break;
      case Code::Mod: ok = floorModulo(a, b, &r[step.to]); break;
      case Code::Min: r[step.to] = std::min(a, b); break;
      case Code::Max: r[step.to] = std::max(a, b); break;
      case Code::Equal: if (a != b) return step.to; break;
      case Code::NotEqual: if (a == b) return step.to; break;
      case Code::Less: if (a >= b) return step.to; break;
      case Code::LessEqual: if (a > b) return step.to; break;
    }
    if (ok) continue;
    // The comparison that this was computed for.
    for (const Step* next = &step + 1; next < steps_.data() + steps_.size(); ++next)
      if (next->code >= Code::Equal) return next->to;
    return -2;
  }
  return -1;
}

std::string ShapeProgram::found(const ShapeGuards& shapes, int64_t guard) const {
  constexpr size_t kMostNames = 6;
  std::string text;
  const auto add = [&](const std::string& name, int64_t value, bool isFloat) {
    text += fmt::format("{}{} = ", text.empty() ? "" : ", ", name) + (isFloat ? fmt::to_string(std::bit_cast<double>(value)) : fmt::to_string(value));
  };
  for (size_t i = 0; i < reads_.size(); ++i) {
    if (reads_[i].guard != guard) continue;
    if (i == failedRead_) return shapes.numbers[i].at.str() + " is no integer of 64 bits";
    add(shapes.numbers[i].at.str(), registers_[reads_[i].to], shapes.numbers[i].at.isBits());
  }
  for (const Step& step : steps_) {
    if (step.code < Code::Equal || step.to != guard) continue;
    std::vector<graph::Symbol> symbols;
    for (size_t i = 0; i < reads_.size(); ++i)
      if (reads_[i].guard == guard) symbols = shapes.numbers[i].is.symbols();
    const size_t at = relationOf(guard);
    if (at < shapes.relations.size()) {
      symbols = shapes.relations[at].left.symbols();
      for (graph::Symbol s : shapes.relations[at].right.symbols())
        if (std::find(symbols.begin(), symbols.end(), s) == symbols.end()) symbols.push_back(s);
    }
    for (size_t i = 0; i < symbols.size() && i < kMostNames; ++i) {
      const bool isFloat = std::any_of(shapes.origins.begin(), shapes.origins.end(), [&](const SymbolOrigin& o) { return o.symbol == symbols[i] && o.at.isBits(); });
      add(shapes.text(graph::SymExpr(symbols[i])), registers_[ofSymbol_.at(symbols[i].id)], isFloat);
    }
    break;
  }
  return text;
}

}  // namespace fusebox::capture
