#include "auth/book.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cctype>

#include "auth/secret.h"

namespace odt::auth {
namespace {

constexpr std::int64_t kSecondUs = 1'000'000, kDayUs = 86'400 * kSecondUs;
constexpr std::int64_t kWrittenEveryUs = 60 * kSecondUs;
constexpr std::int64_t kGuessesUs = 600 * kSecondUs;
constexpr int kGuessesOfOne = 10, kGuessesOfAll = 100;
constexpr std::size_t kMostName = 64;
constexpr char kAll[] = "";  // key of everybody's guesses

bool name_ok(std::string_view name) {
  return !name.empty() && name.size() <= kMostName &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return std::isalnum(c) != 0 || c == '.' || c == '_' || c == '-' || c == '@';
         });
}

Status bad(const char* field, std::string text) {
  return with_reason(absl::InvalidArgumentError(absl::StrCat(field, ": ", std::move(text))),
                     "INVALID_FIELD", "", field);
}

Status check_wanted(const Book::Wanted& wanted, bool named) {
  constexpr char kNames[] = "; 1 to 64 letters, digits, '.', '_', '-', '@'";
  if (named && !name_ok(wanted.name)) return bad("name", absl::StrCat("not a name", kNames));
  if (!wanted.actor.empty() && !name_ok(wanted.actor))
    return bad("actor", absl::StrCat("not a name", kNames));
  if (wanted.role == model::Role::kNone || wanted.role > model::Role::kAdmin)
    return bad("role", "is none of viewer, operator, admin");
  if (wanted.days > kMostDays)
    return bad("days", absl::StrCat(wanted.days, "; at most ", kMostDays));
  return absl::OkStatus();
}

Status unknown() {
  return with_reason(absl::UnauthenticatedError("the token is not one of this odtd"),
                     "TOKEN_UNKNOWN",
                     "an admin makes one with `odtctl token add`; odtctl and Python read it from "
                     "--token-file, $ODT_TOKEN or ~/.config/odt/token");
}

Status ended_status(const model::Credential& c, TokenState state) {
  if (state == TokenState::kRevoked)
    return with_reason(absl::UnauthenticatedError("token '" + c.name + "' is revoked"),
                       "TOKEN_REVOKED", "ask an admin for a new one");
  return with_reason(absl::UnauthenticatedError("token '" + c.name + "' has expired"),
                     "TOKEN_EXPIRED", "ask an admin for a new one");
}

}  // namespace

std::string role_name(model::Role role) {
  switch (role) {
    case model::Role::kViewer:
      return "viewer";
    case model::Role::kOperator:
      return "operator";
    case model::Role::kAdmin:
      return "admin";
    default:
      return "none";
  }
}

Result<model::Role> parse_role(std::string_view name) {
  for (const auto role :
       {model::Role::kNone, model::Role::kViewer, model::Role::kOperator, model::Role::kAdmin})
    if (role_name(role) == name) return role;
  return absl::InvalidArgumentError("role '" + std::string(name) +
                                    "' is not one of none, viewer, operator, admin");
}

std::string address_of(std::string_view peer) {
  if (peer.starts_with("unix")) return "unix";
  const auto colon = peer.find(':');
  if (colon != std::string_view::npos) peer.remove_prefix(colon + 1);
  peer = peer.substr(0, peer.rfind(':'));
  if (peer.starts_with("%5B")) peer.remove_prefix(3);
  if (peer.starts_with("[")) peer.remove_prefix(1);
  const auto end = std::min(peer.find(']'), peer.find("%5D"));
  return std::string(peer.substr(0, end));
}

TokenState state_of(const model::Credential& c, std::int64_t now_us) {
  if (c.revoke_time_us != 0) return TokenState::kRevoked;
  if (c.expire_time_us != 0 && c.expire_time_us <= now_us) return TokenState::kExpired;
  return TokenState::kInForce;
}

Book::Book(store::ControlThread& control, const Clock& clock) : control_(control), clock_(clock) {}

