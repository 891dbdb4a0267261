#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "engine/debug/breakpoint.h"
#include "engine/debug/site.h"
#include "engine/debug/socket.h"
#include "engine/debug/stepping.h"

namespace fusebox::debug {

/// Settings of the compiler that a stopped program may be given; the layers above fill it in. Called on the stopped
/// thread.
struct Controls {
  std::function<nlohmann::json()> options;  ///< name -> value
  std::function<Result<void>(const std::string& name, const nlohmann::json& value)> set;
  /// verb: forbid, force or clear; `rule` is "A,B", as fusion_decisions name operations.
  std::function<Result<void>(const std::string& verb, const std::string& rule)> fusionRule;
  /// The rules in force, as {"verb", "rule"}; called on any thread.
  std::function<nlohmann::json()> fusionRules;
};

/// The host's side of the debugger: one a process, attached to at most one window or console. A thread of its own reads
/// what arrives; what needs the stopped place is handed to the thread that is stopped, which answers while it waits.
class Debugger {
 public:
  static Debugger& instance();

  /// Connects to `path`, says `token`, and takes over the first breakpoints that the other end answers with. Returns
  /// when they hold.
  Result<void> attach(const std::string& path, const std::string& token, Controls controls);
  /// Everything goes on as if nobody had ever looked.
  void detach() { detach(connection()); }
  bool isAttached();
  /// Tells the other end something it may show. No-op when detached.
  void notice(const std::string& text);

  Verdict reach(const Event& event, Site& site);

 private:
  using Json = nlohmann::json;
  struct Reason {
    const char* why = "breakpoint";  ///< breakpoint, step, pause, until
    int64_t breakpoint = 0;
    std::string trouble = {};  ///< why its condition could not be judged
  };
  Debugger();
  ~Debugger() = delete;
  /// The same, unless `socket` is no longer the latest attachment's.
  void detach(const std::shared_ptr<Socket>& socket);

  // --- the reader's thread
  void handle(const Json& message);
  Result<Json> change(const std::string& what, const Json& request);
  Result<Json> addBreakpoint(const Json& request);

  // --- the stopped thread
  /// `site` is asked where a condition names something.
  std::optional<Reason> matches(const Event& event, Site& site);
  std::optional<Reason> passes(int64_t id);  ///< a match of a breakpoint, unless it is to be ignored; under mutex_
  void serve(const Event& event, Site& site, const Reason& reason, Verdict& verdict);
  /// True: the thread may go on.
  bool carryOut(const Json& request, const Event& event, Site& site, Verdict& verdict);
  Result<Json> answer(const std::string& what, const Json& request, const Event& event, Site& site, Verdict& verdict,
                      bool* resumes);
  Result<Json> fusion(const Json& request, const Event& event, Verdict& verdict);

  void arm();  ///< under mutex_
  bool send(const Json& message);
  void reply(const Json& request, const Result<Json>& result);
  Json status() const;  ///< under mutex_
  static void inChild();
  std::shared_ptr<Socket> connection();

  /// Of the latest attachment. A reader's thread holds its own, so that one that ends late does no harm to the next.
  std::shared_ptr<Socket> socket_;
  std::mutex socketMutex_;  ///< of `socket_` alone, free while a process forks
  std::mutex sendMutex_;    ///< messages are sent whole
  std::mutex turn_;           ///< held by the thread that is stopped
  mutable std::mutex mutex_;  ///< of everything below
  std::condition_variable wake_;
  Controls controls_;
  bool attached_ = false;
  std::map<int64_t, Breakpoint> breakpoints_;
  int64_t nextBreakpoint_ = 1;
  std::optional<Step> step_;
  std::optional<Kind> until_;
  bool pause_ = false;
  bool stopped_ = false;
  int64_t stops_ = 0;
  Json stopMessage_;           ///< of the current stop
  std::deque<Json> requests_;  ///< for the stopped thread
};

}  // namespace fusebox::debug
