#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "model/alert.h"

namespace odt::alerts {

struct WebhookOptions {
  std::string url;         // http:// or https://; empty: none
  std::string token_file;  // its first line goes along as "Authorization: Bearer"; empty: none
  std::uint32_t timeout_s = 10;
};
// INVALID_ARGUMENT: not http or https, no host, or a name and password in it.
Status check_webhook_url(const std::string& url);

// Sends messages by HTTP POST, one after the other, on a thread of its own.
//
// Concurrency: any thread. `done` on the webhook's thread; what comes after stop() is dropped.
class Webhook {
 public:
  struct Answer {
    bool answered = false;  // there is an HTTP status
    std::uint32_t status = 0;
    std::string error;  // empty: delivered (2xx)
    std::uint32_t took_ms = 0;
    bool delivered() const { return answered && error.empty(); }
    // Another attempt would fail too: a 4xx but 408 and 429.
    bool refused() const {
      return answered && status >= 400 && status < 500 && status != 408 && status != 429;
    }
  };
  explicit Webhook(WebhookOptions options);
  ~Webhook();  // stop()

  void post(std::string json, std::function<void(Answer)> done);
  void stop();  // at most a second; idempotent

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// The message: version 1, event "firing" or "resolved", where it comes from, and the alert.
// Fields: README.md.
std::string webhook_message(const model::Alert& alert, const GatewayId& gateway,
                            std::uint64_t store_epoch);
std::string webhook_test_message(const GatewayId& gateway, std::uint64_t store_epoch,
                                 std::int64_t now_us);

}  // namespace odt::alerts
