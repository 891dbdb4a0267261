#pragma once

#include <string>

#include "profiler/session/sqlite.h"

namespace fusebox::session {

/// Makes an empty database a session: tables, public views, application id, version.
Result<void> createSchema(Database& database);

/// Prepares a session opened for reading, of any version up to this build's, so that the public views answer in today's form:
/// older files get their steps of the table in migrations.cpp as temporary views; the file itself is never changed.
/// Errors: Corrupt when it is no session, TooNew with both versions.
Result<void> adoptForReading(Database& database);

}  // namespace fusebox::session
