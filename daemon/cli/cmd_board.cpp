#include <absl/strings/str_cat.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "base/ids.h"
#include "cli/commands.h"
#include "cli/context.h"
#include "cli/json.h"
#include "cli/lab_view.h"
#include "cli/labels.h"
#include "cli/lookup.h"
#include "odt/api/v1/services.pb.h"

namespace odt::cli {
namespace {

namespace v1 = api::v1;

std::int64_t now_us() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

std::string labels_text(const v1::Board& board) {
  std::vector<std::string> all;
  for (const auto& [key, value] : board.labels()) all.push_back(key + "=" + value);
  std::sort(all.begin(), all.end());
  std::string out;
  for (const std::string& label : all) out += (out.empty() ? "" : ",") + label;
  return out.empty() ? "-" : out;
}

// Where boards answer whose uid another live board has; those that dial in are listed while they
// come again.
std::vector<std::pair<std::string, v1::Reason>> quarantined_of(Context& context) {
  std::vector<std::pair<std::string, v1::Reason>> out;
  const auto ports = context.call<v1::ListPortsResponse>(v1::ListPortsRequest());
  if (!ports.ok()) return out;
  for (const auto& port : ports->ports())
    if (port.reason().code() == "DUPLICATE_UID")
      out.emplace_back(clean(port.path()), port.reason());
  return out;
}

Status list(Context& context, const std::string& filter) {
  ODT_ASSIGN(Client * client, context.client());
  v1::ListBoardsRequest request;
  request.set_filter(filter);
  ODT_ASSIGN(const auto boards,
             client->list<v1::ListBoardsResponse>(request, [](auto& r) { return r.boards(); }));
  if (context.json) {
    auto out = nlohmann::ordered_json::array();
    for (const auto& board : boards) out.push_back(to_json(board));
    context.print_json(out);
    return {};
  }
  Table table({"NAME", "STATUS", "SEEN", "CORE", "RAM", "PLACE", "FOR", "LABELS", "LINK", "UID"});
  for (const auto& b : boards)
    table.add({b.name(), status_word(b.status()), ago_text(b.last_seen_time_us(), now_us()),
               b.core(), size_text(b.ram_bytes()), b.place().empty() ? "-" : b.place(), use_text(b),
               labels_text(b), b.link().endpoint().empty() ? "-" : b.link().endpoint(),
               hex(b.uid())});
  context.print(table);
  if (boards.empty()) context.note("no boards yet; 'odtctl port list' shows where one could be");
  for (const auto& [place, why] : quarantined_of(context))
    context.note("quarantined: " + place + ": " + why.text() + ". " + why.remedy());
  return {};
}

Status show(Context& context, const std::string& word) {
  ODT_ASSIGN(const v1::Board b, find_board(context, word));
  if (context.json) {
    context.print_json(b);
    return {};
  }
  ODT_ASSIGN(const Names names, Names::read(context));
  Table table({"name", b.name()});
  table.add({"uid", hex(b.uid())});
  table.add(
      {"status", status_word(b.status()) + ", seen " + ago_text(b.last_seen_time_us(), now_us())});
  table.add({"type", b.board_type() + ", " + b.core()});
  table.add({"firmware", absl::StrCat(b.fw_version(), ", rules version ", b.rules_version())});
  table.add({"memory", absl::StrCat(size_text(b.ram_bytes()), ", layers up to ", b.max_layers(),
                                    ", batch up to ", b.max_batch())});
  table.add({"place", b.place().empty() ? "-" : b.place()});
  table.add({"labels", labels_text(b)});
  for (auto& row : lab_rows(b)) table.add(std::move(row));
  table.add({"model", names.model(b.model_hash())});
  table.add({"run", b.run_id().empty() ? "-" : hex(b.run_id())});
  table.add({"last reset", absl::StrCat(b.reset_reason(), ", boots seen ", b.boots_seen())});
  const v1::LinkStats& link = b.link();
  table.add({"link", absl::StrCat(link.endpoint(), ", round trip ", link.rtt_us() / 1000.0,
                                  " ms, CRC errors ", link.crc_errors(), ", retries ",
                                  link.retries(), ", telemetry gaps ", link.telemetry_gaps())});
  context.print(table);
  return {};
}

Status update(Context& context, const std::string& word,
              const std::function<Status(v1::UpdateBoardRequest&)>& change) {
  ODT_ASSIGN(const v1::Board board, find_board(context, word));
  v1::UpdateBoardRequest request;
  request.set_uid(board.uid());
  ODT_TRY(change(request));
  ODT_ASSIGN(const auto response, context.call<v1::UpdateBoardResponse>(request));
  if (context.json) context.print_json(response.board());
  context.say(response.board().name() + "  " + labels_text(response.board()));
  return {};
}

// "key=value" sets, "key-" removes.
Status set_labels(v1::UpdateBoardRequest& request, const std::vector<std::string>& labels) {
  for (const std::string& label : labels) {
    const std::size_t equals = label.find('=');
    if (equals != std::string::npos && equals > 0)
      (*request.mutable_set_labels())[label.substr(0, equals)] = label.substr(equals + 1);
    else if (label.size() > 1 && label.back() == '-')
      request.add_remove_labels(label.substr(0, label.size() - 1));
    else
      return absl::InvalidArgumentError("'" + clean(label) +
                                        "' is neither key=value nor key- (remove)");
  }
  return {};
}

// Verbs that need only the uid.
template <typename Response, typename Request>
Status simple(Context& context, const std::string& word, Request request, const char* done) {
  ODT_ASSIGN(const v1::Board board, find_board(context, word));
  request.set_uid(board.uid());
  ODT_TRY(context.call<Response>(request));
  if (context.json) context.print_json(nlohmann::ordered_json{{"uid", hex(board.uid())}});
  context.say(board.name() + " " + done);
  return {};
}

std::string nvm_kind_text(const v1::BoardNvm& n) {
  switch (n.kind()) {
    case v1::NVM_KIND_IMAGE:
      return "model as compiled";
    case v1::NVM_KIND_WEIGHTS:
      return "weights";
    case v1::NVM_KIND_STATE:
      return absl::StrCat("training state of step ", n.step(), ", run ", hex(n.run_id()));
    default:
      return "nothing";
  }
}

std::string nvm_wants(const v1::BoardNvm& n) {
  if (n.want_state_bytes() == 0 && n.want_image_bytes() == 0) return "nothing to commit";
  std::uint32_t left = n.slot_bytes();
  std::string out;
  const auto part = [&](const char* name, std::uint32_t bytes) {
    if (bytes == 0) return;
    const bool fits = bytes <= left;
    if (fits) left -= bytes;
    absl::StrAppend(&out, out.empty() ? "" : ", ", name, " ", bytes, fits ? "" : " (does not fit)");
  };
  part("state or weights", n.want_state_bytes());
  part("best weights", n.want_best_bytes());
  part("model", n.want_image_bytes());
  return out;
}

Status print_nvm(Context& context, const v1::BoardNvm& n) {
  if (context.json) {
    context.print_json(n);
    return {};
  }
  Table table({"memory", absl::StrCat(n.size_bytes(), " bytes, two slots of ", n.slot_bytes())});
  const bool held = n.sequence() != 0;
  table.add({"committed", nvm_kind_text(n)});
  if (held) {
    table.add({"sequence", absl::StrCat(n.sequence(), ", ", n.bytes(), " bytes")});
    table.add({"with it", absl::StrCat(n.has_image() ? "model" : "no model",
                                       n.has_best() ? ", best weights" : "")});
  }
  if (n.writes_size() == 2)
    table.add({"writes", absl::StrCat(n.writes(0), " and ", n.writes(1), " of its slots")});
  table.add({"a commit now", nvm_wants(n)});
  context.print(table);
  return {};
}

template <typename Response, typename Request>
Status nvm(Context& context, const std::string& word, Request request) {
  ODT_ASSIGN(const v1::Board board, find_board(context, word));
  request.set_uid(board.uid());
  ODT_ASSIGN(const auto response, context.call<Response>(request));
  return print_nvm(context, response.nvm());
}

}  // namespace

void add_board(CLI::App& app, Context& context) {
  CLI::App* board = app.add_subcommand("board", "Boards: list, show, rename, label, ...");
  board->require_subcommand(1);
  const auto word = std::make_shared<std::string>();
  const auto text = std::make_shared<std::string>();
  const auto labels = std::make_shared<std::vector<std::string>>();
  const auto seconds = std::make_shared<std::uint32_t>(5);

  CLI::App* sub = board->add_subcommand("list", "All boards that odtd knows");
  sub->add_option("--filter", *text, "e.g. status=ONLINE,label.site=lab");
  sub->callback(
      [&context, text] { context.action = [&context, text] { return list(context, *text); }; });

  const auto verb = [&](const char* name, const char* help, std::function<Status()> action) {
    CLI::App* v = board->add_subcommand(name, help);
    v->add_option("BOARD", *word, "Name, or beginning of the uid")->required();
    v->callback([&context, action] { context.action = action; });
    return v;
  };
  verb("show", "All about one board", [&context, word] { return show(context, *word); });
  sub = verb("rename", "Give a board another name", [&context, word, text] {
    return update(context, *word, [&](auto& request) {
      request.set_name(*text);
      return Status();
    });
  });
  sub->add_option("NAME", *text, "New name")->required();
  sub = verb("place", "Say where a board is", [&context, word, text] {
    return update(context, *word, [&](auto& request) {
      request.set_place(*text);
      return Status();
    });
  });
  sub->add_option("PLACE", *text, "e.g. \"rig 7\"")->required();
  sub = verb("label", "Set labels (key=value) or remove them (key-)", [&context, word, labels] {
    return update(context, *word, [&](auto& request) { return set_labels(request, *labels); });
  });
  sub->add_option("LABEL", *labels, "key=value or key-")->required();
  sub = verb("identify", "Make a board blink", [&context, word, seconds] {
    v1::IdentifyBoardRequest request;
    request.set_seconds(*seconds);
    return simple<v1::IdentifyBoardResponse>(context, *word, request, "shows itself");
  });
  sub->add_option("--seconds", *seconds, "How long")->check(CLI::Range(1, 3600));
  verb("reset", "Restart a board", [&context, word] {
    return simple<v1::ResetBoardResponse>(context, *word, v1::ResetBoardRequest(), "restarts");
  });
  verb("nvm", "What a board's non-volatile memory holds, and what fits", [&context, word] {
    return nvm<v1::GetBoardNvmResponse>(context, *word, v1::GetBoardNvmRequest());
  });
  verb("commit", "Model and weights, or the run's state, to the board's non-volatile memory",
       [&context, word] {
         return nvm<v1::CommitBoardResponse>(context, *word, v1::CommitBoardRequest());
       });
  verb("erase", "Forget what the board's non-volatile memory holds", [&context, word] {
    return nvm<v1::EraseBoardNvmResponse>(context, *word, v1::EraseBoardNvmRequest());
  });
  add_lab(*board, context);
  add_console(*board, context);
  verb("forget", "Forget an offline board; its runs stay", [&context, word] {
    return simple<v1::DeleteBoardResponse>(context, *word, v1::DeleteBoardRequest(), "forgotten");
  });
}

void add_port(CLI::App& app, Context& context) {
  CLI::App* port = app.add_subcommand("port", "Serial ports and TCP places of boards");
  port->require_subcommand(1);
  const auto path = std::make_shared<std::string>();
  const auto baud = std::make_shared<std::uint32_t>(0);
  const auto expect = std::make_shared<std::string>();
  const auto show_port = [&context](const v1::Port& p) {
    if (context.json) context.print_json(p);
    context.say(p.path() + "  " + port_word(p.state()) + (p.adopted() ? "  adopted" : ""));
  };

  CLI::App* sub = port->add_subcommand("list", "Every place where a board is or could be");
  sub->callback([&context] {
    context.action = [&context]() -> Status {
      ODT_ASSIGN(Client * client, context.client());
      ODT_ASSIGN(const auto ports, client->list<v1::ListPortsResponse>(
                                       v1::ListPortsRequest(), [](auto& r) { return r.ports(); }));
      auto out = nlohmann::ordered_json::array();
      Table table({"PATH", "STATE", "OPENED", "BOARD", "USB", "WHAT", "WHY"});
      for (const auto& p : ports) {
        out.push_back(to_json(p));
        char usb[16] = "-";
        if (p.usb_vid() != 0) std::snprintf(usb, sizeof usb, "%04x:%04x", p.usb_vid(), p.usb_pid());
        table.add(
            {p.path(), port_word(p.state()),
             std::string(p.adopted() ? "adopted" : (p.allowed() ? "allowed" : "no")) +
                 (p.expect_uid().empty() ? "" : " for " + hex(p.expect_uid())),
             p.board_uid().empty() ? "-" : hex(p.board_uid()), usb,
             p.description().empty() ? "-" : p.description(),
             p.reason().text() + (p.reason().remedy().empty() ? "" : "; ") + p.reason().remedy()});
      }
      if (context.json) context.print_json(out);
      context.print(table);
      return {};
    };
  });
  sub = port->add_subcommand("adopt", "Open this port from now on");
  sub->add_option("PATH", *path, "/dev/tty..., or tcp:host:port to dial")->required();
  sub->add_option("--baud", *baud, "Only this baud rate");
  sub->add_option("--expect-uid", *expect,
                  "Whole uid of the board that belongs there: another one stays outside");
  sub->callback([&context, path, baud, expect, show_port] {
    context.action = [&context, path, baud, expect, show_port]() -> Status {
      v1::AdoptPortRequest request;
      request.set_path(*path);
      request.set_baud(*baud);
      if (!expect->empty()) {
        const auto uid = from_hex(*expect);
        if (!uid.ok() || uid->size() < 8 || uid->size() > 16)
          return absl::InvalidArgumentError("--expect-uid '" + clean(*expect) +
                                            "' is not a uid: 16 to 32 hex digits, as 'odtctl "
                                            "board list' shows");
        request.set_expect_uid(std::string(uid->begin(), uid->end()));
      }
      ODT_ASSIGN(const auto response, context.call<v1::AdoptPortResponse>(request));
      show_port(response.port());
      return {};
    };
  });
  sub = port->add_subcommand("release", "No longer open this port");
  sub->add_option("PATH", *path, "As in 'port list'")->required();
  sub->callback([&context, path, show_port] {
    context.action = [&context, path, show_port]() -> Status {
      v1::ReleasePortRequest request;
      request.set_path(*path);
      ODT_ASSIGN(const auto response, context.call<v1::ReleasePortResponse>(request));
      show_port(response.port());
      return {};
    };
  });
}

}  // namespace odt::cli
