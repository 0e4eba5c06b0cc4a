#include "cli/doctor.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace odt::cli {
namespace {

namespace fs = std::filesystem;

class DoctorTest : public testing::Test {
 protected:
  DoctorTest() {
    std::string pattern = (fs::temp_directory_path() / "odt-doctor-XXXXXX").string();
    places_.root = ::mkdtemp(pattern.data());
    for (const char* folder : {"proc", "dev", "etc/udev/rules.d"})
      fs::create_directories(path(folder));
  }
  ~DoctorTest() override { fs::remove_all(places_.root); }
  std::string path(const std::string& name) const { return places_.root + "/" + name; }
  void process(const std::string& pid, const std::string& name, const std::string& opened = "") {
    fs::create_directories(path("proc/" + pid + "/fd"));
    std::ofstream(path("proc/" + pid + "/comm")) << name << "\n";
    if (!opened.empty()) fs::create_symlink(opened, path("proc/" + pid + "/fd/3"));
  }
  Places places_;
};

TEST_F(DoctorTest, ModemManagerIsAWarningWithARemedy) {
  EXPECT_EQ(check_modem_manager(places_).verdict, Verdict::kOk);
  process("77", "ModemManager");
  const Finding f = check_modem_manager(places_);
  EXPECT_EQ(f.verdict, Verdict::kWarn);
  EXPECT_NE(f.text.find("pid 77"), std::string::npos);
  EXPECT_NE(f.remedy.find("systemctl"), std::string::npos);
}

TEST_F(DoctorTest, PortHeldByAnotherProgramIsNamed) {
  std::ofstream(path("dev/ttyACM0"));
  std::ofstream(path("dev/ttyUSB3"));
  std::ofstream(path("dev/tty0"));
  process("12", "minicom", "/dev/ttyACM0");
  process("13", "odtd", "/dev/ttyUSB3");
  const auto findings = check_ports(places_);
  ASSERT_EQ(findings.size(), 2u);
  EXPECT_EQ(findings[0].verdict, Verdict::kWarn);
  EXPECT_NE(findings[0].text.find("minicom (pid 12)"), std::string::npos);
  EXPECT_EQ(findings[1].verdict, Verdict::kOk);
}

TEST_F(DoctorTest, NoPortIsSaid) {
  const auto findings = check_ports(places_);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].text, "no USB serial port");
}

TEST_F(DoctorTest, UdevRulesAreLookedFor) {
  EXPECT_EQ(check_udev_rules(places_).verdict, Verdict::kWarn);
  std::ofstream(path("etc/udev/rules.d/60-odt-fleet.rules"));
  EXPECT_EQ(check_udev_rules(places_).verdict, Verdict::kOk);
}

TEST_F(DoctorTest, DiskOfAMissingFolderIsAWarning) {
  EXPECT_EQ(check_disk(path("none")).verdict, Verdict::kWarn);
  EXPECT_NE(check_disk(places_.root).text.find("free at"), std::string::npos);
}

}  // namespace
}  // namespace odt::cli
