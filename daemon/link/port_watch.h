#pragma once

#include <chrono>
#include <functional>
#include <memory>

#include "base/asio.h"
#include "link/port_scan.h"

namespace odt::link {

// Tells which serial ports there are: at start and after every change. Hears of changes from udev
// where it runs, and scans every `rescan` besides. On the io context's thread.
class PortWatch {
 public:
  using Callback = std::function<void(const std::vector<PortInfo>&)>;

  PortWatch(asio::io_context& io, Callback callback, PortRoots roots = {},
            std::chrono::milliseconds rescan = std::chrono::seconds(2));
  ~PortWatch();
  PortWatch(const PortWatch&) = delete;
  PortWatch& operator=(const PortWatch&) = delete;

  void start();
  void stop();  // idempotent; no callback follows

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace odt::link
