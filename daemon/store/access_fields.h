#pragma once

#include "model/access.h"
#include "store/body_fields.h"

// body_fields.h of credentials and the audit log. Inside of body_codec.cpp.
namespace odt::store {

template <typename V>
void fields(V& f, model::Credential& v) {
  f("id", v.id);
  f("login_code", v.login_code);
  f("name", v.name);
  f("actor", v.actor);
  f("role", v.role);
  f("secret", v.secret);
  f("expire_time_us", v.expire_time_us);
  f("revoke_time_us", v.revoke_time_us);
  f("revoked_by", v.revoked_by);
  f("last_used_time_us", v.last_used_time_us);
  f("last_used_peer", v.last_used_peer);
  f("token_days", v.token_days);
  f("meta", v.meta);
}
template <typename V>
void fields(V& f, model::AuditEntry& v) {
  f("seq", v.seq);
  f("time_us", v.time_us);
  f("actor", v.actor);
  f("role", v.role);
  f("peer", v.peer);
  f("credential", v.credential);
  f("service", v.service);
  f("method", v.method);
  f("what", v.what);
  f("result", v.result);
  f("message", v.message);
  f("request_id", v.request_id);
  f("times", v.times);
}

}  // namespace odt::store
