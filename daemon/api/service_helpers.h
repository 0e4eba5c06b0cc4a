#pragma once

#include <utility>

#include "api/lists.h"
#include "api/method.h"
#include "api/services.h"

// Shapes that most methods share. For the service files only.
namespace odt::api {

// Leaves the handler with an error of the request.
#define ODT_FIELD(lhs, expr)                                                                   \
  auto ODT_CONCAT(field_, __LINE__) = (expr);                                                  \
  if (!ODT_CONCAT(field_, __LINE__).ok()) return reply(ODT_CONCAT(field_, __LINE__).status()); \
  lhs = std::move(ODT_CONCAT(field_, __LINE__)).value()

// Answers with fn(store), on the store thread.
template <typename Resp, typename F>
void answer_from_store(store::ControlThread& control, Reply<Resp> reply, F fn) {
  control.post([reply = std::move(reply), fn = std::move(fn)](store::ControlStore& store) mutable {
    reply(fn(store));
  });
}

// A Done<Model> that answers with `field` of the response set to the resource.
template <typename Resp, typename Model, typename Proto>
Done<Model> answer_with(Reply<Resp> reply, Proto* (Resp::*field)()) {
  return [reply = std::move(reply), field](Result<Model> result) {
    if (!result.ok()) return reply(result.status());
    Resp response;
    *(response.*field)() = to_proto(*result);
    reply(std::move(response));
  };
}

// A Done<bool> that answers with an empty response.
template <typename Resp>
Done<bool> answer_done(Reply<Resp> reply) {
  return [reply = std::move(reply)](Result<bool> result) {
    if (!result.ok()) return reply(result.status());
    reply(Resp());
  };
}

// "no run 0192ab..", with the reason and where to look.
inline Status not_found(const Status& status, const std::string& kind, const std::string& hex) {
  if (!absl::IsNotFound(status)) return status;
  std::string upper;
  for (const char c : kind) upper += static_cast<char>(std::toupper(c));
  return with_reason(absl::NotFoundError("no " + kind + " " + hex), upper + "_UNKNOWN",
                     "list the " + kind + "s to see what there is");
}

// The batch of a change that the API makes itself.
inline store::Batch batch_of(const Call& call, store::Change change) {
  store::Batch batch;
  batch.actor = call.ctx.actor;
  batch.command_id = call.ctx.command_id;
  batch.changes.push_back(std::move(change));
  return batch;
}

}  // namespace odt::api
