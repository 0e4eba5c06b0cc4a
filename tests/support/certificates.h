#pragma once

#include <string>

namespace odt::test {

// A folder with a certification authority of the test's own; removed at the end.
class Certificates {
 public:
  Certificates();
  ~Certificates();
  Certificates(const Certificates&) = delete;
  Certificates& operator=(const Certificates&) = delete;

  // Valid from and to, in seconds from now.
  struct Dates {
    long from = -3600, to = 86400;
  };
  // Makes NAME.pem and NAME.key, signed by ca(); `host`: DNS name or address it is for.
  void issue(const std::string& name, const std::string& host = "localhost") {
    issue(name, host, Dates());
  }
  void issue(const std::string& name, const std::string& host, Dates dates);
  // Text into a file that only its owner may read.
  std::string write(const std::string& name, const std::string& text);

  std::string ca() const { return folder_ + "/ca.pem"; }
  std::string cert(const std::string& name) const { return folder_ + "/" + name + ".pem"; }
  std::string key(const std::string& name) const { return folder_ + "/" + name + ".key"; }

 private:
  std::string folder_;
  void* ca_key_ = nullptr;   // EVP_PKEY
  void* ca_cert_ = nullptr;  // X509
};

}  // namespace odt::test
