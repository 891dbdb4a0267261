#include "engine/debug/socket.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace fusebox::debug {

Result<void> Socket::connect(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path)
    return fail(ErrorCode::InvalidArgument, "the path of the control socket is too long", path);
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  close();
  fd_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd_ < 0) return fail(ErrorCode::Io, std::strerror(errno), "control socket");
  timeval patience{kPatienceSeconds, 0};
  setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  if (::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    const std::string why = std::strerror(errno);
    close();
    return fail(ErrorCode::Io, "nobody listens at the control socket: " + why, path);
  }
  return {};
}

bool Socket::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
  return true;
}

std::string Socket::read(int timeoutMs) {
  pollfd wanted{fd_, POLLIN, 0};
  int ready;
  do ready = ::poll(&wanted, 1, timeoutMs);
  while (ready < 0 && errno == EINTR);
  if (ready <= 0) return {};
  std::string bytes(64 * 1024, '\0');
  ssize_t got;
  do got = ::recv(fd_, bytes.data(), bytes.size(), 0);
  while (got < 0 && errno == EINTR);
  bytes.resize(got > 0 ? static_cast<size_t>(got) : 0);
  return bytes;
}

void Socket::shutDown() {
  if (fd_ >= 0) ::shutdown(fd_, SHUT_RDWR);
}

void Socket::close() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

}  // namespace fusebox::debug
