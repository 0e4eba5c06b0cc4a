#pragma once

#include <optional>

#include "base/call.h"
#include "model/alert.h"

namespace odt::alerts {

// What the API may ask of the alerts. Any thread; `done` on the front thread. A mutation has
// happened (is committed) when its `done` says OK.
class AlertControl {
 public:
  virtual ~AlertControl() = default;

  // Errors: NOT_FOUND, FAILED_PRECONDITION (it does not fire).
  virtual void acknowledge(CallContext ctx, Uuid alert, std::string note,
                           Done<model::Alert> done) = 0;
  struct Silenced {
    model::AlertSilence silence;
    std::uint32_t firing = 0;  // alerts that it matches now
  };
  // Its id, author and time of creation are set here. Errors: INVALID_ARGUMENT (neither rule nor
  // board, until), RESOURCE_EXHAUSTED (kMaxSilences).
  virtual void silence(CallContext ctx, model::AlertSilence silence, Done<Silenced> done) = 0;
  virtual void unsilence(CallContext ctx, Uuid silence, Done<bool> done) = 0;
  struct Overview {
    model::AlertSettings settings;
    std::uint32_t pending = 0, dead = 0;
  };
  virtual void overview(Done<Overview> done) = 0;
  struct RuleUpdate {
    model::AlertKind rule = model::AlertKind::kAny;
    std::optional<bool> enabled;
    std::optional<std::int64_t> threshold;
    bool reset = false;
  };
  // Errors: INVALID_ARGUMENT (no such rule, threshold).
  virtual void update_rule(CallContext ctx, RuleUpdate update, Done<model::AlertRule> done) = 0;
  struct WebhookTest {
    bool delivered = false;
    std::uint32_t http_status = 0, took_ms = 0, retried = 0;
    std::string error;
  };
  // Errors: FAILED_PRECONDITION (no webhook).
  virtual void test_webhook(CallContext ctx, bool retry_dead, Done<WebhookTest> done) = 0;
};

inline constexpr std::size_t kMaxSilences = 1000;

}  // namespace odt::alerts
