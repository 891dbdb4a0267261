#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/support/control_frame.h"
#include "engine/support/result.h"

namespace fusebox::debugging {

/// Listens for one debugged host at a local socket that only this user can reach (a folder with mode 0700, a socket
/// with 0600, and a random word that the host has to say first). Nothing here blocks: watch fd(), call receive() when
/// it can be read.
class ControlServer {
 public:
  ControlServer() = default;
  ~ControlServer();
  ControlServer(const ControlServer&) = delete;
  ControlServer& operator=(const ControlServer&) = delete;

  Result<void> listen();
  /// What the host's environment needs.
  std::map<std::string, std::string> environment() const;
  const std::string& path() const { return path_; }

  /// What to watch for reading: whoever connects until the host has said its word, then its connection; -1: nothing any more.
  int fd() const { return greeted_ ? connection_ : callers_; }
  bool isConnected() const { return connection_ >= 0 && greeted_; }

  /// Answers the host's hello with these (breakpoints that hold before it compiles anything).
  void setFirstBreakpoints(nlohmann::json breakpoints) { first_ = std::move(breakpoints); }
  /// Takes what is there without waiting, at most some megabytes at a time. A stranger is turned away: at a wrong word, and where it
  /// says nothing when the next one calls. An error: the host is gone or does not keep to the protocol; the connection is closed.
  Result<std::vector<nlohmann::json>> receive();
  /// False: the host does not take it any more.
  bool send(const nlohmann::json& message);
  void close();

 private:
  bool accept();
  /// What has arrived on the connection. False: it was a stranger's, and is closed.
  Result<bool> take(std::vector<nlohmann::json>& messages);
  Result<void> greet(const nlohmann::json& hello);
  void drop();

  int listener_ = -1, connection_ = -1;
  int callers_ = -1;  ///< epoll of both, until the host is known
  bool greeted_ = false;
  std::string folder_, path_, token_;
  nlohmann::json first_ = nlohmann::json::array();
  control::MessageReader reader_;
};

}  // namespace fusebox::debugging
