// Files that users import are hostile bytes: CSV, IDX, NPY and NPZ, tar archives, dataset files.
// What is imported must be a dataset that its own reader takes back unchanged.
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "data/csv_reader.h"
#include "data/idx_reader.h"
#include "data/import.h"
#include "data/report.h"
#include "data/tar.h"

namespace {

namespace fs = std::filesystem;
using namespace odt::data;

void require(bool good) {
  if (!good) std::abort();
}

// A file in memory, by a path.
class MemoryFile {
 public:
  explicit MemoryFile(const std::string& bytes) : fd_(memfd_create("fuzz", 0)) {
    require(fd_ >= 0);
    for (std::size_t at = 0; at < bytes.size();) {
      const ssize_t n = ::write(fd_, bytes.data() + at, bytes.size() - at);
      require(n > 0);
      at += static_cast<std::size_t>(n);
    }
  }
  ~MemoryFile() { ::close(fd_); }
  MemoryFile(const MemoryFile&) = delete;
  std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }

 private:
  int fd_;
};

void check_dataset(const Dataset& d, const ImportNotes& notes) {
  const std::string bytes = encode_dataset(d);
  const auto back = decode_dataset(bytes);
  require(back.ok() && encode_dataset(*back) == bytes);
  const Report report = make_report(d, notes);
  (void)report_text(report, d);
  (void)report_json(report, d);
  (void)preview_json(d, report.value_names);
}

void import(ImportRequest request) {
  ImportNotes notes;
  const auto d = import_dataset(
      request, [](auto, const auto&) {}, &notes);
  if (d.ok())
    check_dataset(*d, notes);
  else
    require(!d.status().message().empty());
}

void import_csv(std::uint8_t options, const std::string& bytes) {
  const MemoryFile file(bytes);
  ImportRequest r;
  r.format = "csv";
  r.data_path = file.path();
  r.data_name = "f.csv";
  r.stratify = (options & 1) != 0;
  if ((options & 2) != 0) r.group_column = "0";
  if ((options & 4) != 0) r.target_columns = {"1"};
  if ((options & 8) != 0) r.label_column = "-";
  constexpr const char* kMissing[] = {"refuse", "drop", "mean", "zero"};
  r.missing = kMissing[options >> 4 & 3];
  import(r);
}

// Two files: the first two bytes are the length of the labels, which stand first.
void import_pair(const std::string& format, const std::string& bytes) {
  if (bytes.size() < 2) return;
  const std::size_t n = std::min<std::size_t>(
      static_cast<std::uint8_t>(bytes[0]) | static_cast<std::uint8_t>(bytes[1]) << 8,
      bytes.size() - 2);
  const MemoryFile labels(bytes.substr(2, n)), values(bytes.substr(2 + n));
  ImportRequest r;
  r.format = format;
  r.data_path = values.path();
  r.data_name = "x";
  if (n > 0) r.labels_path = labels.path();
  r.labels_name = "y";
  import(r);
}

void unpack(const std::string& bytes) {
  const MemoryFile file(bytes);
  char name[] = "/tmp/odt-fuzz-XXXXXX";
  require(::mkdtemp(name) != nullptr);
  const std::string folder = name, inside = folder + "/in";
  fs::create_directory(inside);
  (void)unpack_tar(file.path(), inside, 65536, "f.tar");
  for (const auto& entry : fs::directory_iterator(folder)) require(entry.path() == inside);
  for (const auto& entry : fs::recursive_directory_iterator(inside)) require(!entry.is_symlink());
  fs::remove_all(folder);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 5) {
    case 0:
      import_csv(data[1], bytes.substr(1));
      break;
    case 1:
      import_pair("idx", bytes);
      break;
    case 2:
      import_pair("npy", bytes);
      break;
    case 3:
      unpack(bytes);
      break;
    default:
      if (const auto d = decode_dataset(bytes); d.ok()) {
        (void)encode_dataset(*d);
        (void)make_report(*d, {});
      }
  }
  return 0;
}
