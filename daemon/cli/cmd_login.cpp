// Logging in to an odtd on another machine, and making one reachable.
#include <absl/strings/str_cat.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "cli/access_words.h"
#include "cli/cert_maker.h"
#include "cli/commands.h"
#include "cli/context.h"
#include "cli/credentials.h"
#include "cli/json.h"
#include "odt/api/v1/auth.pb.h"

namespace odt::cli {
namespace {

namespace v1 = api::v1;
namespace fs = std::filesystem;

// ---- login

struct LoginOptions {
  std::string address, fingerprint, name;
};

// A line from the terminal or a pipe; never an argument, which others on the machine can read.
std::string ask(Context& context, const std::string& question) {
  if (::isatty(STDIN_FILENO) == 1) context.io.err << question << std::flush;
  std::string line;
  std::getline(std::cin, line);
  return line;
}

Status check_fingerprint(Context& context, const LoginOptions& o, const std::string& found) {
  const auto plain = [](std::string text) {
    std::erase(text, ':');
    for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    return text;
  };
  if (!o.fingerprint.empty()) {
    if (plain(o.fingerprint) == plain(found)) return {};
    return with_reason(
        absl::PermissionDeniedError("the certificate of " + o.address + " is another: " + found),
        "FINGERPRINT_DIFFERS",
        "compare with what `odtctl setup remote` printed there; somebody may be in between");
  }
  context.note("certificate of " + o.address + ", SHA-256:\n  " + found);
  if (::isatty(STDIN_FILENO) != 1)
    return absl::InvalidArgumentError("without a terminal --fingerprint has to be given");
  const std::string answer =
      ask(context, "Is it the one `odtctl setup remote` printed there? [yes/no] ");
  if (answer == "yes") return {};
  return absl::CancelledError("not logged in");
}

Status log_in(Context& context, const LoginOptions& o) {
  ODT_ASSIGN(const std::string address, choose_address(o.address));
  const auto colon = address.rfind(':');
  if (address.starts_with("unix:"))
    return absl::InvalidArgumentError("the unix socket needs no login");
  ODT_ASSIGN(const std::string pem,
             fetch_certificate(address.substr(0, colon), address.substr(colon + 1)));
  ODT_ASSIGN(const std::string fingerprint, fingerprint_of_pem(pem));
  ODT_TRY(check_fingerprint(context, o, fingerprint));
  v1::LoginRequest request;
  request.set_code(ask(context, "Login code: "));
  request.set_name(o.name);
  Client client(address, std::chrono::seconds(context.timeout_s), {"", pem, "", ""});
  ODT_ASSIGN(const auto response, client.call<v1::LoginResponse>(request));
  const std::string folder = login_folder(address);
  if (folder.empty())
    return absl::FailedPreconditionError("neither $HOME nor $XDG_CONFIG_HOME is set");
  ODT_TRY(write_secret_file(folder + "/ca.pem", pem));
  ODT_TRY(write_secret_file(folder + "/token", response.secret() + "\n"));
  if (context.json) context.print_json(response.token());
  context.say(absl::StrCat("logged in to ", address, " as ", response.token().actor(), ", ",
                           role_word(response.token().role()), ", ",
                           expiry_text(response.token().expire_time_us())));
  context.say("odtctl --address " + address + " takes the token from " + folder);
  return {};
}

Status who_am_i(Context& context) {
  ODT_ASSIGN(const auto me, context.call<v1::WhoAmIResponse>(v1::WhoAmIRequest()));
  if (context.json) {
    context.print_json(me);
    return {};
  }
  if (me.role() == v1::ROLE_UNSPECIFIED) {
    context.say("nobody yet, from " + me.peer() + ": odtd asks for a token (odtctl login)");
    return {};
  }
  context.say(absl::StrCat(me.actor(), ", ", role_word(me.role()), ", from ", me.peer(),
                           me.token_name().empty() ? std::string()
                                                   : ", by token " + me.token_name() + " (" +
                                                         expiry_text(me.expire_time_us()) + ")"));
  return {};
}

// ---- setup remote

struct SetupOptions {
  std::string config = "/etc/odt-fleet/odtd.toml", listen = "0.0.0.0", user;
  std::vector<std::string> names;
  int http_port = 8443, grpc_port = 7421, days = 825;
  bool renew = false;
};

std::vector<std::string> own_names(const SetupOptions& o) {
  std::vector<std::string> names = o.names;
  char host[256] = "";
  if (names.empty() && ::gethostname(host, sizeof host - 1) == 0 && *host != '\0')
    names.push_back(host);
  for (const char* name : {"localhost", "127.0.0.1"})
    if (std::find(names.begin(), names.end(), name) == names.end()) names.emplace_back(name);
  return names;
}

// To the user odtd runs as: the one that is named, else who owns the file's folder stays.
Status give_to(const std::string& user, const std::vector<std::string>& paths) {
  if (user.empty()) return {};
  const passwd* who = ::getpwnam(user.c_str());
  if (who == nullptr)
    return absl::NotFoundError("no user '" + clean(user) + "'; --user names who odtd runs as");
  for (const auto& path : paths)
    if (::chown(path.c_str(), who->pw_uid, who->pw_gid) != 0)
      return with_reason(absl::PermissionDeniedError("the owner of " + clean(path) +
                                                     " cannot be changed: " + std::strerror(errno)),
                         "NOT_ROOT", "sudo odtctl setup remote");
  return {};
}

std::string toml_text(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

std::string part_of_config(const SetupOptions& o, const std::string& folder,
                           const std::vector<std::string>& names) {
  std::string hosts;
  for (const auto& name : names)
    absl::StrAppend(&hosts, hosts.empty() ? "" : ", ", toml_text(name));
  const bool v6 = o.listen.find(':') != std::string::npos;
  const std::string at = v6 ? "[" + o.listen + "]" : o.listen;
  return absl::StrCat(
      "# Written by `odtctl setup remote`: odtd can be reached from other machines, with TLS 1.3 "
      "and\n"
      "# tokens. Remove this file to go back to 127.0.0.1.\n"
      "[http]\nlisten = ",
      toml_text(absl::StrCat(at, ":", o.http_port)), "\nallowed_hosts = [", hosts,
      "]\n\n[grpc]\nlisten = ", toml_text(absl::StrCat(at, ":", o.grpc_port)),
      "\n\n[auth]\nrequired = true\n\n[tls]\ncert = ", toml_text(folder + "/tls/cert.pem"),
      "\nkey = ", toml_text(folder + "/tls/key.pem"), "\n");
}

// The code needs an odtd; it stays valid while that is started again.
Status print_code(Context& context, nlohmann::ordered_json& out) {
  v1::CreateLoginCodeRequest request;
  request.set_role(v1::ROLE_ADMIN);
  const auto response = context.call<v1::CreateLoginCodeResponse>(request);
  if (!response.ok()) {
    context.note("no login code yet: " + std::string(response.status().message()));
    context.say("login code: start odtd, then `odtctl token login-code`");
    return {};
  }
  out["login_code"] = response->code();
  context.say("login code: " + response->code() + "  (works once, within 10 minutes)");
  return {};
}

Status set_up_remote(Context& context, const SetupOptions& o) {
  if (!fs::exists(o.config))
    return with_reason(absl::NotFoundError("no file " + clean(o.config)), "NO_CONFIG",
                       "--config FILE is the odtd.toml that odtd is started with");
  const std::string folder = fs::absolute(fs::path(o.config)).string() + ".d";
  const std::string key = folder + "/tls/key.pem", cert = folder + "/tls/cert.pem";
  const auto names = own_names(o);
  std::string pem;
  if (fs::exists(cert) && fs::exists(key) && !o.renew) {
    std::ifstream in(cert);
    pem.assign(std::istreambuf_iterator<char>(in), {});
    context.note("the key and certificate that are there stay (--renew makes new ones)");
  } else {
    ODT_ASSIGN(const KeyAndCert made, make_certificate(names, o.days));
    ODT_TRY(write_secret_file(key, made.key_pem));
    ODT_TRY(write_secret_file(cert, made.cert_pem));
    pem = made.cert_pem;
  }
  ODT_ASSIGN(const std::string fingerprint, fingerprint_of_pem(pem));
  const std::string part = folder + "/remote.toml";
  ODT_TRY(write_secret_file(part, part_of_config(o, folder, names)));
  ODT_TRY(give_to(o.user, {folder, folder + "/tls", key, cert, part}));
  nlohmann::ordered_json out;
  const std::string url = absl::StrCat("https://", names.front(), ":", o.http_port);
  out["url"] = url;
  out["fingerprint"] = fingerprint;
  out["config"] = part;
  context.say("written:     " + part + ", " + key + ", " + cert);
  context.say("restart:     systemctl restart odtd   (odtd --config " + o.config +
              " reads the folder beside it)");
  context.say("dashboard:   " + url + "   (the browser will say it does not know the certificate)");
  context.say("fingerprint: SHA-256 " + fingerprint);
  context.say(absl::StrCat("odtctl:      odtctl login ", names.front(), ":", o.grpc_port));
  ODT_TRY(print_code(context, out));
  if (context.json) context.print_json(out);
  return {};
}

}  // namespace

void add_login(CLI::App& app, Context& context) {
  const auto o = std::make_shared<LoginOptions>();
  CLI::App* verb = app.add_subcommand(
      "login", "Exchange a login code for a token, kept in ~/.config/odt; asks for the code");
  verb->add_option("ADDRESS", o->address, "HOST:PORT of odtd's gRPC port")->required();
  verb->add_option("--fingerprint", o->fingerprint, "SHA-256 that the certificate must have");
  verb->add_option("--name", o->name, "Of the token, in odtctl token list");
  verb->callback([&context, o] { context.action = [&context, o] { return log_in(context, *o); }; });
  CLI::App* who = app.add_subcommand("whoami", "Who odtd takes the caller for");
  who->callback([&context] { context.action = [&context] { return who_am_i(context); }; });
}

void add_setup(CLI::App& app, Context& context) {
  CLI::App* setup = app.add_subcommand("setup", "Making odtd reachable: remote");
  setup->require_subcommand(1);
  const auto o = std::make_shared<SetupOptions>();
  CLI::App* remote = setup->add_subcommand(
      "remote", "Key, certificate and configuration for other machines, and a login code");
  remote->add_option("--config", o->config, "odtd.toml; the part goes into the folder FILE.d")
      ->type_name("FILE");
  remote->add_option("--listen", o->listen, "Address to listen on, default 0.0.0.0: all");
  remote->add_option("--name", o->names, "Host name or IP address that callers use (repeatable)")
      ->allow_extra_args(false);
  remote->add_option("--http-port", o->http_port, "Dashboard")->check(CLI::Range(1, 65'535));
  remote->add_option("--grpc-port", o->grpc_port, "odtctl, Python")->check(CLI::Range(1, 65'535));
  remote->add_option("--days", o->days, "How long the certificate is valid")
      ->check(CLI::Range(1, 3650));
  remote->add_option("--user", o->user, "Who odtd runs as: gets the files");
  remote->add_flag("--renew", o->renew, "A new key and certificate");
  remote->callback(
      [&context, o] { context.action = [&context, o] { return set_up_remote(context, *o); }; });
}

}  // namespace odt::cli
