#include <gtest/gtest.h>

#include "rig.h"

namespace odt::test {
namespace {

std::optional<model::Port> port_in_view(Rig& rig, const std::string& path) {
  for (const auto& p : rig.fleet().view()->ports)
    if (p.path == path) return p;
  return std::nullopt;
}

// Of a listener: the test dials in by itself.
struct NoListener final : session::LinkRunner {
  void start() override {}
  asio::awaitable<void> stop() override { co_return; }
};

TEST(Duplicates, ThatAreShownAreKeptUpToDateWhereNoMoreFit) {
  Library library;
  session::LinkHost* host = nullptr;
  Rig rig(library, [&](training::OrchestratorOptions& o) {
    o.fleet.tcp_listen.push_back("127.0.0.1:0");
    o.fleet.make_listener = [&host](std::string, std::uint16_t, session::LinkOptions,
                                    session::LinkHost& h) {
      host = &h;
      return Result<std::unique_ptr<session::LinkRunner>>(std::make_unique<NoListener>());
    };
  });
  auto one = rig.make_board(1), two = rig.make_board(1);
  ASSERT_TRUE(rig.connect(1, one));
  ASSERT_TRUE(rig.wait_online(one));
  const auto dial_in = [&](int n) {
    rig.on_links([&] {
      auto session = std::make_shared<FakeSession>(two);
      two->session = session;
      EXPECT_TRUE(host->on_session("tcp-in:10.0.0." + std::to_string(n) + ":4000", session));
    });
    EXPECT_TRUE(rig.wait_until([&] { return rig.on_links([&] { return !two->session; }); }));
  };
  for (int n = 1; n <= 65; ++n) dial_in(n);
  EXPECT_TRUE(rig.wait_until([&] { return port_in_view(rig, "tcp-in:10.0.0.64").has_value(); }));
  EXPECT_FALSE(port_in_view(rig, "tcp-in:10.0.0.65").has_value());
  rig.drop(one);
  ASSERT_TRUE(rig.connect(3, one));
  ASSERT_TRUE(rig.wait_until([&] {
    const auto view = rig.fleet().view();
    const auto& board = view->boards.at(0);
    return board.status == model::BoardStatus::kOnline && board.link.endpoint == "tcp:fake:3";
  }));
  dial_in(1);
  EXPECT_TRUE(rig.wait_until([&] {
    const auto port = port_in_view(rig, "tcp-in:10.0.0.1");
    return port && port->reason.text.find("tcp:fake:3") != std::string::npos;
  }));
}

}  // namespace
}  // namespace odt::test
