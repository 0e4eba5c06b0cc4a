#pragma once

#include <memory>
#include <string>

#include "link/byte_link.h"

// TLS 1.3 over TCP links. Both ends prove who they are: by certificates, or by a shared key.
namespace odt::link {

struct TlsFiles {
  std::string cert, key;  // PEM; ours, the chain behind it in the same file
  std::string peer_ca;    // PEM; who must have signed the peer's certificate
  std::string psk;        // lines IDENTITY:HEX, keys of 16 to 64 bytes; a dialler uses the first
  bool empty() const { return cert.empty() && key.empty() && peer_ca.empty() && psk.empty(); }
};

enum class TlsSide : std::uint8_t { kListen, kDial };

class TlsContext;  // immutable; shared by all links that it makes

// Reads and checks the files. Errors name the key of the configuration ("boards.tls_cert"), the
// file, what is wrong and what to do: FAILED_PRECONDITION (nobody could connect, or anybody could;
// certificate expired or not valid yet; key of another certificate), INVALID_ARGUMENT (not PEM, bad
// line of keys), NOT_FOUND, PERMISSION_DENIED (a file of secrets that others may read).
Result<std::shared_ptr<TlsContext>> make_tls_context(const TlsFiles& files, TlsSide side);

// "client certificates of FILE", "shared keys of FILE": for logs.
const std::string& describe(const TlsContext& context);

// Takes over an accepted socket: handshake within `timeout`. Errors: UNAVAILABLE (the peer is not
// who it should be, speaks no TLS 1.3, or is too slow), in words. `opened` gets the link before the
// handshake, for whoever wants to close it meanwhile.
asio::awaitable<Result<std::shared_ptr<ByteLink>>> accept_tls(
    asio::io_context& io, asio::ip::tcp::socket socket, std::shared_ptr<TlsContext> context,
    std::string name, std::chrono::milliseconds timeout,
    std::function<void(std::weak_ptr<ByteLink>)> opened = {});

// Dials host:port. The peer's certificate must be for `peer_name` (empty: for host). Errors: those
// of dial_tcp() and of accept_tls().
asio::awaitable<Result<std::shared_ptr<ByteLink>>> dial_tls(asio::io_context& io, std::string host,
                                                            std::string port,
                                                            std::shared_ptr<TlsContext> context,
                                                            std::string peer_name,
                                                            std::chrono::milliseconds timeout);

}  // namespace odt::link
