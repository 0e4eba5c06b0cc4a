#include "cli/cert_maker.h"

#include <absl/strings/str_cat.h>
#include <arpa/inet.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <memory>

#include "cli/text.h"

namespace odt::cli {
namespace {

template <auto Free>
struct Freed {
  template <typename T>
  void operator()(T* value) const {
    Free(value);
  }
};
using BioPtr = std::unique_ptr<BIO, Freed<BIO_free_all>>;
using CertPtr = std::unique_ptr<X509, Freed<X509_free>>;
using KeyPtr = std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY_free>>;

Status openssl_fault(const char* what) {
  const char* reason = ERR_reason_error_string(ERR_get_error());
  ERR_clear_error();
  return absl::InternalError(absl::StrCat(what, ": ", reason != nullptr ? reason : "failed"));
}

std::string text_of_bio(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  return std::string(data, static_cast<std::size_t>(size));
}

bool is_ip(const std::string& name) {
  in6_addr raw{};
  return inet_pton(AF_INET, name.c_str(), &raw) == 1 ||
         inet_pton(AF_INET6, name.c_str(), &raw) == 1;
}

bool add_extension(X509* cert, int nid, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, cert, cert, nullptr, nullptr, 0);
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str());
  const bool done = extension != nullptr && X509_add_ext(cert, extension, -1) == 1;
  X509_EXTENSION_free(extension);
  return done;
}

bool set_serial(X509* cert) {
  unsigned char raw[16];
  if (RAND_bytes(raw, sizeof raw) != 1) return false;
  raw[0] &= 0x7F;  // positive
  BIGNUM* number = BN_bin2bn(raw, sizeof raw, nullptr);
  const bool done = BN_to_ASN1_INTEGER(number, X509_get_serialNumber(cert)) != nullptr;
  BN_free(number);
  return done;
}

// A trust anchor of its own: clients that keep it know this odtd again.
Result<CertPtr> self_signed(EVP_PKEY* key, const std::vector<std::string>& names, int days) {
  CertPtr cert(X509_new());
  std::string alt;
  for (const auto& name : names)
    absl::StrAppend(&alt, alt.empty() ? "" : ",", is_ip(name) ? "IP:" : "DNS:", name);
  X509_NAME* subject = X509_get_subject_name(cert.get());
  const auto* common = reinterpret_cast<const unsigned char*>(names.front().c_str());
  constexpr long kDay = 86'400;
  const bool made =
      X509_set_version(cert.get(), 2) == 1 && set_serial(cert.get()) &&
      X509_gmtime_adj(X509_getm_notBefore(cert.get()), -kDay) != nullptr &&
      X509_gmtime_adj(X509_getm_notAfter(cert.get()), kDay * days) != nullptr &&
      X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8, common, -1, -1, 0) == 1 &&
      X509_set_issuer_name(cert.get(), subject) == 1 && X509_set_pubkey(cert.get(), key) == 1 &&
      add_extension(cert.get(), NID_basic_constraints, "critical,CA:TRUE,pathlen:0") &&
      add_extension(cert.get(), NID_key_usage, "critical,digitalSignature,keyCertSign") &&
      add_extension(cert.get(), NID_ext_key_usage, "serverAuth") &&
      add_extension(cert.get(), NID_subject_key_identifier, "hash") &&
      add_extension(cert.get(), NID_subject_alt_name, alt) &&
      X509_sign(cert.get(), key, EVP_sha256()) != 0;
  if (!made) return openssl_fault("certificate");
  return cert;
}

}  // namespace

Result<KeyAndCert> make_certificate(const std::vector<std::string>& names, int days) {
  for (const auto& name : names)
    if (name.empty() || name.size() > 64 ||
        name.find_first_not_of(
            "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-:_") !=
            std::string::npos)
      return absl::InvalidArgumentError("'" + clean(name) + "' is no host name or IP address");
  if (names.empty()) return absl::InvalidArgumentError("a certificate needs a name");
  const KeyPtr key(EVP_PKEY_Q_keygen(nullptr, nullptr, "EC", "P-256"));
  if (!key) return openssl_fault("key");
  ODT_ASSIGN(const CertPtr cert, self_signed(key.get(), names, days));
  const BioPtr key_out(BIO_new(BIO_s_mem())), cert_out(BIO_new(BIO_s_mem()));
  if (PEM_write_bio_PrivateKey(key_out.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr) !=
          1 ||
      PEM_write_bio_X509(cert_out.get(), cert.get()) != 1)
    return openssl_fault("PEM");
  return KeyAndCert{text_of_bio(key_out.get()), text_of_bio(cert_out.get())};
}

Result<std::string> fingerprint_of_pem(const std::string& pem) {
  const BioPtr in(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  const CertPtr cert(PEM_read_bio_X509(in.get(), nullptr, nullptr, nullptr));
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  if (!cert || X509_digest(cert.get(), EVP_sha256(), digest, &size) != 1)
    return absl::InvalidArgumentError("not a certificate in PEM");
  std::string out;
  for (unsigned int i = 0; i < size; ++i) {
    char pair[4];
    std::snprintf(pair, sizeof pair, "%s%02X", i == 0 ? "" : ":", digest[i]);
    out += pair;
  }
  return out;
}

Result<std::string> fetch_certificate(const std::string& host, const std::string& port) {
  const std::unique_ptr<SSL_CTX, Freed<SSL_CTX_free>> context(SSL_CTX_new(TLS_client_method()));
  SSL_CTX_set_min_proto_version(context.get(), TLS1_3_VERSION);
  const BioPtr bio(BIO_new_ssl_connect(context.get()));
  const std::string where = host + ":" + port;
  BIO_set_conn_hostname(bio.get(), where.c_str());
  SSL* ssl = nullptr;
  BIO_get_ssl(bio.get(), &ssl);
  const unsigned char h2[] = {2, 'h', '2'};
  SSL_set_alpn_protos(ssl, h2, sizeof h2);
  if (!is_ip(host)) SSL_set_tlsext_host_name(ssl, host.c_str());
  if (BIO_do_connect(bio.get()) != 1 || BIO_do_handshake(bio.get()) != 1) {
    const Status why = openssl_fault("TLS");
    return with_reason(absl::UnavailableError("no odtd with TLS answers at " + clean(where) + " (" +
                                              std::string(why.message()) + ")"),
                       "UNREACHABLE", "is it odtd's gRPC port (7421), and set up for TLS?");
  }
  const CertPtr cert(SSL_get1_peer_certificate(ssl));
  const BioPtr out(BIO_new(BIO_s_mem()));
  if (!cert || PEM_write_bio_X509(out.get(), cert.get()) != 1) return openssl_fault("certificate");
  return text_of_bio(out.get());
}

}  // namespace odt::cli
