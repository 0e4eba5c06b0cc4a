#include "session/windows.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <random>

namespace odt::session {
namespace {

wire::Window window(std::uint32_t offset, std::uint32_t end, bool retransmit = false) {
  wire::Window w;
  w.offset = offset;
  w.end = end;
  w.retransmit = retransmit;
  return w;
}

TEST(SendWindow, SendsAWindowThenWaits) {
  SendWindow send(0, 3000, 1024, 512);
  EXPECT_EQ(send.next()->offset, 0u);
  EXPECT_EQ(send.next()->offset, 512u);
  EXPECT_FALSE(send.next());
  EXPECT_EQ(send.on_window(window(512, 1536)), SendWindow::Outcome::kProgress);
  EXPECT_EQ(send.next()->offset, 1024u);
  EXPECT_FALSE(send.next());
}

TEST(SendWindow, LastChunkIsShort) {
  SendWindow send(0, 600, 2048, 512);
  send.next();
  const auto last = send.next();
  ASSERT_TRUE(last);
  EXPECT_EQ(last->offset, 512u);
  EXPECT_EQ(last->size, 88u);
  EXPECT_FALSE(send.next());
  send.on_window(window(600, 600));
  EXPECT_TRUE(send.done());
}

TEST(SendWindow, GoesBackOnRetransmitAndOnTimeout) {
  SendWindow send(0, 4096, 2048, 512);
  while (send.next()) {}
  EXPECT_EQ(send.on_window(window(512, 2560, true)), SendWindow::Outcome::kRetransmit);
  EXPECT_EQ(send.next()->offset, 512u);
  send.on_timeout();
  EXPECT_EQ(send.next()->offset, 512u);
  EXPECT_FALSE(send.next()) << "one chunk until the receiver answers";
  EXPECT_EQ(send.on_window(window(1024, 3072)), SendWindow::Outcome::kProgress);
  EXPECT_EQ(send.next()->offset, 1024u);
}

TEST(SendWindow, StaleAndHostileWindowsChangeNothing) {
  SendWindow send(0, 4096, 2048, 512);
  send.next();
  send.on_window(window(512, 2560));
  EXPECT_EQ(send.on_window(window(0, 2048, true)), SendWindow::Outcome::kStale);
  EXPECT_EQ(send.on_window(window(9999, 99999)), SendWindow::Outcome::kStale);
  EXPECT_EQ(send.acked(), 512u);
  send.on_window(window(512, 0xFFFFFFFF));
  std::uint32_t sent = 0;
  while (const auto span = send.next()) sent = span->offset + span->size;
  EXPECT_EQ(sent, 4096u) << "never beyond the content";
}

TEST(SendWindow, NothingToSendIsDone) { EXPECT_TRUE(SendWindow(0, 0, 2048, 512).done()); }

TEST(ReceiveWindow, AcceptsInOrderOnly) {
  ReceiveWindow receive(0, 1024, 2048);
  auto out = receive.on_chunk({0, std::string(512, 'a')});
  EXPECT_TRUE(out.accept);
  ASSERT_TRUE(out.answer);
  EXPECT_EQ(out.answer->offset, 512u);
  EXPECT_EQ(out.answer->end, 1024u);
  out = receive.on_chunk({0, std::string(512, 'a')});
  EXPECT_FALSE(out.accept);
  ASSERT_TRUE(out.answer) << "a copy is acknowledged again";
  EXPECT_TRUE(receive.on_chunk({512, std::string(512, 'b')}).accept);
  EXPECT_TRUE(receive.done());
}

TEST(ReceiveWindow, OneAnswerPerGap) {
  ReceiveWindow receive(0, 4096, 2048);
  auto out = receive.on_chunk({512, "x"});
  ASSERT_TRUE(out.answer);
  EXPECT_TRUE(out.answer->retransmit);
  EXPECT_EQ(out.answer->offset, 0u);
  EXPECT_FALSE(receive.on_chunk({1024, "x"}).answer) << "silent until progress";
  EXPECT_TRUE(receive.on_chunk({0, "x"}).accept);
  EXPECT_TRUE(receive.on_chunk({9, "x"}).answer);
}

TEST(ReceiveWindow, MoreThanAnnouncedIsNotTaken) {
  ReceiveWindow receive(0, 10, 2048);
  EXPECT_FALSE(receive.on_chunk({0, std::string(11, 'x')}).accept);
  EXPECT_FALSE(receive.on_chunk({0, ""}).accept);
  EXPECT_EQ(receive.next(), 0u);
}

// Both ends over a line that loses, repeats and reorders nothing.
TEST(Windows, AnyLossEndsInTheWholeContent) {
  std::mt19937 random(9);
  for (int round = 0; round < 100; ++round) {
    std::string content(random() % 20000, '\0');
    for (char& c : content) c = static_cast<char>(random());
    const auto size = static_cast<std::uint32_t>(content.size());
    SendWindow send(0, size, 2048, 512);
    ReceiveWindow receive(0, size, 2048);
    std::string got;
    for (int step = 0; !send.done() && step < 100000; ++step) {
      const auto span = send.next();
      if (!span) {
        send.on_timeout();
        continue;
      }
      if (random() % 10 == 0) continue;
      const auto out = receive.on_chunk({span->offset, content.substr(span->offset, span->size)});
      if (out.accept) got += content.substr(span->offset, span->size);
      if (out.answer && random() % 10 != 0) send.on_window(*out.answer);
    }
    ASSERT_TRUE(send.done());
    ASSERT_EQ(got, content);
  }
}

// kB/s of 64 KiB in chunks of 512 over a line of `baud` with `one_way` seconds each way; time is
// counted, not measured.
double goodput(double baud, double one_way, std::uint32_t chunks_in_window) {
  constexpr std::uint32_t kSize = 65536, kChunk = 512, kOverhead = 8 + 4 + 3 + 2 + 8;
  const double byte = 10 / baud;
  SendWindow send(0, kSize, chunks_in_window * kChunk, kChunk);
  ReceiveWindow receive(0, kSize, chunks_in_window * kChunk);
  std::multimap<double, std::function<void()>> events;
  double now = 0, line_free = 0, back_free = 0;
  std::function<void()> transmit = [&] {
    while (const auto span = send.next()) {
      line_free = std::max(line_free, now) + (span->size + kOverhead) * byte;
      events.emplace(line_free + one_way, [&, span] {
        const auto out = receive.on_chunk({span->offset, std::string(span->size, 'x')});
        if (!out.answer) return;
        back_free = std::max(back_free, now) + (kOverhead + 8) * byte;
        events.emplace(back_free + one_way, [&, window = *out.answer] {
          send.on_window(window);
          transmit();
        });
      });
    }
  };
  transmit();
  while (!send.done() && !events.empty()) {
    const auto next = events.begin();
    now = next->first;
    const auto action = next->second;
    events.erase(next);
    action();
  }
  return send.done() ? kSize / now / 1000 : 0;
}

TEST(Windows, Report20_UsbLatencyDoesNotStopTheLine) {
  EXPECT_LT(goodput(921600, 0.008, 1), 30) << "what stop-and-wait gives";
  EXPECT_GE(goodput(921600, 0.008, 4), 80);
  EXPECT_GE(goodput(115200, 0.008, 2), 10);
}

}  // namespace
}  // namespace odt::session
