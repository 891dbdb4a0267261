#pragma once

#include <string>
#include <vector>

namespace fusebox::session {

/// Sessions that were recorded from the command line, so that the window can list them: a text file of one path a line in the
/// user's data folder ("fusebox/recorded").
std::string recordedListPath();
/// Adds a session; a list that cannot be written is none of the recording's business.
void noteRecorded(const std::string& session);
/// Newest first, each once, at most `most`.
std::vector<std::string> readRecorded(const std::string& listPath, size_t most);

}  // namespace fusebox::session
