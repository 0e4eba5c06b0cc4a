#pragma once

#include <openssl/ssl.h>

#include <string>
#include <vector>

#include "base/asio.h"
// After Asio.
#include <boost/asio/ssl.hpp>

#include "link/tls.h"

namespace odt::link {

class TlsContext {
 public:
  struct Key {
    std::string identity;
    std::string secret;  // raw
  };
  explicit TlsContext(TlsSide which) : ssl(asio::ssl::context::tls), side(which) {}
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;

  asio::ssl::context ssl;
  TlsSide side;
  std::vector<Key> keys;
  std::string peer_ca;
  std::string description;
};

}  // namespace odt::link
