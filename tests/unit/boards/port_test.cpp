// Ports to silicon that nobody has run yet: what they write into which register, and that no wait
// for hardware is endless.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

#include "registers.h"

std::vector<std::uint8_t> received;
void uart_received(std::uint8_t byte) { received.push_back(byte); }
void irq_enable(std::uint32_t number) { odt::test::enabled_irqs.push_back(number); }

namespace odt::test {

std::vector<std::uint32_t> enabled_irqs;

namespace {

// Registers that answer with what was written and, beside it, with bits of their own.
class Registers : public Chip {
 public:
  std::uint32_t load(std::uint32_t address) override {
    auto& q = queue[address];
    if (!q.empty()) {
      const auto once = q.front();
      q.erase(q.begin());
      return once;
    }
    return value[address] | own[address] | everywhere;
  }
  void store(std::uint32_t address, std::uint32_t v) override {
    value[address] = v;
    order.push_back(address);
  }
  std::size_t first_store(std::uint32_t address) const {
    return static_cast<std::size_t>(std::find(order.begin(), order.end(), address) - order.begin());
  }
  std::map<std::uint32_t, std::uint32_t> value, own;
  std::map<std::uint32_t, std::vector<std::uint32_t>> queue;  // answers that come once
  std::vector<std::uint32_t> order;
  std::uint32_t everywhere = 0;
};

class Ports : public testing::TestWithParam<const Port*> {
 protected:
  void SetUp() override {
    chip = &registers;
    enabled_irqs.clear();
    received.clear();
  }
  Registers registers;
};

TEST_P(Ports, NoWaitIsEndless) {
  const Port& p = *GetParam();
  for (const std::uint32_t bits : {0u, 0xFFFFFFFFu}) {
    registers.everywhere = bits;
    std::uint64_t random = 0;
    p.clock_init();
    p.watchdog_start();
    p.uart_init();
    p.led(true);
    p.watchdog_feed();
    EXPECT_EQ(p.entropy(&random), bits != 0) << "silence is no random number";
  }
  EXPECT_LE(std::string(p.info->name).size(), 16u);
  EXPECT_NE(std::string(p.info->name).find("untest"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(All, Ports, testing::Values(&stm32u575, &nrf52840), [](const auto& of) {
  return of.param == &stm32u575 ? "stm32u575" : "nrf52840";
});

class Stm32U575 : public Ports {};
INSTANTIATE_TEST_SUITE_P(One, Stm32U575, testing::Values(&stm32u575));
constexpr std::uint32_t kRcc = 0x46020C00, kPwr = 0x46020800, kAcr = 0x40022000,
                        kUsart = 0x40013800;

TEST_P(Stm32U575, ClockIs160MHzWithItsSupplyAndWaitStatesFirst) {
  registers.own[kRcc] = 1u << 10 | 1u << 13 | 1u << 25;
  registers.own[kPwr + 0x0C] = 1u << 14 | 1u << 15;
  registers.own[kRcc + 0x1C] = 3u << 2;
  stm32u575.clock_init();
  const auto cfg = registers.value[kRcc + 0x28], div = registers.value[kRcc + 0x34];
  ASSERT_EQ(cfg & 3u, 2u) << "HSI16";
  const double in = 16e6 / ((cfg >> 8 & 15u) + 1), vco = in * ((div & 0x1FFu) + 1);
  EXPECT_EQ(cfg >> 2 & 3u, 3u) << "8 to 16 MHz";
  EXPECT_TRUE(in >= 8e6 && in <= 16e6);
  EXPECT_TRUE(vco >= 128e6 && vco <= 544e6) << vco;
  EXPECT_EQ(vco / ((div >> 24 & 0x7Fu) + 1), stm32u575.info->cpu_hz);
  EXPECT_NE(cfg & 1u << 18, 0u);
  EXPECT_EQ(registers.value[kPwr + 0x0C] >> 16 & 7u, 7u) << "range 1, booster";
  EXPECT_EQ(registers.value[kAcr] & 15u, 4u);
  EXPECT_EQ(registers.value[kRcc + 0x1C] & 3u, 3u);
  EXPECT_EQ(registers.value[kRcc + 0x20], 0u) << "no prescaler in the end";
  const auto change = registers.first_store(kRcc + 0x1C);
  EXPECT_LT(registers.first_store(kRcc + 0x94), registers.first_store(kPwr + 0x0C));
  EXPECT_LT(registers.first_store(kPwr + 0x0C), change);
  EXPECT_LT(registers.first_store(kAcr), change);
  EXPECT_LT(registers.first_store(kRcc + 0x20), change) << "half the clock first";
}

TEST_P(Stm32U575, UartReceivesAndSends) {
  stm32u575.uart_init();
  EXPECT_NEAR(160e6 / registers.value[kUsart + 0x0C], 921600, 921600 * 0.005);
  EXPECT_EQ(registers.value[kUsart] & 0x2Du, 0x2Du) << "on, TX, RX, RX interrupt";
  EXPECT_EQ(registers.value[0x42020000] >> 18 & 15u, 10u) << "PA9, PA10 are alternate functions";
  EXPECT_EQ(registers.value[0x42020024] >> 4 & 0xFFu, 0x77u);
  EXPECT_EQ(enabled_irqs, std::vector<std::uint32_t>{61});
  registers.queue[kUsart + 0x1C] = {0x20, 0x28, 0};  // a byte; a byte behind an overrun; none
  registers.queue[kUsart + 0x24] = {'o', 'k'};
  stm32u575.irq();
  EXPECT_EQ(received, (std::vector<std::uint8_t>{'o', 'k'}));
  EXPECT_EQ(registers.value[kUsart + 0x20], 15u) << "the overrun is cleared";
  EXPECT_FALSE(stm32u575.uart_put('x'));
  registers.own[kUsart + 0x1C] = 0x80;
  EXPECT_TRUE(stm32u575.uart_put('x'));
  EXPECT_EQ(registers.value[kUsart + 0x28], std::uint32_t{'x'});
}

TEST_P(Stm32U575, SaysWhoItIsAndWhyItStarts) {
  for (std::uint32_t i = 0; i < 3; i++)
    registers.own[0x0BFA0700 + 4 * i] = 0x03020100u + 0x04040404u * i;
  std::uint8_t uid[16] = {};
  ASSERT_EQ(stm32u575.uid(uid), 12);
  for (std::uint8_t i = 0; i < 12; i++) EXPECT_EQ(uid[i], i);
  const std::uint32_t csr = kRcc + 0xF4;
  registers.queue[csr] = {1u << 29 | 1u << 26, 1u << 27 | 1u << 26, 1u << 28 | 1u << 26};
  EXPECT_EQ(stm32u575.reset_cause(), RESET_WATCHDOG);
  EXPECT_NE(registers.value[csr] & 1u << 23, 0u) << "clears the flags";
  EXPECT_EQ(stm32u575.reset_cause(), RESET_POWER_ON);
  EXPECT_EQ(stm32u575.reset_cause(), RESET_UNKNOWN) << "its own: the firmware knows";
  registers.own[kRcc] = 1u << 13;
  registers.own[0x420C0804] = 1;
  registers.queue[0x420C0808] = {0x11223344, 0x55667788};
  std::uint64_t random = 0;
  EXPECT_TRUE(stm32u575.entropy(&random));
  EXPECT_EQ(random, 0x1122334455667788u);
}

TEST_P(Stm32U575, WatchdogLastsAsLongAsItShould) {
  stm32u575.watchdog_start();
  EXPECT_EQ(registers.value[0x40003004], 6u) << "32 kHz / 256";
  EXPECT_NEAR(registers.value[0x40003008] * 256 / 32000.0, WATCHDOG_S, 0.1);
  stm32u575.watchdog_feed();
  EXPECT_EQ(registers.value[0x40003000], 0xAAAAu);
}

class Nrf52840 : public Ports {};
INSTANTIATE_TEST_SUITE_P(One, Nrf52840, testing::Values(&nrf52840));

TEST_P(Nrf52840, SaysWhoItIsAndWhyItStarts) {
  registers.own[0x10000060] = 0x03020100;
  registers.own[0x10000064] = 0x07060504;
  std::uint8_t uid[16] = {};
  ASSERT_EQ(nrf52840.uid(uid), 8);
  for (std::uint8_t i = 0; i < 8; i++) EXPECT_EQ(uid[i], i);
  registers.queue[0x40000400] = {2, 0, 4};
  EXPECT_EQ(nrf52840.reset_cause(), RESET_WATCHDOG);
  EXPECT_EQ(registers.value[0x40000400], 2u) << "clears the flag";
  EXPECT_EQ(nrf52840.reset_cause(), RESET_POWER_ON);
  EXPECT_EQ(nrf52840.reset_cause(), RESET_UNKNOWN);
  registers.own[0x4000D100] = 1;
  registers.queue[0x4000D508] = {1, 2, 3, 4, 5, 6, 7, 8};
  std::uint64_t random = 0;
  EXPECT_TRUE(nrf52840.entropy(&random));
  EXPECT_EQ(random, 0x0102030405060708u);
}

TEST_P(Nrf52840, WatchdogAndUartAreSetUp) {
  nrf52840.watchdog_start();
  EXPECT_EQ(registers.value[0x40010504] + 1, WATCHDOG_S * 32768u);
  EXPECT_EQ(registers.value[0x4001050C] & 9u, 1u) << "goes on in sleep, not while halted";
  EXPECT_EQ(registers.order.back(), 0x40010000u) << "no setting is taken after its start";
  nrf52840.watchdog_feed();
  EXPECT_EQ(registers.value[0x40010600], 0x6E524635u);
  nrf52840.uart_init();
  EXPECT_EQ(enabled_irqs, (std::vector<std::uint32_t>{16, 2}));
  EXPECT_NEAR(registers.value[0x40002524] * 16e6 / 4294967296.0, 921600, 921600 * 0.005);
}

}  // namespace
}  // namespace odt::test
