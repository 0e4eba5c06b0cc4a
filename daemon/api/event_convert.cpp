#include "api/convert_parts.h"

// Events as messages: each body by its own conversion.
namespace odt::api {

v1::Event to_proto(const model::Event& event) {
  v1::Event out;
  out.set_event_seq(event.seq);
  out.set_time_us(event.time_us);
  out.set_actor(clean_text(event.actor));
  out.set_command_id(id_bytes(event.command_id));
  struct Set {
    v1::Event& out;
    void operator()(const model::Board& v) { *out.mutable_board() = to_proto(v); }
    void operator()(const model::Port& v) { *out.mutable_port() = to_proto(v); }
    void operator()(const model::Model& v) { *out.mutable_model() = to_proto(v); }
    void operator()(const model::Dataset& v) { *out.mutable_dataset() = to_proto(v); }
    void operator()(const model::Snapshot& v) { *out.mutable_snapshot() = to_proto(v); }
    void operator()(const model::Run& v) { *out.mutable_run() = to_proto(v); }
    void operator()(const model::RunEvent& v) { *out.mutable_run_event() = to_proto(v); }
    void operator()(const model::EpochResult& v) { *out.mutable_epoch() = to_proto(v); }
    void operator()(const model::Job& v) { *out.mutable_job() = to_proto(v); }
    void operator()(const model::Evaluation& v) { *out.mutable_evaluation() = to_proto(v); }
    void operator()(const model::Campaign& v) { *out.mutable_campaign() = to_proto(v); }
    void operator()(const model::CampaignEvent& v) { *out.mutable_campaign_event() = to_proto(v); }
    void operator()(const model::Alert& v) { *out.mutable_alert() = to_proto(v); }
    void operator()(const model::Setting& v) { *out.mutable_setting() = to_proto(v); }
    void operator()(const model::AlertSettings& v) { *out.mutable_alert_settings() = to_proto(v); }
    void operator()(const model::LabEvent& v) { *out.mutable_lab_event() = to_proto(v); }
    void operator()(const model::Deleted& v) {
      out.mutable_deleted()->set_kind(clean_text(v.kind));
      out.mutable_deleted()->set_key(v.key);
    }
    void operator()(const model::Warning& v) {
      set_reason(v.reason, out.mutable_warning()->mutable_reason());
      out.mutable_warning()->set_board_uid(v.board_uid.str());
      out.mutable_warning()->set_run_id(id_bytes(v.run_id));
    }
  };
  std::visit(Set{out}, event.body);
  return out;
}

}  // namespace odt::api
