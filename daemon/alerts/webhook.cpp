#include "alerts/webhook.h"

#include <absl/strings/str_cat.h>
#include <curl/curl.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <fstream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

namespace odt::alerts {
namespace {

using Json = nlohmann::json;

std::size_t drop(char*, std::size_t size, std::size_t count, void*) { return size * count; }

// Read at each message, so that a new token needs no restart.
Result<std::string> read_token(const std::string& path) {
  std::ifstream in(path);
  std::string line;
  if (!std::getline(in, line) || line.empty())
    return absl::NotFoundError("token file " + path + " cannot be read, or is empty");
  while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.pop_back();
  return line;
}

Json head(const char* event, const GatewayId& gateway, std::uint64_t store_epoch) {
  return {{"version", 1},
          {"event", event},
          {"gateway_id", gateway.hex()},
          // As text: readers in JavaScript have 53 bits.
          {"store_epoch", std::to_string(store_epoch)}};
}

std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

Status check_webhook_url(const std::string& url) {
  const std::size_t scheme = url.starts_with("http://") ? 7 : url.starts_with("https://") ? 8 : 0;
  if (scheme == 0)
    return absl::InvalidArgumentError("'" + url + "' does not begin with http:// or https://");
  const std::string host = url.substr(scheme, url.find_first_of("/?#", scheme) - scheme);
  if (host.empty() || host.front() == ':')
    return absl::InvalidArgumentError("'" + url + "' names no host");
  if (host.find('@') != std::string_view::npos)
    return absl::InvalidArgumentError(
        "a name or password does not belong in the URL; use webhook_token_file");
  return absl::OkStatus();
}

struct Webhook::Impl {
  explicit Impl(WebhookOptions o) : options(std::move(o)) {}
  struct Item {
    std::string json;
    std::function<void(Answer)> done;
  };
  WebhookOptions options;
  std::mutex mutex;
  std::condition_variable wake;
  std::deque<Item> queue;
  std::atomic<bool> stopping{false};
  std::thread thread;

  void run();
  Answer send(const std::string& json) const;
};

Webhook::Answer Webhook::Impl::send(const std::string& json) const {
  Answer out;
  const auto begun = std::chrono::steady_clock::now();
  curl_slist* headers = curl_slist_append(nullptr, "Content-Type: application/json");
  headers = curl_slist_append(headers, "Expect:");
  if (!options.token_file.empty()) {
    const auto token = read_token(options.token_file);
    if (!token.ok()) {
      curl_slist_free_all(headers);
      out.error = std::string(token.status().message());
      return out;
    }
    headers = curl_slist_append(headers, ("Authorization: Bearer " + *token).c_str());
  }
  CURL* curl = curl_easy_init();
  const long timeout = static_cast<long>(options.timeout_s);
  char text[CURL_ERROR_SIZE] = "";
  curl_easy_setopt(curl, CURLOPT_URL, options.url.c_str());
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
  curl_easy_setopt(curl, CURLOPT_POSTFIELDS, json.c_str());
  curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE, static_cast<long>(json.size()));
  curl_easy_setopt(curl, CURLOPT_USERAGENT, "odtd");
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, std::min(timeout, 5L));
  curl_easy_setopt(curl, CURLOPT_TIMEOUT, timeout);
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, text);
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, drop);
  curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(curl, CURLOPT_XFERINFODATA, this);
  curl_easy_setopt(
      curl, CURLOPT_XFERINFOFUNCTION,
      +[](void* self, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
        return static_cast<const Impl*>(self)->stopping.load() ? 1 : 0;
      });
  const CURLcode code = curl_easy_perform(curl);
  long status = 0;
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
  curl_easy_cleanup(curl);
  curl_slist_free_all(headers);
  out.took_ms = static_cast<std::uint32_t>(std::chrono::duration_cast<std::chrono::milliseconds>(
                                               std::chrono::steady_clock::now() - begun)
                                               .count());
  if (code != CURLE_OK) {
    out.error = *text != '\0' ? text : curl_easy_strerror(code);
    return out;
  }
  out.answered = true;
  out.status = static_cast<std::uint32_t>(status);
  if (status < 200 || status >= 300) out.error = absl::StrCat("HTTP status ", status);
  return out;
}

void Webhook::Impl::run() {
  while (true) {
    Item item;
    {
      std::unique_lock lock(mutex);
      wake.wait(lock, [this] { return stopping || !queue.empty(); });
      if (queue.empty()) return;
      item = std::move(queue.front());
      queue.pop_front();
    }
    Answer answer;
    if (stopping)
      answer.error = "odtd is stopping";
    else
      answer = send(item.json);
    item.done(std::move(answer));
  }
}

Webhook::Webhook(WebhookOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {
  // Once, and before there are threads that use it.
  static const CURLcode kReady = curl_global_init(CURL_GLOBAL_DEFAULT);
  (void)kReady;
  impl_->thread = std::thread([impl = impl_.get()] { impl->run(); });
}
Webhook::~Webhook() { stop(); }

void Webhook::post(std::string json, std::function<void(Answer)> done) {
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->queue.push_back({std::move(json), std::move(done)});
  }
  impl_->wake.notify_one();
}

void Webhook::stop() {
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->stopping = true;
  }
  impl_->wake.notify_one();
  if (impl_->thread.joinable()) impl_->thread.join();
}

std::string webhook_message(const model::Alert& a, const GatewayId& gateway,
                            std::uint64_t store_epoch) {
  const auto* info = model::alert_rule_info(a.rule);
  const bool firing = a.state == model::AlertState::kFiring;
  Json json = head(firing ? "firing" : "resolved", gateway, store_epoch);
  json["event_seq"] = a.meta.etag;
  json["alert"] = {
      {"id", a.id.hex()},
      {"rule", info == nullptr ? "" : info->name},
      {"severity", a.severity == model::AlertSeverity::kCritical ? "critical" : "warning"},
      {"subject", a.subject},
      {"board_uid", a.board.hex()},
      {"run_id", a.run_id.is_zero() ? "" : a.run_id.hex()},
      {"code", a.reason.code},
      {"text", a.reason.text},
      {"remedy", a.reason.remedy},
      {"value", a.value},
      {"threshold", a.threshold},
      {"unit", info == nullptr ? "" : info->unit},
      {"count", a.count},
      {"first_time_us", a.first_time_us},
      {"fire_time_us", a.fire_time_us},
      {"resolve_time_us", a.resolve_time_us},
      {"resolution", a.resolution},
  };
  return dump(json);
}

std::string webhook_test_message(const GatewayId& gateway, std::uint64_t store_epoch,
                                 std::int64_t now_us) {
  Json json = head("test", gateway, store_epoch);
  json["time_us"] = now_us;
  json["text"] = "a test of the webhook of odtd";
  return dump(json);
}

}  // namespace odt::alerts