Status Book::load() {
  ODT_ASSIGN(const auto all,
             control_.call_sync([](store::ControlStore& store) { return store.credentials(); }));
  const Lock lock(mutex_);
  for (const auto& credential : all) keep(credential);
  return absl::OkStatus();
}

void Book::keep(const model::Credential& credential) {
  Entry& entry = entries_[credential.id];
  if (!entry.credential.secret.is_zero()) by_secret_.erase(entry.credential.secret);
  entry.credential = credential;
  by_secret_[credential.secret] = credential.id;
}

Result<model::Credential> Book::known(std::string_view secret, const std::string& peer) {
  const Hash hash = secret_hash(secret);
  const Lock lock(mutex_);
  const auto found = by_secret_.find(hash);
  if (found == by_secret_.end()) return unknown();
  Entry& entry = entries_[found->second];
  if (entry.credential.login_code) return unknown();
  const std::int64_t now = clock_.now_us();
  const TokenState state = state_of(entry.credential, now);
  if (state != TokenState::kInForce) return ended_status(entry.credential, state);
  entry.credential.last_used_time_us = now;
  entry.credential.last_used_peer = peer;
  entry.used = true;
  return entry.credential;
}

bool Book::in_force(const Uuid& id) const {
  const Lock lock(mutex_);
  const auto found = entries_.find(id);
  return found != entries_.end() &&
         state_of(found->second.credential, clock_.now_us()) == TokenState::kInForce;
}

Status Book::check_room(const Wanted& wanted) const {
  const std::int64_t now = clock_.now_us();
  std::size_t in_force = 0, kept = 0;
  for (const auto& [id, entry] : entries_) {
    if (entry.credential.login_code) continue;
    ++kept;
    if (state_of(entry.credential, now) != TokenState::kInForce) continue;
    ++in_force;
    if (entry.credential.name == wanted.name)
      return with_reason(
          absl::AlreadyExistsError("token '" + wanted.name + "' is in force already"),
          "TOKEN_NAME_TAKEN", "choose another name, or revoke it first", "name");
  }
  if (in_force >= kMostInForce || kept >= kMostKept)
    return with_reason(absl::ResourceExhaustedError(
                           absl::StrCat("there are ", in_force, " tokens in force, ", kept,
                                        " in all; limits ", kMostInForce, " and ", kMostKept)),
                       "TOO_MANY_TOKENS", "revoke what nobody uses (odtctl token list)");
  return absl::OkStatus();
}

// Dead codes are of no interest to anybody: the new one takes the place of one.
Uuid Book::id_for_code() const {
  for (const auto& [id, entry] : entries_)
    if (entry.credential.login_code &&
        state_of(entry.credential, clock_.now_us()) != TokenState::kInForce)
      return id;
  return new_uuid();
}

Result<Book::Made> Book::made(store::ControlStore& store, const CallContext& by,
                              const Wanted& wanted, bool login_code) {
  Made made;
  model::Credential& c = made.credential;
  const std::int64_t now = clock_.now_us();
  {
    const Lock lock(mutex_);
    if (!login_code) ODT_TRY(check_room(wanted));
    c.id = login_code ? id_for_code() : new_uuid();
  }
  c.login_code = login_code;
  c.name = wanted.name;
  c.actor = wanted.actor.empty() ? wanted.name : wanted.actor;
  c.role = wanted.role;
  if (login_code) {
    made.secret = new_login_code();
    c.secret = secret_hash(plain_login_code(made.secret));
    c.token_days = wanted.days;
    c.expire_time_us = now + kLoginCodeUs;
  } else {
    made.secret = new_secret();
    c.secret = secret_hash(made.secret);
    if (wanted.days != 0) c.expire_time_us = now + wanted.days * kDayUs;
  }
  c.meta.create_time_us = now;
  c.meta.created_by = by.actor;
  store::Batch batch;
  batch.actor = by.actor;
  batch.command_id = by.command_id;
  batch.changes.push_back(store::PutCredential{c});
  ODT_TRY(store.commit(std::move(batch)).status());
  const Lock lock(mutex_);
  keep(c);
  return made;
}

