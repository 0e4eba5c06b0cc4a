#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/strings/cord.h>

#include <string>
#include <string_view>

namespace odt {

// Canonical codes end to end: board enum = wire number = absl = gRPC = text in the UI.
using Status = absl::Status;
template <typename T>
using Result = absl::StatusOr<T>;

}  // namespace odt

// Returns the error of a Status or Result expression from the enclosing function.
#define ODT_TRY(expr)                                       \
  do {                                                      \
    if (auto odt_try_status = (expr); !odt_try_status.ok()) \
      return ::odt::to_status(odt_try_status);              \
  } while (false)
#define ODT_CONCAT_INNER(a, b) a##b
#define ODT_CONCAT(a, b) ODT_CONCAT_INNER(a, b)
// Assigns the value of a Result expression, or returns its error.
#define ODT_ASSIGN(lhs, expr) ODT_ASSIGN_IMPL(ODT_CONCAT(odt_result_, __LINE__), lhs, expr, return )
#define ODT_CO_ASSIGN(lhs, expr) \
  ODT_ASSIGN_IMPL(ODT_CONCAT(odt_result_, __LINE__), lhs, expr, co_return )
#define ODT_ASSIGN_IMPL(tmp, lhs, expr, ret) \
  auto tmp = (expr);                         \
  if (!tmp.ok()) ret ::odt::to_status(tmp);  \
  lhs = std::move(tmp).value()
#define ODT_CO_TRY(expr)                                    \
  do {                                                      \
    if (auto odt_try_status = (expr); !odt_try_status.ok()) \
      co_return ::odt::to_status(odt_try_status);           \
  } while (false)

namespace odt {
// Carries a stable UPPER_SNAKE code, a remedy and the request field at fault with a status; an OK
// status stays as it is.
inline Status with_reason(Status status, std::string_view code, std::string_view remedy = {},
                          std::string_view field = {}) {
  if (!code.empty()) status.SetPayload("odt/reason", absl::Cord(std::string(code)));
  if (!remedy.empty()) status.SetPayload("odt/remedy", absl::Cord(std::string(remedy)));
  if (!field.empty()) status.SetPayload("odt/field", absl::Cord(std::string(field)));
  return status;
}
// Empty where there is none.
inline std::string reason_of(const Status& status) {
  const auto payload = status.GetPayload("odt/reason");
  return payload ? std::string(*payload) : std::string();
}
inline std::string remedy_of(const Status& status) {
  const auto payload = status.GetPayload("odt/remedy");
  return payload ? std::string(*payload) : std::string();
}

inline Status to_status(const Status& status) { return status; }
template <typename T>
Status to_status(const Result<T>& result) {
  return result.status();
}
}  // namespace odt
