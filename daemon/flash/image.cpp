#include "flash/image.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <sstream>

#include "base/fd.h"

namespace odt::flash {
namespace {

constexpr std::size_t kBuildIdBytes = 6, kNoteText = 64;

Status corrupt(const std::string& name, const std::string& what) {
  return with_reason(absl::InvalidArgumentError(name + ": " + what), "FIRMWARE_CORRUPT",
                     "Build or download the image again.");
}

// What is written to flash: bytes by address.
using Segments = std::map<std::uint64_t, std::string>;

template <typename T>
bool take(const std::string& bytes, std::uint64_t at, T& to) {
  if (at > bytes.size() || bytes.size() - at < sizeof to) return false;
  std::memcpy(&to, bytes.data() + at, sizeof to);
  return true;
}

Status read_elf(const std::string& bytes, const std::string& name, Segments& out) {
  Elf32_Ehdr head;
  if (!take(bytes, 0, head) || head.e_ident[EI_CLASS] != ELFCLASS32 ||
      head.e_ident[EI_DATA] != ELFDATA2LSB)
    return corrupt(name, "no 32-bit little-endian ELF file");
  if (head.e_machine != EM_ARM)
    return corrupt(name, "ELF file for machine " + std::to_string(head.e_machine) + ", not Arm");
  const std::uint64_t sections =
      std::uint64_t{head.e_shoff} + std::uint64_t{head.e_shnum} * head.e_shentsize;
  if (head.e_type != ET_EXEC) return corrupt(name, "ELF file, but no program");
  if (sections > bytes.size())
    return corrupt(name, "ends after " + std::to_string(bytes.size()) + " bytes of " +
                             std::to_string(sections));
  for (unsigned i = 0; i < head.e_phnum; ++i) {
    Elf32_Phdr part;
    if (!take(bytes, std::uint64_t{head.e_phoff} + std::uint64_t{i} * head.e_phentsize, part))
      return corrupt(name, "ends within its program headers");
    if (part.p_type != PT_LOAD || part.p_filesz == 0) continue;
    if (std::uint64_t{part.p_offset} + part.p_filesz > bytes.size())
      return corrupt(name, "ends within segment " + std::to_string(i));
    out[part.p_paddr] = bytes.substr(part.p_offset, part.p_filesz);
  }
  return out.empty() ? corrupt(name, "has no segment to load") : absl::OkStatus();
}

// Appends to the segment that ends at `address`, or begins one.
void put(Segments& out, std::uint64_t address, std::string_view data) {
  auto next = out.upper_bound(address);
  if (next != out.begin()) {
    auto before = std::prev(next);
    if (before->first + before->second.size() == address) {
      before->second.append(data);
      return;
    }
  }
  out[address] = std::string(data);
}

Status read_hex(const std::string& bytes, const std::string& name, Segments& out) {
  std::istringstream lines(bytes);
  std::string line;
  std::uint64_t upper = 0;
  bool ended = false;
  for (unsigned number = 1; std::getline(lines, line); ++number) {
    const std::string where = "line " + std::to_string(number);
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.pop_back();
    if (line.empty()) continue;
    if (ended || line[0] != ':') return corrupt(name, where + " is no record of Intel HEX");
    const auto record = from_hex(std::string_view(line).substr(1));
    if (!record.ok() || record->size() < 5 || record->size() != std::size_t{(*record)[0]} + 5)
      return corrupt(name, where + " is not whole");
    const Bytes& r = *record;
    std::uint8_t sum = 0;
    for (const auto byte : r) sum = static_cast<std::uint8_t>(sum + byte);
    if (sum != 0) return corrupt(name, where + " has a wrong checksum");
    const std::string data(r.begin() + 4, r.end() - 1);
    const std::uint64_t word = data.size() >= 2 ? std::uint64_t{r[4]} << 8 | r[5] : 0;
    if (r[3] == 0) put(out, upper + (std::uint64_t{r[1]} << 8 | r[2]), data);
    if (r[3] == 1) ended = true;
    if (r[3] == 2) upper = word << 4;
    if (r[3] == 4) upper = word << 16;
  }
  if (!ended) return corrupt(name, "ends without an end record");
  return out.empty() ? corrupt(name, "has no data") : absl::OkStatus();
}

struct Uf2Block {
  std::uint32_t magic0, magic1, flags, address, size, number, count, family;
  char data[476];
  std::uint32_t magic2;
};
static_assert(sizeof(Uf2Block) == 512);
constexpr std::uint32_t kUf2Magic0 = 0x0A324655, kUf2Magic1 = 0x9E5D5157, kUf2Magic2 = 0x0AB16F30;

Status read_uf2(const std::string& bytes, const std::string& name, Segments& out) {
  if (bytes.size() % sizeof(Uf2Block) != 0)
    return corrupt(name, std::to_string(bytes.size()) + " bytes are no whole blocks of UF2");
  const std::size_t blocks = bytes.size() / sizeof(Uf2Block);
  for (std::size_t i = 0; i < blocks; ++i) {
    Uf2Block block;
    take(bytes, i * sizeof block, block);
    if (block.magic0 != kUf2Magic0 || block.magic1 != kUf2Magic1 || block.magic2 != kUf2Magic2 ||
        block.size > sizeof block.data || block.number != i || block.count != blocks)
      return corrupt(name, "block " + std::to_string(i) + " of " + std::to_string(blocks) +
                               " is no UF2 block of this file");
    put(out, block.address, std::string_view(block.data, block.size));
  }
  return absl::OkStatus();
}

// An ELF note begins with three words and its owner's name.
std::size_t find_note(const std::string& data, const char (&owner)[4], std::uint32_t type,
                      std::uint32_t size) {
  std::string head(16, '\0');
  const std::uint32_t words[3] = {4, size, type};
  std::memcpy(head.data(), words, sizeof words);
  std::memcpy(head.data() + sizeof words, owner, 4);
  const std::size_t at = data.find(head);
  return at == std::string::npos || data.size() - at < head.size() + size ? std::string::npos
                                                                          : at + head.size();
}

void read_notes(const std::string& data, Image& image) {
  const std::size_t id = find_note(data, "GNU", NT_GNU_BUILD_ID, 20);
  if (id != std::string::npos && image.build_id.empty())
    image.build_id = to_hex(reinterpret_cast<const std::uint8_t*>(data.data()) + id, kBuildIdBytes);
  const std::size_t text = find_note(data, "ODT", 1, kNoteText);
  if (text == std::string::npos || !image.board.empty()) return;
  std::size_t at = text;
  for (std::string* part : {&image.board, &image.core, &image.version}) {
    const std::size_t end = std::min(data.find('\0', at), text + kNoteText);
    *part = data.substr(at, end - at);
    at = std::min(end + 1, text + kNoteText);
  }
}

// The first word of a Cortex-M image is the stack's top, the second the reset handler in Thumb.
bool looks_like_vectors(const std::string& bytes) {
  std::uint32_t stack = 0, reset = 0;
  return take(bytes, 0, stack) && take(bytes, 4, reset) && stack % 4 == 0 && stack >= 0x10000000 &&
         stack <= 0x40000000 && reset % 2 == 1;
}

}  // namespace

Result<Image> parse_image(const std::string& bytes, const std::string& name) {
  Image image;
  image.hash = sha256(bytes);
  image.size = bytes.size();
  Segments segments;
  if (bytes.starts_with(ELFMAG)) {
    image.format = "elf";
    ODT_TRY(read_elf(bytes, name, segments));
  } else if (bytes.starts_with(":")) {
    image.format = "hex";
    ODT_TRY(read_hex(bytes, name, segments));
  } else if (bytes.starts_with("UF2\n")) {
    image.format = "uf2";
    ODT_TRY(read_uf2(bytes, name, segments));
  } else {
    image.format = "bin";
    if (!looks_like_vectors(bytes))
      return corrupt(name,
                     "neither ELF, Intel HEX, UF2, nor raw bytes that begin with the vectors "
                     "of a Cortex-M");
    segments[0] = bytes;
  }
  image.load_address = segments.begin()->first;
  for (const auto& [address, data] : segments) {
    image.load_bytes = std::max(image.load_bytes, address + data.size() - image.load_address);
    read_notes(data, image);
  }
  return image;
}

Result<std::string> read_regular(const std::string& path, std::uint64_t most, bool follow) {
  // Without O_NONBLOCK a pipe that nobody writes to would hold the caller for ever.
  const int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | (follow ? 0 : O_NOFOLLOW);
  const Fd file(::open(path.c_str(), flags));
  if (file.get() < 0)
    return absl::NotFoundError(path + " cannot be opened: " + std::strerror(errno));
  struct stat info {};
  if (::fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode))
    return absl::InvalidArgumentError(path + " is no regular file");
  const auto size = static_cast<std::uint64_t>(info.st_size);
  if (size > most)
    return absl::InvalidArgumentError(path + " has " + std::to_string(size) + " bytes; at most " +
                                      std::to_string(most) + " are taken");
  std::string bytes(size, '\0');
  std::size_t done = 0;
  while (done < size) {
    const ssize_t n = ::read(file.get(), bytes.data() + done, size - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return absl::UnavailableError(path + " cannot be read");
    done += static_cast<std::size_t>(n);
  }
  return bytes;
}

Result<Image> read_image(const std::string& path) {
  const auto bytes = read_regular(path, kMaxImageBytes, true);
  if (absl::IsInvalidArgument(bytes.status()))
    return corrupt("image", std::string(bytes.status().message()));
  if (!bytes.ok()) return bytes.status();
  return parse_image(*bytes, path);
}

}  // namespace odt::flash
