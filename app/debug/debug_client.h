#pragma once

#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "app/debug/control_server.h"

namespace fusebox::debugging {

/// A debugged program as seen from outside: whether it is stopped and where, and requests with their answers. Drives a
/// ControlServer; nothing blocks, and everything happens inside receive() on the caller's thread.
class DebugClient {
 public:
  using Json = nlohmann::json;
  /// `result` is the answer, or, where `ok` is false, the error's text.
  using Answer = std::function<void(bool ok, const Json& result)>;

  ControlServer& server() { return server_; }
  const ControlServer& server() const { return server_; }
  bool isConnected() const { return server_.isConnected(); }
  bool isStopped() const { return stopped_; }
  /// The message of the current stop (engine/debug says its fields); null while the program runs.
  const Json& stop() const { return stop_; }

  /// Sends a request ({"do": …}); the answer comes from a later receive(). Without connection it is refused at once.
  void request(Json message, Answer answer);
  /// Takes what has arrived. Call when server().fd() can be read.
  void receive();
  /// Lets the program go on undebugged.
  void detach();

  std::function<void(const Json& stop)> onStopped;
  std::function<void()> onResumed;
  std::function<void(const std::string& text)> onNotice;
  std::function<void()> onConnected;
  /// The connection ended (the program did, or it was detached); pending requests have been refused.
  std::function<void(const std::string& why)> onDisconnected;

 private:
  void take(const Json& message);
  void refuseAll(const std::string& why);
  void disconnected(const std::string& why);

  ControlServer server_;
  bool stopped_ = false, wasConnected_ = false;
  Json stop_;
  int64_t nextId_ = 1;
  struct Pending {
    Answer answer;
    bool resumes = false;
  };
  std::map<int64_t, Pending> pending_;
};

}  // namespace fusebox::debugging
