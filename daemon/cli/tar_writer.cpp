#include "cli/tar_writer.h"

#include <absl/strings/str_cat.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "cli/text.h"

namespace odt::cli {
namespace {

constexpr std::size_t kBlock = 512;

// ustar keeps a name in two parts: up to 155 bytes before a slash, up to 100 behind it.
bool put_name(const std::string& name, char* header) {
  if (name.size() <= 100) {
    std::memcpy(header, name.data(), name.size());
    return true;
  }
  for (auto at = name.find('/'); at != std::string::npos && at <= 155; at = name.find('/', at + 1))
    if (at > 0 && name.size() - at - 1 <= 100) {
      std::memcpy(header + 345, name.data(), at);
      std::memcpy(header, name.data() + at + 1, name.size() - at - 1);
      return true;
    }
  return false;
}

Status header_of(const std::string& name, std::uint64_t size, std::string& header) {
  header.assign(kBlock, '\0');
  if (!put_name(name, header.data()))
    return absl::InvalidArgumentError(clean(name) + ": the name is too long to send");
  if (size >= std::uint64_t{1} << 33)
    return absl::InvalidArgumentError(clean(name) + ": 8 GiB and more cannot be sent");
  const auto octal = [&header](std::size_t at, int digits, std::uint64_t value) {
    char text[16];
    std::snprintf(text, sizeof text, "%0*llo", digits, static_cast<unsigned long long>(value));
    std::memcpy(header.data() + at, text, static_cast<std::size_t>(digits));
  };
  octal(100, 7, 0644);
  octal(108, 7, 0);
  octal(116, 7, 0);
  octal(124, 11, size);
  octal(136, 11, 0);
  header[156] = '0';
  std::memcpy(header.data() + 257,
              "ustar\0"
              "00",
              8);
  std::memset(header.data() + 148, ' ', 8);
  std::uint64_t sum = 0;
  for (char c : header) sum += static_cast<unsigned char>(c);
  octal(148, 6, sum);
  header[154] = '\0';
  return {};
}

Status copy_file(const std::string& path, std::uint64_t size, std::ofstream& out) {
  std::ifstream in(path, std::ios::binary);
  std::string chunk(std::size_t{1} << 18, '\0');
  for (std::uint64_t left = size; left > 0;) {
    in.read(chunk.data(),
            static_cast<std::streamsize>(std::min<std::uint64_t>(left, chunk.size())));
    if (in.gcount() <= 0) return absl::DataLossError(clean(path) + ": cannot be read to its end");
    out.write(chunk.data(), in.gcount());
    left -= static_cast<std::uint64_t>(in.gcount());
  }
  out << std::string((kBlock - size % kBlock) % kBlock, '\0');
  return {};
}

}  // namespace

Status write_tar(const std::vector<std::pair<std::string, std::string>>& files,
                 const std::string& path) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  std::string header;
  for (const auto& [from, name] : files) {
    std::error_code ec;
    const std::uint64_t size = std::filesystem::file_size(from, ec);
    if (ec) return absl::NotFoundError(clean(from) + ": " + ec.message());
    ODT_TRY(header_of(name, size, header));
    out << header;
    ODT_TRY(copy_file(from, size, out));
  }
  out << std::string(2 * kBlock, '\0');
  out.close();
  return out ? Status()
             : absl::ResourceExhaustedError(clean(path) + ": cannot be written (disk full?)");
}

}  // namespace odt::cli
