#include <algorithm>

#include "fleet/port_rules.h"
#include "fleet/registry.h"

// Endpoints: what is opened, and what is only listed.
namespace odt::fleet {
namespace {

std::string port_description(const std::string& path) {
  if (!is_network(path)) return "";
  return path.starts_with("tls:") ? "TLS" : "TCP";
}

std::vector<model::Port> to_ports(const std::vector<link::PortInfo>& found) {
  std::vector<model::Port> out(found.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    out[i].path = found[i].path;
    out[i].by_id = found[i].by_id;
    out[i].by_path = found[i].by_path;
    out[i].usb_vid = found[i].usb_vid;
    out[i].usb_pid = found[i].usb_pid;
    out[i].usb_serial = found[i].usb_serial;
    out[i].description = found[i].description;
  }
  return out;
}

void copy_identity(const model::Port& from, model::Port& to) {
  to.by_id = from.by_id;
  to.by_path = from.by_path;
  to.usb_vid = from.usb_vid;
  to.usb_pid = from.usb_pid;
  to.usb_serial = from.usb_serial;
  to.description = from.description;
}

bool same_device(const model::Port& a, const model::Port& b) {
  return a.usb_vid == b.usb_vid && a.usb_pid == b.usb_pid && a.usb_serial == b.usb_serial;
}

}  // namespace

Registry::PortEntry& Registry::port_entry(const std::string& path) {
  PortEntry& entry = ports_[path];
  if (entry.port.path.empty()) {
    entry.port.path = path;
    entry.link = options_.link;
    entry.port.description = port_description(path);
  }
  return entry;
}

Status Registry::listen() {
  const bool listens_tls =
      std::any_of(options_.tcp_listen.begin(), options_.tcp_listen.end(), is_network);
  if (listens_tls) {
    ODT_ASSIGN(listen_tls_, link::make_tls_context(options_.tls, link::TlsSide::kListen));
  }
  const bool dials_tls = std::any_of(options_.tcp_dial.begin(), options_.tcp_dial.end(),
                                     [](const DialTarget& t) { return t.tls; });
  if (!options_.tls.empty() || dials_tls) {
    ODT_ASSIGN(options_.link.tls, link::make_tls_context(options_.tls, link::TlsSide::kDial));
    // Ports adopted as "tls:..." were loaded before it was there.
    for (auto& [path, entry] : ports_) entry.link.tls = options_.link.tls;
  }
  for (const auto& text : options_.tcp_listen) {
    const bool tls = is_network(text);
    auto address = parse_host_port(tls ? text.substr(4) : text);
    if (!address.ok()) return address.status();
    session::LinkOptions link = options_.link;
    link.tls = tls ? listen_tls_ : nullptr;
    link.max_open = options_.max_boards + 64;
    auto listener = options_.make_listener(address->host, address->port, std::move(link), *this);
    if (!listener.ok()) return listener.status();
    if (tls) log(2, "boards dial in at " + text + " with " + link::describe(*listen_tls_));
    listeners_.push_back(std::move(*listener));
  }
  for (const auto& target : options_.tcp_dial) {
    auto address = parse_host_port(target.address);
    if (!address.ok()) return address.status();
    PortEntry& entry = port_entry((target.tls ? "tls:" : "tcp:") + target.address);
    entry.configured = true;
    entry.port.allowed = true;
    entry.link.tls_name = target.tls_name;
    entry.link.tcp_lossy = target.serial_line;
    if (!target.expect_uid.empty()) entry.port.expect_uid = target.expect_uid;
  }
  return absl::OkStatus();
}

void Registry::start() {
  for (auto& listener : listeners_) listener->start();
  for (auto& [path, entry] : ports_) {
    if (entry.port.adopted && entry.port.baud != 0) entry.link.baud_list = {entry.port.baud};
    if (entry.configured || (entry.port.adopted && is_network(path))) start_runner(entry);
  }
  if (options_.scan_ports) {
    scan_once();
    asio::co_spawn(io_, scan_loop(), Detached{});
  } else {
    watch_ = std::make_unique<link::PortWatch>(
        io_, [this](const std::vector<link::PortInfo>& found) { merge_scan(to_ports(found)); },
        link::PortRoots{}, options_.rescan_interval);
    watch_->start();
  }
  asio::co_spawn(io_, view_loop(), Detached{});
}

asio::awaitable<void> Registry::stop() {
  const auto self = shared_from_this();
  stopping_ = true;
  wake_.notify();
  rescan_.notify();
  if (watch_) watch_->stop();
  for (auto& [uid, entry] : boards_) {
    if (!entry.session) continue;
    entry.session->set_sink(nullptr);
    entry.session->close(absl::CancelledError("odtd stops"));
  }
  auto listeners = std::move(listeners_);
  listeners_.clear();
  for (auto& listener : listeners) co_await listener->stop();
  std::vector<std::unique_ptr<session::LinkRunner>> runners;
  for (auto& [path, entry] : ports_)
    if (entry.runner) runners.push_back(std::move(entry.runner));
  for (auto& runner : runners) co_await runner->stop();
}

void Registry::start_runner(PortEntry& entry) {
  if (entry.runner || stopping_) return;
  entry.port.state = model::PortState::kOpening;
  entry.port.reason = {};
  entry.runner = options_.make_runner(entry.port.path, entry.link, *this);
  entry.runner->start();
  dirty_ = true;
}

void Registry::stop_runner(PortEntry& entry) {
  if (!entry.runner) return;
  dirty_ = true;
  asio::co_spawn(
      io_,
      [](std::shared_ptr<Registry> self,
         std::unique_ptr<session::LinkRunner> runner) -> asio::awaitable<void> {
        co_await runner->stop();
        self->dirty_ = true;
      }(shared_from_this(), std::move(entry.runner)),
      Detached{});
}

void Registry::on_port_state(const std::string& endpoint, model::PortState state,
                             const model::Reason& reason) {
  const auto it = ports_.find(endpoint);
  if (it == ports_.end() || !it->second.runner) return;
  auto& port = it->second.port;
  // Why a board was refused is worth more than that its link has closed.
  const bool refused =
      port.reason.code == "UNEXPECTED_BOARD" || port.reason.code == "DUPLICATE_UID";
  if (refused && state != model::PortState::kOnline && reason.code.empty()) return;
  if (port.state != state && !reason.text.empty()) log(2, endpoint + ": " + reason.text);
  port.state = state;
  port.reason = reason;
  if (state != model::PortState::kOnline && state != model::PortState::kOpening)
    port.board_uid = {};
  dirty_ = true;
}

void Registry::scan_once() { merge_scan(seen_now()); }

std::vector<model::Port> Registry::seen_now() const {
  return options_.scan_ports ? options_.scan_ports() : to_ports(link::scan_ports());
}

// An adopted port that leads to the device found under another path: adopted by a link of
// /dev/serial, or the device got another number. Adapters of a kind without serial numbers share
// their by-id name: there the next one is not the one adopted.
Registry::PortEntry* Registry::adopted_elsewhere(const model::Port& found) {
  for (auto& [path, entry] : ports_) {
    if (!entry.port.adopted || path == found.path) continue;
    const bool by_link = path == found.by_id || path == found.by_path;
    const bool moved = !entry.present && !found.usb_serial.empty() && !found.by_id.empty() &&
                       entry.port.by_id == found.by_id && same_device(entry.port, found);
    if (by_link || moved) return &entry;
  }
  return nullptr;
}

// True: `found` is opened as the adoption says, and needs nothing else.
bool Registry::follow_adopted(PortEntry& entry, const model::Port& found) {
  PortEntry* adopted = entry.port.adopted ? nullptr : adopted_elsewhere(found);
  if (adopted == nullptr) return false;
  const std::string& name = adopted->port.path;
  if (name == found.by_id || name == found.by_path) {
    adopted->present = true;
    copy_identity(found, adopted->port);
    stop_runner(entry);
    entry.port.state = model::PortState::kUnclaimed;
    entry.port.reason = {"OTHER_NAME", "opened as " + name, ""};
    start_runner(*adopted);
    return true;
  }
  stop_runner(*adopted);
  adopted->port.state = model::PortState::kGone;
  adopted->port.reason = {"MOVED", "the device is at " + found.path + " now", ""};
  entry.link = adopted->link;
  entry.port.baud = adopted->port.baud;
  entry.port.expect_uid = adopted->port.expect_uid;
  entry.port.allowed = true;
  start_runner(entry);
  return true;
}

void Registry::merge_scan(const std::vector<model::Port>& seen) {
  for (auto& [path, entry] : ports_)
    entry.present = std::any_of(seen.begin(), seen.end(),
                                [&path](const model::Port& p) { return p.path == path; });
  for (const auto& found : seen) {
    PortEntry& entry = port_entry(found.path);
    entry.present = true;
    model::Port& port = entry.port;
    const bool other = port.adopted && (port.usb_vid != 0 || !port.usb_serial.empty()) &&
                       !same_device(port, found);
    if (other) {
      // The path now names another device than the one adopted: not ours to open.
      stop_runner(entry);
      port.state = model::PortState::kUnclaimed;
      port.reason = {"OTHER_DEVICE", "another device has this path now: " + found.description,
                     "Adopt the port again if it is yours."};
      continue;
    }
    copy_identity(found, port);
    if (follow_adopted(entry, found)) continue;
    if (port.reason.code == "MOVED" || port.reason.code == "OTHER_NAME") port.reason = {};
    const SerialRule* rule = match_rule(options_.serial_allow, port);
    port.allowed = rule != nullptr;
    if (rule != nullptr) {
      if (!rule->bauds.empty()) entry.link.baud_list = rule->bauds;
      const Lines lines = lines_of(*rule);
      entry.link.dtr = lines.dtr;
      entry.link.rts = lines.rts;
      entry.link.rts_cts = rule->rts_cts;
      if (!rule->expect_uid.empty()) port.expect_uid = rule->expect_uid;
    }
    if (port.adopted || port.allowed) {
      start_runner(entry);
    } else {
      stop_runner(entry);  // followed an adoption that has been released
      if (port.state != model::PortState::kUnclaimed) {
        port.state = model::PortState::kUnclaimed;
        dirty_ = true;
      }
    }
  }
  for (auto it = ports_.begin(); it != ports_.end();) {
    PortEntry& entry = it->second;
    if (entry.present || entry.configured || is_network(it->first)) {
      ++it;
    } else if (entry.port.adopted) {
      // Adopted ports outside the list (a pty, a port that comes back) are tried all the same.
      if (entry.port.reason.code != "OTHER_DEVICE" && entry.port.reason.code != "MOVED")
        start_runner(entry);
      ++it;
    } else {
      // A later device under this path must be judged afresh.
      stop_runner(entry);
      it = ports_.erase(it);
      dirty_ = true;
    }
  }
}

void Registry::rescan() { rescan_.notify(); }

asio::awaitable<void> Registry::scan_loop() {
  const auto self = shared_from_this();
  while (!stopping_) {
    co_await rescan_.wait_for(options_.rescan_interval);
    if (!stopping_) scan_once();
  }
}

asio::awaitable<Result<model::Port>> Registry::adopt(CallContext ctx, std::string path,
                                                     std::uint32_t baud, BoardUid expect_uid) {
  const auto self = shared_from_this();
  if (is_network(path)) {
    auto address = parse_host_port(path.substr(4));
    if (!address.ok()) co_return address.status();
    if (path.starts_with("tls:") && !options_.link.tls)
      co_return with_reason(absl::FailedPreconditionError("TLS is not set up"), "TLS_NOT_SET_UP",
                            "Set boards.tls_cert, tls_key and tls_client_ca, or "
                            "boards.tls_psk_file, in odtd.toml and restart odtd.");
  } else if (const auto why = not_a_port(path); !why.empty()) {
    co_return with_reason(absl::InvalidArgumentError(why), "BAD_PORT",
                          "Take a path from the port list, e.g. /dev/ttyACM0.");
  } else if (path.size() < 2 || path.front() != '/') {
    co_return with_reason(
        absl::InvalidArgumentError("'" + sanitize_name(path, 64) +
                                   "' is neither an absolute device path nor tcp:host:port or "
                                   "tls:host:port"),
        "BAD_PORT", "Take a path from the port list, e.g. /dev/ttyACM0.");
  }
  const auto known = ports_.find(path);
  model::Port value = known == ports_.end() ? model::Port{} : known->second.port;
  if (known == ports_.end()) {
    value.path = path;
    value.description = port_description(path);
  }
  if (value.reason.code == "OTHER_DEVICE") {
    // Adopting again means the device that is there now.
    for (const auto& found : seen_now())
      if (found.path == path) {
        copy_identity(found, value);
      }
    value.reason = {};
  }
  if (value.meta.create_time_us == 0)
    value.meta = {control_.identity().gateway_id, ctx.actor, clock_.now_us(), 0};
  value.meta.etag = 0;
  value.adopted = true;
  value.baud = baud;
  value.expect_uid = std::move(expect_uid);
  store::Batch batch;
  batch.actor = ctx.actor;
  batch.command_id = ctx.command_id;
  batch.request_id = ctx.request_id;
  batch.response = path;
  batch.changes.push_back(store::PutPort{value});
  auto events = co_await control_.commit(std::move(batch));
  if (!events.ok()) co_return events.status();
  PortEntry& entry = port_entry(path);
  if (entry.runner && (entry.port.baud != baud || entry.port.expect_uid != value.expect_uid))
    stop_runner(entry);
  const model::PortState state = entry.port.state;
  entry.port = value;
  entry.port.state = state;
  for (const auto& event : *events)
    if (const auto* port = std::get_if<model::Port>(&event.body)) entry.port.meta = port->meta;
  entry.link.baud_list = baud != 0 ? std::vector<std::uint32_t>{baud} : options_.link.baud_list;
  start_runner(entry);
  publish_view();
  co_return entry.port;
}

asio::awaitable<Result<model::Port>> Registry::release(CallContext ctx, std::string path) {
  const auto self = shared_from_this();
  auto known = ports_.find(path);
  if (known == ports_.end())
    co_return absl::NotFoundError("port '" + sanitize_name(path, 64) + "' is not known");
  if (!known->second.port.adopted) {
    // Opened because its device was adopted under another path: that adoption is meant.
    if (const PortEntry* adopted = adopted_elsewhere(known->second.port)) {
      path = adopted->port.path;
      known = ports_.find(path);
    }
  }
  if (known->second.configured || (known->second.port.allowed && !known->second.port.adopted))
    co_return with_reason(
        absl::FailedPreconditionError("port " + path + " is opened by the configuration"),
        "PORT_CONFIGURED", "Remove it from [[serial.allow]] or [[tcp.dial]] and restart odtd.");
  if (!known->second.port.adopted) co_return known->second.port;
  model::Port value = known->second.port;
  value.adopted = false;
  value.state = model::PortState::kUnclaimed;
  value.meta.etag = 0;
  store::Batch batch;
  batch.actor = ctx.actor;
  batch.command_id = ctx.command_id;
  batch.request_id = ctx.request_id;
  batch.response = path;
  batch.changes.push_back(store::PutPort{value});
  auto events = co_await control_.commit(std::move(batch));
  if (!events.ok()) co_return events.status();
  for (const auto& event : *events)
    if (const auto* port = std::get_if<model::Port>(&event.body)) value.meta = port->meta;
  const auto it = ports_.find(path);
  if (it == ports_.end()) co_return value;
  if (!it->second.port.allowed) stop_runner(it->second);
  it->second.port = value;
  const bool keep = it->second.present;
  if (!keep) ports_.erase(it);
  // What followed the adoption closes now: the watch speaks up only when a port comes or goes.
  if (!is_network(path)) scan_once();
  publish_view();
  co_return value;
}

std::vector<model::Port> Registry::ports() const {
  std::vector<model::Port> out;
  out.reserve(ports_.size());
  for (const auto& [path, entry] : ports_) out.push_back(entry.port);
  const auto now = std::chrono::steady_clock::now();
  for (const auto& [place, turned] : turned_away_)
    if (now - turned.seen < kShowTurned) out.push_back(turned.port);
  return out;
}

}  // namespace odt::fleet
