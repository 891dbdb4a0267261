#include "profiler/importers/formats.h"
#include "profiler/importers/session_builder.h"
#include "profiler/session/reader.h"
#include "tests/fuzz/targets.h"

namespace fusebox::fuzz {
namespace fs = std::filesystem;
namespace {

std::vector<fs::path> subjects(const fs::path& data, const fs::path&) {
  std::vector<fs::path> all;
  for (const auto& entry : fs::directory_iterator(data)) all.push_back(entry.path());
  return all;
}

std::string read(const fs::path& file, const fs::path& scratch, Outcome& outcome) {
  const fs::path session = scratch / "session.fusebox";
  fs::remove(session);
  auto probe = importing::probe(file.string());
  const auto* format = probe ? importing::recognise(*probe) : nullptr;
  outcome = Outcome::NotRecognised;
  if (!format) return {};
  auto builder = importing::SessionBuilder::create(session.string());
  if (!builder) return builder.error().text();
  auto done = format->import(file.string(), **builder, nullptr);
  if (done) done = (*builder)->finish();
  outcome = done ? Outcome::Read : Outcome::Refused;
  if (!done) return done.error().code == ErrorCode::Internal || done.error().message.empty() ? "no proper error: " + done.error().text() : "";
  if (auto reader = session::Reader::open(session.string()); !reader) return "the session is not readable: " + reader.error().text();
  return {};
}

}  // namespace

const Target kImporters{"importers", subjects, read};

}  // namespace fusebox::fuzz
