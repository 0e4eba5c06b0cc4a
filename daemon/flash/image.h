#pragma once

#include <cstdint>
#include <string>

#include "base/ids.h"
#include "base/result.h"

namespace odt::flash {

// A firmware image as a file says it of itself. board, core, version, build_id: from the image's
// ELF notes (owner "ODT": firmware/boards/cortex_m/note.c; owner "GNU": the linker's build id),
// which are found in every format; empty where there are none.
struct Image {
  Hash hash;  // SHA-256 of the file
  std::uint64_t size = 0;
  std::string format;  // "elf", "hex", "uf2", "bin"
  std::string board, core, version;
  std::string build_id;            // hex of the first 6 bytes
  std::uint64_t load_address = 0;  // 0 for "bin": it does not say
  std::uint64_t load_bytes = 0;
};

inline constexpr std::uint64_t kMaxImageBytes = 64u << 20;

// The bytes of a regular file; never waits, whatever lies there. follow: links too. Errors:
// NOT_FOUND, INVALID_ARGUMENT (no regular file, more than `most` bytes), UNAVAILABLE.
Result<std::string> read_regular(const std::string& path, std::uint64_t most, bool follow);
// Errors: NOT_FOUND, INVALID_ARGUMENT FIRMWARE_CORRUPT (not whole, a wrong checksum, no firmware
// for Arm at all).
Result<Image> read_image(const std::string& path);
// The same of bytes; `name` for messages.
Result<Image> parse_image(const std::string& bytes, const std::string& name);

}  // namespace odt::flash
