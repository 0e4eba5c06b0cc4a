#include "support/certificates.h"

#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

namespace odt::test {
namespace {

void add(X509* cert, X509* issuer, int nid, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, cert, nullptr, nullptr, 0);
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str());
  if (extension == nullptr) {
    ADD_FAILURE() << "extension " << value;
    return;
  }
  X509_add_ext(cert, extension, -1);
  X509_EXTENSION_free(extension);
}

X509* make_cert(const std::string& name, EVP_PKEY* key, X509* issuer, Certificates::Dates dates) {
  static long serial = 1;
  X509* cert = X509_new();
  X509_set_version(cert, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(cert), serial++);
  X509_gmtime_adj(X509_getm_notBefore(cert), dates.from);
  X509_gmtime_adj(X509_getm_notAfter(cert), dates.to);
  X509_set_pubkey(cert, key);
  X509_NAME_add_entry_by_txt(X509_get_subject_name(cert), "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
  X509_set_issuer_name(cert, X509_get_subject_name(issuer != nullptr ? issuer : cert));
  return cert;
}

template <typename Write>
void save(const std::string& path, Write write) {
  std::FILE* out = std::fopen(path.c_str(), "w");
  ASSERT_NE(out, nullptr) << path;
  EXPECT_EQ(write(out), 1) << path;
  std::fclose(out);
  ::chmod(path.c_str(), 0600);
}

}  // namespace

Certificates::Certificates() {
  folder_ = (std::filesystem::temp_directory_path() / "odt_tls_XXXXXX").string();
  if (::mkdtemp(folder_.data()) == nullptr) ADD_FAILURE() << "no folder";
  EVP_PKEY* key = EVP_EC_gen("P-256");
  X509* cert = make_cert("test CA", key, nullptr, {});
  add(cert, cert, NID_basic_constraints, "critical,CA:TRUE");
  X509_sign(cert, key, EVP_sha256());
  save(ca(), [&](std::FILE* f) { return PEM_write_X509(f, cert); });
  ca_key_ = key;
  ca_cert_ = cert;
}

Certificates::~Certificates() {
  EVP_PKEY_free(static_cast<EVP_PKEY*>(ca_key_));
  X509_free(static_cast<X509*>(ca_cert_));
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

void Certificates::issue(const std::string& name, const std::string& host, Dates dates) {
  EVP_PKEY* key = EVP_EC_gen("P-256");
  X509* authority = static_cast<X509*>(ca_cert_);
  X509* cert = make_cert(name, key, authority, dates);
  const bool address = host.find_first_not_of("0123456789.") == std::string::npos;
  add(cert, authority, NID_subject_alt_name, (address ? "IP:" : "DNS:") + host);
  X509_sign(cert, static_cast<EVP_PKEY*>(ca_key_), EVP_sha256());
  save(this->cert(name), [&](std::FILE* f) { return PEM_write_X509(f, cert); });
  save(this->key(name), [&](std::FILE* f) {
    return PEM_write_PrivateKey(f, key, nullptr, nullptr, 0, nullptr, nullptr);
  });
  X509_free(cert);
  EVP_PKEY_free(key);
}

std::string Certificates::write(const std::string& name, const std::string& text) {
  const std::string path = folder_ + "/" + name;
  std::ofstream(path) << text;
  ::chmod(path.c_str(), 0600);
  return path;
}

}  // namespace odt::test
