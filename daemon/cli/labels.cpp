#include "cli/labels.h"

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
bool ended(v1::RunState state) {
  return state == v1::RUN_STATE_SUCCEEDED || state == v1::RUN_STATE_FAILED ||
         state == v1::RUN_STATE_CANCELLED;
}
bool ended(const v1::Job& job) {
  return job.state() == v1::Job::STATE_SUCCEEDED || job.state() == v1::Job::STATE_FAILED ||
         job.state() == v1::Job::STATE_CANCELLED;
}

}  // namespace odt::cli
