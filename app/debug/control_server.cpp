#include "app/debug/control_server.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "engine/support/message_fields.h"

namespace fusebox::debugging {
namespace {

using control::textField;
using nlohmann::json;

Result<std::string> randomWord() {
  unsigned char bytes[16];
  if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes)
    return fail(ErrorCode::Io, "no random numbers from the system");
  std::string word;
  for (unsigned char byte : bytes) {
    word += "0123456789abcdef"[byte >> 4];
    word += "0123456789abcdef"[byte & 15];
  }
  return word;
}

constexpr int kMostReads = 256;  // of 64 KiB; the caller has other things to do
constexpr int kMostStrangers = 16;

bool watchWith(int callers, int fd) {
  epoll_event event{};
  event.events = EPOLLIN;
  return ::epoll_ctl(callers, EPOLL_CTL_ADD, fd, &event) == 0;
}

/// Equal without saying by its time where the first difference is.
bool sameWord(const std::string& a, const std::string& b) {
  if (a.size() != b.size()) return false;
  unsigned char differs = 0;
  for (size_t i = 0; i < a.size(); ++i) differs |= static_cast<unsigned char>(a[i] ^ b[i]);
  return differs == 0;
}

}  // namespace

ControlServer::~ControlServer() { close(); }

Result<void> ControlServer::listen() {
  close();
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  std::string base = runtime && *runtime && ::access(runtime, W_OK) == 0 ? runtime : "/tmp";
  if (base.size() > 60) base = "/tmp";  // a socket's path is short
  std::string name = base + "/fusebox-debug-XXXXXX";
  if (!::mkdtemp(name.data()))
    return fail(ErrorCode::Io, std::string("no folder for the control socket: ") + std::strerror(errno), base);
  folder_ = name;
  path_ = folder_ + "/control";
  auto word = randomWord();
  if (!word) return tl::unexpected(word.error());
  token_ = *word;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path_.c_str(), path_.size() + 1);
  listener_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const bool ok = listener_ >= 0 &&
                  ::bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
                  ::chmod(path_.c_str(), 0600) == 0 && ::listen(listener_, 4) == 0;
  callers_ = ::epoll_create1(EPOLL_CLOEXEC);
  if (ok && callers_ >= 0 && watchWith(callers_, listener_)) return {};
  const std::string why = std::strerror(errno);
  close();
  return fail(ErrorCode::Io, "no control socket: " + why, name);
}

std::map<std::string, std::string> ControlServer::environment() const {
  return {{control::kPathVariable, path_}, {control::kTokenVariable, token_}};
}

bool ControlServer::accept() {
  connection_ = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (connection_ < 0) return false;
  (void)watchWith(callers_, connection_);
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(connection_, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 || peer.uid != ::getuid()) drop();
  return connection_ >= 0;
}

void ControlServer::drop() {
  if (connection_ >= 0) ::close(connection_);
  connection_ = -1;
  greeted_ = false;
  reader_ = {};
}

Result<void> ControlServer::greet(const json& hello) {
  if (textField(hello, "type") != "hello" || !sameWord(textField(hello, "token"), token_))
    return fail(ErrorCode::Corrupt, "somebody else than the debugged program connected");
  send({{"type", "hello"}, {"protocol", control::kProtocol}, {"breakpoints", first_}});
  if (hello.value("protocol", json(0)) != control::kProtocol)
    return fail(ErrorCode::TooNew, "the engine speaks another version of the control protocol");
  greeted_ = true;
  for (int* fd : {&listener_, &callers_}) ::close(std::exchange(*fd, -1));
  return {};
}

Result<std::vector<json>> ControlServer::receive() {
  std::vector<json> messages;
  for (int callers = 0; callers < kMostStrangers; ++callers) {
    if (connection_ < 0 && (listener_ < 0 || !accept())) return messages;
    auto taken = take(messages);
    if (!taken) return tl::unexpected(taken.error());
    if (greeted_ || (listener_ < 0 && connection_ < 0)) return messages;
    if (connection_ < 0) continue;
    pollfd next{listener_, POLLIN, 0};  // who says nothing gives way to the next
    if (::poll(&next, 1, 0) <= 0) return messages;
    drop();
  }
  return messages;
}

Result<bool> ControlServer::take(std::vector<json>& messages) {
  char bytes[64 * 1024];
  for (int reads = 0; reads < kMostReads; ++reads) {
    const ssize_t got = ::recv(connection_, bytes, sizeof bytes, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return true;
    const bool known = greeted_;
    auto made = got > 0 ? reader_.feed({bytes, static_cast<size_t>(got)})
                        : Result<std::vector<json>>(fail(ErrorCode::Io, "the connection ended"));
    if (made && !greeted_ && !made->empty()) {
      if (auto welcome = greet(made->front()); !welcome)
        made = tl::unexpected(welcome.error());
      else
        made->erase(made->begin());
    }
    if (!made) {
      drop();
      if (!known) return false;  // a stranger: go on listening
      if (!messages.empty()) return false;
      return tl::unexpected(made.error());
    }
    std::move(made->begin(), made->end(), std::back_inserter(messages));
  }
  return true;
}

bool ControlServer::send(const json& message) {
  if (connection_ < 0) return false;
  const std::string bytes = control::encode(message);
  size_t at = 0;
  while (at < bytes.size()) {
    const ssize_t sent = ::send(connection_, bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    // The host reads at once what arrives; requests are small. One that does not fit meets a host that hangs.
    if (sent <= 0) return false;
    at += static_cast<size_t>(sent);
  }
  return true;
}

void ControlServer::close() {
  drop();
  for (int* fd : {&listener_, &callers_})
    if (*fd >= 0) ::close(std::exchange(*fd, -1));
  if (!path_.empty()) ::unlink(path_.c_str());
  if (!folder_.empty()) ::rmdir(folder_.c_str());
  path_.clear();
  folder_.clear();
}

}  // namespace fusebox::debugging
