#include "link/port_scan.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "link/port_watch.h"
#include "support/run_io.h"

namespace odt::link {
namespace {

namespace fs = std::filesystem;

// A made-up /sys and /dev with one USB port, one 8250 port, one phantom and one console.
class PortScan : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "odt_ports_XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    root_ = name;
    roots_ = {(root_ / "sys").string(), (root_ / "dev").string()};
    add_usb("ttyACM0", "1-2", "Board\x1b[31m");
    add_8250("ttyS0", "4");
    add_8250("ttyS9", "0");
    fs::create_directories(root_ / "sys/class/tty/tty1");
  }
  void TearDown() override { fs::remove_all(root_); }

  void put(const fs::path& file, const std::string& text) {
    fs::create_directories(file.parent_path());
    std::ofstream(file) << text << "\n";
  }

  void add_usb(const std::string& tty, const std::string& place, const std::string& product) {
    const fs::path usb = root_ / "sys/devices/usb1" / place;
    put(usb / "idVendor", "0451");
    put(usb / "idProduct", "bef3");
    put(usb / "serial", "MG3500001");
    put(usb / "product", product);
    put(usb / "manufacturer", "Texas");
    const fs::path device = usb / (place + ":1.0");
    fs::create_directories(device);
    fs::create_directories(root_ / "sys/class/tty" / tty);
    fs::create_symlink(device, root_ / "sys/class/tty" / tty / "device");
    fs::create_directories(root_ / "dev/serial/by-id");
    fs::create_symlink("../../" + tty, root_ / "dev/serial/by-id" / ("usb-Board-" + tty));
    fs::create_directories(root_ / "dev/serial/by-path");
    fs::create_symlink("../../" + tty, root_ / "dev/serial/by-path" / ("pci-" + place));
  }

  void add_8250(const std::string& tty, const std::string& type) {
    const fs::path driver = root_ / "sys/bus/platform/drivers/serial8250";
    fs::create_directories(driver);
    const fs::path device = root_ / "sys/devices/platform" / tty;
    fs::create_directories(device);
    fs::create_symlink(driver, device / "driver");
    put(root_ / "sys/class/tty" / tty / "type", type);
    fs::create_symlink(device, root_ / "sys/class/tty" / tty / "device");
  }

  fs::path root_;
  PortRoots roots_;
};

TEST_F(PortScan, FindsPortsWithTheirUsbIdentity) {
  const auto ports = scan_ports(roots_);
  ASSERT_EQ(ports.size(), 2u);
  EXPECT_EQ(ports[0].path, roots_.dev + "/ttyACM0");
  EXPECT_EQ(ports[0].usb_vid, 0x0451u);
  EXPECT_EQ(ports[0].usb_pid, 0xbef3u);
  EXPECT_EQ(ports[0].usb_serial, "MG3500001");
  EXPECT_EQ(ports[0].description, "Board?[31m (Texas)");
  EXPECT_EQ(ports[0].by_id, roots_.dev + "/serial/by-id/usb-Board-ttyACM0");
  EXPECT_EQ(ports[0].by_path, roots_.dev + "/serial/by-path/pci-1-2");
  EXPECT_EQ(ports[1].path, roots_.dev + "/ttyS0");
  EXPECT_EQ(ports[1].usb_vid, 0u);
}

TEST_F(PortScan, NothingThereIsNoError) {
  EXPECT_TRUE(scan_ports({"/no/such/sys", "/no/such/dev"}).empty());
}

TEST_F(PortScan, WatchTellsOfChanges) {
  asio::io_context io;
  std::vector<std::vector<PortInfo>> told;
  PortWatch watch(
      io, [&](const std::vector<PortInfo>& ports) { told.push_back(ports); }, roots_,
      std::chrono::milliseconds(20));
  watch.start();
  ASSERT_TRUE(test::run_until(io, [&] { return told.size() == 1; }));
  add_usb("ttyACM1", "1-3", "Other");
  ASSERT_TRUE(test::run_until(io, [&] { return told.size() == 2; }));
  EXPECT_EQ(told[1].size(), 3u);
  watch.stop();
  add_usb("ttyACM2", "1-4", "Third");
  test::run_for(io, std::chrono::milliseconds(100));
  EXPECT_EQ(told.size(), 2u);
}

}  // namespace
}  // namespace odt::link
