#include "link/tls_context.h"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/x509.h>
#include <sys/stat.h>

#include <cstring>
#include <fstream>

#include "base/ids.h"

namespace odt::link {
namespace {

constexpr std::size_t kMinKey = 16, kMaxKey = 64;
constexpr unsigned char kAes128GcmSha256[] = {0x13, 0x01};

// Where a SSL_CTX keeps its TlsContext.
int context_index() {
  static const int index = SSL_CTX_get_ex_new_index(0, nullptr, nullptr, nullptr, nullptr);
  return index;
}

const TlsContext& context_of(SSL* ssl) {
  return *static_cast<const TlsContext*>(
      SSL_CTX_get_ex_data(SSL_get_SSL_CTX(ssl), context_index()));
}

std::string openssl_error() {
  const unsigned long code = ERR_get_error();
  ERR_clear_error();
  const char* reason = ERR_reason_error_string(code);
  return reason != nullptr ? reason : "unknown error";
}

SSL_SESSION* session_of(SSL* ssl, const TlsContext::Key& key) {
  const SSL_CIPHER* cipher = SSL_CIPHER_find(ssl, kAes128GcmSha256);
  SSL_SESSION* session = SSL_SESSION_new();
  if (cipher == nullptr || session == nullptr ||
      SSL_SESSION_set1_master_key(session,
                                  reinterpret_cast<const unsigned char*>(key.secret.data()),
                                  key.secret.size()) != 1 ||
      SSL_SESSION_set_cipher(session, cipher) != 1 ||
      SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION) != 1) {
    SSL_SESSION_free(session);
    return nullptr;
  }
  return session;
}

// An unknown identity is no error here: the handshake goes on by certificates, where there are any.
int find_psk(SSL* ssl, const unsigned char* identity, std::size_t size, SSL_SESSION** session) {
  *session = nullptr;
  for (const TlsContext::Key& key : context_of(ssl).keys) {
    if (key.identity.size() == size && std::memcmp(key.identity.data(), identity, size) == 0) {
      *session = session_of(ssl, key);
      return *session != nullptr ? 1 : 0;
    }
  }
  return 1;
}

int use_psk(SSL* ssl, const EVP_MD* digest, const unsigned char** identity, std::size_t* size,
            SSL_SESSION** session) {
  const TlsContext::Key& key = context_of(ssl).keys.front();
  *identity = nullptr;
  *size = 0;
  *session = nullptr;
  if (digest != nullptr && EVP_MD_get_type(digest) != NID_sha256) return 1;
  *session = session_of(ssl, key);
  if (*session == nullptr) return 0;
  *identity = reinterpret_cast<const unsigned char*>(key.identity.data());
  *size = key.identity.size();
  return 1;
}

Status file_error(const char* key, const std::string& file, int error) {
  const std::string what = fmt::format("boards.{}: {}: {}", key, file, std::strerror(error));
  if (error == EACCES) {
    return absl::PermissionDeniedError(what + "; let the user of odtd read it");
  }
  return absl::NotFoundError(what);
}

// secret: nobody but its owner and group may read it.
Status check_file(const char* key, const std::string& file, bool secret) {
  struct stat info {};
  if (::stat(file.c_str(), &info) != 0) return file_error(key, file, errno);
  if (!S_ISREG(info.st_mode)) {
    return absl::InvalidArgumentError(fmt::format("boards.{}: {} is not a file", key, file));
  }
  if (secret && (info.st_mode & S_IRWXO) != 0) {
    return absl::PermissionDeniedError(fmt::format(
        "boards.{}: {} is a secret that every user may read; chmod 600 {}", key, file, file));
  }
  std::ifstream in(file);
  if (!in) return file_error(key, file, errno);
  return absl::OkStatus();
}

Status check_dates(const std::string& file, const X509* cert) {
  const auto text = [](const ASN1_TIME* time) {
    tm when{};
    ASN1_TIME_to_tm(time, &when);
    return fmt::format("{}-{:02}-{:02} {:02}:{:02} UTC", when.tm_year + 1900, when.tm_mon + 1,
                       when.tm_mday, when.tm_hour, when.tm_min);
  };
  if (X509_cmp_current_time(X509_get0_notAfter(cert)) < 0) {
    return absl::FailedPreconditionError(
        fmt::format("boards.tls_cert: {} has expired at {}; issue a new certificate", file,
                    text(X509_get0_notAfter(cert))));
  }
  if (X509_cmp_current_time(X509_get0_notBefore(cert)) > 0) {
    return absl::FailedPreconditionError(
        fmt::format("boards.tls_cert: {} is not valid before {}; is this machine's clock right?",
                    file, text(X509_get0_notBefore(cert))));
  }
  return absl::OkStatus();
}

Status load_cert(SSL_CTX* ctx, const TlsFiles& files) {
  ODT_TRY(check_file("tls_cert", files.cert, false));
  ODT_TRY(check_file("tls_key", files.key, true));
  if (SSL_CTX_use_certificate_chain_file(ctx, files.cert.c_str()) != 1) {
    return absl::InvalidArgumentError(fmt::format(
        "boards.tls_cert: {} is not a certificate in PEM form: {}", files.cert, openssl_error()));
  }
  ODT_TRY(check_dates(files.cert, SSL_CTX_get0_certificate(ctx)));
  // Without this OpenSSL would ask on the terminal.
  SSL_CTX_set_default_passwd_cb(ctx, [](char*, int, int, void*) { return 0; });
  if (SSL_CTX_use_PrivateKey_file(ctx, files.key.c_str(), SSL_FILETYPE_PEM) != 1) {
    const unsigned long code = ERR_peek_last_error();
    if (ERR_GET_REASON(code) == X509_R_KEY_VALUES_MISMATCH) {
      ERR_clear_error();
      return absl::FailedPreconditionError(
          fmt::format("boards.tls_key: {} is not the key of {}", files.key, files.cert));
    }
    return absl::InvalidArgumentError(
        fmt::format("boards.tls_key: {} is not a private key in PEM form without pass phrase: {}",
                    files.key, openssl_error()));
  }
  if (SSL_CTX_check_private_key(ctx) != 1) {
    ERR_clear_error();
    return absl::FailedPreconditionError(
        fmt::format("boards.tls_key: {} is not the key of {}", files.key, files.cert));
  }
  return absl::OkStatus();
}

Status load_ca(SSL_CTX* ctx, const std::string& file) {
  ODT_TRY(check_file("tls_client_ca", file, false));
  if (SSL_CTX_load_verify_file(ctx, file.c_str()) != 1) {
    return absl::InvalidArgumentError(fmt::format(
        "boards.tls_client_ca: {} has no certificate in PEM form: {}", file, openssl_error()));
  }
  if (STACK_OF(X509_NAME)* names = SSL_load_client_CA_file(file.c_str()); names != nullptr) {
    SSL_CTX_set_client_CA_list(ctx, names);
  }
  ERR_clear_error();
  return absl::OkStatus();
}

Result<std::vector<TlsContext::Key>> read_keys(const std::string& file) {
  ODT_TRY(check_file("tls_psk_file", file, true));
  std::ifstream in(file);
  std::vector<TlsContext::Key> keys;
  std::string line;
  for (int number = 1; std::getline(in, line); ++number) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line.empty() || line.front() == '#') continue;
    const std::size_t colon = line.rfind(':');
    const bool split = colon != std::string::npos && colon > 0;
    const auto raw = split ? from_hex(line.substr(colon + 1)) : Result<Bytes>(Bytes{});
    if (!split || !raw.ok() || raw->size() < kMinKey || raw->size() > kMaxKey ||
        colon > PSK_MAX_IDENTITY_LEN) {
      return absl::InvalidArgumentError(fmt::format(
          "boards.tls_psk_file: {}:{}: not IDENTITY:HEX with a key of {} to {} bytes; make one "
          "with `echo gateway-1:$(openssl rand -hex 32)`",
          file, number, kMinKey, kMaxKey));
    }
    keys.push_back({line.substr(0, colon),
                    std::string(reinterpret_cast<const char*>(raw->data()), raw->size())});
  }
  if (keys.empty()) {
    return absl::InvalidArgumentError("boards.tls_psk_file: " + file + " has no key");
  }
  return keys;
}

