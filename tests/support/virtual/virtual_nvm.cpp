#include "support/virtual/virtual_nvm.h"

#include <algorithm>

namespace odt::test {

VirtualNvm::VirtualNvm(const NvmSetup& setup, std::uint64_t seed)
    : setup_(setup), memory_(setup.bytes, '\xff'), random_(seed) {
  hal_.size = setup.bytes;
  hal_.page = setup.page;
  hal_.unit = setup.unit;
  hal_.write_us = setup.write_us;
  hal_.erase_us = setup.erase_us;
}

bool VirtualNvm::read(std::uint32_t at, std::uint8_t* out, std::uint32_t n) const {
  if (at > memory_.size() || n > memory_.size() - at) return false;
  std::copy_n(memory_.begin() + at, n, out);
  return true;
}

// Flash that is not erased takes zeros alone, and then does not read back.
bool VirtualNvm::write(std::uint32_t at, const std::uint8_t* data, std::uint32_t n) {
  if (n == 0 || at > memory_.size() || n > memory_.size() - at) return false;
  if (at / setup_.page != (at + n - 1) / setup_.page) return false;
  const std::string wanted(reinterpret_cast<const char*>(data), n);
  std::string value = wanted;
  if (setup_.unit != 0)
    for (std::uint32_t i = 0; i < n; ++i) value[i] = static_cast<char>(value[i] & memory_[at + i]);
  const bool good = value == wanted;
  put(at, std::move(value), setup_.write_us);
  return good;
}

bool VirtualNvm::erase(std::uint32_t at) {
  if (setup_.unit == 0 || at % setup_.unit != 0 || at >= memory_.size()) return false;
  put(at, std::string(setup_.unit, '\xff'), setup_.erase_us);
  return true;
}

void VirtualNvm::put(std::uint32_t at, std::string data, std::uint32_t took_us) {
  while (!under_way_.empty() && under_way_.front().to <= at_) under_way_.pop_front();
  under_way_.push_back({at_, at_ + took_us, at, memory_.substr(at, data.size())});
  memory_.replace(at, data.size(), data);
  at_ += took_us;
}

void VirtualNvm::cut(std::int64_t now) {
  for (auto w = under_way_.rbegin(); w != under_way_.rend() && w->to > now; ++w) {
    const std::size_t kept = w->from >= now ? 0 : random_() % (w->before.size() + 1);
    memory_.replace(w->at + kept, w->before.size() - kept, w->before, kept);
    // The byte that was being written is anything.
    if (w->from < now && kept < w->before.size())
      memory_[w->at + kept] = static_cast<char>(random_());
  }
  under_way_.clear();
}

}  // namespace odt::test
