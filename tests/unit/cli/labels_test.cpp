#include "cli/labels.h"

#include <gtest/gtest.h>

#include "odt/api/v1/types.pb.h"

namespace odt::cli {
namespace {

namespace v1 = api::v1;

v1::Outputs outputs(v1::Task task, std::uint32_t count, std::initializer_list<float> scales) {
  v1::Outputs o;
  o.set_task(task);
  o.set_count(count);
  for (const float scale : scales) o.add_scale(scale);
  return o;
}

v1::Loss loss(std::int64_t sum, std::uint32_t count) {
  v1::Loss l;
  l.set_sum(sum);
  l.set_count(count);
  return l;
}

TEST(Errors, AreInUnitsOfTheTargetWhereThereIsOneScale) {
  // 7200 over 9 samples of 2 outputs: 400 in squares of a step; a step is a quarter of a unit.
  EXPECT_EQ(error_text(loss(7200, 9), outputs(v1::TASK_REGRESS, 2, {4, 4})), "25");
  EXPECT_EQ(error_text(loss(7200, 9), outputs(v1::TASK_REGRESS, 2, {4})), "25");
  EXPECT_EQ(error_text(loss(7200, 9), outputs(v1::TASK_REGRESS, 2, {4, 5})), "400");
  EXPECT_EQ(error_text(loss(7200, 9), outputs(v1::TASK_REGRESS, 2, {})), "400");
  EXPECT_EQ(error_text(loss(0, 0), outputs(v1::TASK_REGRESS, 2, {4})), "-");
  EXPECT_EQ(error_unit(outputs(v1::TASK_REGRESS, 2, {4})),
            "mean squared error, units of the target");
  EXPECT_EQ(error_unit(outputs(v1::TASK_AUTOENCODE, 2, {4})),
            "mean squared error, units of the data");
  EXPECT_EQ(error_unit(outputs(v1::TASK_REGRESS, 2, {4, 5})),
            "mean squared error, steps of the model's integer outputs");
}

TEST(Errors, StandWhereAccuracyStoodAndNowhereElse) {
  v1::Accuracy accuracy;
  accuracy.set_total(10);
  EXPECT_EQ(score_text(accuracy, loss(5, 1), v1::Outputs()), "0.0 %");
  EXPECT_EQ(score_text(accuracy, loss(5, 1), outputs(v1::TASK_CLASSIFY, 10, {})), "0.0 %");
  EXPECT_EQ(score_text(accuracy, loss(5, 1), outputs(v1::TASK_REGRESS, 1, {})), "mse 5");
  EXPECT_EQ(score_text(accuracy, v1::Loss(), outputs(v1::TASK_REGRESS, 1, {})), "-");
}

}  // namespace
}  // namespace odt::cli
