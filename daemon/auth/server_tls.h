#pragma once

#include <string>

#include "base/result.h"

namespace odt::auth {

// PEM files of [tls]: of the HTTP and the gRPC port.
struct ServerTlsFiles {
  std::string cert, key;  // ours, the chain behind it in the same file
  std::string client_ca;  // who signs the certificates of callers; empty: none are asked for
  bool empty() const { return cert.empty() && key.empty() && client_ca.empty(); }
};

struct ServerTls {
  std::string cert_pem, key_pem, client_ca_pem;
  std::string fingerprint;  // SHA-256 of the certificate, "A1:B2:..", as browsers show it
};

// Reads and checks the files. Errors name the key ("tls.cert"), the file, what is wrong and what to
// do: INVALID_ARGUMENT (not PEM), FAILED_PRECONDITION (key of another certificate, expired, not
// valid yet, one without the other), NOT_FOUND, PERMISSION_DENIED (unreadable; a key that others
// may read).
Result<ServerTls> read_server_tls(const ServerTlsFiles& files);

}  // namespace odt::auth
