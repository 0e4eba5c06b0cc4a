#include <gtest/gtest.h>

#include "fleet/port_rules.h"
#include "rig.h"
#include "support/certificates.h"

namespace odt::test {
namespace {

using model::BoardStatus;
using model::PortState;

class RegistryTest : public testing::Test {
 protected:
  std::optional<model::Board> board_in_view(Rig& rig, const BoardUid& uid) {
    for (const auto& b : rig.fleet().view()->boards)
      if (b.uid == uid) return b;
    return std::nullopt;
  }
  std::optional<model::Port> port_in_view(Rig& rig, const std::string& path) {
    for (const auto& p : rig.fleet().view()->ports)
      if (p.path == path) return p;
    return std::nullopt;
  }
  model::Board stored(const BoardUid& uid) {
    return *library.control.call_sync([uid](store::ControlStore& s) { return s.board(uid); });
  }
  model::Port serial(const std::string& path, std::uint32_t vid, std::uint32_t pid) {
    model::Port port;
    port.path = path;
    port.usb_vid = vid;
    port.usb_pid = pid;
    port.by_path = "/dev/serial/by-path/pci-0000:00:14.0-usb-0:2:1.0";
    return port;
  }
  void plug(Rig& rig, std::vector<model::Port> ports) {
    std::lock_guard lock(rig.ports_mutex_);
    rig.serial_ports = std::move(ports);
  }
  Library library;
};

TEST_F(RegistryTest, Report06_AnotherPortIsTheSameRowAndLossShows) {
  Rig rig(library);
  auto board = rig.make_board(1);
  ASSERT_TRUE(rig.connect(1, board));
  ASSERT_TRUE(rig.wait_online(board));
  EXPECT_EQ(stored(board->uid).name, "fake-ab01");
  EXPECT_EQ(stored(board->uid).status, BoardStatus::kOnline);
  EXPECT_EQ(board_in_view(rig, board->uid)->link.endpoint, "tcp:fake:1");
  rig.drop(board);
  EXPECT_TRUE(rig.wait_until([&] { return stored(board->uid).status == BoardStatus::kOffline; }));
  rig.on_links([&] { board->power_cycle(); });
  ASSERT_TRUE(rig.connect(2, board));  // another endpoint, the same board
  ASSERT_TRUE(rig.wait_online(board));
  EXPECT_EQ(stored(board->uid).boots_seen, 2u);
  EXPECT_EQ(rig.fleet().view()->boards.size(), 1u);
}

TEST_F(RegistryTest, AStrangerBeyondTheLimitMakesNoRow) {
  Rig rig(library, [](training::OrchestratorOptions& o) { o.fleet.max_boards = 1; });
  auto one = rig.make_board(1), two = rig.make_board(2);
  ASSERT_TRUE(rig.connect(1, one));
  ASSERT_TRUE(rig.wait_online(one));
  rig.connect(2, two);
  EXPECT_TRUE(rig.wait_until(
      [&] { return rig.on_links([&] { return !two->session || !two->session->alive(); }); }));
  EXPECT_FALSE(
      library.control.call_sync([&](store::ControlStore& s) { return s.board(two->uid); }).ok());
  EXPECT_EQ(rig.fleet().view()->boards.size(), 1u);
  rig.drop(one);
  ASSERT_TRUE(rig.connect(3, one));  // who is known comes in
  EXPECT_TRUE(rig.wait_online(one));
}

TEST_F(RegistryTest, NamesAreUnique) {
  Rig rig(library);
  auto one = rig.make_board(1), two = rig.make_board(2);
  two->uid.bytes = {9, 0, 0, 0, 0, 0, 0xAB, 1};  // the same last bytes
  ASSERT_TRUE(rig.connect(1, one));
  ASSERT_TRUE(rig.connect(2, two));
  ASSERT_TRUE(rig.wait_online(one) && rig.wait_online(two));
  EXPECT_NE(stored(one->uid).name, stored(two->uid).name);
  training::FleetControl::BoardUpdate update;
  update.uid = two->uid;
  update.name = stored(one->uid).name;
  auto taken = rig.ask<model::Board>(
      [&](Done<model::Board> done) { rig.fleet().update_board(rig.ctx(), update, done); });
  EXPECT_EQ(taken.status().code(), absl::StatusCode::kAlreadyExists);
  update.name = "rig-7";
  update.set_labels["site"] = "lab";
  auto renamed = rig.ask<model::Board>(
      [&](Done<model::Board> done) { rig.fleet().update_board(rig.ctx(), update, done); });
  ASSERT_TRUE(renamed.ok()) << renamed.status();
  EXPECT_EQ(stored(two->uid).name, "rig-7");
  EXPECT_EQ(stored(two->uid).labels["site"], "lab");
  update.etag = 1;  // long past
  update.name = "rig-8";
  auto stale = rig.ask<model::Board>(
      [&](Done<model::Board> done) { rig.fleet().update_board(rig.ctx(), update, done); });
  EXPECT_EQ(stale.status().code(), absl::StatusCode::kAborted);
}

TEST_F(RegistryTest, SecondLiveBoardWithAUidIsQuarantined) {
  Rig rig(library);
  auto one = rig.make_board(1), two = rig.make_board(1);
  ASSERT_TRUE(rig.connect(1, one));
  ASSERT_TRUE(rig.wait_online(one));
  ASSERT_TRUE(rig.connect(2, two));
  EXPECT_TRUE(rig.wait_until([&] {
    const auto port = port_in_view(rig, "tcp:fake:2");
    return port && port->reason.code == "DUPLICATE_UID";
  }));
  EXPECT_TRUE(rig.on_links([&] { return two->session == nullptr; }));
  EXPECT_EQ(board_in_view(rig, one->uid)->link.endpoint, "tcp:fake:1");
  EXPECT_EQ(board_in_view(rig, one->uid)->status, BoardStatus::kOnline);
}

// It comes from another port each time: that is no news, and no row in the store each time.
TEST_F(RegistryTest, ADuplicateThatDialsInAgainIsWarnedOfOnce) {
  struct Nothing final : session::LinkRunner {
    void start() override {}
    asio::awaitable<void> stop() override { co_return; }
  };
  std::atomic<int> warnings = 0;
  session::LinkHost* host = nullptr;
  Rig rig(library, [&](training::OrchestratorOptions& o) {
    o.log = [&warnings](int, const std::string& text) {
      warnings += text.find("answers here and on") != std::string::npos;
    };
    o.fleet.tcp_listen.push_back("127.0.0.1:0");
    o.fleet.make_listener = [&host](std::string, std::uint16_t, session::LinkOptions,
                                    session::LinkHost& h) {
      host = &h;
      return Result<std::unique_ptr<session::LinkRunner>>(std::make_unique<Nothing>());
    };
  });
  auto one = rig.make_board(1), two = rig.make_board(1);
  ASSERT_TRUE(rig.connect(1, one));
  ASSERT_TRUE(rig.wait_online(one));
  for (int port = 40001; port <= 40005; ++port) {
    rig.on_links([&] {
      auto session = std::make_shared<FakeSession>(two);
      two->session = session;
      EXPECT_TRUE(host->on_session("tcp-in:127.0.0.1:" + std::to_string(port), session));
    });
    ASSERT_TRUE(rig.wait_until([&] { return rig.on_links([&] { return !two->session; }); }));
  }
  EXPECT_TRUE(rig.wait_until([&] { return warnings > 0; }));
  EXPECT_EQ(warnings, 1);
  // Shown as one place, whatever the port number.
  EXPECT_TRUE(rig.wait_until([&] { return port_in_view(rig, "tcp-in:127.0.0.1").has_value(); }));
  const auto shown = port_in_view(rig, "tcp-in:127.0.0.1");
  EXPECT_EQ(shown->reason.code, "DUPLICATE_UID");
  EXPECT_EQ(shown->board_uid, two->uid);
}

TEST_F(RegistryTest, LabelsOfABoardAreLimitedInAll) {
  Rig rig(library);
  auto board = rig.make_board(1);
  ASSERT_TRUE(rig.connect(1, board));
  ASSERT_TRUE(rig.wait_online(board));
  training::FleetControl::BoardUpdate update;
  update.uid = board->uid;
  for (int i = 0; i < 40; ++i) update.set_labels["a" + std::to_string(i)] = "x";
  const auto ask = [&] {
    return rig.ask<model::Board>(
        [&](Done<model::Board> done) { rig.fleet().update_board(rig.ctx(), update, done); });
  };
  ASSERT_TRUE(ask().ok());
  update.set_labels.clear();
  for (int i = 0; i < 40; ++i) update.set_labels["b" + std::to_string(i)] = "x";
  EXPECT_EQ(ask().status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(stored(board->uid).labels.size(), 40u);
}

TEST_F(RegistryTest, Report09_AMuteOldLinkIsTakenOver) {
  Rig rig(library);
  auto one = rig.make_board(1), two = rig.make_board(1);
  ASSERT_TRUE(rig.connect(1, one));
  ASSERT_TRUE(rig.wait_online(one));
  rig.on_links([&] { one->session->answering = false; });
  ASSERT_TRUE(rig.connect(2, two));
  EXPECT_TRUE(rig.wait_until([&] {
    const auto board = board_in_view(rig, one->uid);
    return board && board->link.endpoint == "tcp:fake:2" && board->status == BoardStatus::kOnline;
  }));
}

TEST_F(RegistryTest, UnexpectedBoardIsRefused) {
  Rig rig(library, [](training::OrchestratorOptions& o) {
    o.fleet.tcp_dial[0].expect_uid.bytes = {1, 2, 3, 4, 5, 6, 7, 8};
  });
  auto board = rig.make_board(1);
  EXPECT_FALSE(rig.connect(1, board));
  EXPECT_TRUE(rig.wait_until([&] {
    const auto port = port_in_view(rig, "tcp:fake:1");
    return port && port->reason.code == "UNEXPECTED_BOARD";
  }));
  EXPECT_FALSE(board_in_view(rig, board->uid));
}

TEST_F(RegistryTest, OnlyAllowedPortsAreOpened) {
  Rig rig(library, [](training::OrchestratorOptions& o) {
    fleet::SerialRule rule;
    rule.vid_pid = "0483:374B";
    o.fleet.serial_allow.push_back(rule);
  });
  plug(rig, {serial("/dev/ttyACM0", 0x0483, 0x374b), serial("/dev/ttyUSB0", 0x1a86, 0x7523)});
  ASSERT_TRUE(rig.wait_until([&] { return rig.opened("/dev/ttyACM0"); }));
  EXPECT_FALSE(rig.opened("/dev/ttyUSB0"));
  ASSERT_TRUE(rig.wait_until([&] { return port_in_view(rig, "/dev/ttyUSB0").has_value(); }));
  EXPECT_EQ(port_in_view(rig, "/dev/ttyUSB0")->state, PortState::kUnclaimed);
  // Another device under the path of the allowed one is not opened.
  plug(rig, {});
  ASSERT_TRUE(rig.wait_until([&] { return !rig.opened("/dev/ttyACM0"); }));
  plug(rig, {serial("/dev/ttyACM0", 0x1a86, 0x7523)});
  ASSERT_TRUE(rig.wait_until([&] { return port_in_view(rig, "/dev/ttyACM0").has_value(); }));
  EXPECT_FALSE(rig.opened("/dev/ttyACM0"));
}

TEST_F(RegistryTest, WhoHasChangedSomethingFindsItInTheNextList) {
  // Views by time are far apart here.
  Rig rig(library, [](training::OrchestratorOptions& o) { o.fleet.view_interval = 3600s; });
  const std::string path = "tcp:127.0.0.1:7007";
  auto port = rig.ask<model::Port>(
      [&](Done<model::Port> done) { rig.fleet().adopt_port(rig.ctx(), path, 0, {}, done); });
  ASSERT_TRUE(port.ok()) << port.status();
  ASSERT_TRUE(port_in_view(rig, path).has_value());
  EXPECT_TRUE(port_in_view(rig, path)->adopted);
  port = rig.ask<model::Port>(
      [&](Done<model::Port> done) { rig.fleet().release_port(rig.ctx(), path, done); });
  ASSERT_TRUE(port.ok()) << port.status();
  EXPECT_FALSE(port_in_view(rig, path).has_value());
}

TEST_F(RegistryTest, AdoptionIsKeptOverARestart) {
  {
    Rig rig(library);
    plug(rig, {serial("/dev/ttyUSB0", 0x1a86, 0x7523)});
    ASSERT_TRUE(rig.wait_until([&] { return port_in_view(rig, "/dev/ttyUSB0").has_value(); }));
    auto port = rig.ask<model::Port>([&](Done<model::Port> done) {
      rig.fleet().adopt_port(rig.ctx(), "/dev/ttyUSB0", 115200, {}, done);
    });
    ASSERT_TRUE(port.ok()) << port.status();
    EXPECT_TRUE(port->adopted);
    EXPECT_TRUE(rig.opened("/dev/ttyUSB0"));
    auto bad = rig.ask<model::Port>(
        [&](Done<model::Port> done) { rig.fleet().adopt_port(rig.ctx(), "COM3", 0, {}, done); });
    EXPECT_EQ(bad.status().code(), absl::StatusCode::kInvalidArgument);
    for (const char* path : {"/etc/passwd", "/etc", "/dev/null"}) {
      bad = rig.ask<model::Port>(
          [&](Done<model::Port> done) { rig.fleet().adopt_port(rig.ctx(), path, 0, {}, done); });
      EXPECT_EQ(reason_of(bad.status()), "BAD_PORT") << path;
      EXPECT_FALSE(port_in_view(rig, path).has_value());
    }
  }
  Rig rig(library);
  plug(rig, {serial("/dev/ttyUSB0", 0x1a86, 0x7523)});
  ASSERT_TRUE(rig.wait_until([&] { return rig.opened("/dev/ttyUSB0"); }));
  auto board = rig.make_board(3);
  ASSERT_TRUE(rig.connect_to("/dev/ttyUSB0", board));
  ASSERT_TRUE(rig.wait_online(board));
  // Another device took the path: not the one adopted.
  plug(rig, {serial("/dev/ttyUSB0", 0x2341, 0x0043)});
  ASSERT_TRUE(rig.wait_until([&] { return !rig.opened("/dev/ttyUSB0"); }));
  auto port = rig.ask<model::Port>(
      [&](Done<model::Port> done) { rig.fleet().release_port(rig.ctx(), "/dev/ttyUSB0", done); });
  ASSERT_TRUE(port.ok());
  EXPECT_FALSE(port->adopted);
  auto configured = rig.ask<model::Port>(
      [&](Done<model::Port> done) { rig.fleet().release_port(rig.ctx(), "tcp:fake:1", done); });
  EXPECT_EQ(reason_of(configured.status()), "PORT_CONFIGURED");
}

TEST_F(RegistryTest, Report06_AnAdoptedBoardIsFollowedToItsNewPort) {
  Rig rig(library);
  const auto device = [this](const std::string& path) {
    model::Port port = serial(path, 0x0451, 0xbef3);
    port.usb_serial = "ML1";
    port.by_id = "/dev/serial/by-id/usb-TI_XDS110_ML1-if00";
    return port;
  };
  const auto adopt = [&](const std::string& path) {
    return rig.ask<model::Port>(
        [&](Done<model::Port> done) { rig.fleet().adopt_port(rig.ctx(), path, 115200, {}, done); });
  };
  plug(rig, {device("/dev/ttyACM0")});
  ASSERT_TRUE(rig.wait_until([&] { return port_in_view(rig, "/dev/ttyACM0").has_value(); }));
  ASSERT_TRUE(adopt("/dev/ttyACM0").ok());
  auto board = rig.make_board(5);
  ASSERT_TRUE(rig.connect_to("/dev/ttyACM0", board));
  ASSERT_TRUE(rig.wait_online(board));
  rig.drop(board);
  plug(rig, {device("/dev/ttyACM1")});
  ASSERT_TRUE(rig.wait_until([&] { return rig.opened("/dev/ttyACM1"); }));
  ASSERT_TRUE(rig.wait_until([&] {
    const auto old = port_in_view(rig, "/dev/ttyACM0");
    return old && old->reason.code == "MOVED";
  }));
  EXPECT_FALSE(rig.opened("/dev/ttyACM0"));
  ASSERT_TRUE(rig.connect_to("/dev/ttyACM1", board));
  ASSERT_TRUE(rig.wait_online(board));
  EXPECT_EQ(rig.fleet().view()->boards.size(), 1u);
  // And back.
  rig.drop(board);
  plug(rig, {device("/dev/ttyACM0")});
  ASSERT_TRUE(rig.wait_until([&] { return rig.opened("/dev/ttyACM0"); }));
  EXPECT_TRUE(rig.wait_until([&] { return !rig.opened("/dev/ttyACM1"); }));
  // Released where it was adopted: it is not followed any more.
  const auto release = [&](const std::string& path) {
    return rig.ask<model::Port>(
        [&](Done<model::Port> done) { rig.fleet().release_port(rig.ctx(), path, done); });
  };
  plug(rig, {device("/dev/ttyACM1")});
  ASSERT_TRUE(rig.wait_until([&] { return rig.opened("/dev/ttyACM1"); }));
  auto released = release("/dev/ttyACM0");
  ASSERT_TRUE(released.ok()) << released.status();
  EXPECT_TRUE(rig.wait_until([&] { return !rig.opened("/dev/ttyACM1"); }));
  // Or released where it is now.
  ASSERT_TRUE(adopt("/dev/ttyACM1").ok());
  plug(rig, {device("/dev/ttyACM2")});
  ASSERT_TRUE(rig.wait_until([&] { return rig.opened("/dev/ttyACM2"); }));
  released = release("/dev/ttyACM2");
  ASSERT_TRUE(released.ok()) << released.status();
  EXPECT_EQ(released->path, "/dev/ttyACM1");
  EXPECT_FALSE(released->adopted);
  EXPECT_TRUE(rig.wait_until([&] { return !rig.opened("/dev/ttyACM2"); }));
}

TEST_F(RegistryTest, AdaptersWithoutASerialNumberAreNotTakenForEachOther) {
  Rig rig(library);
  const auto adapter = [this](const std::string& path) {
    model::Port port = serial(path, 0x1a86, 0x7523);
    port.by_id = "/dev/serial/by-id/usb-1a86_USB_Serial-if00-port0";
    return port;
  };
  plug(rig, {adapter("/dev/ttyUSB0")});
  ASSERT_TRUE(rig.wait_until([&] { return port_in_view(rig, "/dev/ttyUSB0").has_value(); }));
  const auto adopted = rig.ask<model::Port>([&](Done<model::Port> done) {
    rig.fleet().adopt_port(rig.ctx(), "/dev/ttyUSB0", 0, {}, done);
  });
  ASSERT_TRUE(adopted.ok()) << adopted.status();
  plug(rig, {adapter("/dev/ttyUSB1")});
  ASSERT_TRUE(rig.wait_until([&] { return port_in_view(rig, "/dev/ttyUSB1").has_value(); }));
  EXPECT_FALSE(rig.opened("/dev/ttyUSB1"));
  EXPECT_NE(port_in_view(rig, "/dev/ttyUSB0")->reason.code, "MOVED");
}

TEST_F(RegistryTest, AnAdoptedTlsPortHasItsKeysAfterARestart) {
  const std::string path = "tls:127.0.0.1:7443";
  Certificates pki;
  std::atomic<int> dialled = 0, with_tls = 0;
  const auto keys = [&](training::OrchestratorOptions& o) {
    o.fleet.tls.psk = pki.write("keys", "gateway-1:" + std::string(64, 'a') + "\n");
    o.fleet.make_runner = [&, real = o.fleet.make_runner](std::string endpoint,
                                                          session::LinkOptions link,
                                                          session::LinkHost& host) {
      if (endpoint == path) {
        with_tls += link.tls != nullptr;
        ++dialled;
      }
      return real(std::move(endpoint), std::move(link), host);
    };
  };
  {
    Rig rig(library, keys);
    const auto adopted = rig.ask<model::Port>(
        [&](Done<model::Port> done) { rig.fleet().adopt_port(rig.ctx(), path, 0, {}, done); });
    ASSERT_TRUE(adopted.ok()) << adopted.status();
  }
  EXPECT_EQ(with_tls, 1);
  Rig rig(library, keys);
  ASSERT_TRUE(rig.wait_until([&] { return dialled == 2; }));
  EXPECT_EQ(with_tls, 2);
}

TEST_F(RegistryTest, APortAdoptedByItsIdIsOpenedUnderThatNameOnly) {
  Rig rig(library, [](training::OrchestratorOptions& o) {
    fleet::SerialRule rule;
    rule.vid_pid = "0451:bef3";
    o.fleet.serial_allow.push_back(rule);
  });
  model::Port device = serial("/dev/ttyACM0", 0x0451, 0xbef3);
  device.by_id = "/dev/serial/by-id/usb-TI_XDS110_ML1-if00";
  const auto adopted = rig.ask<model::Port>([&](Done<model::Port> done) {
    rig.fleet().adopt_port(rig.ctx(), device.by_id, 0, {}, done);
  });
  ASSERT_TRUE(adopted.ok()) << adopted.status();
  plug(rig, {device});
  ASSERT_TRUE(rig.wait_until([&] {
    const auto port = port_in_view(rig, "/dev/ttyACM0");
    return port && port->reason.code == "OTHER_NAME";
  }));
  EXPECT_TRUE(rig.opened(device.by_id));
  EXPECT_FALSE(rig.opened("/dev/ttyACM0")) << "one device, opened twice";
}

TEST_F(RegistryTest, Report18_AnotherFirmwareVersionIsWarnedOfOnce) {
  std::mutex mutex;
  std::vector<std::string> warnings;
  Rig rig(library, [&](training::OrchestratorOptions& o) {
    o.fleet.version = "0.7.2";
    o.log = [&](int, const std::string& text) {
      const std::lock_guard lock(mutex);
      if (text.find("than this odtd") != std::string::npos) warnings.push_back(text);
    };
  });
  const auto said = [&] {
    const std::lock_guard lock(mutex);
    return warnings;
  };
  auto older = rig.make_board(1), same = rig.make_board(2), newer = rig.make_board(3);
  older->fw_version = "0.6.9";
  same->fw_version = "0.7.0-rc1";
  newer->fw_version = "0.8.0";
  for (int round = 0; round < 2; ++round) {
    ASSERT_TRUE(rig.connect(1, older) && rig.connect(2, same) && rig.connect(3, newer));
    ASSERT_TRUE(rig.wait_online(older) && rig.wait_online(same) && rig.wait_online(newer));
    for (const auto& board : {older, same, newer}) rig.drop(board);
    ASSERT_TRUE(rig.wait_until([&] { return stored(newer->uid).status == BoardStatus::kOffline; }));
  }
  ASSERT_TRUE(rig.wait_until([&] { return said().size() == 2; }));
  for (const auto& text : said()) {
    const bool is_older = text.find("0.6.9") != std::string::npos;
    EXPECT_NE(text.find(is_older ? "older" : "newer"), std::string::npos) << text;
  }
}

TEST_F(RegistryTest, OnlyAnOfflineBoardIsForgotten) {
  Rig rig(library);
  auto board = rig.make_board(1);
  ASSERT_TRUE(rig.connect(1, board));
  ASSERT_TRUE(rig.wait_online(board));
  const auto forget = [&] {
    return rig.ask<bool>(
        [&](Done<bool> d) { rig.fleet().delete_board(rig.ctx(), board->uid, std::move(d)); });
  };
  // What a new session asks first keeps the board busy.
  std::string reason;
  ASSERT_TRUE(
      rig.wait_until([&] { return (reason = reason_of(forget().status())) != "BOARD_BUSY"; }));
  EXPECT_EQ(reason, "BOARD_ONLINE");
  rig.drop(board);
  ASSERT_TRUE(rig.wait_until([&] { return stored(board->uid).status == BoardStatus::kOffline; }));
  auto done = forget();
  EXPECT_TRUE(done.ok()) << done.status();
  EXPECT_EQ(forget().status().code(), absl::StatusCode::kNotFound);
}

TEST(PortRulesTest, EveryFieldGivenMustMatch) {
  model::Port port;
  port.path = "/dev/ttyACM0";
  port.by_path = "/dev/serial/by-path/pci-0000:00:14.0-usb-0:2:1.0";
  port.usb_vid = 0x0483;
  port.usb_pid = 0x374b;
  port.usb_serial = "066BFF";
  const auto matches = [&](const char* vid_pid, const char* serial, const char* by_path) {
    fleet::SerialRule rule;
    rule.vid_pid = vid_pid;
    rule.serial = serial;
    rule.by_path = by_path;
    return fleet::match_rule({rule}, port) != nullptr;
  };
  EXPECT_TRUE(matches("0483:374b", "", ""));
  EXPECT_TRUE(matches("0483:374B", "066BFF", "*usb-0:2:*"));
  EXPECT_TRUE(matches("", "", "/dev/ttyACM*"));
  EXPECT_FALSE(matches("0483:374c", "", ""));
  EXPECT_FALSE(matches("0483:374b", "other", ""));
  EXPECT_FALSE(matches("", "", "*usb-0:3:*"));
  EXPECT_FALSE(matches("", "", ""));  // an empty rule allows nothing
}

TEST(PortRulesTest, Report23_NamesFromBoardsCannotLeaveAFolderOrALine) {
  EXPECT_EQ(fleet::sanitize_name("../../etc/passwd"), ".._.._etc_passwd");
  EXPECT_EQ(fleet::sanitize_name("a\x1b[2J\nb"), "a__2J_b");
  EXPECT_EQ(fleet::sanitize_name(std::string(1000, 'x')).size(), 32u);
}

TEST(PortRulesTest, LinesFollowTheProfileUnlessSaid) {
  fleet::SerialRule rule;
  EXPECT_TRUE(fleet::lines_of(rule).dtr && fleet::lines_of(rule).rts);
  rule.profile = "esp";
  EXPECT_FALSE(fleet::lines_of(rule).dtr || fleet::lines_of(rule).rts);
  rule.dtr = true;
  EXPECT_TRUE(fleet::lines_of(rule).dtr);
  EXPECT_FALSE(fleet::lines_of(rule).rts);
  EXPECT_FALSE(fleet::profile_lines("arduino").ok());
}

TEST(PortRulesTest, HostPort) {
  EXPECT_EQ(fleet::parse_host_port("127.0.0.1:7001")->port, 7001);
  EXPECT_EQ(fleet::parse_host_port("[::1]:7001")->host, "::1");
  for (const char* bad : {"", ":1", "host", "host:", "host:x", "host:70000", "::1:1", "host:1 "})
    EXPECT_FALSE(fleet::parse_host_port(bad).ok()) << bad;
}

}  // namespace
}  // namespace odt::test
