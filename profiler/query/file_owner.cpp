#include "profiler/query/file_owner.h"

namespace fusebox::query {

bool isFuseboxFile(std::string_view file) {
  // A user's own folder may be called fusebox: the package's public modules are told by their names.
  constexpr std::string_view kParts[] = {"-packages/fusebox/", "/fusebox/_", "/fusebox/host.py", "/fusebox/compiler.py"};
  for (const auto part : kParts) {
    if (file.find(part) != std::string_view::npos) return true;
  }
  return false;
}

}  // namespace fusebox::query
