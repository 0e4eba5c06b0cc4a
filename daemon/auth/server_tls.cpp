#include "auth/server_tls.h"

#include <absl/strings/str_cat.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>

namespace odt::auth {
namespace {

constexpr std::size_t kMostBytes = 1u << 20;

template <auto Free>
struct Deleter {
  template <typename T>
  void operator()(T* value) const {
    Free(value);
  }
};
using Bio = std::unique_ptr<BIO, Deleter<BIO_free_all>>;
using Cert = std::unique_ptr<X509, Deleter<X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, Deleter<EVP_PKEY_free>>;

Bio memory_of(const std::string& pem) {
  return Bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
}

Cert cert_of(const std::string& pem) {
  return Cert(PEM_read_bio_X509(memory_of(pem).get(), nullptr, nullptr, nullptr));
}

Key key_of(const std::string& pem) {
  // Without a callback OpenSSL would ask for a pass phrase on the terminal.
  const auto no_phrase = [](char*, int, int, void*) { return 0; };
  return Key(PEM_read_bio_PrivateKey(memory_of(pem).get(), nullptr, no_phrase, nullptr));
}

// secret: its owner and group only.
Result<std::string> read_pem(const char* key, const std::string& file, bool secret) {
  const std::string what = absl::StrCat("tls.", key, ": ", file);
  struct stat info {};
  if (::stat(file.c_str(), &info) != 0) {
    const std::string why = absl::StrCat(what, ": ", std::strerror(errno));
    if (errno == EACCES) return absl::PermissionDeniedError(why + "; let the user of odtd read it");
    return absl::NotFoundError(why);
  }
  if (!S_ISREG(info.st_mode) || static_cast<std::size_t>(info.st_size) > kMostBytes)
    return absl::InvalidArgumentError(what + " is not a PEM file");
  if (secret && (info.st_mode & S_IRWXO) != 0)
    return absl::PermissionDeniedError(
        absl::StrCat(what, " is a secret that every user may read; chmod 600 ", file));
  std::ifstream in(file, std::ios::binary);
  if (!in) return absl::PermissionDeniedError(what + ": cannot be read by the user of odtd");
  return std::string(std::istreambuf_iterator<char>(in), {});
}

std::string fingerprint_of(const X509* cert) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  if (X509_digest(cert, EVP_sha256(), digest, &size) != 1) return {};
  constexpr char kHex[] = "0123456789ABCDEF";
  std::string out;
  for (unsigned int i = 0; i < size; ++i) {
    if (i != 0) out += ':';
    out += kHex[digest[i] >> 4];
    out += kHex[digest[i] & 15u];
  }
  return out;
}

}  // namespace

Result<ServerTls> read_server_tls(const ServerTlsFiles& files) {
  if (files.cert.empty() || files.key.empty())
    return absl::FailedPreconditionError(
        "tls.cert and tls.key go together; `odtctl setup remote` makes both");
  ServerTls tls;
  ODT_ASSIGN(tls.cert_pem, read_pem("cert", files.cert, false));
  ODT_ASSIGN(tls.key_pem, read_pem("key", files.key, true));
  const Cert cert = cert_of(tls.cert_pem);
  if (!cert)
    return absl::InvalidArgumentError("tls.cert: " + files.cert + " is not a certificate in PEM");
  const Key key = key_of(tls.key_pem);
  if (!key)
    return absl::InvalidArgumentError("tls.key: " + files.key +
                                      " is not a private key in PEM without pass phrase");
  if (X509_check_private_key(cert.get(), key.get()) != 1)
    return absl::FailedPreconditionError("tls.key: " + files.key + " is not the key of " +
                                         files.cert);
  if (X509_cmp_current_time(X509_get0_notAfter(cert.get())) < 0)
    return absl::FailedPreconditionError("tls.cert: " + files.cert +
                                         " has expired; `odtctl setup remote` makes a new one");
  if (X509_cmp_current_time(X509_get0_notBefore(cert.get())) > 0)
    return absl::FailedPreconditionError("tls.cert: " + files.cert +
                                         " is not valid yet; is this machine's clock right?");
  tls.fingerprint = fingerprint_of(cert.get());
  if (!files.client_ca.empty()) {
    ODT_ASSIGN(tls.client_ca_pem, read_pem("client_ca", files.client_ca, false));
    if (!cert_of(tls.client_ca_pem))
      return absl::InvalidArgumentError("tls.client_ca: " + files.client_ca +
                                        " has no certificate in PEM");
  }
  return tls;
}

}  // namespace odt::auth
