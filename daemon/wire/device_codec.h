#pragma once

#include "wire/messages.h"

// Between frame payloads (protobuf of proto/odt/device/v1) and plain values: the only place that
// knows both. Decoders bound every size, sanitise every text, and fail with DATA_LOSS where a
// payload is not the message; fields and kinds unknown to this daemon are left out. Encoders cannot
// fail: callers give values in range.
namespace odt::wire {

// Link frames.
std::string encode(const Hello& hello);
std::string encode(const Window& window);
std::string encode_chunk(std::uint32_t offset, std::string_view data);
Result<HelloAck> decode_hello_ack(std::string_view payload);
Result<NeedHello> decode_need_hello(std::string_view payload);
Result<LinkErr> decode_link_err(std::string_view payload);
Result<std::uint32_t> decode_busy(std::string_view payload);  // ms from now
Result<Pong> decode_pong(std::string_view payload);
Result<Log> decode_log(std::string_view payload);
Result<Chunk> decode_chunk(std::string_view payload);
Result<Window> decode_window(std::string_view payload);
Result<Answer> decode_response(std::string_view payload);
Result<EventBody> decode_event(std::string_view payload);

// Payloads of REQ frames.
namespace request {

std::string get_state(bool with_hash);
std::string xfer_open(const XferOpen& open);
std::string xfer_commit(std::uint32_t xfer_id, std::uint32_t crc32);
std::string xfer_abort(std::uint32_t xfer_id);
struct StartRun {
  Uuid run_id;
  std::uint32_t attempt = 0;
  model::DeviceRunSpec spec;
  Hash expect_state;
  bool from_weights = false;
  Hash expect_weights;
  std::vector<model::Steer> steering;
};
std::string start_run(const StartRun& start);
std::string train_step(const Uuid& run, std::uint32_t attempt, std::uint32_t step,
                       std::uint32_t batch_id, std::uint32_t slot);
std::string end_epoch(const Uuid& run, std::uint32_t attempt, std::uint32_t epoch,
                      std::uint32_t eval_id);
std::string ack_epoch(const Uuid& run, std::uint32_t attempt, std::uint32_t epoch);
std::string get_epoch(std::uint32_t epoch);
std::string job_control(const Uuid& run, int action);
std::string set_precision(const Uuid& run, std::uint32_t attempt, const model::Steer& steer);
std::string best_kept(const Uuid& run, std::uint32_t attempt, const Hash& weights);
std::string evaluate(std::uint32_t eval_id, model::SampleRole role, std::uint32_t total);
std::string eval_step(std::uint32_t eval_id, std::uint32_t seq, std::uint32_t batch_id,
                      std::uint32_t slot);
std::string get_eval(std::uint32_t eval_id);
std::string infer();
std::string get_telemetry_from(std::uint32_t event_id);
std::string identify(std::uint32_t seconds);
std::string reset();
std::string capture_start(const model::CaptureSettings& settings);
std::string capture_stop();
std::string get_windows(std::uint32_t from_id);
std::string label_window(std::uint32_t window_id, std::uint32_t label, model::SampleRole keep);
std::string feed_sensor(std::uint64_t first, std::string_view steps);
std::string nvm_commit(std::uint32_t commit_id, const Hash& expect);  // zero: any
std::string nvm_erase(std::uint32_t commit_id);
std::string nvm_status(bool restore);

}  // namespace request
}  // namespace odt::wire
