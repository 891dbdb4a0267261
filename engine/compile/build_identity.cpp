#include "engine/compile/build_identity.h"

#include <ATen/Context.h>
#include <dlfcn.h>
#include <elf.h>
#include <fmt/format.h>
#include <link.h>
#include <sys/stat.h>
#include <torch/version.h>

#include <cstring>

namespace fusebox {
namespace {

struct Search {
  uintptr_t address = 0;
  std::string buildId;
};

/// The note "GNU", build id, of the module that holds an address.
int readNotes(dl_phdr_info* module, size_t, void* argument) {
  auto& search = *static_cast<Search*>(argument);
  const auto segments = [&](auto&& visit) {
    for (int i = 0; i < module->dlpi_phnum; ++i)
      visit(module->dlpi_phdr[i], module->dlpi_addr + module->dlpi_phdr[i].p_vaddr);
  };
  bool isHere = false;
  segments([&](const auto& segment, uintptr_t start) {
    isHere =
        isHere || (segment.p_type == PT_LOAD && search.address >= start && search.address < start + segment.p_memsz);
  });
  if (!isHere) return 0;
  segments([&](const auto& segment, uintptr_t start) {
    if (segment.p_type != PT_NOTE) return;
    const auto padded = [](size_t size) { return (size + 3) & ~size_t{3}; };
    for (size_t at = 0; at + sizeof(ElfW(Nhdr)) <= segment.p_memsz;) {
      const auto* note = reinterpret_cast<const ElfW(Nhdr)*>(start + at);
      const auto* name = reinterpret_cast<const char*>(note + 1);
      const auto* content = reinterpret_cast<const unsigned char*>(name + padded(note->n_namesz));
      if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 && std::memcmp(name, "GNU", 4) == 0)
        for (size_t i = 0; i < note->n_descsz; ++i) search.buildId += fmt::format("{:02x}", content[i]);
      at += sizeof *note + padded(note->n_namesz) + padded(note->n_descsz);
    }
  });
  return 1;
}

std::string buildOf(const void* address, bool timeCounts) {
  Search search{reinterpret_cast<uintptr_t>(address), {}};
  dl_iterate_phdr(&readNotes, &search);
  if (!search.buildId.empty()) return search.buildId;
  Dl_info module;
  struct stat facts;
  if (!dladdr(address, &module) || !module.dli_fname || ::stat(module.dli_fname, &facts) != 0) return "unknown";
  return timeCounts ? fmt::format("{} bytes, {}.{:09}", facts.st_size, facts.st_mtim.tv_sec, facts.st_mtim.tv_nsec)
                    : fmt::format("{} bytes", facts.st_size);
}

std::string& otherBuild() {
  static std::string build;
  return build;
}

}  // namespace

void standInFor(std::string engineBuild) { otherBuild() = std::move(engineBuild); }

std::string engineBuild() {
  static const std::string build = otherBuild().empty() ? buildOf(reinterpret_cast<const void*>(&engineBuild), true) : otherBuild();
  return build;
}

std::string torchBuild() {
  // A wheel's file has the time at which it was unpacked; its version and size are the same everywhere.
  static const std::string build =
      std::string(TORCH_VERSION) + ", " + buildOf(reinterpret_cast<const void*>(&at::globalContext), false);
  return build;
}

}  // namespace fusebox
