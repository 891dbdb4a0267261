#pragma once

#include <filesystem>
#include <random>
#include <string>

/// Changes at random, the same for one state of `random`.
namespace fusebox::fuzz {

using Random = std::mt19937_64;

/// Bits and bytes changed, parts lost, doubled or moved, numbers made extreme, the end cut off. `inPlace`: the length stays.
std::string mutateBytes(std::string bytes, Random& random, bool inPlace);

/// What the content asks for: databases by their rows or in place, zip archives by one of their members (its checksum is
/// right again), JSON by its values, everything by its bytes.
std::string mutate(const std::string& bytes, Random& random, const std::filesystem::path& scratch);

/// A copy of a folder with one of its files changed.
void mutateTree(const std::filesystem::path& from, const std::filesystem::path& to, Random& random, const std::filesystem::path& scratch);

std::string readFile(const std::filesystem::path& path);
void writeFile(const std::filesystem::path& path, const std::string& bytes);

}  // namespace fusebox::fuzz
