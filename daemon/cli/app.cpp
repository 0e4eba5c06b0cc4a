#include "cli/app.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/std_output.h"
#include "cli/commands.h"

namespace odt::cli {
namespace {

constexpr const char* kFooter =
    "Names of things: their name or alias, or the beginning of id, hash or uid (6 digits at "
    "least).\n"
    "Where odtd is: --address, else $ODT_ADDRESS, else unix:$XDG_RUNTIME_DIR/odt-fleet.sock, else\n"
    "unix:/run/odt-fleet/odtd.sock.\n"
    "Who calls: the unix socket needs no token; else --token-file, $ODT_TOKEN, or what\n"
    "`odtctl login` has kept in ~/.config/odt.\n"
    "Exit codes: 0 well, 1 failed, 2 wrong usage, 3 no odtd answers, 4 not found, 5 refused,\n"
    "6 run or job failed, 130 interrupted.";

void build(CLI::App& app, Context& context) {
  app.require_subcommand(1);
  app.fallthrough();
  app.footer(kFooter);
  app.add_option("--address", context.address_given, "host:port or unix:/path");
  app.add_option("--owner", context.owner,
                 "Whom this is for, where boards are reserved; default: $ODT_OWNER, else you")
      ->envname("ODT_OWNER");
  app.add_option("--token-file", context.credential_files.token,
                 "Token of odtd's `odtctl token add`, in its first line")
      ->type_name("FILE");
  app.add_option("--ca", context.credential_files.ca,
                 "TLS: the certificate odtd must have, or whose CA signed it (PEM)")
      ->type_name("FILE");
  app.add_option("--cert", context.credential_files.cert, "Our certificate (PEM), with --key")
      ->type_name("FILE");
  app.add_option("--key", context.credential_files.key, "Its private key (PEM)")->type_name("FILE");
  app.add_flag("--json", context.json, "Stable JSON: one value, or one a line where it streams");
  app.add_option("--timeout", context.timeout_s, "Seconds for one answer of odtd")
      ->check(CLI::Range(1, 3600));
  app.set_version_flag("--version", "odtctl 0.1.0");
  for (auto* add :
       {add_board,    add_port,       add_model,    add_data,     add_train,   add_run,
        add_campaign, add_alert,      add_settings, add_stop_all, add_weights, add_eval,
        add_capture,  add_infer,      add_pc_train, add_storage,  add_watch,   add_doctor,
        add_info,     add_completion, add_token,    add_login,    add_audit,   add_setup})
    add(app, context);
}

// The first argument that names no verb where one is expected: what it may have been meant to be.
std::string verb_hint(const CLI::App& root, const std::vector<std::string>& arguments) {
  const CLI::App* at = &root;
  bool value_follows = false;
  for (const std::string& argument : arguments) {
    if (std::exchange(value_follows, false)) continue;
    if (argument.starts_with('-')) {
      const CLI::Option* option = root.get_option_no_throw(argument);
      value_follows = option != nullptr && option->get_items_expected_max() > 0;
      continue;
    }
    const auto verbs = at->get_subcommands([](const CLI::App*) { return true; });
    if (verbs.empty()) return {};
    std::vector<std::string> names;
    for (const CLI::App* verb : verbs) names.push_back(verb->get_name());
    const auto found = std::find(names.begin(), names.end(), argument);
    if (found == names.end())
      return "no verb '" + clean(argument) + "'." + did_you_mean(argument, names);
    at = verbs[static_cast<std::size_t>(found - names.begin())];
  }
  return {};
}

// An option that is not known: what it may have been meant to be.
std::string option_hint(const CLI::App& root, const std::vector<std::string>& arguments) {
  std::vector<std::string> names;
  const CLI::App* at = &root;
  const auto add_options = [&names](const CLI::App* app) {
    for (const CLI::Option* option : app->get_options())
      for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  };
  add_options(at);
  for (const std::string& argument : arguments) {
    const auto verbs =
        at->get_subcommands([&](const CLI::App* v) { return v->check_name(argument); });
    if (verbs.empty()) continue;
    at = verbs.front();
    add_options(at);
  }
  for (const std::string& argument : arguments) {
    const std::string name = argument.substr(0, argument.find('='));
    if (name.starts_with("--") && std::find(names.begin(), names.end(), name) == names.end())
      return "no option '" + clean(name) + "'." + did_you_mean(name, names);
  }
  return {};
}

int usage_error(Context& context, const CLI::App& app, const CLI::ParseError& error,
                const std::vector<std::string>& arguments) {
  std::string text = verb_hint(app, arguments);
  if (text.empty()) text = option_hint(app, arguments);
  if (text.empty()) text = error.what();
  context.io.err << "odtctl: " << clean(text) << "\n  --help shows what there is\n";
  return kExitUsage;
}

int report(Context& context, const Status& status) {
  const int code = exit_code_of(status);
  context.end_progress();
  if (status.ok() || status.message().empty()) return code;
  const std::string message(status.message());
  const std::string remedy = remedy_of(status);
  if (context.json) {
    const nlohmann::ordered_json error = {{"error",
                                           {{"exit", code},
                                            {"code", absl::StatusCodeToString(status.code())},
                                            {"reason", reason_of(status)},
                                            {"message", clean(message)},
                                            {"remedy", clean(remedy)}}}};
    context.io.err << error.dump() << std::endl;
    return code;
  }
  context.io.err << "odtctl: " << clean(message) << "\n";
  if (!remedy.empty()) context.io.err << "  remedy: " << clean(remedy) << "\n";
  context.io.err << std::flush;
  return code;
}

}  // namespace

int run_app(Context& context, const std::vector<std::string>& arguments) {
  for (const std::string& argument : arguments) {
    if (is_utf8(argument)) continue;
    context.io.err << "odtctl: argument '" << clean(argument)
                   << "' is not UTF-8\n  names and paths must be UTF-8\n";
    return kExitUsage;
  }
  CLI::App app("odtctl: boards that learn, from the command line", "odtctl");
  build(app, context);
  try {
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::Success& help) {  // --help, --version
    app.exit(help, context.io.out, context.io.err);
    return kExitOk;
  } catch (const CLI::ParseError& error) {
    return usage_error(context, app, error, arguments);
  }
  return report(context, context.action());
}

int finish_output(Context& context, int code) {
  constexpr int kExitPipe = 141;  // as a shell has it of a program that SIGPIPE ended
  if (code == kExitInterrupted && !context.io.out && context.reader_gone()) return kExitPipe;
  return odt::finish_output("odtctl", code, context.io.out, context.io.err);
}

}  // namespace odt::cli
