#pragma once

#include <memory>

#include "link/byte_link.h"
#include "session/session_impl.h"

// Shared by the runners of serial ports, dialled and accepted TCP links; not for other rooms.
namespace odt::session {

model::Reason reason_of(const Status& status, std::string code, std::string remedy = {});

// Waits until the pipe has let go of its link (BYE is still under way for up to 200 ms).
asio::awaitable<void> wait_pipe_closed(asio::io_context& io, std::shared_ptr<FramePipe> pipe);

}  // namespace odt::session
