// `fusebox cache`: the entries of the compiled-graph cache on this machine.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <utility>

#include "app/cli/commands.h"
#include "engine/cache/bundle.h"
#include "engine/cache/cache_folder.h"
#include "engine/cache/cache_settings.h"
#include "profiler/export/output_file.h"

namespace fusebox::cli {
namespace {

using cache::CacheFolder;
using cache::EntryHeader;
using Json = nlohmann::json;

constexpr size_t kShownDigits = 12;

int print(const Json& report) {
  std::cout << report.dump(2, ' ', false, Json::error_handler_t::replace) << "\n" << std::flush;
  return kOk;
}

std::string directoryOf(const CacheOptions& options) {
  return options.directory.empty() ? cache::cacheDirectory() : options.directory;
}

Result<CacheFolder> openFolder(const CacheOptions& options, bool make = false) {
  return CacheFolder::open(directoryOf(options), make);
}

std::string bytesText(int64_t bytes) {
  return bytes < 10'000       ? fmt::format("{} B", bytes)
         : bytes < 10'000'000 ? fmt::format("{} KB", bytes / 1000)
                              : fmt::format("{} MB", bytes / 1'000'000);
}

std::string timeText(int64_t seconds) {
  return fmt::format("{:%Y-%m-%d %H:%M}", fmt::localtime(static_cast<std::time_t>(seconds)));
}

Json componentsJson(const EntryHeader& header) {
  Json list = Json::array();
  for (const auto& c : header.key.components())
    list.push_back({{"name", c.name}, {"value", c.value}, {"digest", c.digest}});
  return list;
}

Json entryJson(const CacheFolder::Item& item, const EntryHeader& header) {
  return {{"key", item.id},
          {"kind", header.kind},
          {"name", header.name},
          {"bytes", item.bytes},
          {"created", header.createdS},
          {"used", item.lastUseS},
          {"compile_ns", header.compileNs},
          {"kernels", header.kernels},
          {"nodes", header.nodes},
          {"optimised", header.optimised}};
}

/// The one entry whose key begins so.
Result<CacheFolder::Item> named(const CacheFolder& folder, const std::string& digits) {
  std::optional<CacheFolder::Item> found;
  for (const CacheFolder::Item& item : folder.list()) {
    if (!item.id.starts_with(digits)) continue;
    if (found) return fail(ErrorCode::InvalidArgument, "several entries begin so; give more digits", digits);
    found = item;
  }
  if (!found) return fail(ErrorCode::NotFound, "no such cache entry in " + folder.path(), digits);
  return *found;
}

Result<EntryHeader> headerOf(const CacheFolder& folder, const CacheFolder::Item& item) {
  auto head = folder.readHead(item.id);
  if (!head) return tl::unexpected(head.error());
  return cache::readHeader(*head);
}

Result<std::string> readFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return fail(ErrorCode::Io, std::strerror(errno), path);
  std::ostringstream bytes;
  errno = 0;
  bytes << file.rdbuf();
  if (errno != 0) return fail(ErrorCode::Io, std::strerror(errno), path);  // of a directory, which can be opened
  return std::move(bytes).str();
}

}  // namespace

int listCache(const CacheOptions& options) {
  auto folder = openFolder(options);
  if (!folder && folder.error().code != ErrorCode::NotFound) return complain(folder.error());
  Json entries = Json::array();
  int64_t bytes = 0;
  std::string text;
  for (const CacheFolder::Item& item : folder ? folder->list() : std::vector<CacheFolder::Item>()) {
    bytes += item.bytes;
    auto header = headerOf(*folder, item);
    if (!header) {
      entries.push_back({{"key", item.id}, {"bytes", item.bytes}, {"problem", header.error().text()}});
      text += fmt::format("{}  {}\n", item.id.substr(0, kShownDigits), header.error().text());
      continue;
    }
    entries.push_back(entryJson(item, *header));
    if (header->kind == "profile") {
      text += fmt::format("{}  {}  {:>8}  {} places of {}\n", item.id.substr(0, kShownDigits), timeText(item.lastUseS),
                          bytesText(item.bytes), header->nodes, header->name);
      continue;
    }
    std::string direction = "captured";
    for (const auto& c : header->key.components())
      if (c.name == "direction") direction = c.value;
    text += fmt::format("{}  {}  {:>8}  {}  {:>7.1f} ms saved  {} ({})\n", item.id.substr(0, kShownDigits), timeText(item.lastUseS),
                        bytesText(item.bytes), header->kind == "graph" ? fmt::format("{:>4} kernel{}", header->kernels, header->kernels == 1 ? " " : "s") : std::string(12, ' '),
                        static_cast<double>(header->compileNs) / 1e6, header->name, direction);
  }
  const size_t count = entries.size();
  if (options.json)
    return print({{"directory", directoryOf(options)},
                  {"bytes", bytes},
                  {"limit", cache::cacheLimit()},
                  {"entries", std::move(entries)}});
  fmt::print("{}{} entries, {} of at most {}, in {}/fusebox\n", text, count, bytesText(bytes),
             bytesText(cache::cacheLimit()), directoryOf(options));
  return kOk;
}