// Neither end may be left unproven.
Status check_choice(const TlsFiles& files, TlsSide side) {
  if (files.cert.empty() != files.key.empty()) {
    return absl::FailedPreconditionError(
        "boards.tls_cert and boards.tls_key go together; only one is set");
  }
  if (side == TlsSide::kListen && !files.cert.empty() && files.peer_ca.empty()) {
    return absl::FailedPreconditionError(
        "boards.tls_cert without boards.tls_client_ca: anybody could be a board; set the CA that "
        "signs the boards' certificates, or use boards.tls_psk_file alone");
  }
  if (files.psk.empty() && (files.peer_ca.empty() || files.cert.empty())) {
    return absl::FailedPreconditionError(
        "boards on TLS need boards.tls_cert, tls_key and tls_client_ca, or boards.tls_psk_file");
  }
  return absl::OkStatus();
}

}  // namespace

Result<std::shared_ptr<TlsContext>> make_tls_context(const TlsFiles& files, TlsSide side) {
  ODT_TRY(check_choice(files, side));
  auto context = std::make_shared<TlsContext>(side);
  SSL_CTX* ctx = context->ssl.native_handle();
  SSL_CTX_set_ex_data(ctx, context_index(), context.get());
  SSL_CTX_set_min_proto_version(ctx, TLS1_3_VERSION);
  SSL_CTX_set_num_tickets(ctx, 0);  // every connection proves itself anew
  SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
  // Also where only a shared key counts: then no certificate passes, for there is no CA.
  SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  if (!files.peer_ca.empty()) {
    ODT_TRY(load_ca(ctx, files.peer_ca));
    context->peer_ca = files.peer_ca;
    context->description = "certificates signed by " + files.peer_ca;
  }
  if (!files.cert.empty()) ODT_TRY(load_cert(ctx, files));
  if (!files.psk.empty()) {
    ODT_ASSIGN(context->keys, read_keys(files.psk));
    context->description +=
        (context->description.empty() ? "shared keys of " : " or shared keys of ") + files.psk;
    // The key goes with SHA-256; a suite of another hash, once chosen, would leave it unused.
    SSL_CTX_set_ciphersuites(ctx, "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256");
    if (side == TlsSide::kListen) {
      // A listener that verifies peers needs one for sessions of shared keys.
      SSL_CTX_set_session_id_context(ctx, reinterpret_cast<const unsigned char*>("odt"), 3);
      SSL_CTX_set_psk_find_session_callback(ctx, find_psk);
    } else {
      SSL_CTX_set_psk_use_session_callback(ctx, use_psk);
    }
  }
  return context;
}

const std::string& describe(const TlsContext& context) { return context.description; }

}  // namespace odt::link
