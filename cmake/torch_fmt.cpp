// libtorch's headers call the {fmt} that torch ships beside them, which its libraries do not export: this is that fmt's body.
#include <fmt/format-inl.h>

namespace fmt {
inline namespace v12 {
namespace detail {
template auto thousands_sep_impl<char>(locale_ref) -> thousands_sep_result<char>;
template auto decimal_point_impl<char>(locale_ref) -> char;
template void buffer<char>::append(const char*, const char*);
template auto dragonbox::to_decimal(float x) noexcept -> dragonbox::decimal_fp<float>;
template auto dragonbox::to_decimal(double x) noexcept -> dragonbox::decimal_fp<double>;
}  // namespace detail
#if FMT_USE_LOCALE
template locale_ref::locale_ref(const std::locale& loc);
template auto locale_ref::get<std::locale>() const -> std::locale;
#endif
}  // namespace v12
}  // namespace fmt
