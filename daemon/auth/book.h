#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/call.h"
#include "base/clock.h"
#include "model/access.h"
#include "store/store_thread.h"

namespace odt::auth {

constexpr std::size_t kMostInForce = 1000;  // tokens
constexpr std::size_t kMostKept = 10'000;   // with those that are expired or revoked
constexpr std::uint32_t kMostDays = 3650;   // until a token expires
constexpr std::uint32_t kLoginDays = 30;    // of a login code's token, where nobody says
constexpr std::int64_t kLoginCodeUs = 600LL * 1'000'000;

// "viewer"; parse_role: INVALID_ARGUMENT.
std::string role_name(model::Role role);
Result<model::Role> parse_role(std::string_view name);

// "10.0.0.1" of "ipv4:10.0.0.1:4711", "unix" of a socket.
std::string address_of(std::string_view peer);

enum class TokenState : std::uint8_t { kInForce = 1, kExpired = 2, kRevoked = 3 };
TokenState state_of(const model::Credential& credential, std::int64_t now_us);

// The tokens and login codes: in memory for every call, in control.db for good.
//
// Concurrency: thread-safe; Done functions are called on the store thread.
class Book {
 public:
  Book(store::ControlThread& control, const Clock& clock);

  // Reads what control.db has. Blocks; before the first call.
  Status load();

  // The token of this secret, and notes its use. UNAUTHENTICATED TOKEN_UNKNOWN, TOKEN_EXPIRED,
  // TOKEN_REVOKED.
  Result<model::Credential> known(std::string_view secret, const std::string& peer);
  bool in_force(const Uuid& id) const;

  struct Made {
    std::string secret;  // nowhere else but here
    model::Credential credential;
  };
  struct Wanted {
    std::string name, actor;  // actor empty: the name
    model::Role role = model::Role::kNone;
    std::uint32_t days = 0;  // 0: never expires
  };
  // INVALID_ARGUMENT (name, actor, role, days), ALREADY_EXISTS TOKEN_NAME_TAKEN,
  // RESOURCE_EXHAUSTED TOO_MANY_TOKENS.
  void add(const CallContext& by, Wanted wanted, Done<Made> done);
  // NOT_FOUND, FAILED_PRECONDITION. Open streams of the token end.
  void revoke(const CallContext& by, const Uuid& id, Done<model::Credential> done);
  // days: of the token that it is exchanged for.
  void add_code(const CallContext& by, Wanted wanted, Done<Made> done);
  // UNAUTHENTICATED LOGIN_CODE_WRONG; RESOURCE_EXHAUSTED LOGIN_LIMIT: over 10 wrong ones from the
  // address, or 100 from all, within 10 minutes.
  void login(const std::string& code, const std::string& name, const std::string& peer,
             Done<Made> done);

  std::vector<model::Credential> tokens() const;  // newest first
  std::size_t count_in_force() const;

  // Called with a token that has ended and why; any thread, without a lock.
  void on_end(std::function<void(const Uuid& id, const Status& why)> ended);
  // Every few seconds: ends the streams of tokens that have expired, writes down last uses.
  void tick();

 private:
  struct Entry {
    model::Credential credential;
    bool used = false;  // since it was written
    bool told = false;  // that it has ended
  };
  struct Wrong {
    int count = 0;
    std::int64_t since_us = 0;
  };
  using Lock = std::lock_guard<std::mutex>;

  // On the store thread, where changes come one after the other.
  Result<Made> made(store::ControlStore& store, const CallContext& by, const Wanted& wanted,
                    bool login_code);
  Result<Made> exchanged(store::ControlStore& store, const std::string& code,
                         const std::string& name, const std::string& peer);
  Result<model::Credential> revoked(store::ControlStore& store, const CallContext& by,
                                    const Uuid& id);
  Status check_room(const Wanted& wanted) const;
  Status check_guesses(const std::string& address);
  void count_wrong(const std::string& address);
  void keep(const model::Credential& credential);
  Uuid id_for_code() const;
  void tell(const Uuid& id, const Status& why);

  store::ControlThread& control_;
  const Clock& clock_;
  mutable std::mutex mutex_;
  std::map<Uuid, Entry> entries_;
  std::unordered_map<Hash, Uuid, IdHash> by_secret_;
  std::map<std::string, Wrong> wrong_;
  std::function<void(const Uuid&, const Status&)> ended_;
  std::int64_t written_us_ = 0;
};

}  // namespace odt::auth
