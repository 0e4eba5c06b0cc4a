#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cmath>

#include "data/quantize.h"
#include "jobs/job_runner.h"
#include "training/orchestrator_impl.h"

// Windows of a board's sensor: capture, labels, samples that the board keeps.
namespace odt::training {
namespace {

constexpr std::size_t kMaxChannels = 8;

Status no_scale(std::string text) {
  return with_reason(absl::FailedPreconditionError(std::move(text)), "CAPTURE_SCALE",
                     "Give mul, add and shift yourself, or take the values unscaled.");
}

// Integer source values as the importer quantises them (data/quantize.h), but for its clip:
// floor((256 x + round(256 offset)) * mult / 2^(k + 8)), all channels brought to the largest k.
Status scale_by(const data::InputStage& in, model::CaptureSettings& s) {
  s.mul.clear();
  s.add.clear();
  s.shift = 0;
  if (!in.has_prequant()) return absl::OkStatus();
  if (in.offset.size() > kMaxChannels)
    return no_scale(absl::StrCat("the model's input has ", in.offset.size(),
                                 " scales of its own; a capture has one per channel, at most ",
                                 kMaxChannels));
  std::vector<std::int64_t> offset;
  for (const float o : in.offset)
    offset.push_back(static_cast<std::int64_t>(std::nearbyint(double{o} * 256)));
  const bool whole =
      std::all_of(offset.begin(), offset.end(), [](std::int64_t o) { return o % 256 == 0; });
  const std::int64_t unit = whole ? 1 : 256;
  const int k = *std::max_element(in.k.begin(), in.k.end());
  for (std::size_t c = 0; c < offset.size(); ++c) {
    const std::int64_t factor = std::int64_t{in.mult[c]} << (k - in.k[c]);
    const std::int64_t mul = factor * unit;
    if (mul != static_cast<std::int32_t>(mul))
      return no_scale(
          absl::StrCat("the model's input scales channel ", c, " too differently from the others"));
    s.mul.push_back(static_cast<std::int32_t>(mul));
    s.add.push_back(offset[c] / (256 / unit) * factor);
  }
  s.shift = static_cast<std::uint32_t>(k) + (whole ? 0 : 8);
  return absl::OkStatus();
}

Status board_fault(std::string text) {
  return with_reason(absl::DataLossError(std::move(text)), "BOARD_FAULT",
                     "Reset the board; if it happens again, its firmware is at fault.");
}

}  // namespace

asio::awaitable<Result<data::InputStage>> input_stage(Env& env, Hash model) {
  const auto key = jobs::manifest_setting(model);
  const auto read = [key](store::ControlStore& s) { return s.setting(key); };
  auto hex = co_await env.control.call(read);
  if (!hex.ok() && !absl::IsNotFound(hex.status())) co_return hex.status();
  if (!hex.ok())
    co_return with_reason(
        absl::NotFoundError(
            absl::StrCat("model ", model.hex().substr(0, 12), " is not known here")),
        "MODEL_UNKNOWN",
        "Name a model ('odtctl model list'), or give mul, add and shift yourself.");
  auto raw = from_hex(*hex);
  if (!raw.ok()) co_return raw.status();
  auto hash = Hash::from_bytes(std::string(raw->begin(), raw->end()));
  if (!hash.ok()) co_return hash.status();
  auto manifest = co_await env.read_blob(*hash);
  if (!manifest.ok()) co_return manifest.status();
  co_return data::parse_input_stage(**manifest);
}

asio::awaitable<Result<model::CaptureState>> Orchestrator::Impl::start_capture(
    BoardUid uid, Session session, FleetControl::StartCapture start) {
  auto free = require_free(uid);
  if (!free.ok()) co_return free;
  auto hold = co_await slot(uid).exclusive.lock(Uuid{}, "capture", "odtd");
  auto state = co_await session->get_state(false);
  if (!state.ok()) co_return state.status();
  const Hash model = start.model.is_zero() ? state->model_hash : start.model;
  if (model.is_zero())
    co_return with_reason(absl::FailedPreconditionError("the board has no model"), "NO_MODEL",
                          "Name the model whose input the windows are.");
  if (start.scale_by_model) {
    auto stage = co_await input_stage(*env_, model);
    if (!stage.ok()) co_return stage.status();
    auto scaled = scale_by(*stage, start.settings);
    if (!scaled.ok()) co_return scaled;
  }
  // Its tail alone, which has the same name, takes no windows.
  const bool tail = state->tail && !start.model.is_zero();
  if (state->model_hash != model || tail) {
    auto loaded = co_await load_image(*env_, session, *state, model);
    if (!loaded.ok()) co_return loaded;
    state = co_await session->get_state(true);
    if (!state.ok()) co_return state.status();
    env_->registry->note_state(uid, *state);
  }
  auto started = co_await session->capture_start(std::move(start.settings));
  co_return started;
}

// A board lists what fits an answer: until there is no more.
asio::awaitable<Result<model::CaptureState>> Orchestrator::Impl::list_windows(
    Session session, std::uint32_t from_id) {
  auto all = co_await session->get_windows(from_id);
  while (all.ok() && all->more && !all->windows.empty()) {
    auto next = co_await session->get_windows(all->windows.back().id + 1);
    if (!next.ok()) co_return next.status();
    if (next->windows.empty() ? next->more : next->windows.front().id <= all->windows.back().id)
      co_return board_fault("the board lists the same windows again and again");
    auto windows = std::move(all->windows);
    windows.insert(windows.end(), next->windows.begin(), next->windows.end());
    all = std::move(next);
    all->windows = std::move(windows);
  }
  co_return all;
}

asio::awaitable<Result<model::CaptureState>> Orchestrator::Impl::feed_sensor(
    Session session, FleetControl::FeedSensor feed) {
  auto state = co_await session->get_windows(UINT32_MAX);
  if (!state.ok()) co_return state.status();
  const std::size_t step = std::size_t{state->channels} * (state->dtype == 3 ? 2 : 1);
  if (step == 0)
    co_return with_reason(absl::FailedPreconditionError("no capture is under way"), "NO_CAPTURE",
                          "Start one first.");
  if (step > session::BoardSession::kFeedBytes)
    co_return board_fault(absl::StrCat("the board says that a time step has ", step,
                                       " bytes; at most ", session::BoardSession::kFeedBytes,
                                       " can be fed"));
  if (feed.steps.size() % step != 0)
    co_return absl::InvalidArgumentError(absl::StrCat("steps: ", feed.steps.size(),
                                                      " bytes; a multiple of ", step, " (",
                                                      state->channels, " channels)"));
  const std::size_t most = session::BoardSession::kFeedBytes / step * step;
  for (std::size_t at = 0; at < feed.steps.size(); at += most) {
    state = co_await session->feed_sensor(feed.first + at / step, feed.steps.substr(at, most));
    if (!state.ok()) co_return state.status();
  }
  co_return state;
}

asio::awaitable<Result<model::CaptureState>> Orchestrator::Impl::capture(
    BoardUid uid, FleetControl::CaptureAct act) {
  const auto self = shared_from_this();
  auto found = require_session(uid);
  if (!found.ok()) co_return found.status();
  const Session session = *found;
  if ((session->hello().caps & model::kCapCapture) == 0)
    co_return with_reason(absl::UnimplementedError("this board's firmware takes no windows"),
                          "BOARD_CAPS", "Use a board whose firmware is built with capture.");
  if (auto* start = std::get_if<FleetControl::StartCapture>(&act)) {
    auto done = co_await start_capture(uid, session, std::move(*start));
    co_return done;
  }
  if (std::holds_alternative<FleetControl::StopCapture>(act)) {
    auto done = co_await session->capture_stop();
    co_return done;
  }
  if (const auto* label = std::get_if<FleetControl::LabelWindow>(&act)) {
    auto done = co_await session->label_window(label->id, label->label, label->keep);
    co_return done;
  }
  if (auto* feed = std::get_if<FleetControl::FeedSensor>(&act)) {
    auto done = co_await feed_sensor(session, std::move(*feed));
    co_return done;
  }
  auto done = co_await list_windows(session, std::get<FleetControl::ListWindows>(act).from_id);
  co_return done;
}

asio::awaitable<Result<FleetControl::WindowValues>> Orchestrator::Impl::read_window(
    BoardUid uid, std::uint32_t id) {
  const auto self = shared_from_this();
  auto session = require_session(uid);
  if (!session.ok()) co_return session.status();
  auto window = co_await (*session)->receive(model::Resource::kWindow, id);
  if (!window.ok()) co_return window.status();
  auto state = co_await (*session)->get_state(false);
  if (!state.ok()) co_return state.status();
  FleetControl::WindowValues out;
  out.values = std::move(window->content);
  // Without its manifest the values are of use all the same.
  auto stage = co_await input_stage(*env_, state->model_hash);
  if (stage.ok()) out.dtype = static_cast<std::uint32_t>(stage->dtype);
  co_return out;
}

}  // namespace odt::training
