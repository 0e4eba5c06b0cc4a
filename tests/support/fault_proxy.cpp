#include "support/fault_proxy.h"

#include <array>
#include <list>
#include <string>

namespace odt::test {
namespace {

using asio::ip::tcp;
using boost::system::error_code;

struct Connection {
  explicit Connection(asio::io_context& io) : host(io), board(io) {}
  tcp::socket host, board;
  void close() {
    error_code ignored;
    host.close(ignored);
    board.close(ignored);
  }
};

}  // namespace

struct FaultProxy::State : std::enable_shared_from_this<FaultProxy::State> {
  State(asio::io_context& context, std::uint16_t board_port, std::uint32_t seed)
      : io(context),
        acceptor(context, tcp::endpoint(asio::ip::address_v4::loopback(), 0)),
        target(asio::ip::address_v4::loopback(), board_port),
        random(seed) {}

  bool chance(int per_mille) { return static_cast<int>(random() % 1000) < per_mille; }

  static asio::awaitable<void> accept_loop(std::shared_ptr<State> self) {
    for (;;) {
      auto connection = std::make_shared<Connection>(self->io);
      error_code ec;
      co_await self->acceptor.async_accept(connection->host,
                                           asio::redirect_error(asio::use_awaitable, ec));
      if (ec) co_return;
      co_await connection->board.async_connect(self->target,
                                               asio::redirect_error(asio::use_awaitable, ec));
      if (ec) {
        connection->close();
        continue;
      }
      error_code ignored;
      connection->host.set_option(tcp::no_delay(true), ignored);
      connection->board.set_option(tcp::no_delay(true), ignored);
      self->connections.push_back(connection);
      const auto ended = [connection](std::exception_ptr) { connection->close(); };
      asio::co_spawn(self->io, pump(self, connection, true), ended);
      asio::co_spawn(self->io, pump(self, connection, false), ended);
    }
  }

  // Passes on piece by piece: a piece ends with a delimiter that follows content.
  static asio::awaitable<void> pump(std::shared_ptr<State> self,
                                    std::shared_ptr<Connection> connection, bool to_board) {
    tcp::socket& from = to_board ? connection->host : connection->board;
    tcp::socket& to = to_board ? connection->board : connection->host;
    std::string held;
    std::array<char, 4096> buffer;
    for (;;) {
      error_code ec;
      const std::size_t n = co_await from.async_read_some(
          asio::buffer(buffer), asio::redirect_error(asio::use_awaitable, ec));
      if (ec) co_return;
      held.append(buffer.data(), n);
      std::string out;
      bool wait = false;
      for (std::size_t end; (end = held.find('\0', 1)) != std::string::npos;) {
        out +=
            self->damage(held.substr(0, end + 1), to_board ? self->to_board : self->to_host, &wait);
        held.erase(0, end + 1);
      }
      if (wait) {
        asio::steady_timer timer(self->io, self->to_host.delay_time);
        co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, ec));
      }
      // Split: two writes with a pause, so that the reader sees a part first.
      std::size_t first = out.size();
      if (out.size() > 1 && self->chance((to_board ? self->to_board : self->to_host).split)) {
        first = 1 + self->random() % (out.size() - 1);
        ++self->injected;
      }
      co_await asio::async_write(to, asio::buffer(out.data(), first),
                                 asio::redirect_error(asio::use_awaitable, ec));
      if (first < out.size() && !ec) {
        asio::steady_timer timer(self->io, std::chrono::milliseconds(1));
        co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, ec));
        co_await asio::async_write(to, asio::buffer(out.data() + first, out.size() - first),
                                   asio::redirect_error(asio::use_awaitable, ec));
      }
      if (ec) co_return;
    }
  }

  std::string damage(std::string piece, const Faults& faults, bool* wait) {
    if (chance(faults.drop)) {
      ++injected;
      return {};
    }
    if (chance(faults.corrupt)) {
      ++injected;
      piece[random() % piece.size()] ^= static_cast<char>(1u << random() % 8);
    }
    if (chance(faults.delay)) {
      ++injected;
      *wait = true;
    }
    if (chance(faults.duplicate)) {
      ++injected;
      return piece + piece;
    }
    return piece;
  }

  asio::io_context& io;
  tcp::acceptor acceptor;
  tcp::endpoint target;
  std::mt19937 random;
  Faults to_board, to_host;
  std::uint64_t injected = 0;
  std::list<std::shared_ptr<Connection>> connections;
};

FaultProxy::FaultProxy(asio::io_context& io, std::uint16_t target, Faults to_board, Faults to_host,
                       std::uint32_t seed)
    : state_(std::make_shared<State>(io, target, seed)) {
  set_faults(to_board, to_host);
  asio::co_spawn(io, State::accept_loop(state_), [](std::exception_ptr) {});
}

FaultProxy::~FaultProxy() {
  error_code ignored;
  state_->acceptor.close(ignored);
  cut();
}

std::uint16_t FaultProxy::port() const { return state_->acceptor.local_endpoint().port(); }

std::uint64_t FaultProxy::injected() const { return state_->injected; }

void FaultProxy::set_faults(Faults to_board, Faults to_host) {
  state_->to_board = to_board;
  state_->to_host = to_host;
}

void FaultProxy::cut() {
  for (const auto& connection : state_->connections) connection->close();
  state_->connections.clear();
}

}  // namespace odt::test
