#include "profiler/cupti/cupti_library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include "profiler/cupti/activity_abi.h"

namespace fusebox::cupti {
namespace {

constexpr const char* kNames[] = {"libcupti.so.13", "libcupti.so.12", "libcupti.so"};

void* open() {
  for (const int how : {RTLD_NOW | RTLD_NOLOAD, RTLD_NOW | RTLD_LOCAL})
    for (const char* name : kNames)
      if (void* library = dlopen(name, how)) return library;
  return nullptr;
}

}  // namespace

std::string CuptiFunctions::errorText(int result) const {
  const char* text = nullptr;
  if (getResultString && getResultString(result, &text) == 0 && text) return text;
  return fmt::format("error {}", result);
}

Result<CuptiFunctions> loadCupti() {
  void* library = open();
  if (!library) {
    return fail(ErrorCode::NotFound, "CUPTI (libcupti) is neither loaded nor on the library path; it comes with PyTorch's CUDA wheels");
  }
  CuptiFunctions f;
  const struct {
    const char* name;
    void** place;
  } functions[] = {
      {"cuptiGetVersion", reinterpret_cast<void**>(&f.getVersion)},
      {"cuptiGetResultString", reinterpret_cast<void**>(&f.getResultString)},
      {"cuptiActivityRegisterCallbacks", reinterpret_cast<void**>(&f.registerCallbacks)},
      {"cuptiActivityRegisterTimestampCallback", reinterpret_cast<void**>(&f.registerTimestamp)},
      {"cuptiActivityEnable", reinterpret_cast<void**>(&f.enable)},
      {"cuptiActivityDisable", reinterpret_cast<void**>(&f.disable)},
      {"cuptiActivityEnableDriverApi", reinterpret_cast<void**>(&f.enableDriverApi)},
      {"cuptiActivityEnableRuntimeApi", reinterpret_cast<void**>(&f.enableRuntimeApi)},
      {"cuptiActivityFlushAll", reinterpret_cast<void**>(&f.flushAll)},
      {"cuptiActivityGetNextRecord", reinterpret_cast<void**>(&f.nextRecord)},
      {"cuptiActivityGetNumDroppedRecords", reinterpret_cast<void**>(&f.droppedRecords)},
  };
  for (const auto& function : functions) {
    *function.place = dlsym(library, function.name);
    if (!*function.place) return fail(ErrorCode::Unsupported, "this CUPTI is too old: it lacks a function", function.name);
  }
  Dl_info info{};
  if (dladdr(reinterpret_cast<void*>(f.getVersion), &info) && info.dli_fname) f.from = info.dli_fname;
  if (const int error = f.getVersion(&f.version)) return fail(ErrorCode::Unsupported, "CUPTI does not say its version", f.errorText(error));
  if (!abi::abiSupported(f.version)) {
    return fail(ErrorCode::Unsupported,
                fmt::format("CUPTI's version {} is not one whose records this Fusebox can read (CUDA 11.8 to 13.x)", f.version), f.from);
  }
  return f;
}

}  // namespace fusebox::cupti
