#include "engine/capture/entries/job_profile.h"

#include <cstdlib>
#include <optional>

#include "engine/capture/cpython/errors.h"
#include "engine/capture/entries/barrier.h"
#include "engine/capture/entries/cache_rules.h"
#include "engine/capture/entries/dynamic_rules.h"
#include "engine/capture/entries/place_name.h"
#include "engine/capture/evaluation/torch_objects.h"
#include "engine/capture/guards/number_profile.h"
#include "engine/compile/profile_store.h"
#include "engine/support/clock.h"

namespace fusebox::capture {
namespace {

struct Current {
  std::optional<ProfileStore> store;    ///< whose the rest is
  std::optional<ProfileStore> alsoRead, alsoWrite;
  Profile profile;
  std::string written;                  ///< the text that was written last
  int64_t notBeforeNs = 0;
  bool isPending = false;
};
Current& current() {
  static auto* state = new Current;
  return *state;
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

/// A text among torch.compiler.config's, or of the environment where nobody has imported that.
std::string textSetting(const char* name, std::initializer_list<const char*> variables) {
  if (const PyRef value = torchSetting("torch.compiler.config", name)) {
    const char* text = PyUnicode_Check(value.get()) ? utf8Of(value.get()) : nullptr;
    clearError();
    return text ? text : "";
  }
  for (const char* each : variables)
    if (std::string value = variable(each); !value.empty()) return value;
  return {};
}

/// Of torch.distributed, where a process group has been set up.
std::string rankText() {
  const auto call = [](const char* name) {
    const PyRef function = torchSetting("torch.distributed", name);
    PyRef result = function ? PyRef::steal(PyObject_CallNoArgs(function.get())) : PyRef();
    clearError();
    return result;
  };
  const PyRef isUp = call("is_initialized");
  if (!isUp || isUp.get() != Py_True) return "none";
  const PyRef rank = call("get_rank");
  const long number = rank && PyLong_Check(rank.get()) ? PyLong_AsLong(rank.get()) : -1;
  clearError();
  return std::to_string(number);
}

/// The error that PyTorch has for it, where a program may have heard of that. False: it is set.
bool mayBeUsed(const std::string& job) {
  if (!job.starts_with("mast:")) return true;
  const PyRef type = torchSetting("torch._dynamo.pgo", "ReservedWorkflowIdUserError");
  PyErr_SetString(type ? type.get() : PyExc_ValueError,
                  "torch.compiler.config.job_id may not begin with 'mast:': such names are reserved for job ids that are "
                  "made automatically.");
  return false;
}

void tell(const std::vector<std::string>& problems) {
  for (const std::string& problem : problems) {
    if (auto* recorder = record::Recorder::active()) recorder->loss("profile", 1, problem);
    warnOnce(problem);
  }
}

Profile readAll(const std::vector<std::string>& texts, std::vector<std::string>& problems) {
  Profile all;
  for (const std::string& text : texts) {
    auto profile = readProfile(text);
    if (profile) join(all, *profile);
    else problems.push_back("a profile is not used: " + profile.error().text());
  }
  return all;
}

void write(const ProfileStore& store, const Profile& profile, std::vector<std::string>& problems) {
  store.write(
      [&](const std::vector<std::string>& there) {
        Profile all = readAll(there, problems);
        join(all, profile);
        return writeProfile(all);
      },
      static_cast<int64_t>(profile.size()), problems);
}

/// Reads what there is, for a job that was not the one before.
void load(const ProfileStore& store) {
  Current& now = current();
  flushProfile();
  now = Current{};
  now.store = store;
  std::vector<std::string> problems;
  now.profile = readAll(store.read(problems), problems);
  const auto other = [&](const char* name, const char* environment) -> std::optional<ProfileStore> {
    ProfileStore extra = store;
    extra.name.job = textSetting(name, {environment});
    return extra.name.job.empty() ? std::nullopt : std::optional(extra);
  };
  now.alsoWrite = other("pgo_extra_write_key", "TORCH_COMPILE_STICKY_PGO_WRITE");
  now.alsoRead = other("pgo_extra_read_key", "TORCH_COMPILE_STICKY_PGO_READ");
  if (now.profile.empty() && now.alsoRead) now.profile = readAll(now.alsoRead->read(problems), problems);
  now.written = writeProfile(now.profile);
  if (auto* recorder = record::Recorder::active())
    recorder->fact("profile", "job " + store.name.job + ", rank " + store.name.rank + ": " +
                                  std::to_string(now.profile.size()) + " places are known");
  tell(problems);
}

}  // namespace

bool recallProfile(const CodeState& code, EntryPoint& point) {
  const std::string job = textSetting("job_id", {"TORCH_COMPILE_JOB_ID", "TORCH_COMPILE_STICKY_PGO_KEY"});
  if (job.empty() || cachesAreOff()) {
    point.numbers.profile.clear();
    return true;
  }
  if (!mayBeUsed(job)) return false;
  ProfileStore store{{job, rankText(), textSetting("cache_key_tag", {"TORCH_COMPILE_CACHE_KEY_TAG"})},
                     dynamoSwitch("automatic_dynamic_local_pgo", "TORCH_DYNAMO_AUTOMATIC_DYNAMIC_LOCAL_PGO", true),
                     dynamoSwitch("automatic_dynamic_remote_pgo", "TORCH_DYNAMO_AUTOMATIC_DYNAMIC_REMOTE_PGO", false)};
  Current& now = current();
  if (!now.store || *now.store != store) load(store);
  const std::string id = store.id();
  if (point.numbers.profile == id) return true;
  point.numbers.profile = id;
  if (const auto known = now.profile.find(placeName(code, point)); known != now.profile.end()) {
    point.numbers.join(known->second.numbers);
    point.runTimeNumbers.insert(known->second.floats.begin(), known->second.floats.end());
  }
  return true;
}

void keepProfile(const CodeState& code, const EntryPoint& point) {
  Current& now = current();
  if (!now.store || point.numbers.profile != now.store->id()) return;
  PlaceProfile place;
  place.numbers = point.numbers;
  place.floats = point.runTimeNumbers;
  join(now.profile, {{placeName(code, point), std::move(place)}});
  now.isPending = true;
  if (nowNs() >= now.notBeforeNs) flushProfile();
}

void flushProfile() {
  constexpr int64_t kShare = 20;
  Current& now = current();
  if (!now.isPending || !now.store) return;
  now.isPending = false;
  const int64_t start = nowNs();
  std::string text = writeProfile(now.profile);
  if (text != now.written) {
    std::vector<std::string> problems;
    write(*now.store, now.profile, problems);
    if (now.alsoWrite) write(*now.alsoWrite, now.profile, problems);
    now.written = std::move(text);
    tell(problems);
  }
  now.notBeforeNs = nowNs() + kShare * (nowNs() - start);
}

void forgetProfile() {
  flushProfile();
  current() = Current{};
}

}  // namespace fusebox::capture
