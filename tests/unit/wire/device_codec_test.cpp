#include "wire/device_codec.h"

#include <gtest/gtest.h>

#include <random>

#include "odt/device/v1/device.pb.h"

namespace odt::wire {
namespace {

namespace pb = ::odt::device::v1;

template <typename Id>
Id filled(std::uint8_t value) {
  Id id;
  id.bytes.fill(value);
  return id;
}

TEST(DeviceCodec, Hello) {
  Hello hello;
  hello.host_id = filled<GatewayId>(3);
  hello.session64 = 0x1122334455667788;
  hello.mtu = 576;
  hello.nonce = 9;
  pb::Hello m;
  ASSERT_TRUE(m.ParseFromString(encode(hello)));
  EXPECT_EQ(m.proto_min(), 1u);
  EXPECT_EQ(m.proto_max(), 1u);
  EXPECT_EQ(m.host_id(), std::string(16, '\3'));
  EXPECT_EQ(m.session64(), 0x1122334455667788u);
  EXPECT_EQ(m.mtu(), 576u);
  EXPECT_LE(encode(hello).size(), 256u);
}

TEST(DeviceCodec, HelloAck) {
  pb::HelloAck m;
  m.set_proto(1);
  m.set_uid("12345678abcd");
  m.set_board("evil\x1b[31m");
  m.set_core("cortex-m33");
  m.set_boot_id(77);
  m.set_reset_reason(pb::RESET_REASON_WATCHDOG);
  m.set_mtu(576);
  m.set_model_hash(std::string(16, 'm'));
  m.set_state_hash("short");
  m.set_run_id(std::string(16, 'r'));
  m.set_job(pb::JOB_STATE_PAUSED);
  m.set_first_event(5);
  m.set_next_event(9);
  const auto ack = decode_hello_ack(m.SerializeAsString());
  ASSERT_TRUE(ack.ok()) << ack.status();
  EXPECT_EQ(ack->info.uid.str(), "12345678abcd");
  EXPECT_EQ(ack->info.board_type, "evil?[31m");
  EXPECT_EQ(ack->info.reset_reason, "WATCHDOG");
  EXPECT_EQ(ack->info.model_hash16.size(), 16u);
  EXPECT_TRUE(ack->info.state_hash16.empty());
  EXPECT_EQ(ack->info.run_id.str(), std::string(16, 'r'));
  EXPECT_EQ(ack->info.job, model::JobState::kPaused);
  EXPECT_EQ(ack->info.next_event, 9u);
}

TEST(DeviceCodec, Report23_AbsurdCapabilitiesAreTakenForTheMostThereIs) {
  pb::HelloAck m;
  m.set_uid("12345678");
  m.set_caps(0xFFFFFFFF);
  m.set_max_layers(0xFFFFFFFF);
  m.set_max_batch(0xFFFFFFFF);
  m.set_max_poll_ms(0xFFFFFFFF);
  m.set_ram_bytes(0xFFFFFFFF);
  m.set_rx_window_bytes(0xFFFFFFFF);
  m.set_first_event(0xFFFFFFFF);
  m.set_job(static_cast<pb::JobState>(99));
  const auto ack = decode_hello_ack(m.SerializeAsString());
  ASSERT_TRUE(ack.ok()) << ack.status();
  EXPECT_EQ(ack->info.max_layers, 16u);
  EXPECT_EQ(ack->info.max_batch, 256u);
  EXPECT_EQ(ack->info.max_poll_ms, 60000u);
  EXPECT_EQ(ack->info.next_event, 0xFFFFFFFFu) << "never before the first";
  EXPECT_EQ(ack->info.job, model::JobState::kNone);
}

TEST(DeviceCodec, HelloAckWithoutAUsableUidIsRefused) {
  pb::HelloAck m;
  m.set_uid("short");
  EXPECT_FALSE(decode_hello_ack(m.SerializeAsString()).ok());
  m.set_uid(std::string(17, 'x'));
  EXPECT_FALSE(decode_hello_ack(m.SerializeAsString()).ok());
}

TEST(DeviceCodec, ErrorsKeepCodeTextAndLimit) {
  pb::Response m;
  m.mutable_error()->set_code(pb::STATUS_CODE_RESOURCE_EXHAUSTED);
  m.mutable_error()->set_text("image of 9 bytes\n");
  m.mutable_error()->set_limit(8);
  const auto answer = decode_response(m.SerializeAsString());
  ASSERT_TRUE(answer.ok());
  EXPECT_TRUE(absl::IsResourceExhausted(answer->error));
  EXPECT_EQ(answer->error.message(), "board: image of 9 bytes? (limit 8)");
  EXPECT_EQ(answer->limit, 8u);
}

TEST(DeviceCodec, UnknownErrorCodeIsStillAnError) {
  pb::Response m;
  m.mutable_error()->set_code(static_cast<pb::StatusCode>(999));
  const auto answer = decode_response(m.SerializeAsString());
  ASSERT_TRUE(answer.ok());
  EXPECT_FALSE(answer->error.ok());
  m.mutable_error()->set_code(pb::STATUS_CODE_UNSPECIFIED);
  EXPECT_FALSE(decode_response(m.SerializeAsString())->error.ok());
}

TEST(DeviceCodec, StepRecordUnpacksLayers) {
  pb::Event m;
  m.mutable_step()->set_step(12);
  m.mutable_step()->set_loss(28501);
  m.mutable_step()->set_correct(3);
  m.mutable_step()->set_layers(std::string("\x0d\x06\x08\x0f\xfe\x0f", 6));
  const auto body = decode_event(m.SerializeAsString());
  ASSERT_TRUE(body.ok());
  const auto& frame = std::get<model::TelemetryFrame>(*body);
  EXPECT_EQ(frame.step, 12u);
  EXPECT_EQ(frame.loss.sum, 28501);
  EXPECT_EQ(frame.correct, 3u);
  ASSERT_EQ(frame.layers.size(), 2u);
  EXPECT_EQ(frame.layers[0], (model::LayerStep{13, 6, 8}));
  EXPECT_EQ(frame.layers[1], (model::LayerStep{15, -2, 15}));
}

TEST(DeviceCodec, HostileStepRecordIsBounded) {
  pb::Event m;
  m.mutable_step()->set_first_layer(0xFFFFFFFF);
  m.mutable_step()->set_layers(std::string(4000, 'x'));
  const auto body = decode_event(m.SerializeAsString());
  ASSERT_TRUE(body.ok());
  EXPECT_LE(std::get<model::TelemetryFrame>(*body).layers.size(), 64u);
}

TEST(DeviceCodec, EpochRecord) {
  pb::Event m;
  pb::EpochRecord& e = *m.mutable_epoch();
  e.set_epoch(2);
  e.set_step(225);
  e.set_loss(391705);
  e.set_correct(400);
  e.set_total(600);
  e.set_state_hash(std::string(32, 's'));
  pb::LayerEpoch& l = *e.add_layers();
  l.set_shift(-3);
  l.set_k_off(7);
  l.set_e_d(-9);
  l.set_w_min(-31);
  l.set_w_max(32);
  l.set_sum_abs_g(1ull << 40);
  l.set_sum_n(4);
  l.set_logical_bits(1000);
  l.set_resident_bytes(160);
  l.set_mu(-2);
  l.set_mu_clamped(true);
  const auto body = decode_event(m.SerializeAsString());
  ASSERT_TRUE(body.ok());
  const auto& epoch = std::get<model::EpochResult>(*body);
  EXPECT_EQ(epoch.loss.sum, 391705);
  EXPECT_EQ(epoch.loss.count, 600u);
  EXPECT_EQ(epoch.train.correct, 400u);
  EXPECT_EQ(epoch.state_hash.str(), std::string(32, 's'));
  ASSERT_EQ(epoch.layers.size(), 1u);
  EXPECT_EQ(epoch.layers[0].shift, -3);
  EXPECT_EQ(epoch.layers[0].k_off, 7u);
  EXPECT_EQ(epoch.layers[0].e_d, -9);
  EXPECT_EQ(epoch.layers[0].w_min, -31);
  EXPECT_EQ(epoch.layers[0].w_max, 32);
  EXPECT_EQ(epoch.layers[0].sum_abs_g, 1ull << 40);
  EXPECT_EQ(epoch.layers[0].sum_n, 4u);
  EXPECT_EQ(epoch.layers[0].logical_bits, 1000u);
  EXPECT_EQ(epoch.layers[0].resident_bytes, 160u);
  EXPECT_EQ(epoch.layers[0].mu, -2);
  EXPECT_TRUE(epoch.layers[0].mu_clamped);
}

TEST(DeviceCodec, EventOfANewerFirmwareIsNothing) {
  // Field 200, length-delimited, unknown here.
  const auto body = decode_event(std::string("\xc2\x0c\x02hi", 5));
  ASSERT_TRUE(body.ok());
  EXPECT_TRUE(std::holds_alternative<std::monostate>(*body));
}

TEST(DeviceCodec, JobStateOfANewerFirmwareIsNone) {
  pb::Pong m;
  m.set_job(static_cast<pb::JobState>(77));
  EXPECT_EQ(decode_pong(m.SerializeAsString())->job, model::JobState::kNone);
}

TEST(DeviceCodec, RunSpecHasEveryField) {
  request::StartRun start;
  start.run_id = filled<Uuid>(1);
  start.attempt = 3;
  auto& h = start.spec.hyper;
  h.rule_set = model::RuleSet::kNitiLiteral;
  h.rounding = model::Rounding::kPsto;
  h.loss = model::LossKind::kCe;
  h.shift_source = model::ShiftSource::kStale;
  h.mu_weight = {2, 1, -3};
  h.mu_offset = -1;
  h.dead_zone = 4;
  h.k = 15;
  h.batch = 8;
  h.epochs = 6;
  h.order_seed = 7;
  h.sr_seed = 9;
  h.guard = true;
  h.best_on_host = true;
  start.spec.train_samples = 600;
  start.spec.heldout_samples = 100;
  start.spec.sample_set_hash = filled<Hash>(5);
  start.spec.streamed = true;
  start.expect_state = filled<Hash>(6);
  pb::Request m;
  ASSERT_TRUE(m.ParseFromString(request::start_run(start)));
  const pb::StartRun& s = m.start_run();
  EXPECT_EQ(s.attempt(), 3u);
  EXPECT_EQ(s.expect_state_hash(), std::string(32, '\6'));
  EXPECT_TRUE(s.expect_weights_hash().empty());
  EXPECT_EQ(s.spec().rule_set(), 2u);
  EXPECT_EQ(s.spec().rounding(), 3u);
  EXPECT_EQ(s.spec().loss(), 2u);
  EXPECT_EQ(s.spec().shift_source(), 2u);
  EXPECT_EQ(s.spec().mu_weight_0(), 2);
  EXPECT_EQ(s.spec().mu_weight_2(), -3);
  EXPECT_EQ(s.spec().mu_offset(), -1);
  EXPECT_EQ(s.spec().k(), 15u);
  EXPECT_EQ(s.spec().epochs(), 6u);
  EXPECT_EQ(s.spec().sr_seed(), 9u);
  EXPECT_TRUE(s.spec().guard());
  EXPECT_TRUE(s.spec().best_on_host());
  EXPECT_TRUE(s.spec().streamed());
  EXPECT_EQ(s.spec().apt_k_max(), 0u);
  h.layer_k = {0, 12};
  h.apt = model::AptMode::kEpochs;
  h.apt_k_max = 14;
  h.apt_offsets = true;
  h.apt_t_min_q8 = 77;
  h.apt_t_max_q8 = 400;
  h.lr_m = {9, 5, 1};
  h.lr_s = 20;
  h.blocked = true;
  h.commit_every = 7;
  start.steering = {{100, 1, 12}};
  ASSERT_TRUE(m.ParseFromString(request::start_run(start)));
  EXPECT_EQ(m.start_run().spec().layer_k(), std::string("\0\x0c", 2));
  EXPECT_EQ(m.start_run().spec().apt_mode(), 2u);
  EXPECT_EQ(m.start_run().spec().apt_k_max(), 14u);
  EXPECT_TRUE(m.start_run().spec().apt_offsets());
  EXPECT_EQ(m.start_run().spec().apt_t_min_q8(), 77u);
  EXPECT_EQ(m.start_run().spec().apt_t_max_q8(), 400u);
  EXPECT_EQ(m.start_run().spec().lr_m_0(), 9u);
  EXPECT_EQ(m.start_run().spec().lr_m_2(), 1u);
  EXPECT_EQ(m.start_run().spec().lr_s(), 20u);
  EXPECT_TRUE(m.start_run().spec().blocked());
  EXPECT_EQ(m.start_run().spec().commit_every(), 7u);
  ASSERT_EQ(m.start_run().steering_size(), 1);
  EXPECT_EQ(m.start_run().steering(0).step(), 100u);
  EXPECT_EQ(m.start_run().steering(0).layer(), 1u);
  EXPECT_EQ(m.start_run().steering(0).k(), 12u);
  start.spec.heldout_samples = 0;
  ASSERT_TRUE(m.ParseFromString(request::start_run(start)));
  EXPECT_FALSE(m.start_run().spec().guard()) << "no guard without held-out samples";
  EXPECT_FALSE(m.start_run().spec().best_on_host());
}

TEST(DeviceCodec, NonVolatileMemory) {
  pb::Request q;
  ASSERT_TRUE(q.ParseFromString(request::nvm_commit(5, filled<Hash>(2))));
  EXPECT_EQ(q.nvm_commit().commit_id(), 5u);
  EXPECT_EQ(q.nvm_commit().expect_hash(), std::string(32, '\2'));
  ASSERT_TRUE(q.ParseFromString(request::nvm_commit(6, Hash{})));
  EXPECT_TRUE(q.nvm_commit().expect_hash().empty());
  ASSERT_TRUE(q.ParseFromString(request::nvm_erase(7)));
  EXPECT_EQ(q.nvm_erase().commit_id(), 7u);
  ASSERT_TRUE(q.ParseFromString(request::nvm_status(true)));
  EXPECT_TRUE(q.nvm_status().restore());

  pb::Response r;
  pb::NvmStatus& s = *r.mutable_nvm();
  s.set_slot_bytes(32640);
  s.set_sequence(9);
  s.set_kind(pb::NVM_KIND_STATE);
  s.set_step(77);
  s.set_hash(std::string(32, '\3'));
  s.set_has_best(true);
  s.set_writes_1(4);
  const auto answer = decode_response(r.SerializeAsString());
  ASSERT_TRUE(answer.ok());
  const auto& info = std::get<model::NvmInfo>(answer->result);
  EXPECT_EQ(info.slot_bytes, 32640u);
  EXPECT_EQ(info.kind, model::NvmKind::kState);
  EXPECT_EQ(info.step, 77u);
  EXPECT_EQ(info.hash, filled<Hash>(3));
  EXPECT_TRUE(info.has_best && !info.has_image);
  EXPECT_EQ(info.writes_1, 4u);

  pb::Event e;
  e.mutable_nvm()->set_kind(static_cast<pb::NvmKind>(77));  // of a newer firmware
  e.mutable_nvm()->set_step(5);
  e.mutable_nvm()->set_text("a page\x1b[2J");
  const auto body = decode_event(e.SerializeAsString());
  ASSERT_TRUE(body.ok());
  const auto& done = std::get<model::NvmCommitted>(*body);
  EXPECT_EQ(done.kind, model::NvmKind::kNone);
  EXPECT_EQ(done.step, 5u);
  EXPECT_EQ(done.text.find('\x1b'), std::string::npos);
}

TEST(DeviceCodec, RequestsFitTheSmallestMtuOrSaySo) {
  EXPECT_LE(request::nvm_commit(0xFFFFFFFF, filled<Hash>(1)).size(), 128u);
  EXPECT_LE(request::get_state(true).size(), 128u);
  XferOpen open;
  open.xfer_id = open.index = open.size = open.crc32 = 0xFFFFFFFF;
  open.resume_offset = open.prefix_crc = open.batch_id = 0xFFFFFFFF;
  open.resource = model::Resource::kState;
  open.expect = filled<Hash>(1);
  EXPECT_LE(request::xfer_open(open).size(), 128u);
}

TEST(DeviceCodec, RandomPayloadsNeverBreakADecoder) {
  std::mt19937 random(11);
  for (int i = 0; i < 20000; ++i) {
    std::string payload(random() % 64, '\0');
    for (char& c : payload) c = static_cast<char>(random());
    (void)decode_hello_ack(payload);
    (void)decode_response(payload);
    (void)decode_event(payload);
    (void)decode_pong(payload);
    (void)decode_window(payload);
    (void)decode_chunk(payload);
    (void)decode_log(payload);
    (void)decode_link_err(payload);
    (void)decode_need_hello(payload);
    (void)decode_busy(payload);
  }
}

}  // namespace
}  // namespace odt::wire
