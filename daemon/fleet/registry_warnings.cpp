#include "fleet/registry.h"

// Who may not come in: duplicates, refused connections, and what the operator hears of them.
namespace odt::fleet {
namespace {

using std::chrono::steady_clock;
constexpr std::int64_t kWarnAgainUs = 600'000'000;

// What a warning is about: boards that dial in come from another port each time.
std::string place_of(const std::string& endpoint) {
  return endpoint.starts_with("tcp-in:") || endpoint.starts_with("tls-in:")
             ? endpoint.substr(0, endpoint.rfind(':'))
             : endpoint;
}

}  // namespace

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
  const model::Reason reason{
      "DUPLICATE_UID", "board " + uid.hex() + " answers here and on " + held_by,
      "Two boards report the same chip uid, or one board is connected twice: unplug one."};
  if (const auto port = ports_.find(endpoint); port != ports_.end()) {
    port->second.port.state = model::PortState::kError;
    port->second.port.reason = reason;
  }
  dirty_ = true;
  co_await warn(endpoint, reason, uid);
}

asio::awaitable<void> Registry::warn(std::string endpoint, model::Reason reason, BoardUid uid) {
  const auto self = shared_from_this();
  const std::int64_t now = clock_.now_us();
  std::erase_if(warned_us_, [now](const auto& w) { return now - w.second >= kWarnAgainUs; });
  const std::string about = place_of(endpoint) + " " + reason.code + " " + uid.hex();
  if (!warned_us_.emplace(about, now).second) co_return;
  log(3, endpoint + ": " + reason.text);
  store::Batch batch;
  batch.changes.push_back(store::AppendWarning{model::Warning{reason, uid, {}}});
  auto done = co_await control_.commit(std::move(batch));
  if (!done.ok()) log(4, "store: " + done.status().ToString());
}

void Registry::on_refused(const std::string& endpoint, const model::Reason& reason) {
  if (!stopping_) asio::co_spawn(io_, warn(endpoint, reason, {}), Detached{});
}

}  // namespace odt::fleet
