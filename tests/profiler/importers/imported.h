#pragma once

#include <QTemporaryDir>
#include <QTest>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>

#include "profiler/importers/byte_stream.h"
#include "profiler/importers/open.h"
#include "profiler/session/reader.h"

namespace fusebox::test {

/// Opens foreign files through a cache of its own, which goes with the test.
class Imported {
 public:
  Imported() { qputenv("XDG_CACHE_HOME", dir_.filePath("cache").toUtf8()); }

  static std::string data(const std::string& name) { return std::string(IMPORTER_DATA) + "/" + name; }
  std::string path(const std::string& name) const { return dir_.filePath(QString::fromStdString(name)).toStdString(); }
  std::string write(const std::string& name, const std::string& content) const {
    std::ofstream(path(name), std::ios::binary) << content;
    return path(name);
  }
  static std::string read(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  /// The content of a compressed data file, as a file of its own.
  std::string inflated(const std::string& name, const std::string& as) const {
    return write(as, importing::firstBytes(data(name), size_t{64} << 20).value_or(std::string()));
  }

  bool open(const std::string& path) {
    auto opened = importing::openAny(path);
    error_ = opened ? Error{} : opened.error();
    reader_ = opened ? std::move(*opened) : nullptr;
    return reader_ != nullptr;
  }
  const Error& error() const { return error_; }
  const session::Reader& reader() const { return *reader_; }

  /// All rows, cells joined by ',' and rows by ';'.
  std::string rows(const std::string& sql) const {
    auto table = reader_->query(sql);
    if (!table) return "error: " + table.error().text();
    std::string out;
    for (const auto& row : table->rows) {
      for (size_t c = 0; c < row.size(); ++c) out += (c ? "," : out.empty() ? "" : ";") + session::cellText(row[c]);
    }
    return out;
  }
  int64_t number(const std::string& sql) const {
    const std::string text = rows(sql);
    return text.empty() ? -1 : std::strtoll(text.c_str(), nullptr, 10);
  }

 private:
  QTemporaryDir dir_;
  std::unique_ptr<session::Reader> reader_;
  Error error_;
};

}  // namespace fusebox::test

#define COMPARE_ROWS(imported, sql, expected) QCOMPARE(QString::fromStdString((imported).rows(sql)), QString(expected))
