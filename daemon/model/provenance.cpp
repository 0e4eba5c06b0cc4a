#include "model/provenance.h"

namespace odt::model {
namespace {

void put_u32(std::string& out, std::uint32_t value) {
  for (int shift = 0; shift < 32; shift += 8)
    out.push_back(static_cast<char>(value >> shift & 255));
}

}  // namespace

Hash chain_link(const Snapshot& snapshot, const Hash& parent_chain) {
  std::string bytes = "ODTP\x01";
  bytes += snapshot.hash.str() + snapshot.model_hash.str();
  bytes.push_back(static_cast<char>(snapshot.board_uid.bytes.size()));
  bytes += snapshot.board_uid.str() + snapshot.run_id.str();
  put_u32(bytes, snapshot.attempt);
  put_u32(bytes, snapshot.step);
  bytes += snapshot.parent.str() + parent_chain.str();
  return sha256(bytes);
}

}  // namespace odt::model
