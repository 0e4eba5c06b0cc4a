// Flash as non-volatile memory: the drivers of the STM32U5 and the nRF52840 against what the
// manuals say that the chips do.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>

#include <cstring>
#include <map>
#include <random>
#include <vector>

#include "nrf_flash.h"
#include "registers.h"
#include "stm32u5_flash.h"

namespace odt::test {

Chip* chip = nullptr;

namespace {

// The chip's memory at the addresses that it has there: drivers read it directly.
class Mapped {
 public:
  Mapped(std::uint32_t base, std::uint32_t size) : base_(base), size_(size) {
    void* at = mmap(reinterpret_cast<void*>(std::uintptr_t{base}), size, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (at != reinterpret_cast<void*>(std::uintptr_t{base})) return;
    bytes_ = static_cast<std::uint8_t*>(at);
    std::memset(bytes_, 0, size);  // never erased
  }
  ~Mapped() {
    if (bytes_ != nullptr) munmap(bytes_, size_);
  }
  bool ok() const { return bytes_ != nullptr; }
  bool holds(std::uint32_t address, std::uint32_t n) const {
    return address >= base_ && n <= size_ && address - base_ <= size_ - n;
  }
  std::uint8_t* at(std::uint32_t address) { return bytes_ + (address - base_); }

 private:
  std::uint32_t base_, size_;
  std::uint8_t* bytes_ = nullptr;
};

class FlashChip : public Chip {
 public:
  FlashChip(std::uint32_t base, std::uint32_t size) : memory(base, size) {}
  Mapped memory;
  std::vector<std::string>
      faults;         // what a chip would not have taken, or what would have destroyed the program
  bool worn = false;  // writes take no effect
};

// RM0456: quad-words of 128 bits, each once after an erase; pages of 8 KB; keys; the bank of a
// page.
class Stm32U5 : public FlashChip {
 public:
  Stm32U5() : FlashChip(STM32U5_NVM_BASE, STM32U5_NVM_SIZE) {}

  std::uint32_t load(std::uint32_t address) override {
    if (address == 0x40022020u)
      return busy_ > 0 ? (--busy_, 0x10000u) : status_ | (words_ > 0 ? 0x20000u : 0u);
    if (address == 0x40022028u) return control_;
    if (address == 0x40022030u) return ecc;
    if (address == 0x40030400u || address == 0x40030404u) return 0;
    faults.push_back("load of " + std::to_string(address));
    return 0;
  }

  void store(std::uint32_t address, std::uint32_t value) override {
    if (address == 0x40022008u) return key(value);
    if (address == 0x40022020u) {
      status_ &= ~value;
    } else if (address == 0x40022028u) {
      control(value);
    } else if (address == 0x40022030u) {
      ecc = (ecc & 0x80000000u & ~value) | (value & 0x01000000u);
    } else if (address == 0x40030400u) {
      invalidations += (value & 2u) != 0 ? 1 : 0;
    } else {
      word(address, value);
    }
  }
  int invalidations = 0;
  std::uint32_t ecc = 0x01000000u;  // ECCR: ECCD is bit 31, ECCIE bit 24

 private:
  void key(std::uint32_t value) {
    if (value == 0x45670123u) {
      half_ = true;
    } else if (half_ && value == 0xCDEF89ABu) {
      control_ &= ~0x80000000u;
    } else {
      faults.push_back("wrong key");
    }
  }
  void control(std::uint32_t value) {
    if ((control_ & 0x80000000u) != 0) return faults.push_back("locked");
    if (words_ != 0) faults.push_back("half a quad-word");
    control_ = value & ~0x10000u;
    half_ = false;
    if ((value & 0x10000u) == 0) return;
    if ((value & 2u) == 0) return faults.push_back("start of nothing");
    const std::uint32_t page =
        0x08000000u + ((value & 0x800u) != 0 ? 0x100000u : 0u) + ((value >> 3 & 0xFFu) * 8192u);
    if (!memory.holds(page, 8192)) return faults.push_back("erases the program");
    if (!worn) std::memset(memory.at(page), 0xFF, 8192);
    busy_ = 3;
  }
  void word(std::uint32_t address, std::uint32_t value) {
    if ((control_ & 0x80000001u) != 1u) return faults.push_back("write without PG");
    if (!memory.holds(address, 4) || address % 16 != words_ * 4u)
      return faults.push_back("not a word of this quad-word");
    quad_[words_++] = value;
    if (words_ < 4) return;
    words_ = 0;
    busy_ = 2;
    std::uint8_t* to = memory.at(address - 12);
    for (int i = 0; i < 16; i++) {
      if (to[i] != 0xFF) status_ |= 8u;  // PROGERR
    }
    if ((status_ & 8u) == 0 && !worn) std::memcpy(to, quad_, 16);
  }
  std::uint32_t control_ = 0x80000000u, status_ = 0;
  std::uint32_t quad_[4] = {}, words_ = 0;
  int busy_ = 0;
  bool half_ = false;
};

// Words, each at most twice after an erase; bits only fall; pages of 4 KB; CONFIG says what is
// allowed.
class Nrf52840 : public FlashChip {
 public:
  Nrf52840() : FlashChip(NRF_NVM_BASE, NRF_NVM_SIZE) {}

