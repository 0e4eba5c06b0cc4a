#include "alerts/engine.h"

#include <absl/strings/str_cat.h>

#include <algorithm>

#include "alerts/engine_impl.h"

namespace odt::alerts {
namespace {

using model::AlertKind;

constexpr std::size_t kBatch = 500;  // alerts of one commit

}  // namespace

Engine::Impl::Impl(asio::io_context& context, const Clock& c, store::ControlThread& store,
                   EngineOptions o)
    : io(context),
      clock(c),
      control(store),
      options(std::move(o)),
      book(options.rules, options.webhook.url),
      boards(book, options.rules_version),
      runs(book, [this](const BoardUid& uid) { return boards.name(uid); }),
      timer(context) {
  if (!options.webhook.url.empty()) webhook = std::make_unique<Webhook>(options.webhook);
}

std::int64_t Engine::Impl::mono_us() const {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             clock.steady_now().time_since_epoch())
      .count();
}

void Engine::Impl::schedule() {
  timer.expires_after(options.period);
  timer.async_wait([self = shared_from_this()](const boost::system::error_code& error) {
    if (error || self->stopping) return;
    self->tick();
    self->schedule();
  });
}

void Engine::Impl::tick() {
  const auto at = now();
  if (options.view) look_at_boards(at);
  runs.tick(at);
  look_at_disk(at);
  book.expire(at.us);
  save();
  send();
}

// Boards in maintenance are quiet: what fires of them is over, and nothing is judged until they are
// back; then each rule counts from there.
void Engine::Impl::look_at_boards(RunWatch::Now at) {
  const auto view = options.view();
  std::set<BoardUid> now_muted;
  for (const auto& board : view->boards)
    if (board.maintenance.on()) now_muted.insert(board.uid);
  if (now_muted != muted) {
    for (const auto& uid : now_muted) {
      if (!muted.contains(uid))
        book.resolve(AlertKind::kAny, uid, "the board is in maintenance", at.us);
    }
    for (const auto& uid : muted) {
      if (now_muted.contains(uid)) continue;
      boards.forget(uid);
      runs.restart_board(uid, at);
    }
    muted = now_muted;
    book.mute(std::move(now_muted));
  }
  boards.look(view->boards, at.us, at.mono_us);
}

void Engine::Impl::look_at_disk(RunWatch::Now at) {
  if (!options.disk) return;
  const DiskSeen disk = options.disk();
  const std::int64_t threshold = book.rule(AlertKind::kDisk).threshold;
  Seen s;
  s.rule = AlertKind::kDisk;
  s.subject = "disk";
  s.value = static_cast<std::int64_t>(disk.free_bytes / 1'000'000);
  const bool full = disk.report.state == store::DiskState::kFull;
  s.verdict = full || s.value < threshold                  ? Verdict::kBad
              : s.value * 4 < threshold * 5                ? Verdict::kBetween
              : disk.report.state == store::DiskState::kOk ? Verdict::kGood
                                                           : Verdict::kBetween;
  if (s.verdict == Verdict::kGood)
    s.text = absl::StrCat(s.value, " MB are free");
  else
    s.text = full ? disk.report.text
                  : absl::StrCat("the disk of ", options.data_dir, " has ", s.value, " MB left");
  s.remedy = "Free space, purge the trash (odtctl storage purge), or lower the telemetry quota.";
  book.judge(s, at.us, at.mono_us);
}

// ---- the store ----------------------------------------------------------------------------------

void Engine::Impl::save() {
  if (saving) return;
  auto what = std::make_shared<Book::Unsaved>(book.unsaved(mono_us(), kBatch));
  if (what->empty()) return;
  saving = true;
  store::Batch batch;
  for (const auto& alert : what->alerts) {
    batch.changes.push_back(store::PutAlert{alert});
    std::get<store::PutAlert>(batch.changes.back()).value.meta.etag = 0;
  }
  if (what->settings) {
    what->settings->meta.etag = 0;
    batch.changes.push_back(store::PutAlertSettings{*what->settings});
  }
  control.commit(std::move(batch), [self = shared_from_this(), what](auto events) {
    asio::post(self->io, [self, what, events = std::move(events)]() mutable {
      self->saving = false;
      self->saved(*what, std::move(events));
    });
  });
}

void Engine::Impl::saved(const Book::Unsaved& what, Result<std::vector<model::Event>> events) {
  if (!events.ok()) {
    // The next tick tries again.
    log(3, "alerts: cannot be stored: " + std::string(events.status().message()));
    return;
  }
  std::vector<model::Alert> stored;
  for (auto& event : *events)
    if (auto* alert = std::get_if<model::Alert>(&event.body)) stored.push_back(std::move(*alert));
  book.saved(what, stored, mono_us());
  send();
}

// ---- the webhook --------------------------------------------------------------------------------

void Engine::Impl::send() {
  if (!webhook || sending || stopping) return;
  const auto alert = book.due(clock.now_us());
  if (!alert) return;
  sending = true;
  const store::Identity identity = control.identity();
  webhook->post(webhook_message(*alert, identity.gateway_id, identity.store_epoch),
                [self = shared_from_this(), alert = *alert](Webhook::Answer answer) {
                  asio::post(self->io, [self, alert, answer = std::move(answer)] {
                    self->sending = false;
                    if (self->stopping) return;
                    self->sent(alert, answer);
                    self->save();
                    self->send();
                  });
                });
}

