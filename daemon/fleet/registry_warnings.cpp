#include <charconv>
#include <optional>

#include "fleet/port_rules.h"
#include "fleet/registry.h"

// Who may not come in: duplicates, refused connections, and what the operator hears of them.
namespace odt::fleet {
namespace {

using std::chrono::steady_clock;
constexpr std::int64_t kWarnAgainUs = 600'000'000;
constexpr std::size_t kMostWarnings = 1000;  // in that time; names come from strangers
constexpr std::size_t kMostVersions = 8192;

// What a warning is about: boards that dial in come from another port each time.
std::string place_of(const std::string& endpoint) {
  return endpoint.starts_with("tcp-in:") || endpoint.starts_with("tls-in:")
             ? endpoint.substr(0, endpoint.rfind(':'))
             : endpoint;
}

// "0.1.7" -> {0, 1}; nothing where it does not begin with two numbers.
std::optional<std::pair<int, int>> release_of(const std::string& version) {
  std::pair<int, int> out;
  const char* const end = version.data() + version.size();
  const auto major = std::from_chars(version.data(), end, out.first);
  if (major.ec != std::errc() || major.ptr == end || *major.ptr != '.') return std::nullopt;
  if (std::from_chars(major.ptr + 1, end, out.second).ec != std::errc()) return std::nullopt;
  return out;
}

}  // namespace

// Another release works as far as both know: said once of a board and version.
void Registry::judge_version(const std::string& endpoint, const model::HelloInfo& hello) {
  const auto ours = release_of(options_.version), theirs = release_of(hello.fw_version);
  if (!ours || !theirs || *ours == *theirs) return;
  const std::string version = sanitize_name(hello.fw_version);
  if (told_versions_.size() >= kMostVersions) told_versions_.clear();
  if (!told_versions_.insert(hello.uid.hex() + " " + version).second) return;
  const bool older = *theirs < *ours;
  model::Reason reason{
      older ? "FIRMWARE_OLDER" : "FIRMWARE_NEWER",
      "firmware " + version + " of board " + hello.uid.hex() + " is " +
          (older ? "older" : "newer") + " than this odtd (" + options_.version +
          "); it trains, without what only one of them knows",
      older ? "Update the board's firmware when convenient." : "Update odtd when convenient."};
  asio::co_spawn(io_, warn(endpoint, std::move(reason), hello.uid), Detached{});
}

asio::awaitable<bool> Registry::answers(std::shared_ptr<session::BoardSession> session) {
  // A long transfer may hold the queue: any frame since the question counts as an answer.
  const auto self = shared_from_this();
  const auto asked = steady_clock::now();
  asio::co_spawn(
      io_,
      [](std::shared_ptr<session::BoardSession> s) -> asio::awaitable<void> {
        auto ignored = co_await s->get_state(false);
        (void)ignored;
      }(session),
      Detached{});
  const auto deadline = asked + options_.probe_time;
  while (session->alive() && session->last_seen() <= asked && steady_clock::now() < deadline) {
    asio::steady_timer timer(io_, std::chrono::milliseconds(20));
    boost::system::error_code ignored;
    co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
  }
  co_return session->alive() && session->last_seen() > asked;
}

asio::awaitable<void> Registry::quarantine(std::string endpoint, BoardUid uid,
                                           std::string held_by) {
  const auto self = shared_from_this();
  const model::Reason reason{"DUPLICATE_UID",
                             "board " + uid.hex() + " answers here and on " + held_by,
                             "Two boards report the same chip uid, or one board is connected "
                             "twice: unplug one; the first stays in use."};
  if (const auto port = ports_.find(endpoint); port != ports_.end()) {
    port->second.port.state = model::PortState::kError;
    port->second.port.reason = reason;
  } else {
    constexpr std::size_t kMost = 64;
    const auto now = steady_clock::now();
    std::erase_if(turned_away_,
                  [now](const auto& t) { return now - t.second.seen >= kShowTurned; });
    model::Port shown;
    shown.path = place_of(endpoint);
    shown.description = "a board that dials in";
    shown.state = model::PortState::kError;
    shown.board_uid = uid;
    shown.reason = reason;
    const std::string key = shown.path + " " + uid.hex();
    if (turned_away_.contains(key) || turned_away_.size() < kMost) turned_away_[key] = {shown, now};
  }
  dirty_ = true;
  co_await warn(endpoint, reason, uid);
}

asio::awaitable<void> Registry::warn(std::string endpoint, model::Reason reason, BoardUid uid) {
  const auto self = shared_from_this();
  const std::int64_t now = clock_.now_us();
  std::erase_if(warned_us_, [now](const auto& w) { return now - w.second >= kWarnAgainUs; });
  const std::string about = place_of(endpoint) + " " + reason.code + " " + uid.hex();
  if (warned_us_.size() >= kMostWarnings || !warned_us_.emplace(about, now).second) co_return;
  // What a link says begins with its name.
  log(3, reason.text.starts_with(endpoint) ? reason.text : endpoint + ": " + reason.text);
  store::Batch batch;
  batch.changes.push_back(store::AppendWarning{model::Warning{reason, uid, {}}});
  auto done = co_await control_.commit(std::move(batch));
  if (!done.ok()) log(4, "store: " + done.status().ToString());
}

void Registry::on_refused(const std::string& endpoint, const model::Reason& reason) {
  if (!stopping_) asio::co_spawn(io_, warn(endpoint, reason, {}), Detached{});
}

}  // namespace odt::fleet