  std::uint32_t load(std::uint32_t address) override {
    if (address != 0x4001E400u) faults.push_back("load of " + std::to_string(address));
    return busy_ > 0 ? (--busy_, 0u) : 1u;
  }
  void store(std::uint32_t address, std::uint32_t value) override {
    if (busy_ > 0) faults.push_back("not ready");
    if (address == 0x4001E504u) {
      mode_ = value;
    } else if (address == 0x4001E508u) {
      if (mode_ != 2 || value % 4096 != 0 || !memory.holds(value, 4096))
        return faults.push_back("erase");
      if (!worn) std::memset(memory.at(value), 0xFF, 4096);
      for (std::uint32_t at = value; at < value + 4096; at += 4) writes_.erase(at);
      busy_ = 3;
    } else {
      word(address, value);
    }
  }

 private:
  void word(std::uint32_t address, std::uint32_t value) {
    if (mode_ != 1 || address % 4 != 0 || !memory.holds(address, 4))
      return faults.push_back("write");
    if (++writes_[address] > 2) faults.push_back("a word's third write");
    std::uint32_t old;
    std::memcpy(&old, memory.at(address), 4);
    value &= old;
    if (!worn) std::memcpy(memory.at(address), &value, 4);
    busy_ = 2;
  }
  std::uint32_t mode_ = 0;
  std::map<std::uint32_t, int> writes_;
  int busy_ = 0;
};

// Writes, reads, erases at random what a commit may, against a plain copy.
void holds_what_was_written(FlashChip& c, const hal_nvm_t& nvm) {
  ASSERT_TRUE(c.memory.ok());
  chip = &c;
  std::mt19937 random(7);
  std::vector<std::uint8_t> want(nvm.size, 0), got(nvm.size);
  ASSERT_EQ(nvm.unit % nvm.page, 0u);
  for (int round = 0; round < 40; round++) {
    const std::uint32_t unit = random() % (nvm.size / nvm.unit) * nvm.unit;
    ASSERT_TRUE(nvm.erase(nullptr, unit));
    std::memset(&want[unit], 0xFF, nvm.unit);
    for (std::uint32_t at = unit; at < unit + nvm.unit; at += nvm.page) {
      if (random() % 3 == 0) continue;
      for (std::uint32_t i = 0; i < nvm.page; i++)
        want[at + i] = static_cast<std::uint8_t>(random());
      ASSERT_TRUE(nvm.write(nullptr, at, &want[at], nvm.page));
    }
  }
  ASSERT_TRUE(nvm.read(nullptr, 0, got.data(), nvm.size));
  EXPECT_EQ(got, want);
  EXPECT_EQ(c.faults, std::vector<std::string>{});
}

void refuses(FlashChip& c, const hal_nvm_t& nvm) {
  ASSERT_TRUE(c.memory.ok());
  chip = &c;
  std::vector<std::uint8_t> page(nvm.page, 0x5A);
  EXPECT_FALSE(nvm.erase(nullptr, nvm.size));
  EXPECT_FALSE(nvm.erase(nullptr, nvm.unit / 2));
  EXPECT_FALSE(nvm.write(nullptr, nvm.size, page.data(), nvm.page));
  EXPECT_FALSE(nvm.write(nullptr, nvm.size - nvm.page / 2, page.data(), nvm.page));
  EXPECT_FALSE(nvm.write(nullptr, 2, page.data(), 16));
  EXPECT_FALSE(nvm.read(nullptr, nvm.size - 1, page.data(), 2));
  EXPECT_FALSE(nvm.read(nullptr, 0xFFFFFFFFu, page.data(), 2));
  EXPECT_EQ(c.faults, std::vector<std::string>{}) << "none of them reaches the chip";
  EXPECT_FALSE(nvm.write(nullptr, 0, page.data(), nvm.page)) << "not erased: does not read back";
  ASSERT_TRUE(nvm.erase(nullptr, 0));
  EXPECT_TRUE(nvm.write(nullptr, 0, page.data(), nvm.page))
      << "a failed write leaves no error behind";
  c.worn = true;
  EXPECT_FALSE(nvm.write(nullptr, nvm.page, page.data(), nvm.page));
  EXPECT_FALSE(nvm.erase(nullptr, 0));
}

TEST(Stm32U5Flash, HoldsWhatWasWritten) {
  Stm32U5 c;
  holds_what_was_written(c, *stm32u5_flash());
  EXPECT_GT(c.invalidations, 40) << "the instruction cache may hold what was there before";
}
TEST(Stm32U5Flash, RefusesAndNoticesWhatDoesNotReadBack) {
  Stm32U5 c;
  refuses(c, *stm32u5_flash());
}
// A quad-word that a power cut left half written: the load that meets it raises an NMI. Here it
// meets a page that may not be read, and the NMI's handler is asked from the signal's.
class Torn {
 public:
  Torn(Stm32U5& c, std::uint32_t at) {
    here_ = c.memory.at(STM32U5_NVM_BASE + at / 4096 * 4096);
    chip_ = &c;
    mprotect(here_, 4096, PROT_NONE);
    struct sigaction action {};
    action.sa_handler = on_load;
    sigaction(SIGSEGV, &action, &before_);
  }
  ~Torn() {
    sigaction(SIGSEGV, &before_, nullptr);
    mprotect(here_, 4096, PROT_READ | PROT_WRITE);
  }
  static inline int taken = 0, loads = 0;

