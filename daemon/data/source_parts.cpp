#include "data/source_parts.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

namespace odt::data {
namespace {

namespace fs = std::filesystem;
constexpr std::size_t kMaxFiles = 100000;

// Files whose rows are to stand in one dataset. those: "the training data has".
Status check_alike(const Source& s, const std::vector<std::uint32_t>& shape, const SourceInfo& info,
                   const char* those) {
  const auto refuse = [&s](const auto&... what) {
    return absl::InvalidArgumentError(absl::StrCat(s.describe(), ": ", what...));
  };
  if (s.shape() != shape)
    return refuse("[", absl::StrJoin(s.shape(), ","), "] values per sample; ", those, " [",
                  absl::StrJoin(shape, ","), "]");
  const SourceInfo own = s.info();
  for (std::size_t i = 0; i < std::min(own.value_names.size(), info.value_names.size()); ++i)
    if (own.value_names[i] != info.value_names[i])
      return refuse("value ", i, " is '", own.value_names[i], "'; ", those, " '",
                    info.value_names[i], "'");
  const bool known = own.sample_rate > 0 && info.sample_rate > 0;
  if (known && std::abs(own.sample_rate - info.sample_rate) > 0.01f * info.sample_rate)
    return refuse(own.sample_rate, " Hz; ", those, " ", info.sample_rate, " Hz");
  return absl::OkStatus();
}

class Chain : public Source {
 public:
  Chain(std::string describe, std::size_t files, OpenNth open, SourcePtr first)
      : describe_(std::move(describe)),
        files_(files),
        open_(std::move(open)),
        current_(std::move(first)),
        shape_(current_->shape()),
        info_(current_->info()) {}

  const std::vector<std::uint32_t>& shape() const override { return shape_; }
  Result<bool> next(Row& row) override {
    while (true) {
      bool more;
      ODT_ASSIGN(more, current_->next(row));
      if (more) {
        row.index = row_++;
        return true;
      }
      if (file_ + 1 == files_) return false;
      ODT_TRY(go_to(file_ + 1));
    }
  }
  Status rewind() override {
    row_ = 0;
    return file_ == 0 ? current_->rewind() : go_to(0);
  }
  double progress() const override {
    return (static_cast<double>(file_) + current_->progress()) / static_cast<double>(files_);
  }
  std::string describe() const override { return describe_; }
  SourceInfo info() const override {
    SourceInfo info = info_;
    info.faults = faults_;
    const auto last = current_->info().faults;
    info.faults.insert(info.faults.end(), last.begin(), last.end());
    return info;
  }

 private:
  Status go_to(std::size_t file) {
    if (file > file_) {
      const auto more = current_->info().faults;
      faults_.insert(faults_.end(), more.begin(), more.end());
    } else {
      faults_.clear();
    }
    current_.reset();  // at most one open at a time
    ODT_ASSIGN(current_, open_(file));
    file_ = file;
    return check_alike(*current_, shape_, info_, "the files before it have");
  }

  std::string describe_;
  std::size_t files_, file_ = 0;
  OpenNth open_;
  SourcePtr current_;
  std::vector<std::uint32_t> shape_;
  SourceInfo info_;
  std::vector<std::string> faults_;  // of the files before this one
  std::uint32_t row_ = 0;
};

class WithTest : public Source {
 public:
  WithTest(SourcePtr pool, SourcePtr test) : pool_(std::move(pool)), test_(std::move(test)) {}
  const std::vector<std::uint32_t>& shape() const override { return pool_->shape(); }
  Result<bool> next(Row& row) override {
    bool more = false;
    if (!in_test_) {
      ODT_ASSIGN(more, pool_->next(row));
      in_test_ = !more;
    }
    if (in_test_) {
      ODT_ASSIGN(more, test_->next(row));
      row.own_test = true;
    }
    return more;
  }
  Status rewind() override {
    in_test_ = false;
    ODT_TRY(pool_->rewind());
    return test_->rewind();
  }
  double progress() const override {
    return in_test_ ? 0.8 + 0.2 * test_->progress() : 0.8 * pool_->progress();
  }
  std::string describe() const override {
    return absl::StrCat(pool_->describe(), ", test ", test_->describe());
  }
  SourceInfo info() const override {
    SourceInfo info = pool_->info();
    const auto more = test_->info().faults;
    info.faults.insert(info.faults.end(), more.begin(), more.end());
    return info;
  }

 private:
  SourcePtr pool_, test_;
  bool in_test_ = false;
};

class Stepped : public Source {
 public:
  Stepped(SourcePtr images, ImageSteps steps, std::string text)
      : images_(std::move(images)),
        steps_(std::move(steps)),
        text_(std::move(text)),
        shape_(shape_after(steps_, images_->shape())) {}
  const std::vector<std::uint32_t>& shape() const override { return shape_; }
  Result<bool> next(Row& row) override {
    bool more;
    ODT_ASSIGN(more, images_->next(row));
    if (!more) return false;
    in_.clear();
    out_.clear();
    for (float v : row.values) {
      if (!(v >= 0 && v <= 255) || v != std::floor(v))
        return absl::InvalidArgumentError(
            absl::StrCat(row.name, ": resize and transform need u8 images; got the value ", v));
      in_.push_back(static_cast<std::uint8_t>(v));
    }
    append_image(steps_, images_->shape(), in_.data(), out_);
    row.values.assign(out_.begin(), out_.end());
    return true;
  }
  Status rewind() override { return images_->rewind(); }
  double progress() const override { return images_->progress(); }
  std::string describe() const override { return images_->describe() + text_; }
  SourceInfo info() const override { return images_->info(); }