void Engine::Impl::sent(const model::Alert& alert, const Webhook::Answer& answer) {
  const std::int64_t at = clock.now_us();
  if (answer.delivered()) return book.delivered(alert, Book::Sent::kDelivered, {}, at);
  log(3, absl::StrCat("webhook: ", answer.error, " (alert ", alert.reason.code, " of ",
                      alert.subject, ")"));
  if (!answer.answered) return book.unreachable(answer.error, at);
  book.delivered(alert, answer.refused() ? Book::Sent::kNever : Book::Sent::kTryAgain, answer.error,
                 at);
}

// ---- what happens -------------------------------------------------------------------------------

void Engine::Impl::watch_run(const model::Run& run) {
  if (!runs.on_run(run, now())) return;
  const Uuid id = run.id;
  const Hash model = run.spec.model_hash;
  control.post([self = shared_from_this(), id, model](store::ControlStore& store) {
    const auto found = store.model(model);
    if (!found.ok()) return;
    std::vector<std::uint32_t> weights;
    for (const auto& layer : found->layers)
      if (layer.trainable) weights.push_back(layer.weights);
    asio::post(self->io, [self, id, weights = std::move(weights)] {
      self->runs.on_model(id, weights, self->now());
    });
  });
}

void Engine::Impl::heard(std::vector<model::Event> events) {
  for (const auto& event : events) {
    if (const auto* run = std::get_if<model::Run>(&event.body)) {
      watch_run(*run);
    } else if (const auto* epoch = std::get_if<model::EpochResult>(&event.body)) {
      runs.on_epoch(*epoch, now());
    } else if (const auto* gone = std::get_if<model::Deleted>(&event.body)) {
      const auto uid = BoardUid::from_bytes(gone->key);
      if (gone->kind != "board" || !uid.ok()) continue;
      book.resolve(AlertKind::kAny, *uid, "the board was deleted", clock.now_us());
      boards.forget(*uid);
      runs.forget_board(*uid);
    }
  }
  any_run = runs.any();
}

Engine::Engine(asio::io_context& io, const Clock& clock, store::ControlThread& control,
               EngineOptions options)
    : impl_(std::make_shared<Impl>(io, clock, control, std::move(options))) {}
Engine::~Engine() { stop(); }

Status Engine::start() {
  struct Stored {
    std::vector<model::Alert> alerts;
    model::AlertSettings settings;
    std::vector<model::Run> runs;
  };
  const auto read = [](store::ControlStore& s) -> Result<Stored> {
    Stored out;
    store::ListQuery query{1000, ""};
    do {
      ODT_ASSIGN(auto page, s.alerts(query));
      for (auto& alert : page.items) out.alerts.push_back(std::move(alert));
      query.page_token = page.next_token;
    } while (!query.page_token.empty());
    auto settings = s.alert_settings();
    if (settings.ok())
      out.settings = std::move(*settings);
    else if (!absl::IsNotFound(settings.status()))
      return settings.status();
    ODT_ASSIGN(out.runs, s.active_runs());
    return out;
  };
  auto stored = impl_->control.call_sync(read);
  if (!stored.ok()) return stored.status();
  asio::post(impl_->io, [impl = impl_, stored = std::move(*stored)]() mutable {
    impl->book.load(std::move(stored.alerts), stored.settings);
    for (const auto& run : stored.runs) impl->watch_run(run);
    impl->any_run = impl->runs.any();
    impl->tick();
    impl->schedule();
  });
  return absl::OkStatus();
}

void Engine::stop() {
  asio::post(impl_->io, [impl = impl_] {
    impl->stopping = true;
    impl->timer.cancel();
  });
  if (impl_->webhook) impl_->webhook->stop();
}

void Engine::on_events(const std::vector<model::Event>& events, std::int64_t) {
  std::vector<model::Event> about;
  for (const auto& event : events) {
    const auto* gone = std::get_if<model::Deleted>(&event.body);
    if (std::holds_alternative<model::Run>(event.body) ||
        std::holds_alternative<model::EpochResult>(event.body) ||
        (gone != nullptr && gone->kind == "board"))
      about.push_back(event);
  }
  if (about.empty()) return;
  asio::post(impl_->io,
             [impl = impl_, about = std::move(about)]() mutable { impl->heard(std::move(about)); });
}

void Engine::on_telemetry(const std::vector<model::TelemetryFrame>& frames) {
  if (!impl_->any_run) return;
  std::vector<Uuid> about;
  for (const auto& frame : frames)
    if (about.empty() || about.back() != frame.run_id) about.push_back(frame.run_id);
  std::sort(about.begin(), about.end());
  about.erase(std::unique(about.begin(), about.end()), about.end());
  asio::post(impl_->io, [impl = impl_, about = std::move(about)] {
    impl->runs.on_progress(about, impl->now());
  });
}

}  // namespace odt::alerts
