#include "engine/cache/remote_cache.h"

#include <unistd.h>

#include <cstdlib>
#include <utility>

#ifdef FUSEBOX_HAVE_HIREDIS
#include <hiredis/hiredis.h>
#endif

namespace fusebox::cache {
namespace {

constexpr const char* kPrefix = "fusebox:graph:1:";  ///< the number is that of the entries' format

tl::unexpected<Error> badAddress(const std::string& why, const std::string& url) {
  return fail(ErrorCode::InvalidArgument, "the Redis address " + why, url);
}

Result<int> numberIn(const std::string& text, int least, int most, const char* what, const std::string& url) {
  char* end = nullptr;
  const long number = std::strtol(text.c_str(), &end, 10);
  if (text.empty() || *end != '\0' || number < least || number > most)
    return badAddress(std::string("has no ") + what + " that is one", url);
  return static_cast<int>(number);
}

}  // namespace

Result<RemoteAddress> parseRedisUrl(const std::string& url) {
  RemoteAddress address;
  const size_t scheme = url.find("://");
  const std::string kind = scheme == std::string::npos ? "" : url.substr(0, scheme);
  if (kind == "rediss") return badAddress("asks for TLS, which is not supported", "rediss://…");
  if (kind == "unix") {
    address.path = url.substr(scheme + 3);
    if (address.path.empty()) return badAddress("names no socket", url);
    return address;
  }
  if (kind != "redis")
    return badAddress("is not redis://host:port or unix://path", scheme == std::string::npos ? "" : kind + "://…");
  std::string rest = url.substr(scheme + 3);
  if (const size_t at = rest.rfind('@'); at != std::string::npos) {
    const std::string who = rest.substr(0, at);
    const size_t colon = who.find(':');
    if (colon == std::string::npos) {
      address.user = who;
    } else {
      address.user = who.substr(0, colon);
      address.password = who.substr(colon + 1);
    }
    rest = rest.substr(at + 1);
  }
  rest = rest.substr(0, rest.find('?'));
  const std::string shown = kind + "://" + rest;  // without the password
  if (const size_t slash = rest.find('/'); slash != std::string::npos) {
    if (slash + 1 < rest.size()) {
      auto number = numberIn(rest.substr(slash + 1), 0, 1 << 20, "number of a database", shown);
      if (!number) return tl::unexpected(number.error());
      address.database = *number;
    }
    rest.resize(slash);
  }
  const size_t bracket = rest.find(']');  // of an IPv6 address
  if (const size_t colon = rest.find(':', bracket == std::string::npos ? 0 : bracket); colon != std::string::npos) {
    auto port = numberIn(rest.substr(colon + 1), 1, 65535, "port", shown);
    if (!port) return tl::unexpected(port.error());
    address.port = *port;
    rest.resize(colon);
  }
  if (rest.size() > 2 && rest.front() == '[' && rest.back() == ']') rest = rest.substr(1, rest.size() - 2);
  if (!rest.empty()) address.host = rest;
  return address;
}

Result<RemoteAddress> remoteAddress() {
  if (const std::string url = environmentText("TORCHINDUCTOR_REDIS_URL"); !url.empty()) return parseRedisUrl(url);
  RemoteAddress address;
  if (const std::string host = environmentText("TORCHINDUCTOR_REDIS_HOST"); !host.empty()) address.host = host;
  if (const std::string port = environmentText("TORCHINDUCTOR_REDIS_PORT"); !port.empty()) {
    auto number = numberIn(port, 1, 65535, "port", "TORCHINDUCTOR_REDIS_PORT=" + port);
    if (!number) return tl::unexpected(number.error());
    address.port = *number;
  }
  return address;
}

bool wantsRemoteCache() { return environmentText("TORCHINDUCTOR_FX_GRAPH_REMOTE_CACHE") == "1"; }

RemoteCache::RemoteCache(RemoteAddress address) : address_(std::move(address)) {}

bool RemoteCache::isDown() {
  std::lock_guard lock(mutex_);
  return down_;
}

#ifdef FUSEBOX_HAVE_HIREDIS

namespace {

constexpr timeval kToConnect{1, 0}, kToAnswer{2, 0};

using Reply = std::unique_ptr<redisReply, decltype([](redisReply* reply) { freeReplyObject(reply); })>;

template <class... Arguments>
Reply command(redisContext* context, const char* format, Arguments... arguments) {
  return Reply(static_cast<redisReply*>(redisCommand(context, format, arguments...)));
}

bool isFine(const Reply& reply) { return reply && reply->type != REDIS_REPLY_ERROR; }

std::string problem(redisContext* context, const Reply& reply) {
  return reply && reply->type == REDIS_REPLY_ERROR ? std::string(reply->str, reply->len)
         : context && context->err                 ? context->errstr
                                                   : "no answer";
}

}  // namespace

struct RemoteCache::Connection {
  redisContext* context = nullptr;
  pid_t process = ::getpid();
  ~Connection() {
    // One that a fork shares is the parent's to end.
    if (context && process == ::getpid()) redisFree(context);
  }
};

RemoteCache::~RemoteCache() = default;

tl::unexpected<Error> RemoteCache::down(const std::string& what) {
  down_ = true;
  connection_.reset();
  const std::string where = address_.path.empty() ? address_.host + ":" + std::to_string(address_.port) : address_.path;
  return fail(ErrorCode::Io, "the remote cache is not used any more: " + what, where);
}

Result<RemoteCache::Connection*> RemoteCache::connection() {
  if (connection_ && connection_->process == ::getpid()) return connection_.get();
  connection_ = std::make_unique<Connection>();
  redisContext*& context = connection_->context;
  context = address_.path.empty() ? redisConnectWithTimeout(address_.host.c_str(), address_.port, kToConnect)
                                  : redisConnectUnixWithTimeout(address_.path.c_str(), kToConnect);
  if (!context) return down("no memory");
  if (context->err) return down(std::string(context->errstr));
  redisSetTimeout(context, kToAnswer);
  if (!address_.password.empty()) {
    const Reply reply = address_.user.empty()
                            ? command(context, "AUTH %s", address_.password.c_str())
                            : command(context, "AUTH %s %s", address_.user.c_str(), address_.password.c_str());
    if (!isFine(reply)) return down(problem(context, reply));
  }
  if (address_.database != 0) {
    const Reply reply = command(context, "SELECT %d", address_.database);
    if (!isFine(reply)) return down(problem(context, reply));
  }
  return connection_.get();
}

Result<std::optional<std::string>> RemoteCache::get(const std::string& id) {
  std::lock_guard lock(mutex_);
  if (down_) return std::nullopt;
  auto open = connection();
  if (!open) return tl::unexpected(open.error());
  const Reply reply = command((*open)->context, "GET %s%s", kPrefix, id.c_str());
  if (!isFine(reply)) return down(problem((*open)->context, reply));
  if (reply->type == REDIS_REPLY_NIL) return std::nullopt;
  if (reply->type != REDIS_REPLY_STRING) return down("it answered something that is no value");
  return std::string(reply->str, reply->len);
}

Result<void> RemoteCache::put(const std::string& id, const std::string& bytes) {
  std::lock_guard lock(mutex_);
  if (down_) return {};
  auto open = connection();
  if (!open) return tl::unexpected(open.error());
  const Reply reply = command((*open)->context, "SET %s%s %b", kPrefix, id.c_str(), bytes.data(), bytes.size());
  if (!isFine(reply)) return down(problem((*open)->context, reply));
  return {};
}

#else

struct RemoteCache::Connection {};
RemoteCache::~RemoteCache() = default;

Result<std::optional<std::string>> RemoteCache::get(const std::string&) {
  std::lock_guard lock(mutex_);
  if (std::exchange(down_, true)) return std::nullopt;
  return fail(ErrorCode::Unsupported, "the remote cache is not used: this Fusebox was built without hiredis");
}
Result<void> RemoteCache::put(const std::string&, const std::string&) { return {}; }

#endif

}  // namespace fusebox::cache
