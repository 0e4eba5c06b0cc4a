#include "data/edge_impulse.h"

#include <absl/strings/str_cat.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "data/series.h"

namespace odt::data {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxDepth = 16;

// Takes the payload as the parser meets it: no tree of a large file is built, and the depth is
// bounded (the CBOR parser recurses).
class Handler : public nlohmann::json_sax<json> {
 public:
  explicit Handler(EdgeImpulseClip& clip) : clip_(clip) {}
  const std::string& error() const { return error_; }
  bool has_values() const { return has_values_; }

  bool null() override {
    return !in_values() || number(std::numeric_limits<double>::quiet_NaN(), true);
  }
  bool boolean(bool) override { return !in_values() || fail("a value is not a number"); }
  bool number_integer(number_integer_t v) override { return number(static_cast<double>(v)); }
  bool number_unsigned(number_unsigned_t v) override { return number(static_cast<double>(v)); }
  bool number_float(number_float_t v, const string_t&) override { return number(v); }
  bool binary(binary_t&) override { return !in_values() || fail("a value is not a number"); }

  bool string(string_t& text) override {
    if (in_values()) return fail("a value is text, not a number");
    if (level_ == 4 && is(2, "sensors") && path_[3].array) {
      if (path_[4].key == "name") clip_.sensors.back() = printable(text, 64);
      if (path_[4].key == "units") clip_.units.back() = printable(text, 32);
    }
    return true;
  }

  bool start_object(std::size_t) override {
    if (in_values()) return fail("a value is an object, not a number");
    if (level_ == 3 && is(2, "sensors") && path_[3].array) {
      if (clip_.sensors.size() == kMaxSensors)
        return fail(absl::StrCat("more than ", kMaxSensors, " sensors"));
      clip_.sensors.emplace_back();
      clip_.units.emplace_back();
    }
    return push(false);
  }
  bool end_object() override {
    --level_;
    return true;
  }
  bool start_array(std::size_t) override {
    if (in_values() && level_ == 4) return fail("a step holds an array");
    if (level_ == 2 && is(2, "values")) {
      if (has_values_) return fail("values stand twice");
      has_values_ = true;
    }
    row_start_ = clip_.values.size();
    return push(true);
  }
  bool end_array() override {
    if (in_values() && level_ == 4) {
      const std::size_t n = clip_.values.size() - row_start_;
      if (width_ == 0) width_ = n;
      if (n == 0 || n != width_)
        return fail(absl::StrCat("step ", rows_, " has ", n, " values; expected ",
                                 width_ == 0 ? 1 : width_));
      ++rows_;
    }
    --level_;
    return true;
  }
  bool key(string_t& text) override {
    path_[level_].key = text.substr(0, 32);
    return true;
  }
  bool parse_error(std::size_t at, const std::string&,
                   const nlohmann::detail::exception&) override {
    return fail(absl::StrCat("not well-formed at byte ", at));
  }

  // Values a step; 0: none.
  std::size_t width() const { return width_; }

 private:
  // Level n: inside of n containers; path_[n].key is the last key of the n-th.
  struct Level {
    bool array = false;
    std::string key;
  };

  bool fail(const std::string& what) {
    if (error_.empty()) error_ = what;
    return false;
  }
  bool push(bool array) {
    if (level_ + 1 >= kMaxDepth) return fail(absl::StrCat("more than ", kMaxDepth, " levels deep"));
    ++level_;
    path_[level_] = {array, {}};
    return true;
  }
  bool is(std::size_t level, const char* key) const {
    return level_ >= level && !path_[1].array && path_[1].key == "payload" && !path_[2].array &&
           path_[2].key == key;
  }
  // Inside of payload.values, as level 3 or (a step) 4.
  bool in_values() const { return level_ >= 3 && is(2, "values") && path_[3].array; }

  bool number(double v, bool missing = false) {
    if (level_ == 2 && is(2, "interval_ms")) clip_.interval_ms = v;
    if (!in_values()) return true;
    const auto f = static_cast<float>(v);
    if (!missing && !std::isfinite(f)) return fail("a value is too large");
    if (clip_.values.size() == kMaxRecordingValues)
      return fail(absl::StrCat("more than ", kMaxRecordingValues, " values"));
    if (level_ == 3) {
      if (width_ > 1 || rows_ != clip_.values.size())
        return fail("steps of one and of more values");
      width_ = 1;
      ++rows_;
    }
    clip_.values.push_back(f);
    return true;
  }

  EdgeImpulseClip& clip_;
  std::string error_;
  Level path_[kMaxDepth];
  std::size_t level_ = 0, row_start_ = 0, width_ = 0, rows_ = 0;
  bool has_values_ = false;
};

Status bad(const std::string& name, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat(name, ": ", what));
}

}  // namespace

Result<EdgeImpulseClip> read_edge_impulse(std::string_view bytes, bool cbor,
                                          const std::string& name) {
  EdgeImpulseClip clip;
  Handler handler(clip);
  const auto format = cbor ? json::input_format_t::cbor : json::input_format_t::json;
  if (!json::sax_parse(bytes.begin(), bytes.end(), &handler, format))
    return bad(name, handler.error().empty() ? "not well-formed" : handler.error());
  if (!handler.has_values())
    return bad(name, "no payload.values; expected Edge Impulse's data acquisition format");
  if (clip.values.empty()) return bad(name, "payload.values is empty");
  if (clip.sensors.size() != handler.width())
    return bad(name, absl::StrCat(handler.width(), " values a step for ", clip.sensors.size(),
                                  " sensors"));
  if (!(clip.interval_ms > 0 && clip.interval_ms <= 1e9))
    return bad(name, absl::StrCat("payload.interval_ms is ", clip.interval_ms,
                                  "; expected above 0, at most 1e9"));
  return clip;
}

}  // namespace odt::data
