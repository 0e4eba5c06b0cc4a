#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/dynamic_message.h>

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "link/tcp_link.h"
#include "odt/device/v1/device.pb.h"
#include "sim_session.h"
#include "wire/frame_stream.h"

// Today's odtd and firmware of the release before and after. In between every frame is read and
// written anew: by the schema that the last release published (what it does not know is gone, both
// ways), or with fields, a frame type and capability bits that nobody knows yet.
namespace odt {
namespace {

namespace gp = google::protobuf;
using asio::ip::tcp;
using link::ByteLink;

const char* message_of(std::uint8_t type) {
  switch (type) {
    case FRAME_HELLO:
      return "Hello";
    case FRAME_HELLO_ACK:
      return "HelloAck";
    case FRAME_REQ:
      return "Request";
    case FRAME_RSP:
      return "Response";
    case FRAME_CHUNK_TO_BOARD:
    case FRAME_CHUNK_TO_HOST:
      return "Chunk";
    case FRAME_WINDOW_TO_BOARD:
    case FRAME_WINDOW_TO_HOST:
      return "Window";
    case FRAME_PONG:
      return "Pong";
    case FRAME_EVENT:
      return "Event";
    case FRAME_LOG:
      return "Log";
    case FRAME_NEED_HELLO:
      return "NeedHello";
    case FRAME_LINK_ERR:
      return "LinkErr";
    case FRAME_BUSY:
      return "Busy";
    default:
      return nullptr;
  }
}

void set_number(gp::Message& m, const char* field, std::uint32_t value) {
  m.GetReflection()->SetUInt32(&m, m.GetDescriptor()->FindFieldByName(field), value);
}
std::uint32_t number_of(const gp::Message& m, const char* field) {
  return m.GetReflection()->GetUInt32(m, m.GetDescriptor()->FindFieldByName(field));
}
void set_version(gp::Message& m, const std::string& version) {
  m.GetReflection()->SetString(&m, m.GetDescriptor()->FindFieldByName("fw_version"), version);
}

class Translator {
 public:
  virtual ~Translator() = default;
  // The frame as the far end gets it, and what else it gets.
  virtual std::string translate(wire::Frame frame) = 0;
  int translated = 0;
};

// Firmware of release 0.1, by its recording.
class LastRelease final : public Translator {
 public:
  LastRelease() {
    const std::string folder = ODT_FIXTURES "/v0.1/";
    std::ifstream in(folder + "proto.binpb", std::ios::binary);
    gp::FileDescriptorSet files;
    EXPECT_TRUE(files.ParseFromIstream(&in));
    for (const auto& file : files.file()) EXPECT_NE(pool_.BuildFile(file), nullptr) << file.name();
    std::ifstream recorded(folder + "conversation.json");
    const auto frames = nlohmann::json::parse(recorded);
    for (const auto& frame : frames) {
      if (frame.at("type") != FRAME_HELLO_ACK) continue;
      caps_ = frame.at("caps");
      version_ = frame.at("fw_version");
      break;
    }
    EXPECT_FALSE(version_.empty());
  }
  std::string translate(wire::Frame frame) override {
    const char* name = message_of(frame.type);
    if (name == nullptr) return wire::encode_frame(frame);
    const auto* type = pool_.FindMessageTypeByName(std::string("odt.device.v1.") + name);
    if (type == nullptr) return "";  // the release has no such message
    const std::unique_ptr<gp::Message> m(factory_.GetPrototype(type)->New());
    EXPECT_TRUE(m->ParseFromString(frame.payload)) << name;
    m->DiscardUnknownFields();
    if (frame.type == FRAME_HELLO_ACK) {
      set_number(*m, "caps", number_of(*m, "caps") & caps_);
      set_version(*m, version_);
    }
    ++translated;
    frame.payload = m->SerializeAsString();
    return wire::encode_frame(frame);
  }
  std::uint32_t caps() const { return caps_; }

