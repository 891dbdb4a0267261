#pragma once

#include <string>

namespace fusebox {

/// Which builds do the work: code that one made is good for that one only. "0.1.0 (6e1f…)": the linker's build id, else
/// size and time of the file.
std::string engineBuild();
/// Of a program in C++ that is made of the libraries of another build: whatever that one compiled fits it. Before engineBuild() is first asked.
void standInFor(std::string engineBuild);
/// The same of libtorch.
std::string torchBuild();

}  // namespace fusebox
