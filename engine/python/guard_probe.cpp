#include "engine/python/guard_probe.h"

#include <algorithm>
#include <map>

#include <pybind11/stl.h>

#include "engine/capture/guards/guard_tree.h"
#include "engine/support/clock.h"

namespace py = pybind11;

namespace fusebox::python {
namespace {

using namespace capture;

constexpr std::pair<const char*, Source::Kind> kSources[] = {
    {"cell", Source::Kind::CellContents}, {"dict", Source::Kind::InstanceDict}, {"item", Source::Kind::DictItem},
    {"key", Source::Kind::DictKey}, {"index", Source::Kind::SequenceItem}, {"slot", Source::Kind::SlotAttr},
    {"attr", Source::Kind::Attr}, {"type", Source::Kind::TypeOf}, {"code", Source::Kind::FunctionCode},
    {"defaults", Source::Kind::FunctionDefaults}, {"kwdefaults", Source::Kind::FunctionKwDefaults},
    {"closure", Source::Kind::FunctionClosure}, {"self", Source::Kind::MethodSelf}, {"func", Source::Kind::MethodFunction}, {"mapping", Source::Kind::ViewDict},
    {"grad", Source::Kind::TensorGrad}};

class GuardProbe {
 public:
  GuardProbe() : set_(std::make_shared<GuardSet>(nullptr, nullptr)) {}

  /// `path`: first the local's number, then (kind, key or index) steps.
  const Source* source(const py::list& path) {
    SourceTable& table = set_->sources();
    const Source* s = PyLong_Check(path[0].ptr()) ? table.local(py::cast<int>(path[0])) : table.pinned(py::cast<py::tuple>(path[0])[0].ptr());
    for (size_t i = 1; i < path.size(); ++i) {
      const auto step = py::cast<py::tuple>(path[i]);
      const auto name = py::cast<std::string>(step[0]);
      const auto* known = std::find_if(std::begin(kSources), std::end(kSources), [&](auto& k) { return name == k.first; });
      if (known == std::end(kSources)) throw py::key_error(name);
      const bool byIndex = known->second == Source::Kind::SequenceItem || known->second == Source::Kind::DictKey;
      const py::object key = step.size() > 1 ? py::object(step[1]) : py::none();
      s = byIndex ? table.derived(known->second, s, nullptr, py::cast<int64_t>(key))
                  : table.derived(known->second, s, step.size() > 1 ? key.ptr() : nullptr);
    }
    return s;
  }

  bool add(const std::string& kind, const py::object& path, const py::object& expected, int64_t number, const py::object& other) {
    Guard g;
    for (int k = 0; k <= static_cast<int>(GuardKind::Custom); ++k)
      if (kind == name(static_cast<GuardKind>(k))) g.kind = static_cast<GuardKind>(k);
    if (kind != name(g.kind)) throw py::key_error(kind);
    if (!path.is_none()) g.source = source(py::cast<py::list>(path));
    if (!other.is_none()) g.other = source(py::cast<py::list>(other));
    g.expected = PyRef::borrow(expected.ptr());
    g.number = number;
    g.place = {"model.py", 7, "forward"};
    return set_->add(std::move(g));
  }

  void symbol(const std::string& name, int64_t hint, int64_t lower, int64_t upper) { symbols_[name] = env_->symbol(name, hint, lower, upper); }

  /// A number of the object at `path` is `expression`; `kind`: size, stride, offset or value.
  void number(const py::list& path, const std::string& kind, int dim, const py::handle& expression) {
    static const std::map<std::string, NumberSource::Kind> kKinds = {{"size", NumberSource::Kind::Size}, {"stride", NumberSource::Kind::Stride},
                                                                     {"offset", NumberSource::Kind::Offset}, {"value", NumberSource::Kind::Value}};
    const NumberSource at{kKinds.at(kind), source(path), dim};
    const graph::SymExpr is = expr(expression);
    for (const auto& [name, symbol] : symbols_)
      if (symbol == is && std::none_of(set_->shapes().origins.begin(), set_->shapes().origins.end(), [&](auto& o) { return graph::SymExpr(o.symbol) == symbol; }))
        set_->shapes().origins.push_back({is.symbols().front(), at, "automatic", "it changed", {}, {}, false});
    set_->number(at, is, "it changed", {"model.py", 7, "forward"});
  }

  bool decide(const std::string& op, const py::handle& left, const py::handle& right, const std::string& reason) {
    static const std::map<std::string, graph::Compare> kOps = {{"==", graph::Compare::Eq}, {"!=", graph::Compare::Ne}, {"<", graph::Compare::Lt}, {"<=", graph::Compare::Le}};
    return env_->decide(kOps.at(op), expr(left), expr(right), reason);
  }

  std::vector<int64_t> symbolValues() const {
    const auto values = tree_->symbolValues();
    return {values.begin(), values.end()};
  }

