// Tokens, and the audit log.
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <ctime>
#include <nlohmann/json.hpp>

#include "cli/access_words.h"
#include "cli/commands.h"
#include "cli/context.h"
#include "cli/credentials.h"
#include "cli/json.h"
#include "odt/api/v1/auth.pb.h"

namespace odt::cli {
namespace {

namespace v1 = api::v1;

struct TokenOptions {
  std::string name, role, actor, out;
  std::uint32_t days = 0;
};

// ---- tokens

Status add(Context& context, const TokenOptions& o) {
  v1::AddTokenRequest request;
  request.set_name(o.name);
  ODT_ASSIGN(const v1::Role role, parse_role_word(o.role));
  request.set_role(role);
  request.set_actor(o.actor);
  request.set_days(o.days);
  ODT_ASSIGN(const auto response, context.call<v1::AddTokenResponse>(request));
  if (!o.out.empty()) {
    const Status written = write_secret_file(o.out, response.secret() + "\n");
    if (!written.ok()) {
      // Nobody would ever see the secret: it must not stay in force.
      v1::RevokeTokenRequest undo;
      undo.set_id(response.token().id());
      (void)context.call<v1::RevokeTokenResponse>(undo);
      return written;
    }
  }
  if (context.json) {
    auto out = to_json(response.token());
    if (o.out.empty()) out["secret"] = response.secret();
    context.print_json(out);
    return {};
  }
  context.note(absl::StrCat("token ", o.name, ", ", o.role, ", ",
                            expiry_text(response.token().expire_time_us()),
                            o.out.empty() ? "; it is shown this once:" : "; written to " + o.out));
  if (o.out.empty()) context.say(response.secret());
  return {};
}

Result<v1::Token> find_token(Context& context, const std::string& word) {
  ODT_ASSIGN(Client * client, context.client());
  ODT_ASSIGN(const auto all,
             client->list<v1::ListTokensResponse>(v1::ListTokensRequest(),
                                                  [](const auto& page) { return page.tokens(); }));
  for (const auto& token : all)  // a name may have been used before
    if (token.name() == word && token.state() == v1::TOKEN_STATE_IN_FORCE) return token;
  for (const auto& token : all)
    if (token.name() == word || (word.size() >= 6 && hex(token.id()).starts_with(word)))
      return token;
  return with_reason(absl::NotFoundError("no token '" + clean(word) + "'"), "TOKEN_UNKNOWN",
                     "odtctl token list");
}

Status revoke(Context& context, const std::string& word) {
  ODT_ASSIGN(const v1::Token token, find_token(context, word));
  v1::RevokeTokenRequest request;
  request.set_id(token.id());
  ODT_ASSIGN(const auto response, context.call<v1::RevokeTokenResponse>(request));
  if (context.json) context.print_json(response.token());
  context.say("token " + token.name() + " is revoked; calls and streams with it end now");
  return {};
}

Status list_tokens(Context& context, const std::string& filter) {
  ODT_ASSIGN(Client * client, context.client());
  v1::ListTokensRequest request;
  request.set_filter(filter);
  ODT_ASSIGN(const auto all, client->list<v1::ListTokensResponse>(
                                 request, [](const auto& page) { return page.tokens(); }));
  if (context.json) {
    auto out = nlohmann::ordered_json::array();
    for (const auto& token : all) out.push_back(to_json(token));
    context.print_json(out);
    return {};
  }
  if (all.empty()) {
    context.say("no tokens; e.g. odtctl token add ci --role operator --days 90");
    return {};
  }
  Table table({"NAME", "ACTOR", "ROLE", "STATE", "EXPIRES", "LAST USED", "FROM", "BY", "ID"});
  for (const auto& t : all)
    table.add({t.name(), t.actor(), role_word(t.role()),
               lower_word(without_prefix(v1::TokenState_Name(t.state()), "TOKEN_STATE_")),
               t.expire_time_us() == 0 ? "never" : date_text(t.expire_time_us()),
               t.last_used_time_us() == 0 ? "never" : date_text(t.last_used_time_us()),
               t.last_used_peer().empty() ? "-" : t.last_used_peer(), t.created_by(),
               hex(t.id()).substr(0, 16)});
  context.print(table);
  return {};
}

Status login_code(Context& context, const TokenOptions& o) {
  v1::CreateLoginCodeRequest request;
  ODT_ASSIGN(const v1::Role role, parse_role_word(o.role));
  request.set_role(role);
  request.set_actor(o.actor);
  request.set_token_days(o.days);
  ODT_ASSIGN(const auto response, context.call<v1::CreateLoginCodeResponse>(request));
  if (context.json) {
    context.print_json(response);
    return {};
  }
  context.note(absl::StrCat("works once, until ", date_text(response.expire_time_us()), ", as ",
                            o.role, ":"));
  context.say(response.code());
  return {};
}

// ---- audit

struct AuditOptions {
  std::string filter, since, until;
  std::uint32_t most = 50;
  bool all = false, csv = false;
};

// "2h", "7d": before now; "2026-11-30" or "2026-11-30 14:03", local. 0: empty.
Result<std::int64_t> parse_when(const std::string& text) {
  if (text.empty()) return std::int64_t{0};
  constexpr std::int64_t kSecondUs = 1'000'000;
  const std::time_t now = std::time(nullptr);
  std::int64_t n = 0;
  const auto unit = std::string("smhd").find(text.back());
  if (unit != std::string::npos && absl::SimpleAtoi(text.substr(0, text.size() - 1), &n) &&
      n >= 0 && n < 1'000'000) {
    constexpr std::int64_t kUnits[] = {1, 60, 3600, 86'400};
    return (now - n * kUnits[unit]) * kSecondUs;
  }
  for (const char* form : {"%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M", "%Y-%m-%d"}) {
    std::tm when{};
    when.tm_isdst = -1;
    const char* end = ::strptime(text.c_str(), form, &when);
    if (end != nullptr && *end == '\0') return std::int64_t{::mktime(&when)} * kSecondUs;
  }
  return absl::InvalidArgumentError("'" + clean(text) +
                                    "' is no time; expected 2h, 7d, 2026-11-30 or "
                                    "'2026-11-30 14:03'");
}

// One cell: quoted where it must be; what a spreadsheet would take for a formula is text.
std::string csv_cell(std::string text) {
  if (!text.empty() && std::string("=+-@").find(text.front()) != std::string::npos)
    text.insert(text.begin(), '\'');
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + "\"";
}

void print_entry(Context& context, const v1::AuditEntry& e) {
  if (context.json) {
    context.print_json(e);
    return;
  }
  std::string line;
  for (const std::string& cell :
       {std::to_string(e.seq()), std::to_string(e.time_us()), e.actor(), role_word(e.role()),
        e.credential(), e.peer(), e.service(), e.method(), e.what(), e.result(), e.message(),
        e.request_id(), std::to_string(e.times())})
    line += (line.empty() ? "" : ",") + csv_cell(clean(cell));
  context.io.out << line << "\n";
}

Status audit(Context& context, const AuditOptions& o) {
  v1::ListAuditRequest request;
  request.set_filter(o.filter);
  ODT_ASSIGN(const std::int64_t from, parse_when(o.since));
  ODT_ASSIGN(const std::int64_t to, parse_when(o.until));
  request.set_from_time_us(from);
  request.set_to_time_us(to);
  Table table({"TIME", "ACTOR", "FROM", "METHOD", "WHAT", "RESULT"});
  if (o.csv && !context.json)
    context.io.out << "seq,time_us,actor,role,credential,peer,service,method,what,result,message,"
                      "request_id,times\n";
  std::uint32_t seen = 0;
  bool more = true;
  while (more) {
    request.set_page_size(o.all ? 1000 : std::min<std::uint32_t>(1000, o.most - seen));
    ODT_ASSIGN(const auto page, context.call<v1::ListAuditResponse>(request));
    for (const auto& e : page.entries()) {
      ++seen;
      if (o.csv || context.json) {
        print_entry(context, e);
        continue;
      }
      table.add({date_text(e.time_us()), e.actor().empty() ? "-" : e.actor(), e.address(),
                 e.method(), e.what(),
                 e.result() + (e.times() > 1 ? absl::StrCat(" x", e.times()) : std::string()) +
                     (e.message().empty() ? "" : ": " + e.message().substr(0, 80))});
    }
    request.set_page_token(page.next_page_token());
    more = !page.next_page_token().empty() && (o.all || seen < o.most);
  }
  context.io.out << std::flush;
  if (!o.csv && !context.json && seen == 0) context.say("no entries");
  if (!o.csv && !context.json && seen > 0) context.print(table);
  return {};
}

void add_role(CLI::App* verb, TokenOptions& o, bool required) {
  auto* role = verb->add_option("--role", o.role, "viewer, operator or admin");
  if (required) role->required();
  verb->add_option("--user", o.actor, "Whom the audit log names");
}

}  // namespace

void add_token(CLI::App& app, Context& context) {
  CLI::App* token =
      app.add_subcommand("token", "Who may call: add, list, revoke tokens; login codes");
  token->require_subcommand(1);
  const auto o = std::make_shared<TokenOptions>();
  CLI::App* make = token->add_subcommand("add", "A new token; its secret is shown once");
  make->add_option("NAME", o->name, "What it is for: ci, ann-laptop")->required();
  add_role(make, *o, true);
  make->add_option("--days", o->days, "Until it expires; 0: never");
  make->add_option("--out", o->out, "Write it there, mode 0600, and show nothing")
      ->type_name("FILE");
  make->callback([&context, o] { context.action = [&context, o] { return add(context, *o); }; });

  const auto word = std::make_shared<std::string>();
  CLI::App* list = token->add_subcommand("list", "All tokens, the newest first");
  list->add_option("--filter", *word, "state=in_force,role=admin,actor=ann");
  list->callback([&context, word] {
    context.action = [&context, word] { return list_tokens(context, *word); };
  });
  CLI::App* end = token->add_subcommand("revoke", "At once, also for streams that are open");
  end->add_option("TOKEN", *word, "Name, or beginning of the id")->required();
  end->callback(
      [&context, word] { context.action = [&context, word] { return revoke(context, *word); }; });

  const auto c = std::make_shared<TokenOptions>();
  c->role = "admin";
  CLI::App* code = token->add_subcommand(
      "login-code", "A code for the dashboard's login page or `odtctl login`; 10 minutes, once");
  add_role(code, *c, false);
  code->add_option("--days", c->days, "How long the token lives that it gives; 0: 30");
  code->callback(
      [&context, c] { context.action = [&context, c] { return login_code(context, *c); }; });
}

void add_audit(CLI::App& app, Context& context) {
  const auto o = std::make_shared<AuditOptions>();
  CLI::App* verb = app.add_subcommand("audit", "Who did what, when, from where; newest first");
  verb->add_option("--filter", o->filter,
                   "actor=ann,method=RevokeToken,result=PERMISSION_DENIED,address=10.1.2.3");
  verb->add_option("--since", o->since, "2h, 7d, 2026-11-30 or '2026-11-30 14:03'");
  verb->add_option("--until", o->until, "The same");
  verb->add_option("--limit", o->most, "At most so many")->check(CLI::Range(1, 1'000'000));
  verb->add_flag("--all", o->all, "All of them");
  verb->add_flag("--csv", o->csv, "For a spreadsheet; --json: one object a line");
  verb->callback([&context, o] { context.action = [&context, o] { return audit(context, *o); }; });
}

}  // namespace odt::cli
