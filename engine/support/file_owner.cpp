#include "engine/support/file_owner.h"

#include <algorithm>

namespace fusebox {
namespace {

bool holdsOne(std::string_view file, std::initializer_list<std::string_view> parts) {
  return std::any_of(parts.begin(), parts.end(), [&](std::string_view part) { return file.find(part) != file.npos; });
}

}  // namespace

bool isFuseboxFile(std::string_view file) {
  // A user's own folder may be called fusebox: the package's public modules are told by their names.
  return holdsOne(file, {"-packages/fusebox/", "/fusebox/_", "/fusebox/host.py", "/fusebox/compiler.py"});
}

bool isProgramFile(std::string_view file) {
  // Parts of paths; a user's own folder may be called torch.
  return !file.empty() && !isFuseboxFile(file) &&
         !holdsOne(file, {"/site-packages/", "/dist-packages/", "<frozen ", "/lib/python3.", "/torch/_", "/torch/nn/modules/", "/torch/nn/functional",
                          "/torch/optim/", "/torch/utils/", "/torch/autograd"});
}

}  // namespace fusebox
