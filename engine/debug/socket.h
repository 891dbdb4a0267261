#pragma once

#include <string>
#include <string_view>

#include "engine/support/result.h"

namespace fusebox::debug {

/// A connected local stream socket, closed with the object. Writing and reading may happen on two threads.
class Socket {
 public:
  Socket() = default;
  ~Socket() { close(); }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  Result<void> connect(const std::string& path);
  bool isOpen() const { return fd_ >= 0; }
  /// False: nobody reads any more, or nobody has for `kPatienceSeconds`.
  bool write(std::string_view bytes);
  /// What has arrived, waiting for at most `timeoutMs` (-1: for ever). Empty: closed, broken or timed out.
  std::string read(int timeoutMs = -1);
  /// Ends a read() on another thread, without freeing the descriptor that it uses.
  void shutDown();
  void close();

 private:
  static constexpr int kPatienceSeconds = 10;
  int fd_ = -1;
};

}  // namespace fusebox::debug
