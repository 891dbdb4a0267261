#pragma once

#include <string>
#include <string_view>

namespace fusebox::importing {

/// The MD5 of RFC 1321 in lower-case hexadecimal. Only to check that a payload is whole, never for security.
std::string md5(std::string_view bytes);

}  // namespace fusebox::importing