void Book::add(const CallContext& by, Wanted wanted, Done<Made> done) {
  if (const Status status = check_wanted(wanted, true); !status.ok()) return done(status);
  control_.post([this, by, wanted = std::move(wanted), done = std::move(done)](
                    store::ControlStore& store) { done(made(store, by, wanted, false)); });
}

void Book::add_code(const CallContext& by, Wanted wanted, Done<Made> done) {
  if (wanted.days == 0) wanted.days = kLoginDays;
  if (const Status status = check_wanted(wanted, false); !status.ok()) return done(status);
  if (wanted.actor.empty()) wanted.actor = by.actor;
  control_.post([this, by, wanted = std::move(wanted), done = std::move(done)](
                    store::ControlStore& store) { done(made(store, by, wanted, true)); });
}

// ---- login

Status Book::check_guesses(const std::string& address) {
  const std::int64_t now = clock_.now_us();
  std::erase_if(wrong_, [&](const auto& w) { return now - w.second.since_us > kGuessesUs; });
  const auto count = [&](const std::string& key) {
    const auto it = wrong_.find(key);
    return it == wrong_.end() ? 0 : it->second.count;
  };
  if (count(address) < kGuessesOfOne && count(kAll) < kGuessesOfAll) return absl::OkStatus();
  return with_reason(absl::ResourceExhaustedError("too many wrong login codes"), "LOGIN_LIMIT",
                     "wait 10 minutes, or log in with a token that `odtctl token add` makes on "
                     "odtd's own machine");
}

void Book::count_wrong(const std::string& address) {
  for (const std::string& key : {address, std::string(kAll)}) {
    Wrong& wrong = wrong_[key];
    if (wrong.count++ == 0) wrong.since_us = clock_.now_us();
  }
}

Result<Book::Made> Book::exchanged(store::ControlStore& store, const std::string& code,
                                   const std::string& name, const std::string& peer) {
  const std::string address = address_of(peer);
  const std::int64_t now = clock_.now_us();
  model::Credential used;
  Made made;
  {
    const Lock lock(mutex_);
    ODT_TRY(check_guesses(address));
    const auto found = by_secret_.find(secret_hash(plain_login_code(code)));
    const bool right = found != by_secret_.end() && entries_[found->second].credential.login_code &&
                       state_of(entries_[found->second].credential, now) == TokenState::kInForce;
    if (!right) {
      count_wrong(address);
      return with_reason(
          absl::UnauthenticatedError("the login code is wrong, used, or older than 10 minutes"),
          "LOGIN_CODE_WRONG", "make a new one with `odtctl token login-code` on odtd's machine");
    }
    used = entries_[found->second].credential;
    Wanted wanted;
    wanted.name =
        name.empty() ? absl::StrCat(used.actor, "-", new_uuid().hex().substr(0, 12)) : name;
    wanted.actor = used.actor;
    wanted.role = used.role;
    wanted.days = used.token_days;
    ODT_TRY(check_wanted(wanted, true));
    ODT_TRY(check_room(wanted));
    made.credential.name = wanted.name;
  }
  used.revoke_time_us = now;
  used.last_used_time_us = now;
  used.last_used_peer = peer;
  made.secret = new_secret();
  model::Credential& c = made.credential;
  c.id = new_uuid();
  c.actor = used.actor;
  c.role = used.role;
  c.secret = secret_hash(made.secret);
  c.expire_time_us = now + used.token_days * kDayUs;
  c.meta.create_time_us = now;
  c.meta.created_by = "login code of " + used.meta.created_by;
  store::Batch batch;
  batch.actor = used.actor;
  batch.changes.push_back(store::PutCredential{used});
  batch.changes.push_back(store::PutCredential{c});
  ODT_TRY(store.commit(std::move(batch)).status());
  const Lock lock(mutex_);
  keep(used);
  keep(c);
  return made;
}

