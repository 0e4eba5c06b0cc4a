#pragma once

// The one way to include Asio: Boost 1.74 needs <utility> first with C++20, and has no awaitable
// operators.
#include <boost/asio.hpp>
#include <utility>

namespace odt {
namespace asio = boost::asio;
}
