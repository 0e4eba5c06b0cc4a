#include "data/series.h"

#include <absl/strings/str_cat.h>

#include <unordered_set>

namespace odt::data {
namespace {

// What both share: the table behind the recordings.
class TableRecordings : public RecordingSource {
 public:
  TableRecordings(std::unique_ptr<Source> source, double rate)
      : source_(std::move(source)), rate_(rate) {}
  double sample_rate() const override { return rate_ > 0 ? rate_ : source_->info().sample_rate; }
  double progress() const override { return source_->progress(); }
  std::string describe() const override { return source_->describe(); }
  SourceInfo info() const override { return source_->info(); }

 protected:
  std::uint32_t row_values() const {
    std::uint32_t n = 1;
    for (auto d : source_->shape()) n *= d;
    return n;
  }
  Status bad(const std::string& what) const {
    return absl::InvalidArgumentError(absl::StrCat(row_.name, ": ", what));
  }
  std::unique_ptr<Source> source_;
  double rate_;
  Row row_;
};

class StepRecordings : public TableRecordings {
 public:
  using TableRecordings::TableRecordings;
  std::uint32_t channels() const override { return row_values(); }

  Status rewind() override {
    seen_.clear();
    held_ = false;
    return source_->rewind();
  }

  Result<bool> next(Recording& r) override {
    if (!held_) {
      ODT_ASSIGN(held_, source_->next(row_));
      if (!held_) return false;
    }
    if (row_.group.empty()) return bad("the recording of this step is empty");
    if (!seen_.insert(row_.group).second)
      return bad(absl::StrCat("recording '", printable(row_.group, 64),
                              "' goes on behind another one; sort the file by recording"));
    r.label = row_.label;
    r.group = r.name = row_.group;
    r.own_test = row_.own_test;
    r.values.clear();
    while (held_ && row_.group == r.group) {
      if (row_.label != r.label)
        return bad(absl::StrCat("class '", printable(row_.label, 64), "' in a recording of class '",
                                printable(r.label, 64), "'; a recording has one class"));
      if (r.values.size() + row_.values.size() > kMaxRecordingValues)
        return bad(absl::StrCat("a recording of more than ", kMaxRecordingValues, " values"));
      r.values.insert(r.values.end(), row_.values.begin(), row_.values.end());
      ODT_ASSIGN(held_, source_->next(row_));
    }
    return true;
  }

 private:
  std::unordered_set<std::string> seen_;
  bool held_ = false;  // row_ is the next recording's first step
};

class RowRecordings : public TableRecordings {
 public:
  RowRecordings(std::unique_ptr<Source> source, std::uint32_t channels, double rate)
      : TableRecordings(std::move(source), rate), channels_(channels) {}
  std::uint32_t channels() const override { return channels_; }
  Status rewind() override { return source_->rewind(); }
  SourceInfo info() const override {
    SourceInfo info = source_->info();
    info.value_names.clear();  // of the row's values, not of channels
    return info;
  }
  Status check() const {
    if (channels_ > 0 && row_values() % channels_ == 0) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(source_->describe(), ": ", row_values(),
                                                   " values a row; not a multiple of ", channels_,
                                                   " channels"));
  }

  Result<bool> next(Recording& r) override {
    bool more;
    ODT_ASSIGN(more, source_->next(row_));
    if (!more) return false;
    r.label = row_.label;
    r.group = row_.group;
    r.name = row_.name;
    r.own_test = row_.own_test;
    r.values = row_.values;
    return true;
  }

 private:
  std::uint32_t channels_;
};

}  // namespace

std::unique_ptr<RecordingSource> recordings_of_steps(std::unique_ptr<Source> steps, double rate) {
  return std::make_unique<StepRecordings>(std::move(steps), rate);
}

Result<std::unique_ptr<RecordingSource>> recordings_of_rows(std::unique_ptr<Source> rows,
                                                            std::uint32_t channels, double rate) {
  auto source = std::make_unique<RowRecordings>(std::move(rows), channels, rate);
  ODT_TRY(source->check());
  return std::unique_ptr<RecordingSource>(std::move(source));
}

}  // namespace odt::data
