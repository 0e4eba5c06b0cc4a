#include "api/service_helpers.h"

namespace odt::api {
namespace {

using Fleet = training::FleetControl;

constexpr std::size_t kMaxRules = 4, kMaxChannels = 8, kMaxFeed = 64u << 10;
constexpr std::uint32_t kDefaultSlots = 16, kMaxLabel = 127;

model::SampleRole role_of(v1::CaptureRole role) {
  switch (role) {
    case v1::CAPTURE_ROLE_TRAIN:
      return model::SampleRole::kTrain;
    case v1::CAPTURE_ROLE_HELDOUT:
      return model::SampleRole::kHeldout;
    default:
      return model::SampleRole::kNone;
  }
}

v1::CaptureRole role_of(model::SampleRole role) {
  switch (role) {
    case model::SampleRole::kTrain:
      return v1::CAPTURE_ROLE_TRAIN;
    case model::SampleRole::kHeldout:
      return v1::CAPTURE_ROLE_HELDOUT;
    default:
      return v1::CAPTURE_ROLE_UNSPECIFIED;
  }
}

Status at_most(std::uint64_t got, std::uint64_t limit, const std::string& field) {
  if (got <= limit) return absl::OkStatus();
  return bad_field(field, std::to_string(got) + "; at most " + std::to_string(limit));
}

Result<std::vector<model::LabelRule>> rules_of(const v1::CaptureSettings& s) {
  std::vector<model::LabelRule> rules;
  ODT_TRY(at_most(static_cast<std::uint64_t>(s.rules_size()), kMaxRules, "settings.rules"));
  for (const auto& rule : s.rules()) {
    ODT_TRY(at_most(rule.label(), kMaxLabel, "settings.rules.label"));
    if (rule.of() < v1::CaptureRule::OF_MEAN || rule.of() > v1::CaptureRule::OF_RANGE)
      return bad_field("settings.rules.of", "wanted MEAN, MAX or RANGE");
    rules.push_back({static_cast<model::LabelRule::Of>(rule.of()), rule.channel(), rule.min(),
                     rule.max(), rule.label()});
  }
  return rules;
}

// Ranges that the board checks itself are left to it: it knows model and sensor.
Result<Fleet::StartCapture> start_of(const v1::StartCaptureRequest& request) {
  const v1::CaptureSettings& s = request.settings();
  Fleet::StartCapture start;
  if (!request.model_hash().empty()) {
    ODT_ASSIGN(start.model, hash_field(request.model_hash(), "model_hash"));
  }
  auto& to = start.settings;
  to.window_steps = s.window_steps();
  to.stride_steps = s.stride_steps();
  to.slots = s.slots() == 0 ? kDefaultSlots : s.slots();
  ODT_TRY(at_most(static_cast<std::uint64_t>(s.mul_size()), kMaxChannels, "settings.mul"));
  ODT_TRY(at_most(static_cast<std::uint64_t>(s.add_size()), kMaxChannels, "settings.add"));
  to.mul.assign(s.mul().begin(), s.mul().end());
  to.add.assign(s.add().begin(), s.add().end());
  to.shift = s.shift();
  const bool given = !to.mul.empty() || !to.add.empty() || to.shift != 0;
  if (given && s.unscaled()) return bad_field("settings.unscaled", "with mul, add or shift");
  start.scale_by_model = !given && !s.unscaled();
  if (!v1::CaptureTrigger_IsValid(s.trigger())) return bad_field("settings.trigger", "unknown");
  to.trigger = static_cast<model::CaptureTrigger>(s.trigger());
  to.trigger_channel = s.trigger_channel();
  to.trigger_level = s.trigger_level();
  ODT_ASSIGN(to.rules, rules_of(s));
  if (s.has_button_label()) {
    ODT_TRY(at_most(s.button_label(), kMaxLabel, "settings.button_label"));
    to.button_label = s.button_label();
  }
  if (s.has_label()) {
    ODT_TRY(at_most(s.label(), kMaxLabel, "settings.label"));
    to.label = s.label();
  }
  to.keep = role_of(s.keep());
  to.heldout_every = s.heldout_every();
  to.channels = s.channels();
  to.dtype = s.dtype();
  return start;
}

v1::Capture capture_proto(const model::CaptureState& c) {
  v1::Capture out;
  out.set_active(c.active);
  out.set_captured(c.captured);
  out.set_lost_windows(c.lost_windows);
  out.set_lost_steps(c.lost_steps);
  out.set_steps(c.steps);
  out.set_kept_train(c.kept_train);
  out.set_kept_heldout(c.kept_heldout);
  out.set_not_kept(c.not_kept);
  out.set_window_steps(c.window_steps);
  out.set_channels(c.channels);
  out.set_dtype(c.dtype);
  for (const auto& w : c.windows) {
    v1::CapturedWindow& to = *out.add_windows();
    to.set_id(w.id);
    to.set_time_ms(w.time_ms);
    if (w.label) to.set_label(*w.label);
    to.set_kept(role_of(w.kept));
    to.set_by_rule(w.by_rule);
    to.set_by_button(w.by_button);
  }
  return out;
}

// A Done that answers with the capture.
template <typename Resp>
Done<model::CaptureState> answer_capture(Reply<Resp> reply) {
  return [reply = std::move(reply)](Result<model::CaptureState> result) {
    if (!result.ok()) return reply(result.status());
    Resp response;
    *response.mutable_capture() = capture_proto(*result);
    reply(std::move(response));
  };
}

void add_settings(ApiService& service, Deps& deps) {
  service.unary<v1::StartCaptureRequest, v1::StartCaptureResponse>(
      "StartCapture", [&deps](const Call& call, const v1::StartCaptureRequest& request,
                              Reply<v1::StartCaptureResponse> reply) {
        ODT_FIELD(const BoardUid uid, uid_field(request.uid(), "uid"));
        ODT_FIELD(auto start, start_of(request));
        deps.fleet.capture(call.ctx, uid, std::move(start), answer_capture(reply));
      });
  service.unary<v1::StopCaptureRequest, v1::StopCaptureResponse>(
      "StopCapture", [&deps](const Call& call, const v1::StopCaptureRequest& request,
                             Reply<v1::StopCaptureResponse> reply) {
        ODT_FIELD(const BoardUid uid, uid_field(request.uid(), "uid"));
        deps.fleet.capture(call.ctx, uid, Fleet::StopCapture{}, answer_capture(reply));
      });
}

void add_windows(ApiService& service, Deps& deps) {
  service.unary<v1::GetCaptureRequest, v1::GetCaptureResponse>(
      "GetCapture", [&deps](const Call& call, const v1::GetCaptureRequest& request,
                            Reply<v1::GetCaptureResponse> reply) {
        ODT_FIELD(const BoardUid uid, uid_field(request.uid(), "uid"));
        deps.fleet.capture(call.ctx, uid, Fleet::ListWindows{request.from_id()},
                           answer_capture(reply));
      });
  service.unary<v1::GetWindowRequest, v1::GetWindowResponse>(
      "GetWindow", [&deps](const Call& call, const v1::GetWindowRequest& request,
                           Reply<v1::GetWindowResponse> reply) {
        ODT_FIELD(const BoardUid uid, uid_field(request.uid(), "uid"));
        deps.fleet.read_window(call.ctx, uid, request.id(),
                               [reply](Result<Fleet::WindowValues> window) {
                                 if (!window.ok()) return reply(window.status());
                                 v1::GetWindowResponse response;
                                 response.set_values(std::move(window->values));
                                 response.set_dtype(window->dtype);
                                 reply(std::move(response));
                               });
      });
  service.unary<v1::LabelWindowRequest, v1::LabelWindowResponse>(
      "LabelWindow", [&deps](const Call& call, const v1::LabelWindowRequest& request,
                             Reply<v1::LabelWindowResponse> reply) {
        ODT_FIELD(const BoardUid uid, uid_field(request.uid(), "uid"));
        if (auto bad = at_most(request.label(), kMaxLabel, "label"); !bad.ok()) return reply(bad);
        deps.fleet.capture(
            call.ctx, uid,
            Fleet::LabelWindow{request.id(), request.label(), role_of(request.keep())},
            answer_capture(reply));
      });
  service.unary<v1::FeedSensorRequest, v1::FeedSensorResponse>(
      "FeedSensor", [&deps](const Call& call, const v1::FeedSensorRequest& request,
                            Reply<v1::FeedSensorResponse> reply) {
        ODT_FIELD(const BoardUid uid, uid_field(request.uid(), "uid"));
        if (auto bad = at_most(request.steps().size(), kMaxFeed, "steps (bytes)"); !bad.ok())
          return reply(bad);
        deps.fleet.capture(call.ctx, uid, Fleet::FeedSensor{request.first(), request.steps()},
                           answer_capture(reply));
      });
}

}  // namespace

ServicePtr make_capture_service(Deps& deps) {
  auto service = std::make_unique<ApiService>(
      deps.gate,
      *v1::StartCaptureRequest::descriptor()->file()->FindServiceByName("CaptureService"));
  add_settings(*service, deps);
  add_windows(*service, deps);
  return service;
}

}  // namespace odt::api
