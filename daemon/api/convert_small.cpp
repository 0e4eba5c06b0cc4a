// Messages that stand by themselves: leases, reasons, non-volatile memory, estimates.
#include "api/api_convert.h"
#include "api/convert_parts.h"
#include "api/errors.h"

namespace odt::api {

v1::Lease to_proto(const model::Lease& lease) {
  v1::Lease out;
  out.set_holder(id_bytes(lease.holder));
  out.set_what(clean_text(lease.what));
  out.set_actor(clean_text(lease.actor));
  out.set_since_time_us(lease.since_us);
  out.set_expire_time_us(lease.expire_us);
  return out;
}

v1::Reason to_proto(const model::Reason& reason) {
  v1::Reason out;
  set_reason(reason, &out);
  return out;
}

v1::BoardNvm to_proto(const model::NvmInfo& nvm) {
  v1::BoardNvm out;
  out.set_size_bytes(nvm.size);
  out.set_slot_bytes(nvm.slot_bytes);
  out.set_sequence(nvm.sequence);
  out.set_kind(static_cast<v1::NvmKind>(nvm.kind));
  out.set_bytes(nvm.bytes);
  out.set_step(nvm.step);
  out.set_run_id(id_bytes(nvm.run_id));
  out.set_attempt(nvm.attempt);
  out.set_hash(id_bytes(nvm.hash));
  out.set_model_hash(std::string(nvm.model_hash16.begin(), nvm.model_hash16.end()));
  out.set_has_image(nvm.has_image);
  out.set_has_best(nvm.has_best);
  out.add_writes(nvm.writes_0);
  out.add_writes(nvm.writes_1);
  out.set_want_state_bytes(nvm.want_state);
  out.set_want_best_bytes(nvm.want_best);
  out.set_want_image_bytes(nvm.want_image);
  return out;
}

v1::RunEstimate to_proto(const model::RunEstimate& estimate) {
  v1::RunEstimate out;
  out.set_basis(static_cast<v1::RunEstimate::Basis>(estimate.basis));
  out.set_step_us(estimate.step_us);
  out.set_link_bytes_per_s(estimate.link_bytes_per_s);
  out.set_link_measured(estimate.link_measured);
  out.set_steps(estimate.steps);
  out.set_send_bytes(estimate.send_bytes);
  out.set_prepare_us(estimate.prepare_us);
  out.set_train_us(estimate.train_us);
  out.set_evaluate_us(estimate.evaluate_us);
  out.set_total_us(estimate.total_us);
  out.set_queue_us(estimate.queue_us);
  out.set_ram_bytes(estimate.ram_bytes);
  out.set_board_ram_bytes(estimate.board_ram_bytes);
  out.set_placement(clean_text(estimate.placement));
  out.set_disk_bytes(estimate.disk_bytes);
  out.set_disk_free_bytes(estimate.disk_free_bytes);
  for (const auto& warning : estimate.warnings) *out.add_warnings() = to_proto(warning);
  return out;
}

}  // namespace odt::api