  void build(const py::list& outputs) {
    if (!set_->finishShapes(*env_)) throw std::runtime_error("a symbol has no number that gives its value");
    std::vector<const Source*> sources;
    for (const auto& path : outputs) sources.push_back(source(py::cast<py::list>(path)));
    tree_ = std::make_unique<GuardTree>(set_, sources);
    tree_->loosen({}, nullptr);
  }

  bool check(const py::list& objects) { return tree_->check(view(objects), GlobalState::current()); }

  py::object explain(const py::list& objects) {
    const GuardFailure f = tree_->explain(view(objects), GlobalState::current());
    return py::make_tuple(f.guard, f.expected, f.found, f.place.file, f.place.line);
  }

  py::list outputs() {
    py::list list;
    for (size_t i = 0; i < tree_->outputCount(); ++i) list.append(py::reinterpret_borrow<py::object>(tree_->output(i)));
    return list;
  }

  /// Nanoseconds of one successful check.
  double time(const py::list& objects, int repeats) {
    const FrameView v = view(objects);
    const GlobalState now = GlobalState::current();
    const int64_t start = nowNs();
    for (int i = 0; i < repeats; ++i)
      if (!tree_->check(v, now)) throw std::runtime_error("the guards do not hold");
    return static_cast<double>(nowNs() - start) / repeats;
  }

  /// Nanoseconds of one failing check.
  double timeMiss(const py::list& objects, int repeats) {
    const FrameView v = view(objects);
    const GlobalState now = GlobalState::current();
    const int64_t start = nowNs();
    for (int i = 0; i < repeats; ++i)
      if (tree_->check(v, now)) throw std::runtime_error("the guards hold");
    return static_cast<double>(nowNs() - start) / repeats;
  }

  bool alive() const { return tree_->alive(); }
  size_t operations() const { return tree_->operationCount(); }
  size_t guards() const { return set_->guards().size(); }

 private:
  /// An int, the name of a symbol, or (operator, a, b).
  graph::SymExpr expr(const py::handle& e) const {
    if (py::isinstance<py::int_>(e)) return py::cast<int64_t>(e);
    if (py::isinstance<py::str>(e)) return symbols_.at(py::cast<std::string>(e));
    const auto parts = py::cast<py::tuple>(e);
    const auto op = py::cast<std::string>(parts[0]);
    const graph::SymExpr a = expr(parts[1]), b = expr(parts[2]);
    if (op == "+") return a + b;
    if (op == "-") return a - b;
    if (op == "*") return a * b;
    if (op == "//") return graph::floorDiv(a, b);
    if (op == "%") return graph::mod(a, b);
    if (op == "min") return graph::min(a, b);
    if (op == "max") return graph::max(a, b);
    throw py::key_error(op);
  }

  FrameView view(const py::list& objects) {
    FrameView v;
    v.locals = reinterpret_cast<PyListObject*>(objects.ptr())->ob_item;
    v.localCount = static_cast<int>(objects.size());
    v.freeOffset = v.localCount;
    return v;
  }
  std::shared_ptr<GuardSet> set_;
  std::shared_ptr<graph::ShapeEnv> env_ = graph::ShapeEnv::make([] {
    graph::Provenance origin;
    origin.stack = std::make_shared<const std::vector<graph::SourceLine>>(std::vector<graph::SourceLine>{{"model.py", 12, "forward"}});
    return origin;
  });
  std::map<std::string, graph::SymExpr> symbols_;
  std::unique_ptr<GuardTree> tree_;
};

}  // namespace

void bindGuardProbe(py::module_& m) {
  py::class_<GuardProbe>(m, "GuardProbe")
      .def(py::init<>())
      .def("add", &GuardProbe::add, py::arg("kind"), py::arg("path") = py::none(), py::arg("expected") = py::none(),
           py::arg("number") = 0, py::arg("other") = py::none())
      .def("build", &GuardProbe::build, py::arg("outputs") = py::list())
      .def("check", &GuardProbe::check)
      .def("explain", &GuardProbe::explain)
      .def("outputs", &GuardProbe::outputs)
      .def("time", &GuardProbe::time)
      .def("time_miss", &GuardProbe::timeMiss)
      .def("symbol", &GuardProbe::symbol, py::arg("name"), py::arg("hint"), py::arg("lower") = 2, py::arg("upper") = INT64_MAX)
      .def("number", &GuardProbe::number, py::arg("path"), py::arg("kind"), py::arg("dim"), py::arg("expression"))
      .def("decide", &GuardProbe::decide, py::arg("op"), py::arg("left"), py::arg("right"), py::arg("reason") = "the program")
      .def("symbol_values", &GuardProbe::symbolValues)
      .def_property_readonly("alive", &GuardProbe::alive)
      .def_property_readonly("operations", &GuardProbe::operations)
      .def_property_readonly("guards", &GuardProbe::guards);
}

}  // namespace fusebox::python
