#include "support/virtual/wire.h"

#include <algorithm>
#include <cstring>

namespace odt::test {

Wire::Wire(std::uint64_t seed, std::uint32_t baud, std::int64_t one_way_us)
    : random_(seed),
      byte_ns_(baud == 0 ? 0 : 10'000'000'000 / baud),
      one_way_ns_(one_way_us * 1000) {}

void Wire::put(const void* data, std::size_t size, std::int64_t now) {
  const auto* bytes = static_cast<const char*>(data);
  for (std::size_t i = 0; i < size; ++i) {
    if (bytes[i] == 0) {
      if (in_frame_) end_frame();
      out_ += '\0';
      continue;
    }
    if (!in_frame_) begin_frame(now);
    content_byte(bytes[i]);
  }
  flush(now);
}

void Wire::begin_frame(std::int64_t now) {
  in_frame_ = true;
  at_ = 0;
  hit_ = false;
  fate_ = Fate::kPass;
  fate_at_ = random_() % (random_() % 2 != 0 ? 24 : 560);
  fate_size_ = 2 + random_() % 30;
  copy_.clear();
  if (chance(faults.delay)) {
    ++injected;
    flush(now);
    free_ns_ = std::max(free_ns_, now * 1000) + faults.delay_us * 1000;
  }
  if (chance(faults.garbage)) {
    ++injected;
    const bool text = random_() % 2 == 0;
    const std::size_t n = 1 + random_() % 80;
    for (std::size_t i = 0; i < n; ++i)
      out_ += static_cast<char>(text ? ' ' + random_() % 94 : random_());
    if (random_() % 2 == 0) out_ += text ? "\r\n" : std::string(1, '\0');
  }
  if (chance(faults.drop))
    fate_ = Fate::kDrop;
  else if (chance(faults.flip))
    fate_ = Fate::kFlip;
  else if (chance(faults.burst))
    fate_ = Fate::kBurst;
  else if (chance(faults.truncate))
    fate_ = Fate::kTruncate;
  else if (chance(faults.duplicate))
    fate_ = Fate::kDuplicate;
}

void Wire::content_byte(char byte) {
  const std::size_t at = at_++;
  switch (fate_) {
    case Fate::kDrop:
      hit_ = true;
      return;
    case Fate::kFlip:
      if (at == fate_at_) {
        hit_ = true;
        byte = static_cast<char>(byte ^ (1 << random_() % 8));
      }
      break;
    case Fate::kBurst:
      if (at >= fate_at_ && at < fate_at_ + fate_size_) {
        hit_ = true;
        byte = static_cast<char>(random_());
      }
      break;
    case Fate::kTruncate:
      if (at >= fate_at_) {
        hit_ = true;
        return;
      }
      break;
    case Fate::kDuplicate:
      hit_ = true;
      copy_ += byte;
      break;
    case Fate::kPass:
      break;
  }
  out_ += byte;
}

// The caller puts the delimiter.
void Wire::end_frame() {
  in_frame_ = false;
  if (hit_) ++injected;
  if (fate_ == Fate::kDuplicate) out_ += std::string(1, '\0') + copy_;
  // A cut that takes the delimiter with it: two frames run into each other.
  if (fate_ == Fate::kTruncate && hit_ && random_() % 2 == 0 && !out_.empty() &&
      out_.back() == '\0')
    out_.pop_back();
}

void Wire::flush(std::int64_t now) {
  if (out_.empty()) return;
  Segment segment;
  const std::int64_t start = std::max(free_ns_, now * 1000);
  segment.start_ns = start + one_way_ns_;
  free_ns_ = start + static_cast<std::int64_t>(out_.size()) * byte_ns_;
  segment.bytes = std::move(out_);
  out_.clear();
  segments_.push_back(std::move(segment));
}

std::int64_t Wire::arrival_us(const Segment& segment, std::size_t index) const {
  const std::int64_t ns = segment.start_ns + static_cast<std::int64_t>(index + 1) * byte_ns_;
  return (ns + 999) / 1000;
}

std::size_t Wire::take(void* out, std::size_t size, std::int64_t now, std::size_t ring) {
  std::size_t arrived = 0;
  if (ring != SIZE_MAX) {
    for (Segment& s : segments_) {
      std::size_t n = 0;
      while (s.taken + n < s.bytes.size() && arrival_us(s, s.taken + n) <= now) ++n;
      if (arrived + n > ring) {
        const std::size_t keep = ring - std::min(arrived, ring);
        s.bytes.erase(s.taken + keep, n - keep);
        s.start_ns += static_cast<std::int64_t>(n - keep) * byte_ns_;
        n = keep;
      }
      arrived += n;
      if (s.taken + n < s.bytes.size()) break;
    }
  }
  std::size_t got = 0;
  while (got < size && !segments_.empty()) {
    Segment& s = segments_.front();
    while (got < size && s.taken < s.bytes.size() && arrival_us(s, s.taken) <= now)
      static_cast<char*>(out)[got++] = s.bytes[s.taken++];
    if (s.taken < s.bytes.size()) break;
    segments_.pop_front();
  }
  return got;
}

std::int64_t Wire::next_arrival() const {
  for (const Segment& s : segments_)
    if (s.taken < s.bytes.size()) return arrival_us(s, s.bytes.size() - 1);
  return kNever;
}

std::int64_t Wire::room_at(std::size_t bytes) const {
  return (free_ns_ - static_cast<std::int64_t>(bytes) * byte_ns_ + 999) / 1000;
}

std::size_t Wire::waiting(std::int64_t now) const {
  if (byte_ns_ == 0 || free_ns_ <= now * 1000) return 0;
  return static_cast<std::size_t>((free_ns_ - now * 1000) / byte_ns_);
}

void Wire::clear() {
  segments_.clear();
  out_.clear();
  in_frame_ = false;
}

}  // namespace odt::test
