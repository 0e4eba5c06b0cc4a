#pragma once

#include <prometheus/metric_family.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "api/services.h"

namespace odt::api {

// What one scrape of /metrics says. A metric's name ends in _total where it is a counter; its help
// is a sentence; units are whole words.
class MetricList {
 public:
  using Labels = std::vector<std::pair<std::string, std::string>>;
  // Of the metric that was begun last; one without labels has one value.
  void value(std::uint64_t value, const Labels& labels = {});
  void begin_gauge(const char* name, const char* help);
  void begin_counter(const char* name, const char* help);

  void gauge(const char* name, const char* help, std::uint64_t number) {
    begin_gauge(name, help);
    value(number);
  }
  void counter(const char* name, const char* help, std::uint64_t number) {
    begin_counter(name, help);
    value(number);
  }
  std::string text() const;

 private:
  std::vector<prometheus::MetricFamily> families_;
};

// Prometheus text of /metrics: calls per method, Watch streams, boards by status. Any thread.
std::string metrics_text(const Deps& deps, std::size_t http_connections);

}  // namespace odt::api
