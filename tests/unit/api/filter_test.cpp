#include "api/filter.h"

#include <gtest/gtest.h>

#include "odt/api/v1/types.pb.h"

namespace odt::api {
namespace {

bool holds(const std::string& text, const google::protobuf::Message& message) {
  const auto filter = Filter::parse(text, *message.GetDescriptor());
  EXPECT_TRUE(filter.ok()) << filter.status();
  return filter.ok() && filter->matches(message);
}

v1::Board board() {
  v1::Board board;
  board.set_uid(std::string("\x01\x02\x03\x04\x05\x06\x07\x08"));
  board.set_name("rig-7");
  board.set_core("cortex-m33");
  board.set_status(v1::BOARD_STATUS_ONLINE);
  board.set_max_batch(8);
  (*board.mutable_labels())["site"] = "lab";
  return board;
}

TEST(Filter, TermsMustAllHold) {
  EXPECT_TRUE(holds("", board()));
  EXPECT_TRUE(holds("core=cortex-m33,name=rig-7", board()));
  EXPECT_FALSE(holds("core=cortex-m33,name=rig-8", board()));
  EXPECT_TRUE(holds("name!=rig-8", board()));
  EXPECT_FALSE(holds("name!=rig-7", board()));
}

TEST(Filter, KnowsNumbersEnumsBytesAndLabels) {
  EXPECT_TRUE(holds("max_batch=8", board()));
  EXPECT_TRUE(holds("status=online", board()));
  EXPECT_TRUE(holds("status=BOARD_STATUS_ONLINE", board()));
  EXPECT_FALSE(holds("status=line", board()));
  EXPECT_TRUE(holds("uid=0102030405060708", board()));
  EXPECT_TRUE(holds("label.site=lab", board()));
  EXPECT_FALSE(holds("label.site=field", board()));
  EXPECT_TRUE(holds("label.room!=3", board()));
  EXPECT_TRUE(holds("link.crc_errors=0", board()));
}

TEST(Filter, SpecAndRepeatedFieldsOfOtherResources) {
  v1::Run run;
  run.mutable_spec()->set_name("night");
  EXPECT_TRUE(holds("spec.name=night", run));
  EXPECT_TRUE(holds("name=night", run));
  v1::Snapshot snapshot;
  snapshot.add_aliases("best");
  snapshot.add_aliases("golden");
  EXPECT_TRUE(holds("aliases=golden", snapshot));
  EXPECT_FALSE(holds("aliases=gold", snapshot));
}

TEST(Filter, BadTermsAreNamed) {
  const auto& resource = *v1::Board::descriptor();
  for (const char* bad : {"core", "=x", "colour=red", "link=x", "labels=x", "link.speed=1", "!=x"})
    EXPECT_EQ(Filter::parse(bad, resource).status().code(), absl::StatusCode::kInvalidArgument)
        << bad;
  EXPECT_NE(remedy_of(Filter::parse("colour=red", resource).status()).find("board_type"),
            std::string::npos);
}

}  // namespace
}  // namespace odt::api
