#include "store/identity.h"

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>
#include <openssl/rand.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "store/durable_file.h"

namespace odt::store {
namespace {

namespace fs = std::filesystem;

std::string first_line(const std::string& path) {
  const auto content = read_file(path);
  if (!content.ok()) return {};
  return content->substr(0, content->find('\n'));
}

// Permanent addresses of built-in network devices; those on USB come and go.
std::string network_addresses() {
  std::vector<std::string> addresses;
  std::error_code ec;
  for (fs::directory_iterator it("/sys/class/net", ec), end; !ec && it != end; it.increment(ec)) {
    const std::string device = it->path().string();
    std::error_code missing;
    const std::string target = fs::canonical(device + "/device", missing).string();
    if (missing || target.find("/usb") != std::string::npos) continue;
    if (first_line(device + "/addr_assign_type") == "0")
      addresses.push_back(first_line(device + "/address"));
  }
  std::sort(addresses.begin(), addresses.end());
  std::string out;
  for (const std::string& address : addresses) out += address + ",";
  return out;
}

std::uint64_t inode_of(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 ? info.st_ino : 0;
}

std::string random_hex(int bytes) {
  Bytes raw(static_cast<std::size_t>(bytes));
  RAND_bytes(raw.data(), bytes);
  return to_hex(raw.data(), raw.size());
}

std::map<std::string, std::string> parse_lines(const std::string& content) {
  std::map<std::string, std::string> out;
  for (absl::string_view line : absl::StrSplit(content, '\n')) {
    const std::pair<std::string, std::string> pair = absl::StrSplit(line, absl::MaxSplits(' ', 1));
    if (!pair.first.empty()) out[pair.first] = pair.second;
  }
  return out;
}

std::string epoch_bytes(std::uint64_t epoch) {
  std::string out;
  for (int i = 0; i < 8; ++i) out.push_back(static_cast<char>(epoch >> (8 * i)));
  return out;
}

std::uint64_t epoch_of(const std::string& bytes) {
  std::uint64_t epoch = 0;
  for (std::size_t i = 0; i < 8 && i < bytes.size(); ++i)
    epoch |= static_cast<std::uint64_t>(static_cast<std::uint8_t>(bytes[i])) << (8 * i);
  return epoch;
}

}  // namespace

std::uint64_t new_store_epoch() {
  std::uint64_t epoch = 0;
  while (epoch == 0) RAND_bytes(reinterpret_cast<unsigned char*>(&epoch), sizeof epoch);
  return epoch;
}

Identity new_identity() {
  Identity identity;
  RAND_bytes(identity.gateway_id.bytes.data(), GatewayId::kSize);
  identity.store_epoch = new_store_epoch();
  return identity;
}

Hash host_fingerprint() {
  std::string facts;
  for (const char* path :
       {"/etc/machine-id", "/sys/class/dmi/id/product_uuid", "/sys/class/dmi/id/board_serial",
        "/sys/firmware/devicetree/base/serial-number"})
    facts += absl::StrCat(path, "=", first_line(path), "\n");
  return sha256(facts + network_addresses());
}

IdentityGuard::IdentityGuard(std::string db_path, Hash fingerprint)
    : db_path_(std::move(db_path)), file_path_(db_path_ + ".host"), fingerprint_(fingerprint) {}

Status IdentityGuard::write_file(const std::string& marks, std::int64_t next_seq) {
  return write_durably(
      file_path_, absl::StrCat("odt-fleet-host 1\nhost ", fingerprint_.hex(), "\ninode ",
                               inode_of(db_path_), "\nmarks ", marks, "\nseq ", next_seq, "\n"));
}

std::string IdentityGuard::why_restored(SqliteRows& rows, const std::string& mark) {
  const auto content = read_file(file_path_);
  if (!content.ok()) return "the file " + file_path_ + " is missing";
  std::map<std::string, std::string> file = parse_lines(*content);
  if (file["host"] != fingerprint_.hex()) return "the host is another one";
  std::uint64_t inode = 0;
  if (!absl::SimpleAtoi(file["inode"], &inode) || inode != inode_of(db_path_))
    return "the database file was copied or replaced";
  const std::vector<std::string> marks = absl::StrSplit(file["marks"], ',');
  if (std::find(marks.begin(), marks.end(), mark) == marks.end())
    return "the database is an older or another copy";
  std::int64_t seq = 0;
  const auto range = rows.event_range();
  if (!absl::SimpleAtoi(file["seq"], &seq) || !range.ok() || range->next < seq)
    return "the database lacks events that it had";
  return {};
}

Result<IdentityGuard::Opened> IdentityGuard::open(SqliteRows& rows) {
  Opened out;
  ODT_ASSIGN(const std::optional<std::string> gateway, rows.meta("gateway_id"));
  ODT_ASSIGN(const std::optional<std::string> epoch, rows.meta("store_epoch"));
  ODT_ASSIGN(const std::optional<std::string> mark, rows.meta("mark"));
  const std::string old_mark = mark.value_or("none");
  out.identity = new_identity();
  if (gateway && epoch) {
    ODT_ASSIGN(out.identity.gateway_id, GatewayId::from_bytes(*gateway));
    const std::string why = why_restored(rows, old_mark);
    if (why.empty())
      out.identity.store_epoch = epoch_of(*epoch);
    else
      out.warning = db_path_ + ": new store epoch, because " + why;
  }
  mark_ = random_hex(8);
  ODT_ASSIGN(const Rows::SeqRange range, rows.event_range());
  if (gateway && out.warning.empty()) ODT_TRY(write_file(old_mark + "," + mark_, range.next));
  ODT_TRY(rows.begin());
  Status status = rows.put_meta("gateway_id", out.identity.gateway_id.str());
  if (status.ok()) status = rows.put_meta("store_epoch", epoch_bytes(out.identity.store_epoch));
  if (status.ok()) status = rows.put_meta("mark", mark_);
  if (status.ok()) status = rows.commit();
  if (!status.ok()) {
    rows.rollback();
    return status;
  }
  ODT_TRY(write_file(mark_, range.next));
  open_ = true;
  return out;
}

void IdentityGuard::close(std::int64_t next_seq) {
  if (!open_) return;
  open_ = false;
  // A failure leaves the file of the opening, which is right as well, only weaker.
  write_file(mark_, next_seq).IgnoreError();
}

}  // namespace odt::store
