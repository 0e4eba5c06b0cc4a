#pragma once

#include <string>

#include "base/result.h"

namespace odt::cli {

// What odtctl proves with who it is, and checks who odtd is.
struct Credentials {
  std::string token;              // empty: none
  std::string ca_pem;             // whose certificate odtd must have; not empty: TLS
  std::string cert_pem, key_pem;  // our own, where odtd asks for one
};

// Files that were named; empty: not.
struct CredentialFiles {
  std::string token, ca, cert, key;
};

// The token: --token-file, else $ODT_TOKEN, else (for host:port) what `odtctl login` has left in
// ~/.config/odt. The CA: --ca, else $ODT_CA, else the same. Errors: NOT_FOUND, PERMISSION_DENIED (a
// token that others may read), INVALID_ARGUMENT (not a token), FAILED_PRECONDITION (a token would
// go in clear text to another machine).
Result<Credentials> choose_credentials(const std::string& address, const CredentialFiles& files);

// ~/.config/odt/HOST_PORT, where login() keeps token and ca.pem of an address. Empty: no home.
std::string login_folder(const std::string& address);
// Whole or not at all, mode 0600; the folders above it 0700.
Status write_secret_file(const std::string& path, const std::string& content);

}  // namespace odt::cli
