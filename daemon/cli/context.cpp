#include "cli/context.h"

#include <google/protobuf/message.h>

#include <nlohmann/json.hpp>

#include "base/std_output.h"
#include "cli/json.h"

namespace odt::cli {

Result<Client*> Context::client() {
  if (client_ == nullptr) {
    ODT_ASSIGN(const std::string address, choose_address(address_given));
    ODT_ASSIGN(Credentials own, choose_credentials(address, credential_files));
    client_ =
        std::make_unique<Client>(address, std::chrono::seconds(timeout_s), std::move(own), owner);
  }
  return client_.get();
}

void Context::say(const std::string& line) {
  if (json) return;
  end_progress();
  io.out << clean(line) << std::endl;  // flushed: another program may read along
  written();
}

void Context::print(const Table& table) {
  if (json) return;
  end_progress();
  io.out << table.text() << std::flush;
  written();
}

void Context::print_json(const nlohmann::ordered_json& value) {
  end_progress();
  io.out << value.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace)
         << std::endl;
  written();
}

bool Context::reader_gone() const { return odt::reader_gone(io.out); }

void Context::answer_within(int seconds) {
  if (timeout_s >= seconds) return;
  timeout_s = seconds;
  client_.reset();  // the next one waits so long
}

void Context::written() {
  if (!io.out && !interrupt.seen() && reader_gone()) interrupt.raise();
}

void Context::print_json(const google::protobuf::Message& message) { print_json(to_json(message)); }

void Context::note(const std::string& line) {
  end_progress();
  io.err << clean(line) << std::endl;
}

void Context::progress(const std::string& line) {
  if (!json) progress_.show(clean(line));
}

void Context::progress_bar(std::uint32_t permille, const std::string& message) {
  if (!json) progress_.show_bar(permille, clean(message));
}

void Context::end_progress() { progress_.end(); }

}  // namespace odt::cli
