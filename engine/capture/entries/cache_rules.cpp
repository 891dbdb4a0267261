#include "engine/capture/entries/cache_rules.h"

#include "engine/capture/cpython/errors.h"
#include "engine/capture/entries/barrier.h"
#include "engine/capture/entries/dynamic_rules.h"

namespace fusebox::capture {
namespace {

/// Nothing where nobody has looked at the module, or the setting is None.
std::optional<bool> switchOf(const char* module, const char* name) {
  const PyRef value = torchSetting(module, name);
  if (!value || value.get() == Py_None) return std::nullopt;
  const int truth = PyObject_IsTrue(value.get());
  clearError();
  return truth < 0 ? std::nullopt : std::optional(truth > 0);
}

std::optional<bool> inductorSwitch(const char* name) { return switchOf("torch._inductor.config", name); }

}  // namespace

bool cachesAreOff() {
  return cache::cachesAreForbidden() || switchOf("torch.compiler.config", "force_disable_caches").value_or(false);
}

cache::CacheWishes cacheRules(const RegionOptions& options) {
  cache::CacheWishes wishes;
  const CacheOptions& chosen = options.caches;
  if (cachesAreOff())
    wishes.whyNot = "torch._inductor.config.force_disable_caches is set";
  else if (!(chosen.isKept ? chosen.isKept : inductorSwitch("fx_graph_cache")).value_or(true))
    wishes.whyNot = "torch._inductor.config.fx_graph_cache is off";
  wishes.isShared = chosen.isShared ? chosen.isShared : inductorSwitch("fx_graph_remote_cache");
  if (const PyRef tag = torchSetting("torch.compiler.config", "cache_key_tag"); tag && PyUnicode_Check(tag.get())) {
    if (const char* text = utf8Of(tag.get())) wishes.keyTag = text;
    clearError();
  }
  for (const auto& [name, variable] : {std::pair("autotune_remote_cache", "TORCHINDUCTOR_AUTOTUNE_REMOTE_CACHE"),
                                       std::pair("bundled_autotune_remote_cache", "TORCHINDUCTOR_BUNDLED_AUTOTUNE_REMOTE_CACHE")}) {
    if (inductorSwitch(name).value_or(cache::isSwitchedOn(variable)))
      warnOnce(std::string("torch._inductor.config.") + name + " has no effect under Fusebox: what was timed is part of the compiled graph, "
               "which fx_graph_remote_cache shares");
  }
  return wishes;
}

}  // namespace fusebox::capture
