#include <tuple>

#include "alerts/engine_impl.h"

// What people change: the book first, then the store, whose error takes it back.
namespace odt::alerts {

void Engine::Impl::queue_change(std::function<void()> change) {
  asio::post(io, [self = shared_from_this(), change = std::move(change)]() mutable {
    self->changes.push_back(std::move(change));
    if (!self->changing) self->next_change();
  });
}

void Engine::Impl::next_change() {
  changing = !changes.empty();
  if (!changing) return;
  const auto change = std::move(changes.front());
  changes.pop_front();
  change();
}

void Engine::Impl::commit(const CallContext& ctx, std::function<void(Status)> done) {
  auto what = std::make_shared<Book::Unsaved>(book.unsaved(mono_us(), SIZE_MAX));
  store::Batch batch;
  batch.actor = ctx.actor;
  batch.command_id = ctx.command_id;
  for (auto& alert : what->alerts) {
    alert.meta.etag = 0;
    batch.changes.push_back(store::PutAlert{alert});
  }
  if (what->settings) {
    what->settings->meta.etag = 0;
    batch.changes.push_back(store::PutAlertSettings{*what->settings});
  }
  control.commit(std::move(batch),
                 [self = shared_from_this(), what, done = std::move(done)](auto events) {
                   asio::post(self->io, [self, what, done, events = std::move(events)]() mutable {
                     const Status status = events.status();
                     if (status.ok()) self->saved(*what, std::move(events));
                     done(status);
                     self->next_change();
                   });
                 });
}

namespace {

Status no_webhook() {
  return with_reason(absl::FailedPreconditionError("no webhook is configured"), "NO_WEBHOOK",
                     "Set webhook_url in [alerts] of odtd's configuration and restart it.");
}

}  // namespace

void Engine::acknowledge(CallContext ctx, Uuid id, std::string note, Done<model::Alert> done) {
  impl_->queue_change([impl = impl_, ctx, id, note, done] {
    const auto alert = impl->book.acknowledge(id, ctx.actor, note, impl->clock.now_us());
    if (!alert.ok()) {
      done(alert.status());
      return impl->next_change();
    }
    impl->commit(ctx, [impl, id, done](Status status) {
      if (status.ok()) return done(*impl->book.alert(id));
      impl->book.unacknowledge(id);
      done(status);
    });
  });
}

void Engine::silence(CallContext ctx, model::AlertSilence silence, Done<Silenced> done) {
  impl_->queue_change([impl = impl_, ctx, silence, done]() mutable {
    const std::int64_t at = impl->clock.now_us();
    silence.id = new_uuid();
    silence.created_by = ctx.actor;
    silence.create_time_us = at;
    const auto firing = impl->book.silence(silence, at);
    if (!firing.ok()) {
      done(firing.status());
      return impl->next_change();
    }
    impl->commit(ctx, [impl, silence, firing = *firing, done](Status status) {
      if (status.ok()) return done(Silenced{silence, firing});
      (void)impl->book.unsilence(silence.id, impl->clock.now_us());
      done(status);
    });
  });
}

void Engine::unsilence(CallContext ctx, Uuid id, Done<bool> done) {
  impl_->queue_change([impl = impl_, ctx, id, done] {
    const auto before = impl->book.settings().silences;
    const Status status = impl->book.unsilence(id, impl->clock.now_us());
    if (!status.ok()) {
      done(status);
      return impl->next_change();
    }
    impl->commit(ctx, [impl, id, before, done](Status stored) {
      if (stored.ok()) return done(true);
      for (const auto& silence : before)
        if (silence.id == id) (void)impl->book.silence(silence, impl->clock.now_us());
      done(stored);
    });
  });
}

void Engine::overview(Done<Overview> done) {
  asio::post(impl_->io, [impl = impl_, done] {
    Overview out;
    out.settings = impl->book.settings();
    std::tie(out.pending, out.dead) = impl->book.pending_and_dead();
    done(std::move(out));
  });
}

void Engine::update_rule(CallContext ctx, RuleUpdate update, Done<model::AlertRule> done) {
  impl_->queue_change([impl = impl_, ctx, update, done] {
    const auto answer = [&](const Status& status) {
      done(status);
      impl->next_change();
    };
    if (model::alert_rule_info(update.rule) == nullptr)
      return answer(
          with_reason(absl::InvalidArgumentError("no such rule"), "BAD_FIELD", "", "rule"));
    const model::AlertRule before = impl->book.rule(update.rule);
    model::AlertRule to = before;
    if (update.reset) {
      to.enabled = to.default_enabled;
      to.threshold = to.default_threshold;
    }
    if (update.enabled) to.enabled = *update.enabled;
    if (update.threshold) to.threshold = *update.threshold;
    const auto rule = impl->book.update_rule(to, update.reset, impl->clock.now_us());
    if (!rule.ok()) return answer(rule.status());
    impl->commit(ctx, [impl, before, rule = *rule, done](Status status) {
      if (status.ok()) return done(rule);
      impl->book.restore_rule(before);
      done(status);
    });
  });
}

void Engine::test_webhook(CallContext, bool retry_dead, Done<WebhookTest> done) {
  asio::post(impl_->io, [impl = impl_, retry_dead, done] {
    if (!impl->webhook || impl->stopping) return done(no_webhook());
    const store::Identity identity = impl->control.identity();
    impl->webhook->post(
        webhook_test_message(identity.gateway_id, identity.store_epoch, impl->clock.now_us()),
        [impl, retry_dead, done](Webhook::Answer answer) {
          asio::post(impl->io, [impl, retry_dead, done, answer] {
            WebhookTest out;
            out.delivered = answer.delivered();
            out.http_status = answer.status;
            out.took_ms = answer.took_ms;
            out.error = answer.error;
            if (retry_dead) out.retried = impl->book.retry_dead(impl->clock.now_us());
            impl->save();
            done(std::move(out));
          });
        });
  });
}

}  // namespace odt::alerts
