#include <fmt/format.h>

#include <cstdio>

#include "engine/graph/graph.h"

/// Printing of devices, tensor descriptions and arguments, and walks over argument lists.
namespace fusebox::graph {
namespace {

std::string listText(const std::vector<SymExpr>& list) {
  std::string out = "[";
  for (size_t i = 0; i < list.size(); i++) out += (i ? ", " : "") + list[i].str();
  return out + "]";
}

std::string doubleText(double v) {
  char text[40];
  std::snprintf(text, sizeof text, "%.17g", v);
  // The shortest form that reads back as the same number.
  for (int digits = 1; digits < 17; digits++) {
    char shorter[40];
    std::snprintf(shorter, sizeof shorter, "%.*g", digits, v);
    if (std::strtod(shorter, nullptr) == v) {
      std::snprintf(text, sizeof text, "%s", shorter);
      break;
    }
  }
  std::string s = text;
  return s.find_first_of(".einf") == std::string::npos ? s + ".0" : s;
}

struct ArgumentText {
  std::string operator()(std::monostate) const { return "None"; }
  std::string operator()(bool v) const { return v ? "True" : "False"; }
  std::string operator()(int64_t v) const { return std::to_string(v); }
  std::string operator()(double v) const { return doubleText(v); }
  std::string operator()(const std::complex<double>& v) const {
    return fmt::format("({}+{}j)", doubleText(v.real()), doubleText(v.imag()));
  }
  std::string operator()(const std::string& v) const {
    constexpr size_t kLongest = 160, kShown = 40;  // a graph as text is not for people
    return v.size() <= kLongest ? fmt::format("'{}'", v) : fmt::format("'{}…' ({} characters)", v.substr(0, kShown), v.size());
  }
  std::string operator()(const SymExpr& v) const { return v.str(); }
  std::string operator()(DType v) const { return fmt::format("torch.{}", name(v)); }
  std::string operator()(const Device& v) const { return fmt::format("device('{}')", v.str()); }
  std::string operator()(Layout v) const { return fmt::format("layout({})", v.value); }
  std::string operator()(MemoryFormat v) const {
    static constexpr std::string_view kNames[] = {"contiguous_format", "preserve_format", "channels_last",
                                                  "channels_last_3d"};
    auto i = static_cast<size_t>(v.value);
    return i < std::size(kNames) ? fmt::format("torch.{}", kNames[i]) : fmt::format("memory_format({})", v.value);
  }
  std::string operator()(GeneratorRef v) const { return fmt::format("generator({})", v.index); }
  std::string operator()(ValueRef v) const {
    return v.output ? fmt::format("%{}#{}", v.node, v.output) : fmt::format("%{}", v.node);
  }
  std::string operator()(const ArgumentList& v) const {
    std::string out = "[";
    for (size_t i = 0; i < v.size(); i++) out += (i ? ", " : "") + v[i].str();
    return out + "]";
  }
};

}  // namespace

std::string Device::str() const {
  static constexpr std::string_view kNames[] = {"cpu", "cuda", "meta", "other"};
  std::string out(kNames[static_cast<size_t>(kind)]);
  return index < 0 ? out : fmt::format("{}:{}", out, index);
}

bool TensorMeta::isContiguous() const {
  SymExpr expected = 1;
  for (const SymExpr& s : sizes) {
    if (s == SymExpr(0)) return true;
  }
  for (size_t i = sizes.size(); i-- > 0;) {
    if (sizes[i] == SymExpr(1)) continue;
    if (!(strides[i] == expected)) return false;
    expected *= sizes[i];
  }
  return true;
}

std::string TensorMeta::str() const {
  std::string out = std::string(name(dtype)) + listText(sizes);
  if (!isContiguous()) out += " strides " + listText(strides);
  if (!(storageOffset == SymExpr(0))) out += " offset " + storageOffset.str();
  if (device.kind != DeviceKind::Cpu) out += " " + device.str();
  return out;
}

std::string Argument::str() const { return std::visit(ArgumentText{}, value); }

void Graph::forEachValue(const ArgumentList& args, const std::function<void(ValueRef)>& fn) {
  for (const Argument& a : args) {
    if (const auto* v = a.as<ValueRef>()) fn(*v);
    else if (const auto* list = a.as<ArgumentList>()) forEachValue(*list, fn);
  }
}

void Graph::mapValues(ArgumentList& args, const std::function<ValueRef(ValueRef)>& fn) {
  for (Argument& a : args) {
    if (auto* v = std::get_if<ValueRef>(&a.value)) *v = fn(*v);
    else if (auto* list = std::get_if<ArgumentList>(&a.value)) mapValues(*list, fn);
  }
}

}  // namespace fusebox::graph
