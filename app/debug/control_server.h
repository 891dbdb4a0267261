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

  /// What to watch for reading: the listener until a host has come, then its connection; -1: nothing any more.
  int fd() const { return connection_ >= 0 ? connection_ : listener_; }
  bool isConnected() const { return connection_ >= 0 && greeted_; }

  /// Answers the host's hello with these (breakpoints that hold before it compiles anything).
  void setFirstBreakpoints(nlohmann::json breakpoints) { first_ = std::move(breakpoints); }
  /// Takes what is there without waiting. A stranger (wrong word, no hello) is turned away, and listening goes on. An
  /// error: the host is gone or does not keep to the protocol; the connection is closed.
  Result<std::vector<nlohmann::json>> receive();
  /// False: the host does not take it any more.
  bool send(const nlohmann::json& message);
  void close();

 private:
  bool accept();
  Result<void> greet(const nlohmann::json& hello);
  void drop();

  int listener_ = -1, connection_ = -1;
  bool greeted_ = false;
  std::string folder_, path_, token_;
  nlohmann::json first_ = nlohmann::json::array();
  control::MessageReader reader_;
};

}  // namespace fusebox::debugging
