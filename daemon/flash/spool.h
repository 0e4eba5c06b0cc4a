#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "flash/profile.h"

// The folder between odtd and odt-flash: neither talks to the other in any other way.
//   requests/ID.json    by odtd, taken away by odt-flash when it takes it up
//   firmware/SHA256     images, by odtd
//   results/ID.json     by odt-flash: how it goes; results/ID.log: what the flash program said
// Files appear whole (temporary file and rename).
namespace odt::flash {

struct Request {
  std::string id;       // letters, digits and '-'
  std::string profile;  // name; odt-flash reads its own copy of it
  std::string image;    // SHA-256, hex
  std::string format;   // "elf", ...
  Values values;        // uid, serial, port
};

struct Progress {
  enum class State : std::uint8_t { kWriting, kDone, kFailed };
  State state = State::kWriting;
  std::uint32_t permille = 0;
  std::string line;                // last one of the flash program
  bool begun = false;              // the flash program was started: the board may hold anything
  std::string code, text, remedy;  // kFailed
};

class Spool {
 public:
  explicit Spool(std::string folder) : folder_(std::move(folder)) {}
  const std::string& folder() const { return folder_; }

  // The three folders, where they are missing. Errors: FAILED_PRECONDITION.
  Status prepare();
  Status put_request(const Request& request);
  // Has not been taken up any more then.
  bool withdraw(const std::string& id);
  // In order of names. What is no request is taken away.
  std::vector<Request> requests();
  Status put_progress(const std::string& id, const Progress& progress);
  std::optional<Progress> progress(const std::string& id) const;  // absent: not taken up
  void forget(const std::string& id);                             // progress and log
  // Copies a file in under its hash (hex).
  Status keep_image(const std::string& path, const std::string& hash);
  std::string image_path(const std::string& hash) const { return folder_ + "/firmware/" + hash; }
  std::string log_path(const std::string& id) const { return folder_ + "/results/" + id + ".log"; }
  // Newest lines; `first`: number of the first one returned.
  std::vector<std::string> log_lines(const std::string& id, std::size_t most,
                                     std::uint64_t& first) const;

 private:
  std::string folder_;
};

}  // namespace odt::flash
