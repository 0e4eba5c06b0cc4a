#include "campaign/engine.h"

#include <absl/strings/str_cat.h>

#include <algorithm>

#include "campaign/checks.h"
#include "campaign/plan.h"

namespace odt::campaign {
namespace {

using model::CampaignKind;
using model::CampaignState;
using model::UnitState;

Result<Work> read_work(store::ControlStore& s, const Uuid& id) {
  Work out;
  ODT_ASSIGN(out.c, s.campaign(id));
  ODT_ASSIGN(out.units, s.campaign_units(id));
  ODT_ASSIGN(out.rounds, s.campaign_rounds(id));
  return out;
}

Status unknown(const Uuid& id) {
  return with_reason(absl::NotFoundError("no campaign " + id.hex()), "CAMPAIGN_UNKNOWN",
                     "List the campaigns: odtctl campaign list.");
}

// What a retry does once more; whether there is anything.
bool reset_failed(Work& w, std::int64_t now_us) {
  bool any = w.c.reason.code == "TOO_FEW_BOARDS";
  std::uint32_t first = w.c.round;
  const bool one_round =
      w.c.spec.kind == CampaignKind::kFederated || w.c.spec.kind == CampaignKind::kSweep;
  for (auto& u : w.units) {
    if (u.state == UnitState::kSucceeded || (one_round && u.round != w.c.round)) continue;
    any = true;
    first = std::min(first, u.round);
    const bool may_hold_new = w.c.spec.kind == CampaignKind::kRollout &&
                              u.state != UnitState::kRolledBack && !u.previous.is_zero() &&
                              u.stage >= model::RolloutStage::kRestore;
    u.state = UnitState::kPending;
    u.reason = {};
    u.run_id = Uuid{};
    u.weights = Hash{};
    u.after = u.heldout_start = u.heldout_best = model::Accuracy{};
    u.heldout_best_loss = model::Loss{};
    // A board that may hold the new weights keeps what was noted of its old ones.
    if (!may_hold_new) {
      u.previous = Hash{};
      u.before = model::Accuracy{};
    }
    u.stage = may_hold_new ? model::RolloutStage::kRestore : model::RolloutStage::kPull;
    u.start_time_us = u.end_time_us = 0;
    u.steps_done = 0;
    ++u.tries;
    if (w.c.spec.kind == CampaignKind::kSweep) u.board = BoardUid{};
  }
  w.c.round = first;
  if (w.c.round < w.rounds.size()) w.rounds[w.c.round].start_time_us = now_us;
  return any;
}

}  // namespace

struct Engine::Impl : std::enable_shared_from_this<Engine::Impl> {
  explicit Impl(Env e) : env(std::move(e)) {}
  Env env;
  std::map<Uuid, std::shared_ptr<Driver>> drivers;

  void drive(Work work) {
    const Uuid id = work.c.id;
    const auto driver = std::make_shared<Driver>(env, std::move(work));
    drivers[id] = driver;
    asio::co_spawn(env.io, follow(driver), fleet::Detached{});
  }
  asio::awaitable<void> follow(std::shared_ptr<Driver> driver) {
    const auto self = shared_from_this();
    co_await driver->run();
    const auto it = drivers.find(driver->id());
    if (it != drivers.end() && it->second == driver) drivers.erase(it);
  }

  template <typename T>
  asio::awaitable<void> answer(asio::awaitable<Result<T>> operation, Done<T> done) {
    const auto self = shared_from_this();
    auto result = co_await std::move(operation);
    done(std::move(result));
  }

  asio::awaitable<Result<std::string>> seen(std::string actor, std::string request_id) {
    if (request_id.empty()) co_return std::string();
    const auto find = [actor, request_id](store::ControlStore& s) {
      return s.find_request(actor, request_id);
    };
    auto found = co_await env.control.call(find);
    if (absl::IsNotFound(found.status())) co_return std::string();
    co_return found;
  }
  asio::awaitable<Result<Work>> stored(Uuid id) {
    const auto read = [id](store::ControlStore& s) { return read_work(s, id); };
    auto work = co_await env.control.call(read);
    if (absl::IsNotFound(work.status())) co_return unknown(id);
    co_return work;
  }

