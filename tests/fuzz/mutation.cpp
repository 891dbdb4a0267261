#include "tests/fuzz/mutation.h"

#include <sqlite3.h>
#include <zip.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <vector>

namespace fusebox::fuzz {
namespace fs = std::filesystem;
namespace {

using nlohmann::json;

constexpr const char* kWords[] = {"99999999999999999999", "-1", "\"", "{", "}", "[", "]", "\n", "\t", "\\", "\xff", "null", "1e999",
                                  "9223372036854775807"};
constexpr size_t kMostJsonBytes = size_t{4} << 20;

size_t below(Random& random, size_t n) { return n ? static_cast<size_t>(random() % n) : 0; }

/// Values that readers must expect where they want others.
json oddValue(Random& random) {
  switch (below(random, 14)) {
    case 0: return nullptr;
    case 1: return INT64_MAX;
    case 2: return INT64_MIN;
    case 3: return -1;
    case 4: return 0;
    case 5: return 1e308;
    case 6: return UINT64_MAX;
    case 7: return "";
    case 8: return std::string(below(random, 3) ? 300 : 70'000, 'x');
    case 9: return json::array();
    case 10: return json::object();
    case 11: return true;
    case 12: {  // nested
      json deep = json::array();
      for (size_t i = below(random, 400); i > 0; --i) deep = json::array({deep});
      return deep;
    }
    default: return static_cast<int64_t>(below(random, 100'000));
  }
}

void collect(json& value, std::vector<json*>& all) {
  all.push_back(&value);
  if (value.is_structured())
    for (auto& child : value) collect(child, all);
}

bool mutateJson(std::string& bytes, Random& random) {
  if (bytes.size() > kMostJsonBytes) return false;
  json root = json::parse(bytes, nullptr, false);
  if (root.is_discarded() || !root.is_structured()) return false;
  for (size_t changes = 1 + below(random, 6); changes > 0; --changes) {
    std::vector<json*> all;
    collect(root, all);
    json& at = *all[below(random, all.size())];
    switch (below(random, 5)) {
      case 0: at = json(*all[below(random, all.size())]); break;  // another part of the same file
      case 1:
        if (at.is_array() && !at.empty()) at.erase(below(random, at.size()));
        else if (at.is_object() && !at.empty()) at.erase(std::next(at.begin(), static_cast<std::ptrdiff_t>(below(random, at.size()))).key());
        break;
      case 2:
        if (at.is_array() && !at.empty()) at.push_back(json(at[below(random, at.size())]));
        break;
      case 3:
        if (at.is_number_integer()) at = at.get<int64_t>() / 2 * (random() % 2 ? 1 : -1) + static_cast<int64_t>(below(random, 5)) - 2;
        else if (at.is_string()) at = mutateBytes(at.get<std::string>(), random, false);
        break;
      default: at = oddValue(random);
    }
    if (root.dump(-1, ' ', false, json::error_handler_t::replace).size() > kMostJsonBytes) return false;
  }
  bytes = root.dump(-1, ' ', false, json::error_handler_t::replace);
  return true;
}

bool mutateArchive(std::string& bytes, Random& random, const fs::path& scratch) {
  const fs::path old = scratch / "old.zip", made = scratch / "new.zip";
  writeFile(old, bytes);
  fs::remove(made);
  int code = 0;
  zip_t* from = zip_open(old.c_str(), ZIP_RDONLY, &code);
  if (!from) return false;
  zip_t* to = zip_open(made.c_str(), ZIP_CREATE | ZIP_TRUNCATE, &code);
  const zip_int64_t count = zip_get_num_entries(from, 0);
  std::vector<std::string> contents(static_cast<size_t>(count));
  // Texts are what is read; weights are seldom worth a change.
  std::vector<size_t> texts;
  for (zip_int64_t i = 0; i < count; ++i) {
    std::string& content = contents[static_cast<size_t>(i)];
    zip_file_t* file = zip_fopen_index(from, static_cast<zip_uint64_t>(i), 0);
    char chunk[4096];
    for (zip_int64_t got = 0; file && (got = zip_fread(file, chunk, sizeof chunk)) > 0;) content.append(chunk, static_cast<size_t>(got));
    if (file) zip_fclose(file);
    const std::string_view name = zip_get_name(from, static_cast<zip_uint64_t>(i), 0);
    if (name.ends_with(".json") || name.ends_with(".py")) texts.push_back(static_cast<size_t>(i));
  }
  const size_t chosen = !texts.empty() && below(random, 8) ? texts[below(random, texts.size())] : below(random, contents.size());
  for (zip_int64_t i = 0; i < count; ++i) {
    std::string& content = contents[static_cast<size_t>(i)];
    if (static_cast<size_t>(i) == chosen && !(below(random, 2) && mutateJson(content, random))) content = mutateBytes(content, random, false);
    const zip_int64_t added = zip_file_add(to, zip_get_name(from, static_cast<zip_uint64_t>(i), 0),
                                           zip_source_buffer(to, content.data(), content.size(), 0), ZIP_FL_OVERWRITE);
    if (added >= 0) zip_set_file_compression(to, static_cast<zip_uint64_t>(added), ZIP_CM_STORE, 0);
  }
  const bool done = zip_close(to) == 0;
  if (!done) zip_discard(to);
  zip_discard(from);
  if (done) bytes = readFile(made);
  return done;
}

/// Rows of a session as no recorder would write them.
bool mutateRows(std::string& bytes, Random& random, const fs::path& scratch) {
  const fs::path file = scratch / "rows.sqlite";
  writeFile(file, bytes);
  sqlite3* db = nullptr;
  bool changed = false;
  if (sqlite3_open(file.c_str(), &db) == SQLITE_OK) {
    sqlite3_exec(db, "PRAGMA journal_mode = OFF; PRAGMA ignore_check_constraints = ON", nullptr, nullptr, nullptr);
    std::vector<std::pair<std::string, std::string>> columns;
    sqlite3_exec(db,
                 "SELECT m.name, c.name FROM sqlite_schema m JOIN pragma_table_info(m.name) c WHERE m.type = 'table'",
                 [](void* into, int, char** cells, char**) {
                   static_cast<decltype(columns)*>(into)->emplace_back(cells[0], cells[1]);
                   return 0;
                 },
                 &columns, nullptr);
    for (size_t changes = 1 + below(random, 8); changes > 0 && !columns.empty(); --changes) {
      const auto& [table, column] = columns[below(random, columns.size())];
      static constexpr const char* kValues[] = {"NULL", "0", "-1", "1", "9223372036854775807", "-9223372036854775808", "1e308", "''",
                                                "'[1, 2'", "zeroblob(300)", "hex(zeroblob(40000))", "4611686018427387904", "'\n%s%n'"};
      std::string sql;
      const std::string some = " WHERE abs(random()) % " + std::to_string(1 + below(random, 12)) + " = 0";
      switch (below(random, 4)) {
        case 0: sql = "DELETE FROM " + table + some; break;
        case 1: sql = "UPDATE OR IGNORE " + table + " SET " + column + " = abs(random()) % 200" + some; break;
        case 2: sql = "UPDATE OR IGNORE " + table + " SET " + column + " = " + column + " - abs(random()) % 5 + 2" + some; break;
        default: sql = "UPDATE OR IGNORE " + table + " SET " + column + " = " + kValues[below(random, std::size(kValues))] + some;
      }
      changed = sqlite3_exec(db, sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK || changed;
    }
  }
  sqlite3_close(db);
  if (changed) bytes = readFile(file);
  return changed;
}

}  // namespace

std::string readFile(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void writeFile(const fs::path& path, const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }

std::string mutateBytes(std::string bytes, Random& random, bool inPlace) {
  const size_t changes = 1 + below(random, 8);
  for (size_t i = 0; i < changes && !bytes.empty(); ++i) {
    const size_t at = below(random, bytes.size()), length = std::min(bytes.size() - at, below(random, below(random, 2) ? 16 : 4096) + 1);
    switch (below(random, inPlace ? 3 : 8)) {
      case 0: bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(random, 8))); break;
      case 1: bytes[at] = static_cast<char>(random()); break;
      case 2: std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), length, static_cast<char>(random())); break;
      case 3: bytes.insert(at, bytes.substr(below(random, bytes.size()), length)); break;
      case 4: bytes.insert(at, kWords[below(random, std::size(kWords))]); break;
      case 5: bytes.resize(at); break;
      case 6: bytes.erase(at, length); break;
      default: {  // another number in place of one
        const size_t digit = bytes.find_first_of("0123456789", at);
        if (digit != std::string::npos) bytes.replace(digit, 1, kWords[below(random, std::size(kWords))]);
      }
    }
  }
  return bytes;
}

std::string mutate(const std::string& original, Random& random, const fs::path& scratch) {
  std::string bytes = original;
  // Pages of a database that move are no longer one: there, bytes only change in place.
  const bool database = bytes.starts_with("SQLite format 3"), archive = bytes.starts_with("PK\x03\x04");
  if (below(random, 3) != 0) {
    if (database && mutateRows(bytes, random, scratch)) return bytes;
    if (archive && mutateArchive(bytes, random, scratch)) return bytes;
    if (!database && !archive && mutateJson(bytes, random)) return bytes;
  }
  return mutateBytes(original, random, database);
}

void mutateTree(const fs::path& from, const fs::path& to, Random& random, const fs::path& scratch) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(from)) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  const size_t chosen = below(random, files.size());
  for (size_t i = 0; i < files.size(); ++i) {
    const fs::path target = to / files[i].lexically_relative(from);
    fs::create_directories(target.parent_path());
    const std::string bytes = readFile(files[i]);
    writeFile(target, i == chosen ? mutate(bytes, random, scratch) : bytes);
  }
}

}  // namespace fusebox::fuzz