 private:
  gp::DescriptorPool pool_;
  gp::DynamicMessageFactory factory_{&pool_};
  std::uint32_t caps_ = 0;
  std::string version_;
};

// Firmware that knows more than this odtd.
class NextRelease final : public Translator {
 public:
  std::string translate(wire::Frame frame) override {
    const char* name = message_of(frame.type);
    if (name == nullptr || (frame.type & FRAME_TO_HOST) == 0) return wire::encode_frame(frame);
    if (frame.type == FRAME_HELLO_ACK) {
      device::v1::HelloAck ack;
      EXPECT_TRUE(ack.ParseFromString(frame.payload));
      ack.set_caps(ack.caps() | 0xF0000000u);
      ack.set_fw_version("0.9.0");
      frame.payload = ack.SerializeAsString();
    }
    ++translated;
    gp::UnknownFieldSet more;
    more.AddVarint(1900, 77);
    if (frame.type != FRAME_HELLO_ACK) more.AddLengthDelimited(1901, "of the future");
    std::string unknown;
    more.SerializeToString(&unknown);
    frame.payload += unknown;
    std::string out = wire::encode_frame(frame);
    if (translated > 1 && translated % 8 == 0)
      out += wire::encode_frame({0x9E, frame.session, 1, "a message of the future"});
    return out;
  }
};

class VersionSkew : public SimSession {
 protected:
  // Listens for odtd and dials the board for each connection.
  std::string start_translator(std::uint16_t board, std::shared_ptr<Translator> translator) {
    auto acceptor = link::listen_tcp(io_, "127.0.0.1", 0, false);
    EXPECT_TRUE(acceptor.ok()) << acceptor.status();
    const std::uint16_t port = acceptor->local_endpoint().port();
    asio::co_spawn(io_, serve(*std::move(acceptor), board, std::move(translator)), asio::detached);
    return "tcp:127.0.0.1:" + std::to_string(port);
  }

 private:
  asio::awaitable<void> serve(tcp::acceptor acceptor, std::uint16_t board,
                              std::shared_ptr<Translator> translator) {
    for (;;) {
      tcp::socket socket = co_await acceptor.async_accept(asio::use_awaitable);
      const auto host = link::make_tcp_link(std::move(socket), "odtd");
      const auto device =
          co_await link::dial_tcp(io_, "127.0.0.1", std::to_string(board), milliseconds(2000));
      if (!device.ok()) continue;
      asio::co_spawn(io_, copy(host, *device, translator), asio::detached);
      asio::co_spawn(io_, copy(*device, host, translator), asio::detached);
    }
  }
  asio::awaitable<void> copy(std::shared_ptr<ByteLink> from, std::shared_ptr<ByteLink> to,
                             std::shared_ptr<Translator> translator) {
    std::string out;
    wire::FrameStream stream({[&](wire::Frame f) { out += translator->translate(std::move(f)); },
                              [](const std::string&) {}, [](const char*) {}});
    char buffer[2048];
    for (;;) {
      const Result<std::size_t> n = co_await from->read(asio::buffer(buffer));
      if (!n.ok()) break;
      stream.feed({buffer, *n});
      const std::string bytes = std::exchange(out, {});
      if (bytes.empty()) continue;
      const Status written = co_await to->write(asio::buffer(bytes));
      if (!written.ok()) break;
    }
    from->close();
    to->close();
  }
};

TEST_F(VersionSkew, Report18_FirmwareOfTheLastReleaseTrains) {
  const auto old = std::make_shared<LastRelease>();
  connect(start_translator(start_tcp_board(), old));
  EXPECT_EQ(board().hello().caps & ~old->caps(), 0u);
  train_golden_epoch();
  const auto state = test::run(io_, board().receive(model::Resource::kState));
  ASSERT_TRUE(state.ok()) << state.status();
  EXPECT_EQ(sha256(state->content), sink_.jobs.back().state_hash);
  EXPECT_GT(old->translated, 100);
  EXPECT_EQ(sink_.closed, 0);
}

TEST_F(VersionSkew, Report18_FirmwareOfTheNextReleaseTrains) {
  const auto next = std::make_shared<NextRelease>();
  connect(start_translator(start_tcp_board(), next));
  EXPECT_EQ(board().hello().fw_version, "0.9.0");
  train_golden_epoch();
  const auto weights = test::run(io_, board().receive(model::Resource::kWeights));
  ASSERT_TRUE(weights.ok()) << weights.status();
  EXPECT_EQ(sha256(weights->content), sink_.jobs.back().weights_hash);
  EXPECT_GT(next->translated, 100);
  EXPECT_EQ(sink_.closed, 0);
}

}  // namespace
}  // namespace odt