  asio::awaitable<Result<Created>> create(std::shared_ptr<CallContext> ctx,
                                          std::shared_ptr<model::CampaignSpec> asked, bool dry_run);
  asio::awaitable<Result<model::Campaign>> retry(std::shared_ptr<CallContext> ctx, Uuid id);
  void act(CallContext ctx, Uuid id, Act act, Done<model::Campaign> done);
  asio::awaitable<Result<std::vector<Uuid>>> stop_all(CallContext ctx, bool cancel);
  // A request that is known is answered with what there is.
  asio::awaitable<void> act_once(std::shared_ptr<CallContext> ctx, Uuid id, Act act,
                                 Done<model::Campaign> done) {
    const auto self = shared_from_this();
    const auto before = co_await seen(ctx->actor, ctx->request_id);
    if (!before.ok()) {
      done(before.status());
      co_return;
    }
    if (!before->empty()) {
      const auto work = co_await stored(id);
      if (work.ok())
        done(work->c);
      else
        done(work.status());
      co_return;
    }
    const auto it = drivers.find(id);
    if (it != drivers.end() && !it->second->over()) {
      Command command{*ctx, act, std::move(done)};
      it->second->submit(std::move(command));
      co_return;
    }
    co_await refuse_over(id, done);
  }
  // Says that it is over, or that there is none.
  asio::awaitable<void> refuse_over(Uuid id, Done<model::Campaign> done) {
    const auto self = shared_from_this();
    const auto work = co_await stored(id);
    if (!work.ok()) {
      done(work.status());
      co_return;
    }
    done(with_reason(
        absl::FailedPreconditionError("campaign " + id.hex().substr(0, 16) + " is over"),
        "CAMPAIGN_OVER", "Create a new one, or retry what failed."));
  }
};

asio::awaitable<Result<Created>> Engine::Impl::create(std::shared_ptr<CallContext> ctx,
                                                      std::shared_ptr<model::CampaignSpec> asked,
                                                      bool dry_run) {
  const auto before = co_await seen(ctx->actor, ctx->request_id);
  if (!before.ok()) co_return before.status();
  Created out;
  if (!before->empty()) {
    const auto id = Uuid::from_bytes(*before);
    if (!id.ok()) co_return id.status();
    auto work = co_await stored(*id);
    if (!work.ok()) co_return work.status();
    out.campaign = std::move(work->c);
    co_return out;
  }
  const auto completed = complete(*asked);
  if (!completed.ok()) co_return completed.status();
  // Who has seen a board come online finds it in the cohort.
  const auto view = env.fleet.view_now();
  const auto boards = resolve_cohort(*completed, view->boards);
  if (!boards.ok()) co_return boards.status();
  const auto spec = co_await read_spec(env, *completed, *boards, *ctx);
  if (!spec.ok()) co_return spec.status();
  model::Campaign& c = out.campaign;
  c.spec = *spec;
  c.boards = *boards;
  c.rounds_total = rounds_of(c.spec, c.boards.size());
  c.meta.gateway_id = env.control.identity().gateway_id;
  c.meta.created_by = ctx->actor;
  c.owner = ctx->owner;
  c.meta.create_time_us = env.clock.now_us();
  const auto models = co_await related_models(env, c.spec.model_hash);
  if (!models.ok()) co_return models.status();
  auto units = first_units(c, *models);
  if (!units.ok()) co_return units.status();
  auto checks = co_await check_boards(env, c, *units);
  if (!checks.ok()) co_return checks.status();
  out.checks = std::move(*checks);
  out.units = std::move(*units);
  count_units(out.units, c);
  if (dry_run) co_return out;
  for (const auto& check : out.checks)
    if (!check.refusal.code.empty())
      co_return with_reason(
          absl::FailedPreconditionError(
              absl::StrCat("board ", check.board.hex(), " cannot take part: ", check.refusal.text)),
          "CANNOT_RUN", check.refusal.remedy);
  c.id = new_uuid();
  for (auto& u : out.units) u.campaign_id = c.id;
  store::Batch batch;
  batch.actor = ctx->actor;
  batch.command_id = ctx->command_id;
  batch.request_id = ctx->request_id;
  batch.response = c.id.str();
  batch.changes.push_back(store::CreateCampaign{c, out.units, ctx->actor});
  const auto events = co_await env.control.commit(std::move(batch));
  if (!events.ok()) co_return events.status();
  for (const auto& event : *events)
    if (const auto* body = std::get_if<model::Campaign>(&event.body)) c = *body;
  drive(Work{c, out.units, {}});
  co_return out;
}

asio::awaitable<Result<model::Campaign>> Engine::Impl::retry(std::shared_ptr<CallContext> ctx,
                                                             Uuid id) {
  const auto before = co_await seen(ctx->actor, ctx->request_id);
  if (!before.ok()) co_return before.status();
  auto work = co_await stored(id);
  if (!work.ok()) co_return work.status();
  model::Campaign& c = work->c;
  if (!before->empty()) co_return c;
  if (!model::is_final(c.state))
    co_return with_reason(
        absl::FailedPreconditionError("campaign " + id.hex().substr(0, 16) + " is not over"),
        "CAMPAIGN_STATE", "Wait for its end, or cancel it.");
  if (!reset_failed(*work, env.clock.now_us()))
    co_return with_reason(
        absl::FailedPreconditionError("nothing of campaign " + id.hex().substr(0, 16) + " failed"),
        "NOTHING_TO_RETRY", "Create a new campaign.");
  model::CampaignEvent event;
  event.campaign_id = id;
  event.from = c.state;
  event.to = CampaignState::kRunning;
  event.cause = "retry";
  c.state = CampaignState::kRunning;
  c.desired = model::Desired::kRun;
  c.reason = {};
  c.end_time_us = 0;
  c.meta.etag = 0;
  count_units(work->units, c);
  store::Batch batch;
  batch.actor = ctx->actor;
  batch.command_id = ctx->command_id;
  batch.request_id = ctx->request_id;
  batch.response = id.str();
  batch.changes.push_back(store::TransitionCampaign{c, event});
  for (const auto& u : work->units) batch.changes.push_back(store::PutCampaignUnit{u});
  if (c.round < work->rounds.size())
    batch.changes.push_back(store::PutCampaignRound{work->rounds[c.round]});
  const auto events = co_await env.control.commit(std::move(batch));
  if (!events.ok()) co_return events.status();
  drive(std::move(*work));
  auto now = co_await stored(id);
  if (!now.ok()) co_return now.status();
  co_return now->c;
}

void Engine::Impl::act(CallContext ctx, Uuid id, Act act, Done<model::Campaign> done) {
  const auto shared = std::make_shared<CallContext>(std::move(ctx));
  const auto it = drivers.find(id);
  if (act == Act::kRetry && it == drivers.end()) {
    asio::co_spawn(env.io, answer<model::Campaign>(retry(shared, id), std::move(done)),
                   fleet::Detached{});
    return;
  }
  asio::co_spawn(env.io, act_once(shared, id, act, std::move(done)), fleet::Detached{});
}

asio::awaitable<Result<std::vector<Uuid>>> Engine::Impl::stop_all(CallContext ctx, bool cancel) {
  const auto self = shared_from_this();
  struct Told {
    explicit Told(asio::io_context& io) : changed(io) {}
    fleet::Signal changed;
    std::size_t open = 0;
    std::vector<Uuid> stopped;
  };
  const auto told = std::make_shared<Told>(env.io);
  ctx.request_id.clear();  // one request changes many; the API remembers the answer
  for (const auto& [id, driver] : drivers) {
    if (driver->over()) continue;
    ++told->open;
    if (!cancel) driver->hold_running();  // before any run hears of it
    const Uuid of = id;
    Command command{ctx, cancel ? Act::kCancel : Act::kPause,
                    [told, of](Result<model::Campaign> done) {
                      if (done.ok()) told->stopped.push_back(of);
                      --told->open;
                      told->changed.notify();
                    }};
    driver->submit(std::move(command));
  }
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(2);
  while (told->open != 0 && std::chrono::steady_clock::now() < until)
    co_await told->changed.wait_until(until);
  co_return told->stopped;
}

Engine::Engine(asio::io_context& links, const Clock& clock, store::ControlThread& control,
               store::TelemetryThread& telemetry, store::BlobStore& blobs,
               training::FleetControl& fleet,
               std::function<void(int level, const std::string& text)> log)
    : impl_(std::make_shared<Impl>(
          Env{links, clock, control, telemetry, blobs, fleet, std::move(log)})) {}
Engine::~Engine() = default;

Status Engine::start() {
  const auto read = [](store::ControlStore& s) -> Result<std::vector<Work>> {
    ODT_ASSIGN(const auto active, s.active_campaigns());
    std::vector<Work> out;
    for (const auto& c : active) {
      ODT_ASSIGN(auto work, read_work(s, c.id));
      out.push_back(std::move(work));
    }
    return out;
  };
  auto works = impl_->env.control.call_sync(read);
  if (!works.ok()) return works.status();
  asio::post(impl_->env.io, [impl = impl_, works = std::move(*works)]() mutable {
    for (auto& work : works) impl->drive(std::move(work));
  });
  return absl::OkStatus();
}

void Engine::stop() {
  asio::post(impl_->env.io, [impl = impl_] {
    impl->env.stopping = true;
    for (auto& [id, driver] : impl->drivers) driver->wake();
  });
}

void Engine::create(CallContext ctx, model::CampaignSpec spec, bool dry_run, Done<Created> done) {
  const auto shared = std::make_shared<CallContext>(std::move(ctx));
  const auto asked = std::make_shared<model::CampaignSpec>(std::move(spec));
  asio::post(impl_->env.io, [impl = impl_, shared, asked, dry_run, done = std::move(done)] {
    asio::co_spawn(impl->env.io, impl->answer<Created>(impl->create(shared, asked, dry_run), done),
                   fleet::Detached{});
  });
}

void Engine::act(CallContext ctx, Uuid campaign, Act act, Done<model::Campaign> done) {
  asio::post(impl_->env.io, [impl = impl_, ctx = std::move(ctx), campaign, act,
                             done = std::move(done)] { impl->act(ctx, campaign, act, done); });
}

void Engine::stop_all(CallContext ctx, bool cancel, Done<std::vector<Uuid>> done) {
  asio::post(impl_->env.io, [impl = impl_, ctx = std::move(ctx), cancel, done = std::move(done)] {
    asio::co_spawn(impl->env.io, impl->answer<std::vector<Uuid>>(impl->stop_all(ctx, cancel), done),
                   fleet::Detached{});
  });
}

void Engine::on_events(const std::vector<model::Event>& events, std::int64_t) {
  std::vector<Uuid> about;
  bool jobs = false;
  for (const auto& event : events) {
    if (const auto* run = std::get_if<model::Run>(&event.body)) {
      if (!run->spec.campaign_id.is_zero() && model::is_final(run->state))
        about.push_back(run->spec.campaign_id);
    } else if (const auto* job = std::get_if<model::Job>(&event.body)) {
      jobs = jobs || job->kind == model::Job::Kind::kEvaluate;
    }
  }
  if (about.empty() && !jobs) return;
  asio::post(impl_->env.io, [impl = impl_, about = std::move(about), jobs] {
    for (auto& [id, driver] : impl->drivers)
      if (jobs || std::find(about.begin(), about.end(), id) != about.end()) driver->wake();
  });
}

}  // namespace odt::campaign
