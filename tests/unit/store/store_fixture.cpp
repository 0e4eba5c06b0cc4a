#include "store_fixture.h"

#include <unistd.h>

#include <cstdlib>

namespace odt::store {

TempDir::TempDir() {
  std::string pattern = (std::filesystem::temp_directory_path() / "odt-store-XXXXXX").string();
  path_ = ::mkdtemp(pattern.data());
}
TempDir::~TempDir() {
  std::error_code ec;
  std::filesystem::remove_all(path_, ec);
}

BoardUid uid_of(int n) {
  BoardUid uid;
  uid.bytes.assign(8, 0xB0);
  uid.bytes[7] = static_cast<std::uint8_t>(n);
  return uid;
}

Hash hash_of(int n) { return sha256("hash " + std::to_string(n)); }

model::Board board_of(int n) {
  model::Board b;
  b.uid = uid_of(n);
  b.name = "board-" + std::string(n < 10 ? "0" : "") + std::to_string(n);
  b.place = "rig 7";
  b.labels = {{"site", "lab"}, {"target", "m33"}};
  b.board_type = "mps2_an505";
  b.core = "cortex-m33";
  b.fw_version = "0.1.0";
  b.rules_version = 1;
  b.boot_id = 0xFEDCBA9876543210;  // above what a signed number holds
  b.caps = 7;
  b.ram_bytes = 65536;
  b.max_layers = 8;
  b.max_batch = 16;
  b.mtu = 1024;
  b.status = model::BoardStatus::kQuarantined;
  b.last_seen_time_us = 1;
  b.online_since_time_us = 2;
  b.model_hash = hash_of(1);
  b.state_hash = hash_of(2);
  b.run_id = new_uuid();
  b.last_step = 99;
  b.reset_reason = "power on";
  b.boots_seen = 3;
  return b;
}

model::Port port_of(int n) {
  model::Port p;
  p.path = "/dev/ttyACM" + std::to_string(n);
  p.by_id = "usb-odt";
  p.by_path = "pci-0";
  p.usb_vid = 0x1234;
  p.usb_pid = 0x5678;
  p.usb_serial = "S1";
  p.description = "probe";
  p.adopted = true;
  p.allowed = true;
  p.board_uid = uid_of(n);
  p.expect_uid = uid_of(n);
  p.baud = 115200;
  return p;
}

model::Model model_of(int n) {
  model::Model m;
  m.hash = hash_of(100 + n);
  m.name = "model-" + std::to_string(n);
  m.image_bytes = 5'000'000'000;
  m.onnx_hash = hash_of(200 + n);
  m.trainable_layers = 2;
  m.n_classes = 10;
  m.input_shape = {1, 14, 14};
  m.source_accuracy = {80, 100};
  m.has_ce_scale = true;
  m.layers = {{"fc1", "LINEAR_RELU", {32, 196}, {32}, 6272, 1, 4, 6272, true},
              {"fc2", "LINEAR", {10, 32}, {10}, 320, 2, 5, 320, false}};
  m.ram_k8_bytes = 30'000;
  m.ram_k16_bytes = 40'000;
  m.ram = {7'000, 14'000, 300, 600, 1'200, 2'400, 2'400};
  return m;
}

model::Dataset dataset_of(int n) {
  model::Dataset d;
  d.id = new_uuid();
  d.content_hash = hash_of(300 + n);
  d.name = "data-" + std::to_string(n);
  d.dtype = "u8";
  d.shape = {1, 14, 14};
  d.train = 400;
  d.heldout = 100;
  d.test = 1000;
  d.n_classes = 10;
  d.class_names = {"shirt", "\xC3\xA9t\xC3\xA9"};
  d.class_counts = {3, 4};
  d.source = "idx, inversion";
  d.bytes = 1'000'000;
  return d;
}

model::Snapshot snapshot_of(int n) {
  model::Snapshot s;
  s.hash = hash_of(400 + n);
  s.model_hash = hash_of(101);
  s.board_uid = uid_of(1);
  s.run_id = new_uuid();
  s.attempt = 2;
  s.step = 77;
  s.parent = hash_of(9);
  s.heldout = {55, 100};
  s.bytes = 7000;
  s.note = "first";
  return s;
}

model::Evaluation evaluation_of(int n) {
  model::Evaluation e;
  e.id = new_uuid();
  e.board_uid = uid_of(n);
  e.model_hash = hash_of(1);
  e.snapshot = hash_of(2);
  e.dataset_id = new_uuid();
  e.split = "test";
  e.accuracy = {7, 10};
  e.confusion = {4, 1, 2, 3};
  e.loss = {-5, -3, 10, model::LossKind::kCe};
  return e;
}

model::Job job_of(int n) {
  model::Job j;
  j.id = new_uuid();
  j.kind = model::Job::Kind::kCompile;
  j.state = model::Job::State::kFailed;
  j.progress_permille = 500;
  j.message = "job " + std::to_string(n);
  j.reason = {"BAD_ONNX", "truncated", "export it again"};
  j.result_key = {1, 2, 3};
  j.result_json = "{\"a\":1}";
  j.request_json = "{\"b\":2}";
  return j;
}

model::Upload upload_of(int n) {
  model::Upload u;
  u.id = new_uuid();
  u.name = "file-" + std::to_string(n);
  u.size = 1000;
  u.sha256 = hash_of(500 + n);
  u.received = 10;
  return u;
}

model::Run run_of(int n) {
  model::Run r;
  r.id = new_uuid();
  r.spec.board_uid = uid_of(n);
  r.spec.model_hash = hash_of(100 + n);
  r.spec.dataset_id = new_uuid();
  r.spec.hyper.policy = model::Policy::kFixed;
  r.spec.hyper.mu_weight = {1, 2, 3};
  r.spec.hyper.mu_offset = -8;
  r.spec.hyper.dead_zone = 0;  // set, though zero
  r.spec.hyper.guard = false;
  r.spec.start_snapshot = hash_of(400 + n);
  r.spec.evaluate = true;
  r.spec.name = "run-" + std::to_string(n);
  r.spec.resume_deadline_s = 60;
  r.effective = r.spec.hyper;
  r.effective.k = 8;
  r.attempt = 1;
  r.steps_total = 500;
  r.before = {10, 100};
  r.rules_version = 1;
  return r;
}

model::EpochResult epoch_of(const Uuid& run, std::uint32_t epoch) {
  model::EpochResult e;
  e.run_id = run;
  e.attempt = 1;
  e.epoch = epoch;
  e.step = epoch * 50;
  e.loss = {123456789012, -4, 400, model::LossKind::kMse};
  e.train = {300, 400};
  e.heldout = {80, 100};
  e.best_step = 50;
  e.alarms = 2;
  e.state_hash = hash_of(static_cast<int>(epoch));
  e.step_us = 1500;
  e.layers = {{1,  2,  3,  -4, 5,   6,   7,  8,   9,          10,   11,
               12, 13, 14, 15, -16, -17, 18, -19, 1ull << 60, true, 1ull << 63}};
  e.time_us = 42;
  e.board_uid = uid_of(1);
  return e;
}

model::TelemetryFrame frame_of(const Uuid& run, std::uint32_t step) {
  model::TelemetryFrame f;
  f.run_id = run;
  f.attempt = 1;
  f.step = step;
  f.board_uid = uid_of(1);
  f.time_us = 1'700'000'000'000'000 + step;
  f.boot_id = 0xFEDCBA9876543210;
  f.event_id = step + 7;
  f.loss = {-5'000'000'000 + step, -3, 8, model::LossKind::kCe};
  f.correct = step % 9;
  f.layers = {{7, -3, 8}, {200, 12, 16}};
  return f;
}

Batch batch_of(Change change) {
  Batch batch;
  batch.changes.push_back(std::move(change));
  return batch;
}

TransitionRun transition_of(model::Run run, model::RunState to) {
  model::RunEvent event;
  event.run_id = run.id;
  event.from = run.state;
  event.to = to;
  event.cause = "test";
  run.state = to;
  run.meta.etag = 0;
  return {std::move(run), std::move(event)};
}

}  // namespace odt::store