 private:
  static void on_load(int) {
    mprotect(here_, 4096, PROT_READ | PROT_WRITE);
    chip_->ecc |= 0x80000000u;
    ++loads;
    taken += stm32u5_flash_torn() ? 1 : 0;
  }
  static inline std::uint8_t* here_ = nullptr;
  static inline Stm32U5* chip_ = nullptr;
  struct sigaction before_ {};
};

TEST(Stm32U5Flash, ATornQuadWordFailsTheReadAndIsMendedByAnErase) {
  Stm32U5 c;
  ASSERT_TRUE(c.memory.ok());
  chip = &c;
  const hal_nvm_t& nvm = *stm32u5_flash();
  std::vector<std::uint8_t> bytes(16384);
  EXPECT_FALSE(stm32u5_flash_torn()) << "no error: some other NMI";
  {
    const Torn torn(c, 8192);
    EXPECT_FALSE(nvm.read(nullptr, 4096, bytes.data(), 8192)) << "across it";
    EXPECT_EQ(Torn::loads, 1);
    EXPECT_EQ(Torn::taken, 1);
    EXPECT_EQ(c.ecc, 0x01000000u) << "cleared, and nothing else changed";
  }
  EXPECT_TRUE(nvm.read(nullptr, 0, bytes.data(), 8192)) << "another slot's bytes are readable";
  EXPECT_TRUE(nvm.erase(nullptr, 8192));
  EXPECT_TRUE(nvm.read(nullptr, 8192, bytes.data(), 8192));
  c.ecc |= 0x80000000u;
  EXPECT_FALSE(stm32u5_flash_torn()) << "in the program: a fault";
  EXPECT_EQ(c.faults, std::vector<std::string>{});
}
TEST(NrfFlash, HoldsWhatWasWritten) {
  Nrf52840 c;
  holds_what_was_written(c, *nrf_flash());
}
TEST(NrfFlash, RefusesAndNoticesWhatDoesNotReadBack) {
  Nrf52840 c;
  refuses(c, *nrf_flash());
}

}  // namespace
}  // namespace odt::test
