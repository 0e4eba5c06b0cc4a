#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/asio.h"
#include "base/clock.h"
#include "link/byte_link.h"
#include "link/tls.h"
#include "model/board.h"
#include "session/board_session.h"

// Keeps one endpoint talking: opens the link, says HELLO, runs the session, reopens with jittered
// backoff (0.5..30 s), for ever, until stopped. What it finds goes to LinkHost. Implemented in
// session/; used by fleet/.
namespace odt::session {

class LinkHost {
 public:
  virtual ~LinkHost() = default;
  // A board has said HELLO_ACK. The host decides (expected uid, duplicate uid): false closes with
  // quarantine. Called before anything else is sent on the link.
  virtual bool on_session(const std::string& endpoint, std::shared_ptr<BoardSession> session) = 0;
  // State of the endpoint for the port list: opening, silent, locked, baud mismatch, gone, error.
  virtual void on_port_state(const std::string& endpoint, model::PortState state,
                             const model::Reason& reason) = 0;
  // Who dialled in could not be let in before a HELLO: no TLS, wrong certificate or key, too many.
  virtual void on_refused(const std::string& endpoint, const model::Reason& reason) {
    (void)endpoint;
    (void)reason;
  }
};

struct LinkOptions {
  GatewayId host_id;
  std::uint32_t mtu = 576;
  std::vector<std::uint32_t> baud_list = {921600, 115200};
  bool dtr = true, rts = true, rts_cts = false;
  std::chrono::milliseconds hello_deadline{5000};
  // Of a listener: all its connections, and how long one may be silent where another waits.
  std::size_t max_open = 4160;
  std::chrono::milliseconds make_room{1000};
  std::chrono::milliseconds suspect_after{3000}, down_after{5000}, ping_idle{1000};
  // First wait for a HELLO_ACK; doubles with each of the three tries.
  std::chrono::milliseconds hello_timeout{500};
  std::chrono::milliseconds rto_start{250}, rto_min{25}, rto_max{5000};
  // So long a request is repeated in one session while the board shows that it lives (an erase of
  // its flash); a mute one is asked for its HELLO after five tries.
  std::chrono::milliseconds slow_answer{15000};
  std::chrono::milliseconds backoff_min{500}, backoff_max{30000};
  bool insecure_tcp = false;  // listen on other than loopback addresses without TLS
  // Of a listener: it speaks TLS. Of a dialler: for endpoints "tls:host:port".
  std::shared_ptr<link::TlsContext> tls;
  std::string tls_name;  // that the dialled peer's certificate must have; empty: the host dialled
  // The TCP peer is a raw serial line (QEMU, ser2net): a bad frame is dropped as on serial. Without
  // it a bad frame ends the connection, because TCP does not damage bytes.
  bool tcp_lossy = false;
  // Seam for tests: opens the endpoint in place of a serial port or a TCP connection.
  std::function<Result<std::shared_ptr<link::ByteLink>>(const std::string& endpoint)> open;
};

class LinkRunner {
 public:
  virtual ~LinkRunner() = default;
  virtual void start() = 0;
  virtual asio::awaitable<void> stop() = 0;  // idempotent; ends the session with BYE
};

// endpoint: a serial path ("/dev/ttyACM0"), or "tcp:host:port" or "tls:host:port" to dial.
std::unique_ptr<LinkRunner> make_link_runner(asio::io_context& io, const Clock& clock,
                                             std::string endpoint, LinkOptions options,
                                             LinkHost& host);
// Accepts boards that dial in; endpoints are "tcp-in:addr:port" ("tls-in:" with options.tls). At
// most max_pending connections without HELLO_ACK, and options.max_open or half of the process's
// descriptors altogether: who is turned away is told of by on_refused, at most every 10 s. Errors
// of the factory: ALREADY_EXISTS (port in use, with the remedy).
Result<std::unique_ptr<LinkRunner>> make_tcp_listener(asio::io_context& io, const Clock& clock,
                                                      const std::string& address,
                                                      std::uint16_t port, LinkOptions options,
                                                      LinkHost& host, int max_pending = 64);

}  // namespace odt::session
