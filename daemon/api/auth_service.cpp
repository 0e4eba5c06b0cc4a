#include <algorithm>

#include "api/service_helpers.h"
#include "auth/book.h"
#include "odt/api/v1/auth.pb.h"

namespace odt::api {
namespace {

v1::Token token_proto(const model::Credential& c, std::int64_t now_us) {
  v1::Token out;
  out.set_id(c.id.str());
  out.set_name(c.name);
  out.set_actor(c.actor);
  out.set_role(static_cast<v1::Role>(c.role));
  out.set_create_time_us(c.meta.create_time_us);
  out.set_created_by(c.meta.created_by);
  out.set_expire_time_us(c.expire_time_us);
  out.set_revoke_time_us(c.revoke_time_us);
  out.set_revoked_by(c.revoked_by);
  out.set_last_used_time_us(c.last_used_time_us);
  out.set_last_used_peer(c.last_used_peer);
  out.set_state(static_cast<v1::TokenState>(auth::state_of(c, now_us)));
  return out;
}

v1::AuditEntry entry_proto(const model::AuditEntry& e) {
  v1::AuditEntry out;
  out.set_seq(e.seq);
  out.set_time_us(e.time_us);
  out.set_actor(e.actor);
  out.set_role(static_cast<v1::Role>(e.role));
  out.set_peer(e.peer);
  out.set_address(auth::address_of(e.peer));
  out.set_credential(e.credential);
  out.set_service(e.service);
  out.set_method(e.method);
  out.set_what(e.what);
  out.set_result(e.result);
  out.set_message(e.message);
  out.set_request_id(e.request_id);
  out.set_times(e.times);
  return out;
}

model::Role role_of_proto(v1::Role role) {
  return v1::Role_IsValid(role) ? static_cast<model::Role>(role) : model::Role::kNone;
}

void add_who_am_i(ApiService& service, Deps& deps) {
  service.unary<v1::WhoAmIRequest, v1::WhoAmIResponse>(
      "WhoAmI",
      [&deps](const Call& call, const v1::WhoAmIRequest&, Reply<v1::WhoAmIResponse> reply) {
        v1::WhoAmIResponse response;
        response.set_peer(call.caller.peer);
        response.set_auth_required(deps.gate.policy().required());
        if (call.caller.role != Role::kNone) {
          response.set_actor(call.caller.actor);
          response.set_role(static_cast<v1::Role>(call.caller.role));
          response.set_token_name(call.caller.token_name);
          response.set_expire_time_us(call.caller.expire_time_us);
          response.set_gateway_id(deps.control.identity().gateway_id.hex());
        }
        reply(std::move(response));
      });
}

void add_login(ApiService& service, Deps& deps) {
  service.unary<v1::LoginRequest, v1::LoginResponse>(
      "Login",
      [&deps](const Call& call, const v1::LoginRequest& request, Reply<v1::LoginResponse> reply) {
        deps.gate.book().login(request.code(), request.name(), call.caller.peer,
                               [&deps, reply](Result<auth::Book::Made> made) {
                                 if (!made.ok()) return reply(made.status());
                                 v1::LoginResponse response;
                                 response.set_secret(made->secret);
                                 *response.mutable_token() =
                                     token_proto(made->credential, deps.clock.now_us());
                                 reply(std::move(response));
                               });
      });
  service.unary<v1::CreateLoginCodeRequest, v1::CreateLoginCodeResponse>(
      "CreateLoginCode", [&deps](const Call& call, const v1::CreateLoginCodeRequest& request,
                                 Reply<v1::CreateLoginCodeResponse> reply) {
        auth::Book::Wanted wanted;
        wanted.role =
            request.role() == v1::ROLE_UNSPECIFIED ? Role::kAdmin : role_of_proto(request.role());
        wanted.actor = request.actor();
        wanted.days = request.token_days();
        deps.gate.book().add_code(call.ctx, wanted, [reply](Result<auth::Book::Made> made) {
          if (!made.ok()) return reply(made.status());
          v1::CreateLoginCodeResponse response;
          response.set_code(made->secret);
          response.set_expire_time_us(made->credential.expire_time_us);
          reply(std::move(response));
        });
      });
}

void add_tokens(ApiService& service, Deps& deps) {
  service.unary<v1::AddTokenRequest, v1::AddTokenResponse>(
      "AddToken", [&deps](const Call& call, const v1::AddTokenRequest& request,
                          Reply<v1::AddTokenResponse> reply) {
        auth::Book::Wanted wanted;
        wanted.name = request.name();
        wanted.actor = request.actor();
        wanted.role = role_of_proto(request.role());
        wanted.days = request.days();
        deps.gate.book().add(call.ctx, wanted, [&deps, reply](Result<auth::Book::Made> made) {
          if (!made.ok()) return reply(made.status());
          v1::AddTokenResponse response;
          response.set_secret(made->secret);
          *response.mutable_token() = token_proto(made->credential, deps.clock.now_us());
          reply(std::move(response));
        });
      });
  service.unary<v1::ListTokensRequest, v1::ListTokensResponse>(
      "ListTokens", [&deps](const Call&, const v1::ListTokensRequest& request,
                            Reply<v1::ListTokensResponse> reply) {
        ODT_FIELD(const auto params, params_of<v1::Token>(request));
        const std::int64_t now = deps.clock.now_us();
        std::vector<v1::Token> all;
        for (const auto& token : deps.gate.book().tokens()) all.push_back(token_proto(token, now));
        auto page = list_from_memory(params, std::move(all));
        v1::ListTokensResponse response;
        for (auto& item : page.items) *response.add_tokens() = std::move(item);
        response.set_next_page_token(page.next_token);
        reply(std::move(response));
      });
  service.unary<v1::RevokeTokenRequest, v1::RevokeTokenResponse>(
      "RevokeToken", [&deps](const Call& call, const v1::RevokeTokenRequest& request,
                             Reply<v1::RevokeTokenResponse> reply) {
        const auto id = Uuid::from_bytes(request.id());
        if (!id.ok()) return reply(bad_field("id", std::string(id.status().message())));
        deps.gate.book().revoke(call.ctx, *id, [&deps, reply](Result<model::Credential> revoked) {
          if (!revoked.ok()) return reply(revoked.status());
          v1::RevokeTokenResponse response;
          *response.mutable_token() = token_proto(*revoked, deps.clock.now_us());
          reply(std::move(response));
        });
      });
}

void add_audit(ApiService& service, Deps& deps) {
  service.unary<v1::ListAuditRequest, v1::ListAuditResponse>(
      "ListAudit", [&deps](const Call&, const v1::ListAuditRequest& request,
                           Reply<v1::ListAuditResponse> reply) {
        ODT_FIELD(auto params, params_of<v1::AuditEntry>(request));
        const std::int64_t from = request.from_time_us(), to = request.to_time_us();
        answer_from_store(
            deps.control, reply,
            [params, from, to](store::ControlStore& store) -> Result<v1::ListAuditResponse> {
              // Newest first: what is too new is passed over, at what is too old the list ends.
              const auto fetch =
                  [&](const store::ListQuery& q) -> Result<store::Page<model::AuditEntry>> {
                ODT_ASSIGN(auto page, store.audit(q));
                const auto old = std::find_if(page.items.begin(), page.items.end(),
                                              [&](const auto& e) { return e.time_us < from; });
                if (old != page.items.end()) {
                  page.items.erase(old, page.items.end());
                  page.next_token.clear();
                }
                if (to != 0)
                  std::erase_if(page.items, [&](const auto& e) { return e.time_us >= to; });
                return page;
              };
              ODT_ASSIGN(auto page, (list_from<v1::AuditEntry, model::AuditEntry>(params, fetch,
                                                                                  entry_proto)));
              v1::ListAuditResponse response;
              for (auto& item : page.items) *response.add_entries() = std::move(item);
              response.set_next_page_token(page.next_token);
              return response;
            });
      });
}

}  // namespace

ServicePtr make_auth_service(Deps& deps) {
  auto service = std::make_unique<ApiService>(
      deps.gate, *v1::WhoAmIRequest::descriptor()->file()->FindServiceByName("AuthService"));
  add_who_am_i(*service, deps);
  add_login(*service, deps);
  add_tokens(*service, deps);
  add_audit(*service, deps);
  return service;
}

}  // namespace odt::api
