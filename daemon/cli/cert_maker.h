#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace odt::cli {

struct KeyAndCert {
  std::string key_pem, cert_pem;
};
// An ECDSA P-256 key and a certificate that it signs itself, for these host names and IP
// addresses, from a day ago for `days` days.
Result<KeyAndCert> make_certificate(const std::vector<std::string>& names, int days);

// "A1:B2:..", SHA-256 of the first certificate of a PEM text.
Result<std::string> fingerprint_of_pem(const std::string& pem);

// Of the server behind host:port, as it shows it in a TLS 1.3 handshake; nothing is checked, the
// caller compares the fingerprint. UNAVAILABLE: nobody answers, or not with TLS.
Result<std::string> fetch_certificate(const std::string& host, const std::string& port);

}  // namespace odt::cli
