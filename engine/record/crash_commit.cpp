#include "engine/record/crash_commit.h"

#include <signal.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <iterator>

#include "profiler/session/writer.h"

namespace fusebox::record {
namespace {

/// A thread that dies with the allocator's lock, or the writer's, keeps the writer from its work.
constexpr std::chrono::milliseconds kPatience{2000};
constexpr int kSignals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
std::atomic<session::Writer*> writing{nullptr};
struct sigaction before[std::size(kSignals)];

void onCrash(int signal, siginfo_t* info, void*) {
  const int kept = errno;
  if (const session::Writer* writer = writing.exchange(nullptr)) writer->awaitBatch(kPatience);
  for (size_t i = 0; i < std::size(kSignals); ++i)
    if (kSignals[i] == signal) sigaction(signal, &before[i], nullptr);
  errno = kept;
  if (info->si_code <= 0) raise(signal);  // somebody sent it; a fault comes again by itself
}

}  // namespace

void commitAtCrash(session::Writer* writer) noexcept {
  writing = writer;
  for (size_t i = 0; i < std::size(kSignals); ++i) {
    struct sigaction now {};
    if (sigaction(kSignals[i], nullptr, &now) != 0) continue;
    const bool isOurs = (now.sa_flags & SA_SIGINFO) && now.sa_sigaction == onCrash;
    if (!writer && isOurs) sigaction(kSignals[i], &before[i], nullptr);
    if (!writer || isOurs) continue;
    before[i] = now;
    struct sigaction ours {};
    ours.sa_sigaction = onCrash;
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&ours.sa_mask);
    sigaction(kSignals[i], &ours, nullptr);
  }
}

void forgetCommitAtCrash() noexcept { writing = nullptr; }

}  // namespace fusebox::record
