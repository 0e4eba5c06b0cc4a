// Goodput of a bulk transfer, in virtual time: the daemon's session and the firmware are the real
// ones, the line between them is a UART of 921600 baud with 8 ms on the way, each direction.
// Prints "goodput_921600_kBps 85.1" and "goodput_921600_loss1_kBps 80.0": thousands of bytes of
// content a second, of 256 KiB of samples sent to the board.
#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <string>

#include "push.h"
#include "support/virtual/virtual_world.h"

namespace {

using namespace odt;

constexpr std::size_t kBytes = 256 * 1024;

double measure(int loss_per_mille, std::uint64_t seed, const std::string& image) {
  test::VirtualTime time(seed);
  test::VirtualWorld world(time);
  test::BoardSetup setup;
  setup.uid.bytes = {1, 2, 3, 4, 5, 6, 7, 8};
  setup.seed = seed;
  setup.one_way_us = 8000;
  test::VirtualBoard& board = world.add(setup, false);
  asio::io_context io(1);
  const auto work = asio::make_work_guard(io);
  world.attach(&io);
  session::LinkOptions options;
  options.tcp_lossy = true;
  options.open = [&world](const std::string& endpoint) { return world.open(endpoint); };
  bench::Host host;
  const auto runner = session::make_link_runner(io, time, "tcp:" + world.address(0), options, host);
  runner->start();
  while (!host.session) io.run_one();
  const auto samples = std::make_shared<const std::string>(bench::samples_of(kBytes));
  const auto model = std::make_shared<const std::string>(image);
  Status status;
  double rate = 0;
  bool done = false;
  asio::co_spawn(
      io,
      [&]() -> asio::awaitable<void> {
        status = co_await host.session->send(model::Resource::kModelImage, 0, model);
        const std::int64_t begin = time.elapsed_us();
        board.to_board.faults.drop = board.to_host.faults.drop = loss_per_mille;
        if (status.ok())
          status = co_await host.session->send(model::Resource::kSamples, 1, samples);
        rate = static_cast<double>(samples->size()) * 1000 /
               static_cast<double>(time.elapsed_us() - begin);
        done = true;
      },
      asio::detached);
  while (!done) io.run_one();
  world.attach(nullptr);
  if (status.ok()) return rate;
  fmt::print(stderr, "the transfer failed: {}\n", status.ToString());
  std::exit(1);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string image = argc == 2 ? odt::bench::read(argv[1]) : "";
  if (image.empty()) {
    std::fputs("usage: bench_goodput IMAGE.odtm\n", stderr);
    return 2;
  }
  constexpr int kRounds = 10;
  double lossy = 0;
  for (std::uint64_t seed = 1; seed <= kRounds; ++seed) lossy += measure(10, seed, image);
  fmt::print("goodput_921600_kBps {:.1f}\n", measure(0, 1, image));
  fmt::print("goodput_921600_loss1_kBps {:.1f}\n", lossy / kRounds);
  return 0;
}
