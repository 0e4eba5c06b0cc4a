#include "base/label_query.h"

#include <gtest/gtest.h>

namespace odt {
namespace {

using Labels = std::map<std::string, std::string>;

bool holds(const std::string& query, const Labels& labels, const Labels& fields = {}) {
  const auto parsed = LabelQuery::parse(query);
  EXPECT_TRUE(parsed.ok()) << query << ": " << parsed.status();
  return parsed.ok() && parsed->matches(labels, fields);
}

TEST(LabelQuery, AllTermsMustHold) {
  const Labels lab{{"site", "lab"}, {"target", "m33"}};
  EXPECT_TRUE(holds("site=lab", lab));
  EXPECT_TRUE(holds(" site = lab , target=m33 ", lab));
  EXPECT_FALSE(holds("site=lab,target=m4", lab));
  EXPECT_TRUE(holds("site!=roof", lab));
  EXPECT_FALSE(holds("site!=lab", lab));
  EXPECT_TRUE(holds("floor!=2", lab)) << "a label that is not there is not 2";
}

TEST(LabelQuery, PresenceAndAbsence) {
  const Labels broken{{"broken", ""}, {"site", "lab"}};
  EXPECT_TRUE(holds("broken", broken));
  EXPECT_FALSE(holds("!broken", broken));
  EXPECT_TRUE(holds("!broken", {{"site", "lab"}}));
  EXPECT_FALSE(holds("site=lab,!broken", broken));
  EXPECT_TRUE(holds("*", {}));
  EXPECT_TRUE(holds("", {}));
}

TEST(LabelQuery, FieldsBeforeLabels) {
  EXPECT_TRUE(holds("core=cortex-m33", {{"core", "mine"}}, {{"core", "cortex-m33"}}));
  EXPECT_TRUE(holds("label.core=mine", {{"core", "mine"}}, {{"core", "cortex-m33"}}));
  EXPECT_FALSE(holds("status!=ONLINE", {}, {{"status", "ONLINE"}}));
}

TEST(LabelQuery, SaysWhatIsWrong) {
  for (const char* bad : {"site=lab,", ",", "=lab", "!", "!=x", "!a=b", "label."}) {
    const auto parsed = LabelQuery::parse(bad);
    EXPECT_EQ(reason_of(parsed.status()), "BAD_QUERY") << bad;
  }
  EXPECT_FALSE(LabelQuery::parse(std::string(200, 'a')).ok());
}

}  // namespace
}  // namespace odt
