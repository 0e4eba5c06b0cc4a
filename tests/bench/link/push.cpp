// Goodput of a bulk transfer to a board that listens, in real time: prints the median of the
// rounds in thousands of bytes of content a second.
// usage: bench_push tcp:HOST:PORT IMAGE.odtm BYTES ROUNDS
#include "push.h"

#include <algorithm>
#include <cstdlib>
#include <vector>

namespace {

using namespace odt;
using std::chrono::steady_clock;

asio::awaitable<void> rounds(session::BoardSession& board, std::shared_ptr<const std::string> model,
                             std::shared_ptr<const std::string> samples, int count,
                             std::vector<double>& rates, Status& status) {
  status = co_await board.send(model::Resource::kModelImage, 0, model);
  for (int i = 0; i < count && status.ok(); ++i) {
    const auto begin = steady_clock::now();
    status = co_await board.send(model::Resource::kSamples, 1, samples);
    const std::chrono::duration<double, std::milli> took = steady_clock::now() - begin;
    rates.push_back(static_cast<double>(samples->size()) / took.count());
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string image = argc == 5 ? bench::read(argv[2]) : "";
  if (image.empty()) {
    std::fputs("usage: bench_push tcp:HOST:PORT IMAGE.odtm BYTES ROUNDS\n", stderr);
    return 2;
  }
  SystemClock clock;
  asio::io_context io(1);
  session::LinkOptions options;
  options.tcp_lossy = true;
  bench::Host host;
  const auto runner = session::make_link_runner(io, clock, argv[1], options, host);
  runner->start();
  while (!host.session) io.run_one();
  std::vector<double> rates;
  Status status;
  bool done = false;
  asio::co_spawn(io,
                 rounds(*host.session, std::make_shared<const std::string>(image),
                        std::make_shared<const std::string>(
                            bench::samples_of(std::strtoull(argv[3], nullptr, 10))),
                        std::atoi(argv[4]), rates, status),
                 [&done](std::exception_ptr) { done = true; });
  while (!done) io.run_one();
  if (!status.ok() || rates.empty()) {
    std::fprintf(stderr, "bench_push: %s\n", status.ToString().c_str());
    return 1;
  }
  std::sort(rates.begin(), rates.end());
  std::printf("%.1f\n", rates[rates.size() / 2]);
  std::fflush(stdout);
  std::_Exit(0);  // the board is not told: the next round begins with a new one
}
