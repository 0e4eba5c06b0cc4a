#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/source.h"

namespace odt::data {

// Files in a folder of their own that goes with the test.
class TempFiles {
 public:
  TempFiles() {
    char name[] = "/tmp/odt-data-XXXXXX";
    folder_ = ::mkdtemp(name);
  }
  ~TempFiles() { std::filesystem::remove_all(folder_); }
  TempFiles(const TempFiles&) = delete;
  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  std::string put(const std::string& name, const std::string& bytes) {
    std::filesystem::create_directories(std::filesystem::path(path(name)).parent_path());
    EXPECT_TRUE(write_file(path(name), bytes).ok());
    return path(name);
  }
  const std::string& folder() const { return folder_; }

 private:
  std::string folder_;
};

// All rows that are left, up to an error.
inline std::vector<Row> rows_of(Source& source, Status* status = nullptr) {
  std::vector<Row> rows;
  Row row;
  while (true) {
    const auto more = source.next(row);
    if (!more.ok()) {
      if (status != nullptr) *status = more.status();
      EXPECT_NE(status, nullptr) << more.status();
      return rows;
    }
    if (!*more) return rows;
    rows.push_back(row);
  }
}

}  // namespace odt::data