void Book::login(const std::string& code, const std::string& name, const std::string& peer,
                 Done<Made> done) {
  control_.post([this, code, name, peer, done = std::move(done)](store::ControlStore& store) {
    done(exchanged(store, code, name, peer));
  });
}

// ---- ends

Result<model::Credential> Book::revoked(store::ControlStore& store, const CallContext& by,
                                        const Uuid& id) {
  model::Credential credential;
  {
    const Lock lock(mutex_);
    const auto found = entries_.find(id);
    if (found == entries_.end() || found->second.credential.login_code)
      return with_reason(absl::NotFoundError("no token " + id.hex()), "TOKEN_UNKNOWN",
                         "list the tokens to see what there is");
    credential = found->second.credential;
    if (credential.revoke_time_us != 0)
      return with_reason(
          absl::FailedPreconditionError("token '" + credential.name + "' is revoked already"),
          "TOKEN_REVOKED", "");
  }
  credential.revoke_time_us = clock_.now_us();
  credential.revoked_by = by.actor;
  store::Batch batch;
  batch.actor = by.actor;
  batch.command_id = by.command_id;
  batch.changes.push_back(store::PutCredential{credential});
  ODT_TRY(store.commit(std::move(batch)).status());
  {
    const Lock lock(mutex_);
    keep(credential);
    entries_[id].told = true;
  }
  tell(id, ended_status(credential, TokenState::kRevoked));
  return credential;
}

void Book::revoke(const CallContext& by, const Uuid& id, Done<model::Credential> done) {
  control_.post([this, by, id, done = std::move(done)](store::ControlStore& store) {
    done(revoked(store, by, id));
  });
}

void Book::tell(const Uuid& id, const Status& why) {
  if (ended_) ended_(id, why);
}

void Book::on_end(std::function<void(const Uuid&, const Status&)> ended) {
  ended_ = std::move(ended);
}

void Book::tick() {
  const std::int64_t now = clock_.now_us();
  std::vector<model::Credential> over;
  store::Batch batch;
  {
    const Lock lock(mutex_);
    const bool write = now - written_us_ >= kWrittenEveryUs;
    for (auto& [id, entry] : entries_) {
      if (!entry.told && !entry.credential.login_code &&
          state_of(entry.credential, now) == TokenState::kExpired) {
        entry.told = true;
        over.push_back(entry.credential);
      }
      if (!write || !entry.used) continue;
      entry.used = false;
      batch.changes.push_back(store::PutCredential{entry.credential});
    }
    if (write) written_us_ = now;
  }
  for (const auto& credential : over)
    tell(credential.id, ended_status(credential, TokenState::kExpired));
  if (batch.changes.empty()) return;
  // What was revoked since must stay so: the store thread looks again.
  control_.post([this, batch = std::move(batch)](store::ControlStore& store) mutable {
    {
      const Lock lock(mutex_);
      for (auto& change : batch.changes) {
        auto& put = std::get<store::PutCredential>(change).value;
        put = entries_[put.id].credential;
      }
    }
    (void)store.commit(std::move(batch));
  });
}

std::vector<model::Credential> Book::tokens() const {
  std::vector<model::Credential> out;
  const Lock lock(mutex_);
  for (const auto& [id, entry] : entries_)
    if (!entry.credential.login_code) out.push_back(entry.credential);
  std::reverse(out.begin(), out.end());  // ids count up with time
  return out;
}

std::size_t Book::count_in_force() const {
  const Lock lock(mutex_);
  const std::int64_t now = clock_.now_us();
  return static_cast<std::size_t>(std::count_if(entries_.begin(), entries_.end(), [&](auto& e) {
    return !e.second.credential.login_code &&
           state_of(e.second.credential, now) == TokenState::kInForce;
  }));
}

}  // namespace odt::auth
