#include "cli/labels.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "cli/text.h"
#include "odt/api/v1/types.pb.h"

namespace odt::cli {

namespace v1 = api::v1;

std::string state_word(v1::RunState state) {
  return without_prefix(v1::RunState_Name(state), "RUN_STATE_");
}
std::string status_word(v1::BoardStatus status) {
  return without_prefix(v1::BoardStatus_Name(status), "BOARD_STATUS_");
}
std::string port_word(v1::PortState state) {
  return without_prefix(v1::PortState_Name(state), "PORT_STATE_");
}
std::string job_word(const v1::Job& job) {
  return without_prefix(v1::Job::Kind_Name(job.kind()), "KIND_") + " " +
         without_prefix(v1::Job::State_Name(job.state()), "STATE_");
}
std::string accuracy_text(const v1::Accuracy& accuracy) {
  return percent(accuracy.correct(), accuracy.total());
}
std::string loss_text(const v1::Loss& loss) {
  return loss_text(loss.sum(), loss.exp2(), loss.count());
}
bool has_classes(const v1::Outputs& outputs) {
  return outputs.task() != v1::TASK_REGRESS && outputs.task() != v1::TASK_AUTOENCODE;
}
double common_scale(const v1::Outputs& outputs) {
  const auto& scales = outputs.scale();
  if (scales.empty()) return 0;
  const bool alike = std::all_of(scales.begin(), scales.end(),
                                 [&scales](float scale) { return scale == scales[0]; });
  return alike ? double{scales[0]} : 0;
}
std::string error_text(double sum, std::uint32_t samples, const v1::Outputs& outputs) {
  if (samples == 0) return "-";
  const double scale = common_scale(outputs);
  const double unit = scale == 0 ? 1 : scale * scale;
  return significant(sum / samples / std::max(outputs.count(), 1u) / unit);
}
std::string error_text(const v1::Loss& loss, const v1::Outputs& outputs) {
  return error_text(std::ldexp(static_cast<double>(loss.sum()), loss.exp2()), loss.count(),
                    outputs);
}
std::string error_unit(const v1::Outputs& outputs) {
  if (common_scale(outputs) == 0) return "mean squared error, steps of the model's integer outputs";
  return outputs.task() == v1::TASK_AUTOENCODE ? "mean squared error, units of the data"
                                               : "mean squared error, units of the target";
}
std::string score_text(const v1::Accuracy& accuracy, const v1::Loss& loss,
                       const v1::Outputs& outputs) {
  if (has_classes(outputs)) return accuracy_text(accuracy);
  return loss.count() == 0 ? "-" : "mse " + error_text(loss, outputs);
}
std::string eta_text(const v1::Run& run) {
  if (run.eta_time_us() == 0) return "-";
  const std::int64_t now_us = std::chrono::duration_cast<std::chrono::microseconds>(
                                  std::chrono::system_clock::now().time_since_epoch())
                                  .count();
  const std::int64_t left_us = run.eta_time_us() - now_us;
  return clock_text(run.eta_time_us()) +
         (left_us > 0 ? ", in " + duration_text(left_us) : std::string(", any moment"));
}
bool ended(v1::RunState state) {
  return state == v1::RUN_STATE_SUCCEEDED || state == v1::RUN_STATE_FAILED ||
         state == v1::RUN_STATE_CANCELLED;
}
bool ended(const v1::Job& job) {
  return job.state() == v1::Job::STATE_SUCCEEDED || job.state() == v1::Job::STATE_FAILED ||
         job.state() == v1::Job::STATE_CANCELLED;
}

}  // namespace odt::cli
