#include "profiler/importers/zip_archive.h"

#include <fmt/format.h>
#include <zip.h>

#include <algorithm>

namespace fusebox::importing {
namespace {

constexpr zip_int64_t kMostEntries = 1'000'000;
constexpr size_t kChunk = size_t{1} << 20;

}  // namespace

bool looksLikeZip(std::string_view head) { return head.starts_with(std::string_view("PK\x03\x04", 4)); }

Result<std::unique_ptr<ZipArchive>> ZipArchive::open(const std::string& path) {
  int code = 0;
  zip_t* handle = zip_open(path.c_str(), ZIP_RDONLY, &code);
  if (!handle) {
    zip_error_t error;
    zip_error_init_with_code(&error, code);
    const std::string text = zip_error_strerror(&error);
    zip_error_fini(&error);
    return fail(code == ZIP_ER_OPEN || code == ZIP_ER_READ ? ErrorCode::Io : ErrorCode::Corrupt,
                "the archive cannot be opened: " + text, path);
  }
  std::unique_ptr<ZipArchive> archive(new ZipArchive(handle));
  archive->path_ = path;
  const zip_int64_t count = zip_get_num_entries(handle, 0);
  if (count > kMostEntries) return fail(ErrorCode::Unsupported, fmt::format("the archive holds {} files", count), path);
  for (zip_int64_t i = 0; i < count; ++i) {
    zip_stat_t facts;
    const auto index = static_cast<zip_uint64_t>(i);
    if (zip_stat_index(handle, index, 0, &facts) != 0 || !(facts.valid & ZIP_STAT_NAME) ||
        !(facts.valid & ZIP_STAT_SIZE))
      continue;
    std::string_view name = facts.name;
    if (const size_t slash = name.find('/'); slash != std::string_view::npos) name.remove_prefix(slash + 1);
    archive->entries_.push_back({std::string(name), index, facts.size});
  }
  return archive;
}

ZipArchive::~ZipArchive() { zip_discard(static_cast<zip_t*>(archive_)); }

const ZipArchive::Entry* ZipArchive::find(std::string_view name) const {
  const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& e) { return e.name == name; });
  return found == entries_.end() ? nullptr : &*found;
}

Result<std::string> ZipArchive::readHead(const Entry& entry, size_t bytes) const {
  zip_file_t* file = zip_fopen_index(static_cast<zip_t*>(archive_), entry.index, 0);
  std::string head(bytes, '\0');
  const zip_int64_t got = file ? zip_fread(file, head.data(), bytes) : -1;
  if (file) zip_fclose(file);
  if (got < 0) return fail(ErrorCode::Corrupt, entry.name + " is damaged", path_);
  head.resize(static_cast<size_t>(got));
  return head;
}

Result<std::string> ZipArchive::read(const Entry& entry, uint64_t most) const {
  if (entry.bytes > most)
    return fail(ErrorCode::Unsupported, fmt::format("{} is longer than {} MB", entry.name, most >> 20), path_);
  zip_file_t* file = zip_fopen_index(static_cast<zip_t*>(archive_), entry.index, 0);
  if (!file)
    return fail(ErrorCode::Corrupt, entry.name + " cannot be read: " + zip_strerror(static_cast<zip_t*>(archive_)),
                path_);
  // What the header says is not believed: memory grows with what really comes.
  std::string content;
  zip_int64_t got = 0;
  do {
    const size_t before = content.size();
    content.resize(before + kChunk);
    got = zip_fread(file, content.data() + before, kChunk);
    content.resize(before + static_cast<size_t>(std::max<zip_int64_t>(0, got)));
  } while (got > 0 && content.size() <= most);
  const bool damaged = got < 0;
  zip_fclose(file);
  if (damaged) return fail(ErrorCode::Corrupt, entry.name + " is damaged", path_);
  if (content.size() > most) return fail(ErrorCode::Unsupported, entry.name + " is longer than its header says", path_);
  return content;
}

}  // namespace fusebox::importing
