#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <ostream>
#include <string>

#include "base/progress_line.h"
#include "cli/client.h"
#include "cli/exit_code.h"
#include "cli/interrupt.h"
#include "cli/text.h"

namespace google::protobuf {
class Message;
}

namespace odt::cli {

// Where a command writes. Results to out, progress and errors to err.
struct Io {
  std::ostream& out;
  std::ostream& err;
  bool out_tty = false;
  bool err_tty = false;
};

// What every command gets.
class Context {
 public:
  explicit Context(Io streams) : io(streams), progress_(streams.err, streams.err_tty) {}

  Io io;
  std::string address_given;  // --address
  std::string owner;          // --owner, else $ODT_OWNER
  CredentialFiles credential_files;
  bool json = false;
  int timeout_s = 30;
  Interrupt interrupt;
  // Set by the verb that was parsed; carried out after parsing.
  std::function<Status()> action;

  Result<Client*> client();  // INVALID_ARGUMENT: bad address
  template <typename Response, typename Request>
  Result<Response> call(const Request& request) {
    Result<Client*> c = client();
    if (!c.ok()) return c.status();
    return (*c)->call<Response>(request);
  }

  void say(const std::string& line);  // a line of the result; nothing with --json
  void print(const Table& table);
  void print_json(const nlohmann::ordered_json& value);
  void print_json(const google::protobuf::Message& message);
  // For a call that may take longer than --timeout says.
  void answer_within(int seconds);
  // A note beside the result.
  void note(const std::string& line);
  // Progress that a terminal overwrites; elsewhere a line every 5 s (base/progress_line.h).
  void progress(const std::string& line);
  void progress_bar(std::uint32_t permille, const std::string& message);
  void end_progress();
  // Who read the output has closed it: the command ends as if interrupted.
  bool reader_gone() const;

 private:
  void written();
  std::unique_ptr<Client> client_;
  ProgressLine progress_;
};

}  // namespace odt::cli
