// The board's application behind a valid session: the input is a list of frames (type, id step,
// size, body) that a host might send, well-formed as frames, arbitrary as messages; some inputs
// begin with a model on the board (byte 0, bit 0), with non-volatile memory (bit 1), which is also
// what it boots from again in the end, with a sensor of its own (bit 2). Oracle: the board always
// answers a PING afterwards, everything it sends is a valid frame of its direction within its
// limits, and no answer exceeds the cache.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <vector>

#include "app/app.h"
#include "image_builder.h"

namespace {

void require(bool ok, const char* what) {
  if (ok) return;
  std::fprintf(stderr, "violated: %s\n", what);
  std::abort();
}

constexpr std::uint32_t kNvmSize = 16384, kNvmPage = 64, kNvmUnit = 256;

struct Board {
  app_t app;
  app_config_t config{};
  hal_t hal{};
  alignas(8) std::uint8_t arena[32768];
  app_epoch_t epochs[2];
  std::deque<std::uint8_t> in;
  std::uint8_t rx[FRAME_DECODER_SIZE(FRAME_MTU_DEFAULT)];
  frame_decoder_t decoder;
  std::uint32_t us = 0;
  std::uint32_t pongs = 0;
  std::uint32_t responses = 0;
  std::uint8_t nvm[kNvmSize];
};

void on_sent(Board* b, const std::uint8_t* data, std::size_t n) {
  frame_t f;
  frame_event_t event;
  while ((event = frame_decoder_feed(&b->decoder, &data, &n, &f)) != FRAME_NONE) {
    require(event == FRAME_OK, "the board sends valid frames");
    require((f.type & FRAME_TO_HOST) != 0, "of its own direction");
    require(f.type != FRAME_RSP || f.payload_size <= APP_RSP_MAX, "answers within the cache");
    b->pongs += f.type == FRAME_PONG;
    b->responses += f.type == FRAME_RSP;
  }
}

constexpr std::uint8_t kUid[8] = {1, 2, 3, 4, 5, 6, 7, 8};

const hal_nvm_t kNvm = {
    .size = kNvmSize,
    .page = kNvmPage,
    .unit = kNvmUnit,
    .write_us = 100,
    .erase_us = 100,
    .read =
        [](void* c, std::uint32_t at, std::uint8_t* out, std::uint32_t n) {
          require(at <= kNvmSize && n <= kNvmSize - at, "reads within the memory");
          std::memcpy(out, static_cast<Board*>(c)->nvm + at, n);
          return true;
        },
    .write =
        [](void* c, std::uint32_t at, const std::uint8_t* data, std::uint32_t n) {
          require(at <= kNvmSize && n <= kNvmSize - at && at / kNvmPage == (at + n - 1) / kNvmPage,
                  "writes within a page");
          std::memcpy(static_cast<Board*>(c)->nvm + at, data, n);
          return true;
        },
    .erase =
        [](void* c, std::uint32_t at) {
          require(at < kNvmSize && at % kNvmUnit == 0, "erases units");
          std::memset(static_cast<Board*>(c)->nvm + at, 0xFF, kNvmUnit);
          return true;
        }};

const hal_sensor_t kSensor = {
    .channels = 2,
    .dtype = 1,
    .rate_milli_hz = 1000000,
    .read = [](void*, void* out, std::uint32_t steps, std::uint32_t* lost) {
      std::memset(out, 3, 2 * (steps < 3 ? steps : 3));
      *lost = steps == 1 ? 1 : 0;
      return steps < 3 ? steps : 3;
    }};

void boot(Board* b, bool nvm, bool sensor) {
  frame_decoder_init(&b->decoder, b->rx, sizeof b->rx, FRAME_MTU_DEFAULT);
  b->hal.ctx = b;
  b->hal.uart_read = [](void* c, std::uint8_t* out, std::uint32_t n) {
    auto& in = static_cast<Board*>(c)->in;
    std::uint32_t got = 0;
    for (; got < n && !in.empty(); got++) {
      out[got] = in.front();
      in.pop_front();
    }
    return got;
  };
  b->hal.uart_write = [](void* c, const std::uint8_t* data, std::uint32_t n) {
    on_sent(static_cast<Board*>(c), data, n);
    return n;
  };
  b->hal.now_ms = [](void* c) { return static_cast<Board*>(c)->us / 1000; };
  b->hal.now_us = [](void* c) { return static_cast<Board*>(c)->us += 50; };
  b->hal.entropy = [](void*) { return std::uint64_t{1}; };
  b->hal.reset = [](void*) {};
  if (nvm) b->hal.nvm = &kNvm;
  if (sensor) b->hal.sensor = &kSensor;
  b->config = app_config_t{.board = "fuzz",
                           .core = "host",
                           .uid = kUid,
                           .uid_size = sizeof kUid,
                           .reset_reason = 1,
                           .reset_count = 0,
                           .extra_caps = 0,
                           .max_poll_ms = 20,
                           .rx_window = 2048,
                           .arena = b->arena,
                           .arena_size = sizeof b->arena,
                           .epochs = b->epochs,
                           .epoch_capacity = 2,
                           .step_delay_ms = 0};
  app_init(&b->app, &b->config, &b->hal);
}

void send(Board* b, std::uint8_t type, std::uint32_t id, const std::vector<std::uint8_t>& body) {
  std::vector<std::uint8_t> wire(FRAME_WIRE_SIZE(body.size()));
  const frame_t f{type, 1, id, body.data(), static_cast<std::uint32_t>(body.size())};
  const std::size_t n = frame_encode(&f, wire.data(), wire.size());
  b->in.insert(b->in.end(), wire.begin(), wire.begin() + static_cast<long>(n));
  for (int i = 0; i < 4; i++) app_poll(&b->app);
}

// ---- hand-made messages, for a model on the board ----

void varint(std::vector<std::uint8_t>* out, std::uint32_t v) {
  for (; v >= 128; v >>= 7) out->push_back(static_cast<std::uint8_t>(v | 128));
  out->push_back(static_cast<std::uint8_t>(v));
}
void field(std::vector<std::uint8_t>* out, std::uint8_t number, std::uint32_t v) {
  out->push_back(static_cast<std::uint8_t>(number << 3));
  varint(out, v);
}
void fixed(std::vector<std::uint8_t>* out, std::uint8_t number, std::uint32_t v) {
  out->push_back(static_cast<std::uint8_t>(number << 3 | 5));
  for (int i = 0; i < 4; i++) out->push_back(static_cast<std::uint8_t>(v >> (8 * i)));
}
std::vector<std::uint8_t> wrap(std::uint8_t number, const std::vector<std::uint8_t>& body) {
  std::vector<std::uint8_t> out{static_cast<std::uint8_t>(number << 3 | 2)};
  varint(&out, static_cast<std::uint32_t>(body.size()));
  out.insert(out.end(), body.begin(), body.end());
  return out;
}

void push(Board* b, std::uint32_t* request, std::uint32_t resource, std::uint32_t index,
          const std::vector<std::uint8_t>& content) {
  const std::uint32_t crc = frame_crc32(0, content.data(), content.size());
  const std::uint32_t id = 1000 + *request;
  std::vector<std::uint8_t> open;
  field(&open, 1, id);
  field(&open, 2, resource);
  field(&open, 3, index);
  field(&open, 4, 1);
  field(&open, 5, static_cast<std::uint32_t>(content.size()));
  fixed(&open, 6, crc);
  send(b, FRAME_REQ, ++*request, wrap(2, open));
  for (std::size_t at = 0; at < content.size(); at += 512) {
    std::vector<std::uint8_t> chunk;
    field(&chunk, 1, static_cast<std::uint32_t>(at));
    const std::size_t n = content.size() - at < 512 ? content.size() - at : 512;
    const auto data = wrap(
        2, {content.begin() + static_cast<long>(at), content.begin() + static_cast<long>(at + n)});
    chunk.insert(chunk.end(), data.begin(), data.end());
    send(b, FRAME_CHUNK_TO_BOARD, id, chunk);
  }
  std::vector<std::uint8_t> commit;
  field(&commit, 1, id);
  fixed(&commit, 2, crc);
  send(b, FRAME_REQ, ++*request, wrap(3, commit));
}

void load_model(Board* b, std::uint32_t* request) {
  using namespace odt::testing;
  NetSpec net;
  net.input_dims = {6};
  LayerSpec dense;
  dense.trainable = true;
  dense.outputs = 3;
  for (int i = 0; i < 18; i++) dense.weights.push_back(static_cast<std::int8_t>(i * 7 - 60));
  dense.offsets = {8, 8, 8};
  dense.k = {4, 4, 5};
  net.layers = {dense};
  net.n_classes = 3;
  net.target_correct = {40, 40, 40};
  net.target_wrong = {-10, -10, -10};
  net.ce_scale = 100;
  push(b, request, 1, 0, build_image(net));
  const std::vector<std::int8_t> labels = {0, 1, 2, 0};
  const std::vector<std::uint8_t> data(24, 9);
  const auto samples = build_samples(DType::kS8, 6, labels, data);
  push(b, request, 2, 1, samples);
  push(b, request, 2, 2, samples);
  push(b, request, 3, 0, samples);
  require(b->responses >= 8, "the board took the model");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1) return 0;
  auto b = std::make_unique<Board>();
  const bool nvm = (data[0] & 2) != 0, sensor = (data[0] & 4) != 0;
  std::memset(b->nvm, 0xFF, sizeof b->nvm);
  boot(b.get(), nvm, sensor);
  std::vector<std::uint8_t> hello;
  field(&hello, 1, 1);
  field(&hello, 2, 1);
  field(&hello, 5, FRAME_MTU_DEFAULT);
  send(b.get(), FRAME_HELLO, 1, hello);
  std::uint32_t request = 0;
  if ((data[0] & 1) != 0) load_model(b.get(), &request);
  for (std::size_t at = 1; at + 4 <= size;) {
    const std::uint8_t type = data[at] & 7;
    const std::uint32_t id = type == FRAME_REQ ? request += data[at + 1] & 3 : 1000u + data[at + 1];
    std::size_t n = data[at + 2] | (data[at + 3] & 1) << 8;
    at += 4;
    if (n > size - at) n = size - at;
    if (type == 7) b->us += 700000;
    send(b.get(), type == 7 ? static_cast<std::uint8_t>(FRAME_PING) : type, id,
         {data + at, data + at + n});
    at += n;
  }
  send(b.get(), FRAME_HELLO, 2, hello); /* it may have said BYE */
  const std::uint32_t before = b->pongs;
  for (int i = 0; i < 8 && b->pongs == before; i++) send(b.get(), FRAME_PING, 7, {});
  require(b->pongs > before, "the board still answers");
  if (!nvm) return 0;
  // The power goes and comes back: what was committed is restored.
  b->in.clear();
  boot(b.get(), nvm, sensor);
  send(b.get(), FRAME_HELLO, 3, hello);
  const std::uint32_t again = b->pongs;
  for (int i = 0; i < 8 && b->pongs == again; i++) send(b.get(), FRAME_PING, 8, {});
  require(b->pongs > again, "it boots from what it has committed");
  return 0;
}
