#pragma once

// The one way to include Asio: Boost 1.74 needs <utility> first with C++20, and has no awaitable
// operators.
// clang-format off
#include <utility>

#include <boost/asio.hpp>
// clang-format on

namespace odt {
namespace asio = boost::asio;
}
