#pragma once

#include <chrono>
#include <memory>

#include "link/byte_link.h"

namespace odt::link {

// Dials host:port; TCP_NODELAY and keepalive on. Errors: INVALID_ARGUMENT (port), UNAVAILABLE (not
// resolved, refused, no connection within `timeout`).
asio::awaitable<Result<std::shared_ptr<ByteLink>>> dial_tcp(asio::io_context& io, std::string host,
                                                            std::string port,
                                                            std::chrono::milliseconds timeout);

// The same as a bare socket; `name` begins its errors.
asio::awaitable<Result<asio::ip::tcp::socket>> connect_tcp(asio::io_context& io, std::string host,
                                                           std::string port, std::string name,
                                                           std::chrono::milliseconds timeout);
void set_tcp_options(asio::ip::tcp::socket& socket);  // no delay, keepalive

// Takes over an accepted socket.
std::shared_ptr<ByteLink> make_tcp_link(asio::ip::tcp::socket socket, std::string name);

// A bound, listening socket; port 0 picks a free one. Errors: INVALID_ARGUMENT (address),
// ALREADY_EXISTS (port in use), PERMISSION_DENIED, FAILED_PRECONDITION (not a loopback address and
// not `allow_any_address`: a plain link is neither encrypted nor authenticated).
Result<asio::ip::tcp::acceptor> listen_tcp(asio::io_context& io, const std::string& address,
                                           std::uint16_t port, bool allow_any_address);

}  // namespace odt::link
