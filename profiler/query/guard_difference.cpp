#include "profiler/query/guard_difference.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <string_view>
#include <tuple>
#include <utility>

#include "engine/support/text.h"

namespace fusebox::query {
namespace {

/// A tensor as guards print it; both engines' forms.
struct TensorText {
  std::string dtype, device;
  std::vector<std::string> sizes, strides;
  bool requiresGrad = false, valid = false;
};

std::vector<std::string> listAt(std::string_view text, size_t open) {
  std::vector<std::string> out;
  const size_t close = text.find(']', open);
  if (close == std::string_view::npos) return out;
  std::string item;
  for (size_t i = open + 1; i <= close; ++i) {
    if (text[i] == ',' || text[i] == ']') {
      if (!item.empty()) out.push_back(item);
      item.clear();
    } else if (text[i] != ' ') {
      item += text[i];
    }
  }
  return out;
}

constexpr std::array<std::pair<const char*, const char*>, 12> kDtypes{{{"Float", "float32"},
                                                                       {"Double", "float64"},
                                                                       {"Half", "float16"},
                                                                       {"BFloat16", "bfloat16"},
                                                                       {"Long", "int64"},
                                                                       {"Int", "int32"},
                                                                       {"Short", "int16"},
                                                                       {"Char", "int8"},
                                                                       {"Byte", "uint8"},
                                                                       {"Bool", "bool"},
                                                                       {"ComplexFloat", "complex64"},
                                                                       {"ComplexDouble", "complex128"}}};

std::string dtypeName(std::string name) {
  if (name.starts_with("torch.")) name.erase(0, 6);
  for (const auto& [own, torch] : kDtypes) {
    if (name == own) return torch;
  }
  return name;
}

TensorText parseTensor(std::string_view text) {
  TensorText out;
  const size_t named = text.find("size=[");
  const size_t open = named != std::string_view::npos ? named + 5 : text.find('[');
  if (open == std::string_view::npos || text.find(']', open) == std::string_view::npos) return out;
  out.sizes = listAt(text, open);
  if (named != std::string_view::npos) {  // Tensor, DispatchKeySet(…), torch.float32, device=0, requires_grad=False,
                                          // size=[…], stride=[…]
    const size_t dtype = text.find("torch."), device = text.find("device="), stride = text.find("stride=[");
    if (dtype != std::string_view::npos)
      out.dtype = dtypeName(std::string(text.substr(dtype, text.find(',', dtype) - dtype)));
    if (device != std::string_view::npos) out.device = text.substr(device + 7, text.find(',', device) - device - 7);
    if (stride != std::string_view::npos) out.strides = listAt(text, stride + 7);
    out.requiresGrad = text.find("requires_grad=True") != std::string_view::npos;
  } else {  // Float[4, 16] strides [16, 1] cpu requires_grad
    size_t begin = open;
    while (begin > 0 && text[begin - 1] != ' ') --begin;
    out.dtype = dtypeName(std::string(text.substr(begin, open - begin)));
    if (out.dtype.empty() && begin != 0) return out;
    size_t rest = text.find(']', open) + 1;
    if (const size_t stride = text.find("strides [", rest); stride != std::string_view::npos) {
      out.strides = listAt(text, stride + 8);
      rest = text.find(']', stride) + 1;
    }
    while (rest < text.size() && text[rest] == ' ') ++rest;
    out.device = text.substr(rest, text.find(' ', rest) - rest);
    out.requiresGrad = text.find("requires_grad") != std::string_view::npos;
    // "L['n'] == 3" has brackets too.
    if (!out.device.empty() && std::isalpha(static_cast<unsigned char>(out.device[0])) == 0) return out;
  }
  out.valid = true;
  return out;
}

/// "tensor 'x' size mismatch at index 0. expected 8, actual 1", PyTorch's own words.
TensorChange stockChange(const GuardProblem& p) {
  TensorChange change;
  const std::string& t = p.text;
  if (t.find(" mismatch") == std::string::npos) return change;
  change.from = p.expected;
  change.to = p.found;
  using What = TensorChange::What;
  constexpr std::pair<const char*, What> kWords[] = {{" size mismatch", What::Size},
                                                     {" stride mismatch", What::Stride},
                                                     {" rank mismatch", What::Rank},
                                                     {" dtype mismatch", What::Dtype},
                                                     {" requires_grad mismatch", What::Gradient},
                                                     {" device", What::Device},
                                                     {" dispatch key set mismatch", What::Keys}};
  for (const auto& [word, what] : kWords) {
    if (change.what == What::None && t.find(word) != std::string::npos) change.what = what;
  }
  if (change.what == What::Dtype) change.from = dtypeName(change.from), change.to = dtypeName(change.to);
  if (const size_t at = t.find("at index "); at != std::string::npos) {
    change.dims = {std::atoi(t.c_str() + at + 9)};
    change.numbers = {{p.expected, p.found}};
  }
  return change;
}

/// What differs of two lists of sizes or strides. A guard that names a symbol there, or nothing, takes any number.
void addNumbers(TensorChange& change, const std::vector<std::string>& expected, const std::vector<std::string>& found) {
  for (size_t i = 0; i < std::min(expected.size(), found.size()); ++i) {
    const bool isNumber = !expected[i].empty() && expected[i].find_first_not_of("-0123456789") == std::string::npos;
    if (!isNumber || expected[i] == found[i]) continue;
    change.dims.push_back(static_cast<int>(i));
    change.numbers.emplace_back(expected[i], found[i]);
  }
}

}  // namespace

TensorChange changeOf(const GuardProblem& p) {
  if (TensorChange stock = stockChange(p); stock.what != TensorChange::What::None) return stock;
  TensorChange change;
  const TensorText a = parseTensor(p.expected), b = parseTensor(p.found);
  if (!a.valid || !b.valid) return change;
  using What = TensorChange::What;
  if (a.dtype != b.dtype) return {What::Dtype, {}, a.dtype, b.dtype, {}};
  if (a.sizes.size() != b.sizes.size())
    return {What::Rank, {}, std::to_string(a.sizes.size()), std::to_string(b.sizes.size()), {}};
  addNumbers(change, a.sizes, b.sizes);
  if (!change.dims.empty()) {
    change.what = What::Size;
    std::tie(change.from, change.to) = change.numbers[0];
    return change;
  }
  if (a.device != b.device) return {What::Device, {}, a.device, b.device, {}};
  addNumbers(change, a.strides, b.strides);
  if (!change.dims.empty() || a.strides.size() != b.strides.size()) {
    change.what = What::Stride;
    change.from = fmt::format("[{}]", fmt::join(a.strides, ", "));
    change.to = fmt::format("[{}]", fmt::join(b.strides, ", "));
    return change;
  }
  if (a.requiresGrad != b.requiresGrad)
    return {What::Gradient, {}, a.requiresGrad ? "True" : "False", b.requiresGrad ? "True" : "False", {}};
  return change;
}

std::string tensorDifference(const std::string& expected, const std::string& found) {
  GuardProblem p;
  p.expected = expected;
  p.found = found;
  const TensorChange change = changeOf(p);
  using What = TensorChange::What;
  switch (change.what) {
    case What::Size:
      return say(FUSEBOX_TEXT("Guards", "size {}: {}, now {}"), change.dims[0], change.from, change.to);
    case What::Rank:
      return say(FUSEBOX_TEXT("Guards", "{} dimensions, now {}"), change.from, change.to);
    case What::Dtype:
      return say(FUSEBOX_TEXT("Guards", "dtype {}, now {}"), change.from, change.to);
    case What::Device:
      return say(FUSEBOX_TEXT("Guards", "device {}, now {}"), change.from, change.to);
    case What::Stride:
      return say(FUSEBOX_TEXT("Guards", "strides {}, now {}"), change.from, change.to);
    case What::Gradient:
      return say(FUSEBOX_TEXT("Guards", "requires_grad {}, now {}"), change.from, change.to);
    default:
      return {};
  }
}

}  // namespace fusebox::query
