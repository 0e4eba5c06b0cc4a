#include <absl/strings/str_cat.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/context.h"
#include "cli/doctor.h"
#include "cli/json.h"
#include "odt/api/v1/services.pb.h"

namespace odt::cli {
namespace {

namespace v1 = api::v1;

constexpr const char* kDataDir = "/var/lib/odt-fleet";

// What odtd itself sees of ports and boards.
void add_daemon_findings(Context& context, std::vector<Finding>& findings) {
  const auto ports = context.call<v1::ListPortsResponse>(v1::ListPortsRequest());
  if (!ports.ok()) return;
  for (const auto& port : ports->ports()) {
    if (port.state() != v1::PORT_STATE_LOCKED && port.state() != v1::PORT_STATE_ERROR &&
        port.state() != v1::PORT_STATE_SILENT &&
        port.state() != v1::PORT_STATE_BAUD_MISMATCH_SUSPECTED)
      continue;
    findings.push_back({"port " + clean(port.path()), Verdict::kWarn,
                        clean(port.reason().text().empty() ? v1::PortState_Name(port.state())
                                                           : port.reason().text()),
                        clean(port.reason().remedy())});
  }
}

// The folder whose disk matters.
std::string check_daemon(Context& context, std::vector<Finding>& findings) {
  const auto client = context.client();
  const auto info = context.call<v1::GetInfoResponse>(v1::GetInfoRequest());
  if (!info.ok()) {
    findings.push_back(
        {"odtd", Verdict::kFail, std::string(info.status().message()), remedy_of(info.status())});
    std::error_code ec;
    return std::filesystem::exists(kDataDir, ec) ? kDataDir : "/";
  }
  findings.push_back(
      {"odtd", Verdict::kOk,
       absl::StrCat("version ", clean(info->version()), " at ", (*client)->address(),
                    ", boards online ", info->boards_online(), " of ", info->boards_known()),
       ""});
  if (!info->disk_text().empty())
    findings.push_back({"storage",
                        info->disk_state() == v1::DISK_STATE_FULL ? Verdict::kFail : Verdict::kWarn,
                        clean(info->disk_text()),
                        "free space, raise [telemetry] quota_mb, or odtctl storage purge"});
  add_daemon_findings(context, findings);
  return info->data_dir();
}

// Exit 1 where a check FAILs.
Status doctor(Context& context) {
  std::vector<Finding> findings;
  const std::string folder = check_daemon(context, findings);
  const Places here;
  findings.push_back(check_disk(folder));
  findings.push_back(check_group(here));
  findings.push_back(check_modem_manager(here));
  findings.push_back(check_udev_rules(here));
  for (Finding& f : check_ports(here)) findings.push_back(std::move(f));

  auto out = nlohmann::ordered_json::array();
  bool failed = false;
  for (const Finding& f : findings) {
    failed |= f.verdict == Verdict::kFail;
    out.push_back(
        {{"check", f.check}, {"verdict", word(f.verdict)}, {"text", f.text}, {"remedy", f.remedy}});
    std::string mark = word(f.verdict);
    mark.resize(5, ' ');
    context.say(mark + f.check + ": " + f.text);
    if (!f.remedy.empty()) context.say("       -> " + f.remedy);
  }
  if (context.json) context.print_json(out);
  if (!failed) return {};
  return with_exit(absl::UnknownError("something is wrong; see the FAIL lines"), kExitFailed);
}

Status info(Context& context) {
  ODT_ASSIGN(const auto i, context.call<v1::GetInfoResponse>(v1::GetInfoRequest()));
  if (context.json) {
    context.print_json(i);
    return {};
  }
  Table table({"odtd", i.version()});
  table.add({"address", (*context.client())->address()});
  table.add({"dashboard", i.http_url().empty() ? "-" : i.http_url()});
  table.add({"boards dial", i.listen_boards().empty() ? "-" : i.listen_boards()});
  table.add({"boards", absl::StrCat(i.boards_online(), " online of ", i.boards_known())});
  table.add({"data", i.data_dir()});
  table.add({"disk free", size_text(i.disk_free_bytes())});
  if (!i.disk_text().empty()) table.add({"storage", i.disk_text()});
  table.add({"databases", "control " + size_text(i.control_db_bytes()) + ", telemetry " +
                              size_text(i.telemetry_db_bytes())});
  table.add({"gateway", hex(i.gateway_id())});
  table.add({"rules version", std::to_string(i.rules_version())});
  context.print(table);
  return {};
}

}  // namespace

void add_doctor(CLI::App& app, Context& context) {
  app.add_subcommand("doctor", "Look for what keeps boards or odtd from working")
      ->callback([&context] { context.action = [&context] { return doctor(context); }; });
}

void add_info(CLI::App& app, Context& context) {
  app.add_subcommand("info", "About this odtd")->callback([&context] {
    context.action = [&context] { return info(context); };
  });
}

}  // namespace odt::cli
