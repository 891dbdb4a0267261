#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "engine/support/result.h"

namespace fusebox::cache {

/// Where entries are shared with other machines.
struct RemoteAddress {
  std::string host = "localhost", path;  ///< path: of a socket on this machine, instead of host and port
  int port = 6379, database = 0;
  std::string user, password;
};
/// redis://[[user]:password@]host[:port][/database] or unix://path. InvalidArgument for anything else, with the reason.
Result<RemoteAddress> parseRedisUrl(const std::string& url);
/// TORCHINDUCTOR_REDIS_URL, else TORCHINDUCTOR_REDIS_HOST and TORCHINDUCTOR_REDIS_PORT.
Result<RemoteAddress> remoteAddress();
/// TORCHINDUCTOR_FX_GRAPH_REMOTE_CACHE.
bool wantsRemoteCache();

/// A Redis. What it gives is anybody's bytes. Waits at most a second to be connected and two for an answer; after an
/// error it is not asked again in this process. Thread-safe.
class RemoteCache {
 public:
  explicit RemoteCache(RemoteAddress address);
  ~RemoteCache();

  /// Nothing where it has no such entry.
  Result<std::optional<std::string>> get(const std::string& id);
  Result<void> put(const std::string& id, const std::string& bytes);
  /// Whether an error ended its use.
  bool isDown();

 private:
  struct Connection;
  Result<Connection*> connection();
  tl::unexpected<Error> down(const std::string& what);

  RemoteAddress address_;
  std::mutex mutex_;
  std::unique_ptr<Connection> connection_;
  bool down_ = false;
};

}  // namespace fusebox::cache
