#pragma once

#include <string>
#include <string_view>

namespace odt::wire {

// Text of a board made safe for logs, terminals and JSON: control characters and broken UTF-8
// become '?', and at most `limit` bytes are kept (whole characters).
std::string sanitise(std::string_view text, std::size_t limit = 256);

}  // namespace odt::wire