int showCacheEntry(const CacheOptions& options) {
  auto folder = openFolder(options);
  if (!folder) return complain(folder.error());
  auto item = named(*folder, options.a);
  if (!item) return complain(item.error());
  auto header = headerOf(*folder, *item);
  if (!header) return complain(header.error());
  if (options.json) {
    Json report = entryJson(*item, *header);
    report["components"] = componentsJson(*header);
    return print(report);
  }
  const bool isGraph = header->kind == "graph";
  fmt::print("{}\n{}: {}{} nodes, {}{}\n{} {} in {:.1f} ms, last used {}\n\n", item->path, header->name,
             isGraph ? fmt::format("{} kernel{}, ", header->kernels, header->kernels == 1 ? "" : "s") : "a " + header->kind + ", ", header->nodes, bytesText(item->bytes),
             !isGraph || header->optimised ? "" : ", code of the first tier", header->kind == "capture" ? "captured" : isGraph ? "compiled" : "written",
             timeText(header->createdS), static_cast<double>(header->compileNs) / 1e6, timeText(item->lastUseS));
  for (const auto& c : header->key.components())
    fmt::print("{}  {}\n    {}\n", c.digest.substr(0, kShownDigits), c.name, c.value.empty() ? "none" : c.value);
  return kOk;
}

int verifyCache(const CacheOptions& options) {
  auto folder = openFolder(options);
  if (!folder) return complain(folder.error());
  Json problems = Json::array();
  int64_t good = 0;
  for (const CacheFolder::Item& item : folder->list()) {
    auto bytes = folder->read(item.id);
    auto entry =
        bytes ? cache::readEntry(*bytes, folder->trust(), cache::cacheSecret()) : tl::unexpected(bytes.error());
    if (entry && entry->header.key.id() != item.id)
      entry = fail(ErrorCode::Corrupt, "the cache entry is another one than its name says");
    if (entry)
      ++good;
    else
      problems.push_back({{"key", item.id}, {"path", item.path}, {"problem", entry.error().text()}});
  }
  const bool isGood = problems.empty();
  if (options.json) {
    print({{"good", good}, {"problems", std::move(problems)}});
  } else {
    for (const Json& p : problems)
      fmt::print("{}: {}\n", p["path"].get<std::string>(), p["problem"].get<std::string>());
    fmt::print("{} good, {} damaged or refused\n", good, problems.size());
  }
  return isGood ? kOk : kDifferent;
}

int compareCacheEntries(const CacheOptions& options) {
  auto folder = openFolder(options);
  if (!folder) return complain(folder.error());
  std::vector<EntryHeader> headers;
  for (const std::string& digits : {options.a, options.b}) {
    auto item = named(*folder, digits);
    if (!item) return complain(item.error());
    auto header = headerOf(*folder, *item);
    if (!header) return complain(header.error());
    headers.push_back(std::move(*header));
  }
  const auto differences = cache::differences(headers[0].key, headers[1].key);
  if (options.json) {
    Json list = Json::array();
    for (const auto& d : differences) list.push_back({{"name", d.name}, {"a", d.a}, {"b", d.b}});
    return print({{"a", headers[0].key.id()}, {"b", headers[1].key.id()}, {"differences", std::move(list)}});
  }
  if (differences.empty()) fmt::print("the same entry\n");
  for (const auto& d : differences) fmt::print("{}\n", cache::differenceText({d}));
  return kOk;
}

int pruneCache(const CacheOptions& options) {
  auto folder = openFolder(options);
  if (!folder) return complain(folder.error());
  const auto pruned = folder->prune(options.megabytes < 0 ? cache::cacheLimit() : options.megabytes << 20);
  if (options.json)
    return print({{"removed", pruned.files}, {"removed_bytes", pruned.bytes}, {"left_bytes", pruned.left}});
  fmt::print("{} removed ({}), {} left\n", pruned.files, bytesText(pruned.bytes), bytesText(pruned.left));
  return kOk;
}

int exportCache(const CacheOptions& options) {
  auto folder = openFolder(options);
  if (!folder) return complain(folder.error());
  std::vector<std::string> ids, exported;
  for (const std::string& digits : options.ids) {
    auto item = named(*folder, digits);
    if (!item) return complain(item.error());
    ids.push_back(item->id);
  }
  const std::string bundle = cache::exportBundle(*folder, ids, cache::cacheSecret(), &exported);
  if (auto written = exporting::writeOutput(options.file, bundle); !written) return complain(written.error());
  if (options.json) return print({{"entries", exported}, {"bytes", bundle.size()}});
  fmt::print("{} compiled graphs in {} ({})\n", exported.size(), options.file,
             bytesText(static_cast<int64_t>(bundle.size())));
  return kOk;
}

int importCache(const CacheOptions& options) {
  auto bytes = readFile(options.file);
  if (!bytes) return complain(bytes.error());
  auto folder = openFolder(options, true);
  if (!folder) return complain(folder.error());
  auto imported = cache::importBundle(*bytes, *folder, cache::cacheSecret());
  if (!imported) return complain(imported.error());
  if (options.json) {
    print({{"entries", imported->ids}, {"refusals", imported->refusals}});
  } else {
    for (const std::string& why : imported->refusals) fmt::print(stderr, "fusebox: {}\n", why);
    fmt::print("{} compiled graphs taken, {} not\n", imported->ids.size(), imported->refusals.size());
  }
  return imported->refusals.empty() ? kOk : kUnreadable;
}

}  // namespace fusebox::cli
