#pragma once

#include <array>
#include <complex>
#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "engine/graph/sym_expr.h"

/// Compiled graphs as bytes. Each structure's fields are named once, in archive_fields.h, for both directions. The form
/// is that of one build of the engine: whoever keeps archives keeps the build's id with them.
namespace fusebox::inductor {

/// Bytes that are no archive of this build.
struct ArchiveError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Symbols are written with all that is known of them where they come first, and numbered. Those of `outer`, which
/// reader and writer have in the same order, are numbers alone.
class ArchiveWriter {
 public:
  static constexpr bool kReads = false;
  explicit ArchiveWriter(std::span<const graph::Symbol> outer = {});

  template <class... T>
  void operator()(const T&... values) {
    (item(values), ...);
  }
  std::string take() { return std::move(bytes_); }
  /// Symbols that were written, besides the outer ones.
  size_t ownSymbols() const { return numbers_.size() - outer_; }

 private:
  template <class T>
  requires(std::is_integral_v<T> || std::is_enum_v<T>) void item(const T& value) {
    integer(static_cast<int64_t>(value));
  }
  void item(const double& value);
  void item(const std::complex<double>& value) { item(value.real()), item(value.imag()); }
  void item(const std::string& value);
  void item(const graph::Symbol& symbol);
  void item(const graph::SymExpr& expression);
  template <class T>
  void item(const std::vector<T>& list) {
    integer(static_cast<int64_t>(list.size()));
    for (const T& value : list) item(value);
  }
  template <class T, size_t N>
  void item(const std::array<T, N>& list) {
    for (const T& value : list) item(value);
  }
  template <class K, class V>
  void item(const std::map<K, V>& map) {
    integer(static_cast<int64_t>(map.size()));
    for (const auto& [key, value] : map) item(key), item(value);
  }
  template <class T>
  void item(const std::optional<T>& value) {
    item(value.has_value());
    if (value) item(*value);
  }
  template <class T>
  void item(const std::shared_ptr<const T>& value) {
    item(value != nullptr);
    if (value) item(*value);
  }
  template <class... T>
  void item(const std::variant<T...>& value) {
    integer(static_cast<int64_t>(value.index()));
    std::visit([this](const auto& held) { item(held); }, value);
  }
  void item(const std::monostate&) {}
  template <class T>
  requires(std::is_class_v<T>) void item(const T& value) { fields(*this, value); }
  void integer(int64_t value);

  std::string bytes_;
  size_t outer_ = 0;
  std::unordered_map<uint32_t, int64_t> numbers_;
};

class ArchiveReader {
 public:
  static constexpr bool kReads = true;
  explicit ArchiveReader(std::string_view bytes, std::span<const graph::Symbol> outer = {})
      : rest_(bytes), symbols_(outer.begin(), outer.end()) {}

  /// Throws ArchiveError.
  template <class... T>
  void operator()(T&... values) {
    (item(values), ...);
  }
  bool atEnd() const { return rest_.empty(); }

 private:
  template <class T>
  requires(std::is_integral_v<T> || std::is_enum_v<T>) void item(T& value) {
    const int64_t number = integer();
    if constexpr (std::is_enum_v<T>) {
      if (number < std::numeric_limits<std::underlying_type_t<T>>::min() ||
          number > std::numeric_limits<std::underlying_type_t<T>>::max())
        throw ArchiveError("a kind out of range");
    } else {
      if (static_cast<int64_t>(static_cast<T>(number)) != number) throw ArchiveError("a number out of range");
    }
    value = static_cast<T>(number);
  }
  void item(double& value);
  void item(std::complex<double>& value) {
    double real = 0, imaginary = 0;
    item(real), item(imaginary);
    value = {real, imaginary};
  }
  void item(std::string& value);
  void item(graph::Symbol& symbol);
  void item(graph::SymExpr& expression);
  template <class T>
  void item(std::vector<T>& list) {
    list.clear();
    const size_t size = count();
    list.reserve(size);
    for (size_t i = 0; i < size; ++i) {
      T value{};
      item(value);
      list.push_back(std::move(value));
    }
  }
  template <class T, size_t N>
  void item(std::array<T, N>& list) {
    for (T& value : list) item(value);
  }
  template <class K, class V>
  void item(std::map<K, V>& map) {
    map.clear();
    for (size_t size = count(); size > 0; --size) {
      K key{};
      V value{};
      item(key), item(value);
      map.emplace(std::move(key), std::move(value));
    }
  }
  template <class T>
  void item(std::optional<T>& value) {
    bool present = false;
    item(present);
    value.reset();
    if (present) item(value.emplace());
  }
  template <class T>
  void item(std::shared_ptr<const T>& value) {
    bool present = false;
    item(present);
    value = nullptr;
    if (!present) return;
    auto made = std::make_shared<T>();
    item(*made);
    value = std::move(made);
  }
  template <class... T>
  void item(std::variant<T...>& value) {
    const int64_t index = integer();
    if (index < 0 || index >= static_cast<int64_t>(sizeof...(T))) throw ArchiveError("an alternative out of range");
    alternative(value, static_cast<size_t>(index), std::index_sequence_for<T...>());
  }
  template <class V, size_t... I>
  void alternative(V& value, size_t index, std::index_sequence<I...>) {
    const auto read = [&]<size_t N>() {
      std::variant_alternative_t<N, V> held{};
      item(held);
      value = V(std::in_place_index<N>, std::move(held));
    };
    ((index == I ? read.template operator()<I>() : void()), ...);
  }
  void item(std::monostate&) {}
  template <class T>
  requires(std::is_class_v<T>) void item(T& value) {
    if (++depth_ > kMaxDepth) throw ArchiveError("nested too deeply");
    fields(*this, value);
    --depth_;
  }
  int64_t integer();
  /// Of a list whose items take a byte each at least.
  size_t count();

  static constexpr int kMaxDepth = 200;
  std::string_view rest_;
  std::vector<graph::Symbol> symbols_;
  int depth_ = 0;
};

}  // namespace fusebox::inductor
