#include "link/port_watch.h"

#include <libudev.h>
#include <unistd.h>

namespace odt::link {
namespace {

using boost::system::error_code;

// udev makes its links a moment after the kernel's event; several events come together.
constexpr std::chrono::milliseconds kSettle{100};

struct UdevDelete {
  void operator()(udev* u) const { udev_unref(u); }
  void operator()(udev_monitor* m) const { udev_monitor_unref(m); }
};

}  // namespace

// Shared with pending handlers, which may run after the watch has gone.
struct PortWatch::State : std::enable_shared_from_this<PortWatch::State> {
  State(asio::io_context& io, Callback on_ports, PortRoots where, std::chrono::milliseconds every)
      : callback(std::move(on_ports)),
        roots(std::move(where)),
        rescan(every),
        timer(io),
        events(io) {}

  void open_monitor() {
    context.reset(udev_new());
    if (!context) return;
    monitor.reset(udev_monitor_new_from_netlink(context.get(), "udev"));
    if (!monitor) return;
    udev_monitor_filter_add_match_subsystem_devtype(monitor.get(), "tty", nullptr);
    if (udev_monitor_enable_receiving(monitor.get()) < 0) return;
    // A copy: the monitor closes its own descriptor.
    const int fd = ::dup(udev_monitor_get_fd(monitor.get()));
    if (fd < 0) return;
    error_code ec;
    events.assign(fd, ec);
    if (ec) {
      ::close(fd);
      return;
    }
    wait_event();
  }

  void wait_event() {
    events.async_wait(
        asio::posix::stream_descriptor::wait_read, [self = shared_from_this()](error_code ec) {
          if (ec || self->stopped) return;
          while (udev_device* device = udev_monitor_receive_device(self->monitor.get())) {
            udev_device_unref(device);
          }
          self->scan_after(kSettle);
          self->wait_event();
        });
  }

  void scan_after(std::chrono::milliseconds delay) {
    timer.expires_after(delay);
    timer.async_wait([self = shared_from_this()](error_code ec) {
      if (!ec && !self->stopped) self->scan();
    });
  }

  void scan() {
    auto found = scan_ports(roots);
    if (first || found != ports) {
      first = false;
      ports = std::move(found);
      callback(ports);
    }
    if (!stopped) scan_after(rescan);
  }

  Callback callback;
  PortRoots roots;
  std::chrono::milliseconds rescan;
  asio::steady_timer timer;
  asio::posix::stream_descriptor events;
  std::unique_ptr<udev, UdevDelete> context;
  std::unique_ptr<udev_monitor, UdevDelete> monitor;
  std::vector<PortInfo> ports;
  bool first = true;
  bool stopped = false;
};

PortWatch::PortWatch(asio::io_context& io, Callback callback, PortRoots roots,
                     std::chrono::milliseconds rescan)
    : state_(std::make_shared<State>(io, std::move(callback), std::move(roots), rescan)) {}

PortWatch::~PortWatch() { stop(); }

void PortWatch::start() {
  state_->open_monitor();
  state_->scan_after(std::chrono::milliseconds(0));
}

void PortWatch::stop() {
  state_->stopped = true;
  error_code ignored;
  state_->timer.cancel(ignored);
  state_->events.close(ignored);
}

}  // namespace odt::link
