#include "profiler/session/session_files.h"

#include <filesystem>

namespace fusebox::session {
namespace {

constexpr const char* kParts[] = {"", "-wal", "-shm"};

}  // namespace

void moveSession(const std::string& from, const std::string& to) {
  removeSession(to);  // a log of another session would be taken for this one's
  std::error_code error;
  for (const char* part : kParts) std::filesystem::rename(from + part, to + part, error);
}

void removeSession(const std::string& path) {
  std::error_code error;
  for (const char* part : kParts) std::filesystem::remove(path + part, error);
}

std::string replacedName(const std::string& session) { return session + ".replaced"; }

}  // namespace fusebox::session
