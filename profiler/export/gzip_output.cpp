#include "profiler/export/gzip_output.h"

#include <zlib.h>

namespace fusebox::exporting {

GzipOutput::GzipOutput(const std::string& path) : file_(gzopen(path.c_str(), "wb6")), stream_(this) {
  failed_ = file_ == nullptr;
  setp(buffer_.data(), buffer_.data() + buffer_.size());
}

GzipOutput::~GzipOutput() { close(); }

void GzipOutput::close() {
  if (!file_) return;
  sync();
  failed_ |= gzclose(static_cast<gzFile>(file_)) != Z_OK;
  file_ = nullptr;
}

int GzipOutput::sync() {
  const auto size = static_cast<unsigned>(pptr() - pbase());
  if (size > 0 && file_ && gzwrite(static_cast<gzFile>(file_), pbase(), size) != static_cast<int>(size)) failed_ = true;
  setp(buffer_.data(), buffer_.data() + buffer_.size());
  return failed_ ? -1 : 0;
}

GzipOutput::int_type GzipOutput::overflow(int_type c) {
  if (sync() != 0) return traits_type::eof();
  if (traits_type::eq_int_type(c, traits_type::eof())) return traits_type::not_eof(c);
  return sputc(traits_type::to_char_type(c));
}

}  // namespace fusebox::exporting
