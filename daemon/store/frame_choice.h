#pragma once

#include <cstdint>

namespace odt::store {

// At most `most` of `total` items, evenly chosen, the first and last among them where most >= 2.
// Ask with ascending index.
class FrameChoice {
 public:
  FrameChoice(std::uint32_t total, std::uint32_t most) : total_(total), most_(most) {}
  bool takes(std::uint32_t index) {
    if (total_ <= most_) return true;
    if (taken_ == most_ || index != wanted()) return false;
    ++taken_;
    return true;
  }

  // Any of the `count` items from `index` on.
  bool takes_within(std::uint32_t index, std::uint32_t count) const {
    if (total_ <= most_) return true;
    return taken_ != most_ && wanted() >= index && wanted() - index < count;
  }

 private:
  std::uint32_t wanted() const {
    if (most_ < 2) return 0;
    return static_cast<std::uint32_t>(static_cast<std::uint64_t>(taken_) * (total_ - 1) /
                                      (most_ - 1));
  }
  std::uint32_t total_, most_, taken_ = 0;
};

}  // namespace odt::store
