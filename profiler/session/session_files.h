#pragma once

#include <string>

namespace fusebox::session {

/// A session is a file, and two of SQLite's beside it where it was not finished.
void moveSession(const std::string& from, const std::string& to);
void removeSession(const std::string& path);

/// Where a run puts the session of an earlier one that it is to replace: it goes when its successor begins (Writer::create), and comes back
/// where none does.
std::string replacedName(const std::string& session);

}  // namespace fusebox::session
