#include "board_rig.h"

#include <fstream>
#include <iterator>

namespace odt::testing {

BoardRig::BoardRig(RigOptions options)
    : options_(std::move(options)),
      arena_(options_.arena / 8),
      epochs_(options_.epochs),
      decoder_buffer_(FRAME_DECODER_SIZE(FRAME_MTU_DEFAULT)) {
  frame_decoder_init(&decoder_, decoder_buffer_.data(),
                     static_cast<std::uint32_t>(decoder_buffer_.size()), FRAME_MTU_DEFAULT);
  hal_.ctx = this;
  hal_.uart_read = [](void* ctx, std::uint8_t* out, std::uint32_t n) {
    auto& in = static_cast<BoardRig*>(ctx)->to_board_;
    std::uint32_t got = 0;
    while (got < n && !in.empty()) {
      out[got++] = in.front();
      in.pop_front();
    }
    return got;
  };
  hal_.uart_write = [](void* ctx, const std::uint8_t* data, std::uint32_t n) {
    auto* rig = static_cast<BoardRig*>(ctx);
    n = static_cast<std::uint32_t>(std::min<std::size_t>(n, rig->room_));
    if (rig->room_ != SIZE_MAX) rig->room_ -= n;
    rig->raw.append(reinterpret_cast<const char*>(data), n);
    const std::uint8_t* at = data;
    std::size_t left = n;
    frame_t f;
    frame_event_t event;
    while ((event = frame_decoder_feed(&rig->decoder_, &at, &left, &f)) != FRAME_NONE) {
      if (event != FRAME_OK) {
        rig->bad_++;
        continue;
      }
      rig->frames_.push_back(
          {f.type, f.session, f.id,
           std::string(reinterpret_cast<const char*>(f.payload), f.payload_size)});
    }
    return n;
  };
  hal_.now_ms = [](void* ctx) { return static_cast<BoardRig*>(ctx)->now_us_ / 1000; };
  hal_.now_us = [](void* ctx) {
    auto* rig = static_cast<BoardRig*>(ctx);
    return rig->now_us_ += rig->work_us;
  };
  hal_.entropy = [](void* ctx) { return static_cast<BoardRig*>(ctx)->options_.seed; };
  if (options_.can_reset) {
    hal_.reset = [](void* ctx) { static_cast<BoardRig*>(ctx)->reset_ = true; };
  }
  hal_.led = [](void* ctx, bool on) { static_cast<BoardRig*>(ctx)->led = on; };
  hal_.sensor = options_.sensor;
  if (options_.has_button)
    hal_.button = [](void* ctx) { return static_cast<BoardRig*>(ctx)->button; };
  if (options_.nvm != nullptr) set_up_nvm();
  config_.board = "rig";
  config_.core = "host";
  config_.uid = reinterpret_cast<const std::uint8_t*>(options_.uid.data());
  config_.uid_size = static_cast<std::uint8_t>(options_.uid.size());
  config_.reset_reason = 1;
  config_.max_poll_ms = 20;
  config_.rx_window = options_.rx_window;
  config_.arena = reinterpret_cast<std::uint8_t*>(arena_.data());
  config_.arena_size = options_.arena & ~7u;
  config_.epochs = epochs_.data();
  config_.epoch_bytes = static_cast<std::uint32_t>(epochs_.size() * sizeof(app_epoch_t));
  config_.epoch_capacity = options_.epochs;
  app_init(app_.get(), &config_, &hal_);
}

void BoardRig::set_up_nvm() {
  const auto memory = [](void* ctx) { return static_cast<BoardRig*>(ctx)->options_.nvm; };
  static const auto kMemory = +memory;
  nvm_.size = static_cast<std::uint32_t>(options_.nvm->bytes.size());
  nvm_.page = options_.nvm->page_bytes;
  nvm_.unit = options_.nvm->unit_bytes;
  nvm_.write_us = 1000;
  nvm_.erase_us = 20000;
  nvm_.read = [](void* ctx, std::uint32_t at, std::uint8_t* out, std::uint32_t n) {
    const RigNvm& m = *kMemory(ctx);
    EXPECT_LE(at + n, m.bytes.size());
    std::copy_n(m.bytes.begin() + at, n, reinterpret_cast<char*>(out));
    return true;
  };
  nvm_.write = [](void* ctx, std::uint32_t at, const std::uint8_t* data, std::uint32_t n) {
    RigNvm& m = *kMemory(ctx);
    EXPECT_LE(at + n, m.bytes.size());
    EXPECT_EQ(at / m.page_bytes, (at + n - 1) / m.page_bytes) << "within one page";
    if (m.good_writes-- == 0) return false;
    const std::string bytes(reinterpret_cast<const char*>(data), n);
    if (m.unit_bytes != 0) {
      EXPECT_EQ(m.bytes.substr(at, n), std::string(n, '\xFF')) << "written twice at " << at;
    }
    m.bytes.replace(at, n, bytes);
    m.log.push_back({at, bytes});
    return true;
  };
  nvm_.erase = [](void* ctx, std::uint32_t at) {
    RigNvm& m = *kMemory(ctx);
    EXPECT_EQ(at % m.unit_bytes, 0u);
    m.bytes.replace(at, m.unit_bytes, m.unit_bytes, '\xFF');
    m.log.push_back({at, std::string(m.unit_bytes, '\xFF')});
    return true;
  };
  hal_.nvm = &nvm_;
}

void BoardRig::restart() {
  config_.reset_count++;
  std::fill(arena_.begin(), arena_.end(), 0);
  reset_ = false;
  app_init(app_.get(), &config_, &hal_);
}

void BoardRig::send(std::uint8_t type, std::uint32_t id, const std::string& body) {
  std::vector<std::uint8_t> out(FRAME_WIRE_SIZE(body.size()));
  const frame_t f{type, session_, id, reinterpret_cast<const std::uint8_t*>(body.data()),
                  static_cast<std::uint32_t>(body.size())};
  out.resize(frame_encode(&f, out.data(), out.size()));
  to_board_.insert(to_board_.end(), out.begin(), out.end());
}

void BoardRig::collect() {
  std::vector<WireFrame> rest;
  for (auto& f : frames_) {
    if (f.type == FRAME_EVENT) {
      pb::Event e;
      EXPECT_TRUE(e.ParseFromString(f.body));
      events.emplace_back(f.id, e);
    } else if (f.type == FRAME_LOG) {
      pb::Log l;
      EXPECT_TRUE(l.ParseFromString(f.body));
      logs.push_back(l.text());
    } else {
      rest.push_back(std::move(f));
    }
  }
  frames_ = std::move(rest);
}

void BoardRig::turns(int n) {
  for (int i = 0; i < n; i++) {
    more_ = app_poll(app_.get());
    now_us_ += step_us;
  }
  collect();
}

void BoardRig::settle(int limit) {
  for (int i = 0; i < limit; i++) {
    turns(1);
    if (!more_ && to_board_.empty()) return;
  }
}

std::vector<WireFrame> BoardRig::take() { return std::exchange(frames_, {}); }

std::optional<WireFrame> BoardRig::take(std::uint8_t type) {
  for (auto it = frames_.begin(); it != frames_.end(); ++it) {
    if (it->type != type) continue;
    WireFrame f = std::move(*it);
    frames_.erase(it);
    return f;
  }
  return std::nullopt;
}

pb::HelloAck BoardRig::hello(std::uint16_t session) {
  static std::uint16_t next = 1000;
  session_ = session != 0 ? session : ++next;
  request_ = 0;
  pb::Hello h;
  h.set_proto_min(1);
  h.set_proto_max(1);
  h.set_mtu(FRAME_MTU_DEFAULT);
  h.set_session64(session_);
  h.set_nonce(99);
  send(FRAME_HELLO, 1, h.SerializeAsString());
  turns(2);
  const auto f = take(FRAME_HELLO_ACK);
  pb::HelloAck ack;
  EXPECT_TRUE(f.has_value());
  if (f) {
    EXPECT_EQ(f->session, session_);
    EXPECT_LE(f->body.size(), FRAME_HELLO_MAX);
    EXPECT_TRUE(ack.ParseFromString(f->body));
  }
  return ack;
}

pb::Response BoardRig::request(const pb::Request& q) {
  send(FRAME_REQ, ++request_, q.SerializeAsString());
  pb::Response r;
  for (int i = 0; i < 50; i++) {
    turns(1);
    const auto f = take(FRAME_RSP);
    if (!f) continue;
    EXPECT_EQ(f->id, request_);
    EXPECT_LE(f->body.size(), APP_RSP_MAX);
    EXPECT_TRUE(r.ParseFromString(f->body));
    return r;
  }
  ADD_FAILURE() << "no answer to " << q.ShortDebugString();
  return r;
}

pb::XferOpened BoardRig::open(pb::Resource resource, const std::string& content,
                              std::uint32_t index, std::uint32_t resume, std::uint32_t batch_id) {
  pb::Request q;
  auto* o = q.mutable_xfer_open();
  o->set_xfer_id(++xfer_id);
  o->set_resource(resource);
  o->set_index(index);
  o->set_direction(pb::DIRECTION_TO_BOARD);
  o->set_size(static_cast<std::uint32_t>(content.size()));
  o->set_crc32(frame_crc32(0, content.data(), content.size()));
  o->set_resume_offset(resume);
  o->set_prefix_crc(frame_crc32(0, content.data(), resume));
  o->set_batch_id(batch_id);
  const auto r = request(q);
  EXPECT_FALSE(r.has_error()) << r.ShortDebugString();
  return r.xfer_opened();
}

pb::Window BoardRig::chunks(const std::string& content, std::uint32_t from, std::uint32_t to) {
  pb::Window w;
  for (std::uint32_t at = from; at < to;) {
    pb::Chunk c;
    c.set_offset(at);
    c.set_data(content.substr(at, std::min<std::uint32_t>(512, to - at)));
    at += static_cast<std::uint32_t>(c.data().size());
    send(FRAME_CHUNK_TO_BOARD, xfer_id, c.SerializeAsString());
    turns(1);
    while (const auto f = take(FRAME_WINDOW_TO_HOST)) EXPECT_TRUE(w.ParseFromString(f->body));
  }
  turns(1);
  while (const auto f = take(FRAME_WINDOW_TO_HOST)) EXPECT_TRUE(w.ParseFromString(f->body));
  return w;
}

pb::Response BoardRig::commit(const std::string& content) {
  pb::Request q;
  q.mutable_xfer_commit()->set_xfer_id(xfer_id);
  q.mutable_xfer_commit()->set_crc32(frame_crc32(0, content.data(), content.size()));
  return request(q);
}

pb::Response BoardRig::push(pb::Resource resource, const std::string& content, std::uint32_t index,
                            std::uint32_t batch_id) {
  open(resource, content, index, 0, batch_id);
  chunks(content, 0, static_cast<std::uint32_t>(content.size()));
  return commit(content);
}

std::string BoardRig::pull(pb::Resource resource, std::uint32_t index) {
  pb::Request q;
  q.mutable_xfer_open()->set_xfer_id(++xfer_id);
  q.mutable_xfer_open()->set_resource(resource);
  q.mutable_xfer_open()->set_index(index);
  q.mutable_xfer_open()->set_direction(pb::DIRECTION_TO_HOST);
  const auto r = request(q);
  EXPECT_FALSE(r.has_error()) << r.ShortDebugString();
  std::string content;
  while (content.size() < r.xfer_opened().size()) {
    pb::Window w;
    w.set_offset(static_cast<std::uint32_t>(content.size()));
    w.set_end(w.offset() + 1024);
    send(FRAME_WINDOW_TO_BOARD, xfer_id, w.SerializeAsString());
    turns(2);
    while (const auto f = take(FRAME_CHUNK_TO_HOST)) {
      pb::Chunk c;
      EXPECT_TRUE(c.ParseFromString(f->body));
      EXPECT_EQ(c.offset(), content.size());
      content += c.data();
    }
    if (content.size() == w.offset()) {
      ADD_FAILURE() << "transfer stands still";
      break;
    }
  }
  EXPECT_EQ(frame_crc32(0, content.data(), content.size()), r.xfer_opened().crc32());
  EXPECT_FALSE(commit(content).has_error());
  return content;
}

// ---- content ----

static std::string file(const std::string& name) {
  std::ifstream in(std::string(ODT_GOLDEN_DIR) + "/" + name, std::ios::binary);
  EXPECT_TRUE(in.good()) << name;
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

std::string golden_image() { return file("image.odtm"); }
std::string golden_samples() { return file("samples.odts"); }

std::string golden_pick(const std::vector<std::uint32_t>& indices) {
  static const std::string all = golden_samples();
  const std::uint32_t count = 600;
  const std::uint32_t length = 196;
  std::string out = all.substr(0, 8);
  const auto put = [&out](std::uint32_t v) {
    for (int i = 0; i < 4; i++) out.push_back(static_cast<char>(v >> (8 * i)));
  };
  put(static_cast<std::uint32_t>(indices.size()));
  put(length);
  for (const auto i : indices) out.push_back(all[16 + i]);
  out.resize((out.size() + 3) / 4 * 4);
  for (const auto i : indices) out += all.substr(16 + count + std::size_t{i} * length, length);
  return out;
}

std::string golden_part(std::uint32_t first, std::uint32_t count) {
  std::vector<std::uint32_t> indices(count);
  for (std::uint32_t i = 0; i < count; i++) indices[i] = first + i;
  return golden_pick(indices);
}

std::string sha256(const std::string& bytes) {
  odt_sha256_t s;
  std::string hash(32, 0);
  odt_sha256_init(&s);
  odt_sha256_update(&s, bytes.data(), static_cast<std::uint32_t>(bytes.size()));
  odt_sha256_final(&s, reinterpret_cast<std::uint8_t*>(hash.data()));
  return hash;
}

std::string sample_set_hash(const std::string& train, const std::string& heldout) {
  return sha256(sha256(train) + (heldout.empty() ? std::string(32, 0) : sha256(heldout)));
}

static std::uint32_t count_of(const std::string& blob) {
  return blob.empty()
             ? 0
             : static_cast<std::uint8_t>(blob[8]) + 256u * static_cast<std::uint8_t>(blob[9]);
}

pb::RunSpec small_spec(const std::string& train, const std::string& heldout) {
  pb::RunSpec s;
  s.set_rule_set(1);
  s.set_loss(1);
  s.set_shift_source(1);
  s.set_mu_weight_0(2);
  s.set_mu_weight_1(1);
  s.set_mu_weight_2(0);
  s.set_mu_offset(1);
  s.set_dead_zone(4);
  s.set_k(8);
  s.set_batch(8);
  s.set_epochs(3);
  s.set_train_samples(count_of(train));
  s.set_heldout_samples(count_of(heldout));
  s.set_guard(!heldout.empty());
  s.set_order_seed(5);
  s.set_sample_set_hash(sample_set_hash(train, heldout));
  s.set_telemetry_every(1);
  return s;
}

pb::Request start_request(const pb::RunSpec& spec, const std::string& run_id,
                          std::uint32_t attempt) {
  pb::Request q;
  q.mutable_start_run()->set_run_id(run_id);
  q.mutable_start_run()->set_attempt(attempt);
  *q.mutable_start_run()->mutable_spec() = spec;
  return q;
}

pb::Request train_step(std::uint32_t step, std::uint32_t batch_id, std::uint32_t slot) {
  pb::Request q;
  auto* s = q.mutable_train_step();
  s->set_run_id(std::string(16, 'r'));
  s->set_attempt(1);
  s->set_step(step);
  s->set_batch_id(batch_id);
  s->set_slot(slot);
  return q;
}

pb::State state_of(BoardRig& rig) {
  pb::Request q;
  q.mutable_get_state()->set_with_state_hash(true);
  return rig.request(q).state();
}

std::vector<std::uint32_t> order_of(const pb::RunSpec& spec, std::uint32_t epoch) {
  std::vector<std::uint16_t> p(spec.train_samples());
  odt_order(spec.order_seed(), epoch, spec.train_samples(), p.data());
  return {p.begin(), p.end()};
}

void load(BoardRig& rig, const std::string& train, const std::string& heldout) {
  rig.hello();
  ASSERT_FALSE(rig.push(pb::RESOURCE_MODEL_IMAGE, golden_image()).has_error());
  if (!train.empty()) {
    ASSERT_FALSE(rig.push(pb::RESOURCE_SAMPLES, train, pb::SAMPLE_ROLE_TRAIN).has_error());
  }
  if (!heldout.empty()) {
    ASSERT_FALSE(rig.push(pb::RESOURCE_SAMPLES, heldout, pb::SAMPLE_ROLE_HELDOUT).has_error());
  }
}

}  // namespace odt::testing
