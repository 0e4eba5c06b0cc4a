#pragma once

#include <string>
#include <vector>

namespace odt::cli {

enum class Verdict { kOk, kWarn, kFail };

struct Finding {
  std::string check;
  Verdict verdict = Verdict::kOk;
  std::string text;
  std::string remedy;  // what to do; empty where all is well
};

// Where the checks look; a test gives them a folder of its own.
struct Places {
  std::string root;  // before /etc, /sys, /proc, /dev, /run; empty: this system
};

// Checks that need no odtd.
Finding check_group(const Places& places);          // may this user open serial ports
Finding check_modem_manager(const Places& places);  // it probes new ports and confuses boards
Finding check_udev_rules(const Places& places);
Finding check_disk(const std::string& folder);
// One a serial port: who holds it, may this user open it. Ports are never opened.
std::vector<Finding> check_ports(const Places& places);

const char* word(Verdict verdict);  // "OK", "WARN", "FAIL"

}  // namespace odt::cli