 private:
  SourcePtr images_;
  ImageSteps steps_;
  std::string text_;
  std::vector<std::uint32_t> shape_;
  std::vector<std::uint8_t> in_, out_;
};

bool has_ending(std::string name, const std::vector<std::string>& endings) {
  std::transform(name.begin(), name.end(), name.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return endings.empty() || std::any_of(endings.begin(), endings.end(),
                                        [&](const auto& e) { return name.ends_with(e); });
}

}  // namespace

Result<std::vector<std::string>> files_below(const std::string& folder,
                                             const std::vector<std::string>& endings) {
  std::error_code ec;
  fs::recursive_directory_iterator at(folder, ec);
  if (ec) return absl::NotFoundError(absl::StrCat(folder, ": cannot read: ", ec.message()));
  std::vector<std::string> files;
  // A fault ends the walk: it must not pass for the end of the files.
  std::error_code fault;
  for (; !fault && at != fs::recursive_directory_iterator(); at.increment(fault)) {
    const std::string name = at->path().filename().string();
    if (name.starts_with('.')) {
      if (at->is_directory(ec)) at.disable_recursion_pending();
      continue;
    }
    if (at->is_symlink(ec) || !at->is_regular_file(ec) || !has_ending(name, endings)) continue;
    files.push_back(fs::relative(at->path(), folder, ec).string());
    if (files.size() > kMaxFiles)
      return absl::InvalidArgumentError(absl::StrCat(folder, ": more than ", kMaxFiles, " files"));
  }
  if (fault) return absl::FailedPreconditionError(absl::StrCat(folder, ": ", fault.message()));
  if (files.empty())
    return absl::InvalidArgumentError(
        absl::StrCat(folder, ": no file", endings.empty() ? "" : " that ends in ",
                     absl::StrJoin(endings, " or "), " in this folder"));
  std::sort(files.begin(), files.end());
  return files;
}

Result<SourcePtr> chain_sources(std::string describe, std::size_t files, OpenNth open) {
  SourcePtr first;
  ODT_ASSIGN(first, open(0));
  return std::make_unique<Chain>(std::move(describe), files, std::move(open), std::move(first));
}

Result<SourcePtr> with_test(SourcePtr pool, SourcePtr test) {
  ODT_TRY(check_alike(*test, pool->shape(), pool->info(), "the training data has"));
  return std::make_unique<WithTest>(std::move(pool), std::move(test));
}

Result<ImageSteps> parse_image_steps(const std::string& transform,
                                     const std::vector<std::uint32_t>& resize) {
  ImageSteps steps;
  ODT_ASSIGN(steps.transform, parse_transform(transform));
  steps.resize = resize;
  const auto side_ok = [](std::uint32_t n) { return n >= 1 && n <= 1024; };
  if (resize.empty() || (resize.size() == 2 && side_ok(resize[0]) && side_ok(resize[1])))
    return steps;
  return absl::InvalidArgumentError(absl::StrCat("resize [", absl::StrJoin(resize, ","),
                                                 "]; expected [height,width] of 1..1024"));
}

std::vector<std::uint32_t> shape_after(const ImageSteps& steps, std::vector<std::uint32_t> shape) {
  if (!steps.any()) return shape;
  if (steps.transform.kind == Transform::Kind::kRot90) std::swap(shape[1], shape[2]);
  if (!steps.resize.empty()) {
    shape[1] = steps.resize[0];
    shape[2] = steps.resize[1];
  }
  return shape;
}

void append_image(const ImageSteps& steps, const std::vector<std::uint32_t>& shape,
                  const std::uint8_t* sample, std::vector<std::uint8_t>& out) {
  const std::uint32_t c = shape[0], h = shape[1], w = shape[2];
  const bool turned = steps.transform.kind == Transform::Kind::kRot90;
  for (std::uint32_t i = 0; i < c; ++i) {
    auto image = apply_transform(steps.transform, sample + std::size_t{i} * h * w, h, w);
    if (!steps.resize.empty())
      image = resize_area(image.data(), turned ? w : h, turned ? h : w, steps.resize[0],
                          steps.resize[1]);
    out.insert(out.end(), image.begin(), image.end());
  }
}

std::string steps_text(const std::string& transform, const std::vector<std::uint32_t>& resize) {
  std::string text;
  if (!transform.empty() && transform != "none") absl::StrAppend(&text, ", ", transform);
  if (!resize.empty()) absl::StrAppend(&text, ", resize ", absl::StrJoin(resize, "x"));
  return text;
}

Result<SourcePtr> with_steps(SourcePtr images, ImageSteps steps, std::string text) {
  if (!steps.any()) return images;
  if (images->shape().size() != 3)
    return absl::InvalidArgumentError(absl::StrCat(
        images->describe(), ": resize and transform need images; got values of shape [",
        absl::StrJoin(images->shape(), ","), "]"));
  return std::make_unique<Stepped>(std::move(images), std::move(steps), std::move(text));
}

}  // namespace odt::data
