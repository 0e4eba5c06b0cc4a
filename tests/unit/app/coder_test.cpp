// The board's coder against the host's protobuf: random messages within the board's bounds come
// back to the byte; what exceeds a bound or is cut or malformed is refused; what is unknown is
// skipped.
#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "coder_again.h"
#include "odt/device/v1/device.pb.h"

namespace {

namespace pb = odt::device::v1;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// Small enough for every bound of device.options but one; a string's end takes one of its bytes.
constexpr std::size_t kBytes = 16, kBuildId = 6;
constexpr int kElements = 4;

class Filler {
 public:
  explicit Filler(std::uint32_t seed) : random_(seed) {}

  void fill(Message* m) {
    const auto* d = m->GetDescriptor();
    for (int i = 0; i < d->field_count(); i++) {
      const FieldDescriptor* f = d->field(i);
      if (f->containing_oneof() == nullptr && below(3) != 0) set(m, f);
    }
    for (int i = 0; i < d->oneof_decl_count(); i++) {
      const auto* one = d->oneof_decl(i);
      set(m, one->field(static_cast<int>(below(static_cast<std::uint64_t>(one->field_count())))));
    }
  }

 private:
  std::uint64_t below(std::uint64_t n) { return random_() % n; }

  // Often small, often an end of the range.
  std::uint64_t number(int bits) {
    const std::uint64_t all = ~std::uint64_t{0} >> (64 - bits);
    switch (below(4)) {
      case 0:
        return below(3);
      case 1:
        return all - below(2);
      case 2:
        return all / 2 + below(3);
      default:
        return random_() & (all >> below(static_cast<std::uint64_t>(bits)));
    }
  }

  void set(Message* m, const FieldDescriptor* f) {
    const auto* r = m->GetReflection();
    if (f->is_repeated()) {
      for (auto n = below(kElements + 1); n > 0; n--) add(m, f);
      return;
    }
    switch (f->cpp_type()) {
      case FieldDescriptor::CPPTYPE_BOOL:
        return r->SetBool(m, f, below(2) != 0);
      case FieldDescriptor::CPPTYPE_ENUM:
        return r->SetEnumValue(m, f, static_cast<int>(number(8)));
      case FieldDescriptor::CPPTYPE_UINT32:
        return r->SetUInt32(m, f, static_cast<std::uint32_t>(number(32)));
      case FieldDescriptor::CPPTYPE_INT32:
        return r->SetInt32(m, f, static_cast<std::int32_t>(number(32)));
      case FieldDescriptor::CPPTYPE_UINT64:
        return r->SetUInt64(m, f, number(64));
      case FieldDescriptor::CPPTYPE_STRING: {
        std::string s(below((f->name() == "build_id" ? kBuildId : kBytes) + 1), '\0');
        for (char& c : s) c = static_cast<char>('a' + below(26));
        return r->SetString(m, f, s);
      }
      case FieldDescriptor::CPPTYPE_MESSAGE:
        return fill(r->MutableMessage(m, f));
      default:
        FAIL() << f->full_name();
    }
  }

  void add(Message* m, const FieldDescriptor* f) {
    const auto* r = m->GetReflection();
    if (f->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) return fill(r->AddMessage(m, f));
    if (f->cpp_type() == FieldDescriptor::CPPTYPE_INT32) {
      return r->AddInt32(m, f, static_cast<std::int32_t>(number(32)));
    }
    ASSERT_EQ(f->cpp_type(), FieldDescriptor::CPPTYPE_INT64) << f->full_name();
    r->AddInt64(m, f, static_cast<std::int64_t>(number(64)));
  }

