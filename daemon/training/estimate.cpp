#include "training/estimate.h"

#include <absl/strings/str_cat.h>

#include <algorithm>

#include "data/order.h"
#include "training/ram_fit.h"

namespace odt::training {
namespace {

using Basis = model::RunEstimate::Basis;

constexpr std::uint32_t kTcpBytesPerS = 1'000'000, kSerialBytesPerS = 9'000;  // 115200 baud
constexpr std::uint64_t kFrameBytes = 60, kRowBytes = 4096;
constexpr std::int64_t kRoundTripUs = 2000;

const model::StepTime* time_of(const model::Model& model, const std::string& board_type) {
  for (const auto& t : model.times)
    if (t.board == board_type) return &t;
  return nullptr;
}

double step_of(const model::StepTime& t, std::uint32_t k, std::uint32_t batch) {
  const auto b1 = static_cast<double>(k > 8 ? t.k15_b1_ns : t.k8_b1_ns);
  const auto b8 = static_cast<double>(k > 8 ? t.k15_b8_ns : t.k8_b8_ns);
  return std::max(0.0, b1 + (b8 - b1) * (static_cast<double>(batch) - 1) / 7);
}

// Predicted on whatever board the two models share: good for their ratio.
double relative_step(const model::Model& model, const std::string& board_type, std::uint32_t k,
                     std::uint32_t batch) {
  if (const auto* t = time_of(model, board_type)) return step_of(*t, k, batch);
  return model.times.empty() ? 0 : step_of(model.times.front(), k, batch);
}

int rank(Basis basis) { return basis == Basis::kUnspecified ? 99 : static_cast<int>(basis); }

// A run's measurements, in the light of another board and model.
struct History {
  const RateBook::Measured& run;
  const model::Model& model;
  bool same_board = false, same_model = false;
};

void take_step(Rates& rates, const History& h, const std::string& board_type) {
  if (h.run.timing.step_us == 0 || !h.run.k || !h.run.batch) return;
  const Basis basis = !h.same_model  ? Basis::kScaled
                      : h.same_board ? Basis::kThisBoard
                                     : Basis::kSameCore;
  if (rank(basis) >= rank(rates.basis)) return;
  const double measured = double{1000} * h.run.timing.step_us;
  const double predicted = relative_step(h.model, board_type, *h.run.k, *h.run.batch);
  if (predicted <= 0 && !h.same_model) return;
  rates.basis = basis;
  rates.step_ns_per_predicted = predicted > 0 ? measured / predicted : 0;
  rates.step_ns_per_sample = measured / *h.run.batch;
}

std::uint64_t train_bytes(const RunParts& parts, const Placement& place) {
  return std::uint64_t{parts.dataset.train} * sample_bytes(parts.model, place.form);
}

std::int64_t us(double seconds) { return static_cast<std::int64_t>(seconds * 1e6); }

double predicted_step_ns(const model::Model& model, const std::string& board_type, std::uint32_t k,
                         std::uint32_t batch) {
  const auto* t = time_of(model, board_type);
  return t == nullptr ? 0 : step_of(*t, k, batch);
}

}  // namespace

double step_ns(const Rates& rates, const model::Model& model, const std::string& board_type,
               std::uint32_t k, std::uint32_t batch) {
  const double relative = relative_step(model, board_type, k, batch);
  if (rates.step_ns_per_predicted > 0 && relative > 0)
    return rates.step_ns_per_predicted * relative;
  if (rates.step_ns_per_sample > 0) return rates.step_ns_per_sample * batch;
  return predicted_step_ns(model, board_type, k, batch);
}

asio::awaitable<Result<Rates>> read_rates(Env& env, model::Board board, model::Model model) {
  const auto book = env.rates;
  if (!book->loaded()) {
    const auto read = [](store::ControlStore& s) { return RateBook::read(s); };
    auto contents = co_await env.control.call(read);
    if (!contents.ok()) co_return contents.status();
    book->take(std::move(*contents));
  }
  Rates rates;
  bool this_link = false;
  for (auto it = book->runs().rbegin(); it != book->runs().rend(); ++it) {
    const RateBook::Measured& run = it->second;
    const bool same_board = run.board == board.uid, same_model = run.model == model.hash;
    const model::Board* other = same_board ? nullptr : env.registry->find(run.board);
    if (!same_board && (other == nullptr || other->board_type != board.board_type)) continue;
    if (run.timing.link_bytes_per_s != 0 && !this_link && (same_board || !rates.link_measured)) {
      this_link = same_board;
      rates.link_bytes_per_s = run.timing.link_bytes_per_s;
      rates.link_measured = true;
    }
    if (same_board && same_model && rates.sample_us == 0) rates.sample_us = run.timing.sample_us;
    const model::Model* known = same_model ? &model : book->model(run.model);
    if (known != nullptr) take_step(rates, {run, *known, same_board, same_model}, board.board_type);
  }
  if (rates.link_bytes_per_s == 0)
    rates.link_bytes_per_s =
        board.link.endpoint.starts_with("/") ? kSerialBytesPerS : kTcpBytesPerS;
  if (rates.basis == Basis::kUnspecified && time_of(model, board.board_type) != nullptr)
    rates.basis = Basis::kPredicted;
  co_return rates;
}

Result<Likely> likely_settings(const RunParts& parts, const model::HyperParams& asked) {
  const bool classes = parts.model.outputs.has_classes();
  const Drift drift = classes ? Drift::kMild : Drift::kStrong;
  const SampleCounts counts{parts.dataset.train, parts.dataset.heldout, parts.evaluate,
                            parts.start_snapshot, asked.guard.value_or(true)};
  std::uint32_t batch = policy_batch(asked, drift);
  if (parts.board.max_batch != 0 && !asked.batch) batch = std::min(batch, parts.board.max_batch);
  ODT_ASSIGN(const auto fit, placements(parts.model, parts.board, counts, asked, batch));
  Likely out;
  out.place = fit.front();
  out.hyper = resolve(asked, drift, out.place, parts.model.has_ce_scale, parts.dataset.heldout != 0,
                      classes);
  return out;
}

model::RunEstimate estimate(const RunParts& parts, const model::HyperParams& resolved,
                            const Placement& place, const Rates& rates) {
  model::RunEstimate out;
  const std::uint32_t batch = resolved.batch.value_or(8), epochs = resolved.epochs.value_or(1);
  out.basis = rates.basis;
  out.link_bytes_per_s = rates.link_bytes_per_s;
  out.link_measured = rates.link_measured;
  out.steps = data::steps_per_epoch(parts.dataset.train, batch) * epochs;
  const double step =
      step_ns(rates, parts.model, parts.board.board_type, resolved.k.value_or(8), batch);
  out.step_us = static_cast<std::uint32_t>(step / 1000);
  const double link = rates.link_bytes_per_s;
  const std::uint64_t sample = sample_bytes(parts.model, place.form);
  const double forward_us =
      static_cast<double>(out.step_us) / batch / 3;  // backward costs about twice as much
  const double sample_us =
      rates.sample_us != 0 ? rates.sample_us
                           : forward_us + static_cast<double>(sample) / link * 1e6 + kRoundTripUs;
  const auto seconds = [link](std::uint64_t bytes) { return static_cast<double>(bytes) / link; };
  const std::uint64_t image =
      place.form == Form::kTail ? parts.model.tail.image_bytes : parts.model.image_bytes;
  const std::uint64_t heldout = parts.dataset.heldout,
                      test = parts.evaluate ? parts.dataset.test : 0;
  const std::uint64_t resident = place.streamed ? 0 : train_bytes(parts, place) + heldout * sample;
  const std::uint64_t streamed =
      place.streamed ? epochs * (train_bytes(parts, place) + heldout * sample) : 0;
  out.send_bytes = image + resident + streamed + (heldout + 2 * test) * sample;
  out.prepare_us = us(seconds(image + resident)) +
                   static_cast<std::int64_t>(sample_us * static_cast<double>(heldout + test));
  const RamNeed need = ram_need(parts.model,
                                {parts.dataset.train, parts.dataset.heldout, parts.evaluate,
                                 parts.start_snapshot, resolved.guard.value_or(true)},
                                place);
  const std::uint64_t state = std::max<std::uint64_t>(need.trainer / 2, 256);
  const std::uint32_t every = resolved.checkpoint_epochs.value_or(1);
  const std::uint64_t checkpoints = every == 0 ? 0 : epochs / every;
  if (out.step_us != 0)
    out.train_us = std::int64_t{out.steps} * out.step_us +
                   static_cast<std::int64_t>(forward_us * static_cast<double>(heldout) * epochs) +
                   us(seconds(streamed + checkpoints * state)) +
                   (place.streamed ? std::int64_t{out.steps} * 2 * kRoundTripUs : 0);
  out.evaluate_us = static_cast<std::int64_t>(sample_us * static_cast<double>(test));
  if (out.train_us != 0) out.total_us = out.prepare_us + out.train_us + out.evaluate_us;
  out.ram_bytes = need.total();
  out.board_ram_bytes = parts.board.ram_bytes;
  const std::uint32_t reported = std::max(1u, resolved.telemetry_every.value_or(1));
  out.disk_bytes =
      out.steps / reported * kFrameBytes + epochs * kRowBytes + checkpoints * 2 * state + state;
  return out;
}

}  // namespace odt::training
