// What was different before anything was compiled.
#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <set>

#include "profiler/compare/align.h"
#include "profiler/compare/outline.h"

namespace fusebox::compare {
namespace {

// Facts that differ between any two runs, or that other entries say better.
constexpr std::string_view kIgnored[] = {"boot_id", "clock", "command", "cwd", "end_ns", "engine", "gpu_flush_ns", "gpu_overhead_ns", "gpu_records", "gpu_samples", "gpu_sampling_ns", "heartbeat_unix_ns", "pid", "pid_start", "platform", "rank", "recorder_ns",
                                         "schema_version", "script", "start_ns", "start_unix_ns", "state", "cpu_features"};

bool ignored(const std::string& key) {
  for (const auto word : kIgnored) {
    if (key == word) return true;
  }
  return key.starts_with("imported") || key.starts_with("trace.");
}

bool isOption(const std::string& key) { return key.starts_with("config.") || key.starts_with("env."); }

Side factSide(const Snapshot& s, const std::string& key) {
  const auto found = s.facts.find(key);
  if (found == s.facts.end()) return {};
  Side side{.present = true, .text = found->second};
  double bytes = 0;
  const char* end = found->second.data() + found->second.size();
  if (key.ends_with("_bytes") && std::from_chars(found->second.data(), end, bytes).ptr == end && !found->second.empty())
    side = {.present = true, .text = bytesText(bytes), .value = bytes};
  return side;
}

std::set<std::string> keysOf(const Outline& o, bool options) {
  std::set<std::string> keys;
  for (const Snapshot* s : {&o.a, &o.b}) {
    for (const auto& [key, value] : s->facts) {
      if (!ignored(key) && isOption(key) == options) keys.insert(key);
    }
  }
  return keys;
}

/// The words after the script's name.
std::string argumentsOf(const Snapshot& s) {
  const auto script = s.facts.find("script");
  if (script == s.facts.end()) return {};
  const size_t space = script->second.find(' ');
  return space == std::string::npos ? std::string() : script->second.substr(space + 1);
}

void compareProgram(Outline& o) {
  const bool known = o.a.facts.contains("script") && o.b.facts.contains("script");
  const std::string x = argumentsOf(o.a), y = argumentsOf(o.b);
  if (o.sources.edits().empty() && (!known || x == y)) return;
  const int32_t section = o.section(FUSEBOX_TEXT("Compare", "Program"));
  if (known && x != y) {
    const auto side = [](const std::string& words) { return Side{.present = true, .text = words.empty() ? say(FUSEBOX_TEXT("Compare", "(none)")) : words}; };
    o.add(section, Subject::Program, FUSEBOX_TEXT("Compare", "arguments").text, side(x), side(y), true);
  }
  for (const auto& edit : o.sources.edits()) {
    const SourceMap::Change& first = edit.changes.front();
    const auto side = [&](const std::string& file, bool inA) {
      const auto& lines = inA ? first.linesA : first.linesB;
      return Side{.present = true, .text = first.told(inA), .place = {file, lines.empty() ? 0 : lines.front()}};
    };
    size_t removed = 0, added = 0;
    for (const auto& change : edit.changes) removed += change.linesA.size(), added += change.linesB.size();
    const std::string note = say(FUSEBOX_TEXT("Compare", "{} removed, {} added; the first difference is shown"), removed, added);
    o.add(section, Subject::Program, std::string(baseName(edit.fileB)), side(edit.fileA, true), side(edit.fileB, false), true, note);
  }
}

void compareFacts(Outline& o, const Text& title, bool options, Subject subject) {
  const auto keys = keysOf(o, options);
  if (keys.empty()) return;
  const int32_t section = o.section(title);
  for (const auto& key : keys) {
    Side x = factSide(o.a, key), y = factSide(o.b, key);
    // Sessions of other programs do not say these at all, and each engine has settings of its own: no difference then.
    if (x.present != y.present && (o.a.imported || o.b.imported || (options && !o.sameEngine))) continue;
    // What was measured of a run differs a little each time, and is an effect of what was set up before it.
    const bool measured = key.starts_with("memory.") && x.present && y.present;
    const bool changed = measured ? std::fabs(y.value - x.value) > kNoiseFloor * x.value : x.text != y.text;
    const std::string change = measured ? changeText(x.value, y.value) : std::string();
    const int32_t entry = o.add(section, subject, key, std::move(x), std::move(y), changed);
    if (!measured) continue;
    o.at(entry).change = change;
    o.at(entry).structural = false;
  }
}

}  // namespace

void compareSurroundings(Outline& o) {
  compareProgram(o);
  const Side x{.present = true, .text = o.out.a.engine}, y{.present = true, .text = o.out.b.engine};
  const int32_t section = o.section(FUSEBOX_TEXT("Compare", "Engine"));
  o.add(section, Subject::Engine, FUSEBOX_TEXT("Compare", "engine").text, x, y, !o.sameEngine);
  compareFacts(o, FUSEBOX_TEXT("Compare", "Options"), true, Subject::Option);
  compareFacts(o, FUSEBOX_TEXT("Compare", "Environment"), false, Subject::Environment);
}

}  // namespace fusebox::compare