  std::mt19937_64 random_;
};

struct Again {
  std::uint32_t size;
  std::string bytes;
};

Again again(const std::string& name, const std::string& in, std::uint32_t limit = 4096) {
  std::string out(limit, '\xA5');
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(in.data());
  const auto n = coder_again(name.c_str(), bytes, static_cast<std::uint32_t>(in.size()),
                             reinterpret_cast<std::uint8_t*>(out.data()), limit);
  if (n <= limit) out.resize(n);
  return {n, out};
}

class EveryMessage : public ::testing::TestWithParam<const char*> {
 protected:
  std::unique_ptr<Message> random(std::uint32_t seed) {
    const auto* d = pb::Hello::descriptor()->file()->FindMessageTypeByName(GetParam());
    std::unique_ptr<Message> m(
        google::protobuf::MessageFactory::generated_factory()->GetPrototype(d)->New());
    Filler(seed).fill(m.get());
    return m;
  }
};

// Repeated numbers are only read; all else comes back as it was.
bool only_read(const Message& m) {
  const auto* request = dynamic_cast<const pb::Request*>(&m);
  return request != nullptr && request->has_capture_start();
}

bool negative_enum(const Message& m) {
  const auto* r = m.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  r->ListFields(m, &fields);
  for (const auto* f : fields) {
    if (f->cpp_type() == FieldDescriptor::CPPTYPE_ENUM && r->GetEnumValue(m, f) < 0) return true;
    if (f->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
    const int n = f->is_repeated() ? r->FieldSize(m, f) : 1;
    for (int i = 0; i < n; i++) {
      if (negative_enum(f->is_repeated() ? r->GetRepeatedMessage(m, f, i) : r->GetMessage(m, f)))
        return true;
    }
  }
  return false;
}

TEST_P(EveryMessage, ComesBackToTheByte) {
  for (std::uint32_t seed = 0; seed < 400; seed++) {
    const auto m = random(seed);
    const std::string bytes = m->SerializeAsString();
    if (only_read(*m)) continue;
    ASSERT_EQ(again(GetParam(), bytes).bytes, bytes) << m->DebugString();
    ASSERT_EQ(again(GetParam(), bytes, 0).size, bytes.size());  // counts without writing
  }
}

TEST_P(EveryMessage, WritesNothingBehindTheLimit) {
  for (std::uint32_t seed = 0; seed < 50; seed++) {
    const auto m = random(seed);
    const std::string bytes = m->SerializeAsString();
    if (only_read(*m) || bytes.size() < 2) continue;
    std::string out(bytes.size(), '\xA5');
    const auto limit = static_cast<std::uint32_t>(bytes.size() / 2);
    const auto n = coder_again(GetParam(), reinterpret_cast<const std::uint8_t*>(bytes.data()),
                               static_cast<std::uint32_t>(bytes.size()),
                               reinterpret_cast<std::uint8_t*>(out.data()), limit);
    ASSERT_EQ(n, bytes.size());
    ASSERT_EQ(out.substr(limit), std::string(bytes.size() - limit, '\xA5'));
  }
}

TEST_P(EveryMessage, CutOrChangedBytesAreReadByBothOrRefused) {
  for (std::uint32_t seed = 0; seed < 200; seed++) {
    auto m = random(seed);
    std::string bytes = m->SerializeAsString();
    if (bytes.empty()) continue;
    std::mt19937 noise(seed);
    if (seed % 2 != 0) {
      bytes[noise() % bytes.size()] = static_cast<char>(noise() & 0x7Fu);  // a string stays UTF-8
    } else {
      bytes.resize(noise() % bytes.size());
    }
    const auto a = again(GetParam(), bytes);
    if (a.size == CODER_AGAIN_REFUSED) continue;
    ASSERT_TRUE(m->ParseFromString(bytes));  // what the board reads the host can read
    const auto b = again(GetParam(), m->SerializeAsString());  // and both read the same
    if (negative_enum(*m)) {
      // None has such a value: 32 bits of one become 64, which the board refuses.
      ASSERT_EQ(b.size, CODER_AGAIN_REFUSED) << m->DebugString();
      continue;
    }
    ASSERT_EQ(b.size, a.size) << m->DebugString();
    ASSERT_EQ(b.bytes, a.bytes) << m->DebugString();
  }
}

// Two messages one behind the other are one: numbers are the last ones, messages come together.
TEST_P(EveryMessage, WhatComesTwiceIsReadAsTheHostReadsIt) {
  for (std::uint32_t seed = 0; seed < 100; seed++) {
    const auto first = random(seed), last = random(seed + 1000);
    const std::string bytes = first->SerializeAsString() + last->SerializeAsString();
    const auto a = again(GetParam(), bytes);
    if (a.size == CODER_AGAIN_REFUSED) continue;  // lists over their bound, together
    const std::unique_ptr<Message> both(first->New());
    ASSERT_TRUE(both->ParseFromString(bytes));
    if (only_read(*both)) continue;
    ASSERT_EQ(a.bytes, both->SerializeAsString()) << both->DebugString();
  }
}

// Fields of a later version, at every place between two fields, of every wire type, are passed
// over.
TEST_P(EveryMessage, UnknownFieldsChangeNothing) {
  using namespace std::string_literals;
  const std::string kUnknown[] = {
      "\xF8\xFF\xFF\xFF\x0F\x01"s,                          // the highest tag
      "\x80\x7D\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01"s,  // a number of 64 bits
      "\x82\x7D\x03\x00\xFF\x80"s,                          // bytes
      "\x85\x7D\x01\x02\x03\x04"s,                          // 32 bits
      "\x81\x7D\x01\x02\x03\x04\x05\x06\x07\x08"s};         // 64 bits
  for (std::uint32_t seed = 0; seed < 40; seed++) {
    const auto m = random(seed);
    if (only_read(*m)) continue;
    const std::string bytes = m->SerializeAsString();
    for (const std::string& unknown : kUnknown) {
      ASSERT_EQ(again(GetParam(), unknown + bytes + unknown).bytes, bytes);
      for (std::size_t cut = 1; cut < unknown.size(); cut++) {
        ASSERT_EQ(again(GetParam(), bytes + unknown.substr(0, cut)).size, CODER_AGAIN_REFUSED)
            << cut;
      }
    }
  }
}

// Whatever the bytes are: the board reads what the host reads, or refuses.
TEST_P(EveryMessage, RandomBytesAreReadByBothOrRefused) {
  std::mt19937 noise(11);
  const auto m = random(0);
  int read = 0;
  for (int i = 0; i < 20000; i++) {
    std::string bytes(noise() % 24, '\0');
    // Mostly keys and lengths that mean something; texts stay UTF-8.
    for (char& c : bytes) c = static_cast<char>(noise() % (noise() % 4 == 0 ? 128 : 48));
    const auto a = again(GetParam(), bytes);
    if (a.size == CODER_AGAIN_REFUSED) continue;
    read++;
    ASSERT_TRUE(m->ParseFromString(bytes)) << ::testing::PrintToString(bytes);
    if (only_read(*m) || negative_enum(*m)) continue;
    const auto b = again(GetParam(), m->SerializeAsString());
    ASSERT_EQ(a.bytes, b.bytes) << m->DebugString();
  }
  EXPECT_GT(read, 100);
}

INSTANTIATE_TEST_SUITE_P(Coder, EveryMessage,
                         ::testing::Values("Hello", "HelloAck", "NeedHello", "LinkErr", "Busy",
                                           "Pong", "Log", "Window", "Request", "Response",
                                           "StepRecord", "LayerEpoch", "JobChanged", "EvalResult",
                                           "NvmCommitted"));

TEST(Coder, RefusesWhatExceedsABound) {
  pb::Hello hello;
  hello.set_host_id(std::string(16, 'h'));
  EXPECT_EQ(again("Hello", hello.SerializeAsString()).bytes, hello.SerializeAsString());
  hello.set_host_id(std::string(17, 'h'));
  EXPECT_EQ(again("Hello", hello.SerializeAsString()).size, CODER_AGAIN_REFUSED);
  pb::Log log;
  log.set_text(std::string(120, 't'));
  EXPECT_EQ(again("Log", log.SerializeAsString()).bytes, log.SerializeAsString());
  log.set_text(std::string(121, 't'));  // its end takes a byte
  EXPECT_EQ(again("Log", log.SerializeAsString()).size, CODER_AGAIN_REFUSED);
  pb::Request request;
  for (int i = 0; i < 8; i++) request.mutable_start_run()->add_steering()->set_k(8);
  EXPECT_EQ(again("Request", request.SerializeAsString()).bytes, request.SerializeAsString());
  request.mutable_start_run()->add_steering();
  EXPECT_EQ(again("Request", request.SerializeAsString()).size, CODER_AGAIN_REFUSED);
  pb::Request capture;
  for (int i = 0; i < 8; i++) capture.mutable_capture_start()->add_add(i);
  EXPECT_NE(again("Request", capture.SerializeAsString()).size, CODER_AGAIN_REFUSED);
  capture.mutable_capture_start()->add_add(9);
  EXPECT_EQ(again("Request", capture.SerializeAsString()).size, CODER_AGAIN_REFUSED);
  using namespace std::string_literals;
  EXPECT_EQ(again("Busy", "\x08\x80\x80\x80\x80\x10"s).size, CODER_AGAIN_REFUSED);  // 2^32
  EXPECT_EQ(again("Window", "\x20\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01"s).size,
            CODER_AGAIN_REFUSED);
}

TEST(Coder, RefusesMalformedBytes) {
  using namespace std::string_literals;
  for (const std::string& bytes : {"\x00\x01"s,              // tag 0
                                   "\x0B"s,                  // a group
                                   "\x0D\x01\x02\x03"s,      // a number of 4 bytes that has 3
                                   "\x0D\x01\x02\x03\x04"s,  // of another wire type than until_ms
                                   "\x0A\x05hi"s, "\x08"s, "\x80\x80\x80\x80\x80\x01\x00"s}) {
    EXPECT_EQ(again("Busy", bytes).size, CODER_AGAIN_REFUSED) << ::testing::PrintToString(bytes);
  }
  EXPECT_EQ(again("Busy", "\x08\x07\x50\x01\x5A\x02hi\x65zzzz\x69zzzzzzzz"s).bytes,
            "\x08\x07"s);  // unknown ones
}

TEST(Coder, LengthsThatLieAreRefused) {
  using namespace std::string_literals;
  // Of a message, of one inside it, of bytes: beyond the end by one, 2^31, 2^32, 2^64 - 1.
  const std::string inside = "\x0A\x02\x08\x01"s;
  for (const std::string& length : {"\x05"s, "\x80\x80\x80\x80\x08"s, "\x80\x80\x80\x80\x10"s,
                                    "\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01"s}) {
    for (const char* name : {"Request", "Response", "Hello", "HelloAck"}) {
      for (char tag = 1; tag < 16; tag++) {
        const std::string key(1, static_cast<char>(tag << 3 | 2));
        EXPECT_EQ(again(name, key + length + inside).size, CODER_AGAIN_REFUSED) << name << int{tag};
        // A whole group whose own length is right, with such a field in it.
        const std::string body = key + length;
        const std::string whole = key + std::string(1, static_cast<char>(body.size())) + body;
        const auto read = again(name, whole);
        EXPECT_LE(read.size == CODER_AGAIN_REFUSED ? 0 : read.size, 4096u);
      }
    }
  }
}

TEST(Coder, LongVarintsEndAtTheirTenthByte) {
  using namespace std::string_literals;
  EXPECT_EQ(again("Busy", "\x08\x87\x80\x80\x80\x80\x80\x80\x80\x80\x00"s).bytes, "\x08\x07"s);
  EXPECT_EQ(again("Busy", "\x08\x87\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00"s).size,
            CODER_AGAIN_REFUSED);
  // As a key, too: 2^32 and up is no tag.
  EXPECT_EQ(again("Busy", "\x88\x80\x80\x80\x10\x07"s).size, CODER_AGAIN_REFUSED);
  EXPECT_EQ(again("Busy", "\x88\x80\x80\x80\x00\x07"s).bytes, "\x08\x07"s);
}

TEST(Coder, TheLastOfAGroupCounts) {
  pb::Request first, last;
  first.mutable_identify()->set_seconds(7);
  last.mutable_get_state()->set_with_state_hash(true);
  EXPECT_EQ(again("Request", first.SerializeAsString() + last.SerializeAsString()).bytes,
            last.SerializeAsString());
  last.set_get_eval(0);  // a number of a group is told though it is 0
  EXPECT_EQ(again("Request", last.SerializeAsString()).bytes, last.SerializeAsString());
}

}  // namespace
