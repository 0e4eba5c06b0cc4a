#include <algorithm>

#include "api/service_helpers.h"
#include "odt/api/v1/lab.pb.h"

namespace odt::api {
namespace {

using training::FleetControl;

template <typename Response>
Done<std::vector<model::Board>> answer_board(Reply<Response> reply) {
  return [reply = std::move(reply)](Result<std::vector<model::Board>> boards) {
    if (!boards.ok()) return reply(boards.status());
    Response response;
    *response.mutable_board() = to_proto(boards->front());
    reply(std::move(response));
  };
}

void add_reservations(ApiService& service, Deps& deps) {
  service.unary<v1::ReserveBoardRequest, v1::ReserveBoardResponse>(
      "ReserveBoard", [&deps](const Call& call, const v1::ReserveBoardRequest& request,
                              Reply<v1::ReserveBoardResponse> reply) {
        ODT_FIELD(const BoardUid uid, uid_field(request.uid(), "uid"));
        FleetControl::Reserve ask;
        ask.duration_s = request.duration_s();
        ODT_FIELD(ask.note, text_field(request.note(), "note", lab::kMaxNote, false));
        ask.take_over = request.take_over();
        deps.fleet.lab(call.ctx, uid, std::move(ask), answer_board(std::move(reply)));
      });
  service.unary<v1::ExtendBoardRequest, v1::ExtendBoardResponse>(
      "ExtendBoard", [&deps](const Call& call, const v1::ExtendBoardRequest& request,
                             Reply<v1::ExtendBoardResponse> reply) {
        ODT_FIELD(const BoardUid uid, uid_field(request.uid(), "uid"));
        deps.fleet.lab(call.ctx, uid, FleetControl::Extend{request.duration_s()},
                       answer_board(std::move(reply)));
      });
  service.unary<v1::ReleaseBoardRequest, v1::ReleaseBoardResponse>(
      "ReleaseBoard", [&deps](const Call& call, const v1::ReleaseBoardRequest& request,
                              Reply<v1::ReleaseBoardResponse> reply) {
        ODT_FIELD(const BoardUid uid, uid_field(request.uid(), "uid"));
        deps.fleet.lab(call.ctx, uid, FleetControl::Release{request.take_over()},
                       answer_board(std::move(reply)));
      });
}

void add_maintenance(ApiService& service, Deps& deps) {
  service.unary<v1::SetMaintenanceRequest, v1::SetMaintenanceResponse>(
      "SetMaintenance", [&deps](const Call& call, const v1::SetMaintenanceRequest& request,
                                Reply<v1::SetMaintenanceResponse> reply) {
        ODT_FIELD(const BoardUid uid, uid_field(request.uid(), "uid"));
        FleetControl::Maintain ask;
        ask.on = request.on();
        ODT_FIELD(ask.note, text_field(request.note(), "note", lab::kMaxNote, false));
        deps.fleet.lab(call.ctx, uid, std::move(ask), answer_board(std::move(reply)));
      });
  service.unary<v1::ReplaceBoardRequest, v1::ReplaceBoardResponse>(
      "ReplaceBoard", [&deps](const Call& call, const v1::ReplaceBoardRequest& request,
                              Reply<v1::ReplaceBoardResponse> reply) {
        ODT_FIELD(const BoardUid uid, uid_field(request.old_uid(), "old_uid"));
        FleetControl::ReplaceBy ask;
        ODT_FIELD(ask.by, uid_field(request.new_uid(), "new_uid"));
        deps.fleet.lab(call.ctx, uid, std::move(ask),
                       [reply](Result<std::vector<model::Board>> boards) {
                         if (!boards.ok()) return reply(boards.status());
                         v1::ReplaceBoardResponse response;
                         *response.mutable_old_board() = to_proto(boards->front());
                         *response.mutable_new_board() = to_proto(boards->back());
                         reply(std::move(response));
                       });
      });
}

void add_power(ApiService& service, Deps& deps) {
  service.unary<v1::PowerCycleBoardRequest, v1::PowerCycleBoardResponse>(
      "PowerCycleBoard", [&deps](const Call& call, const v1::PowerCycleBoardRequest& request,
                                 Reply<v1::PowerCycleBoardResponse> reply) {
        ODT_FIELD(const BoardUid uid, uid_field(request.uid(), "uid"));
        deps.fleet.power_cycle(call.ctx, uid,
                               answer_with<v1::PowerCycleBoardResponse, model::PowerResult>(
                                   std::move(reply), &v1::PowerCycleBoardResponse::mutable_result));
      });
  service.unary<v1::ListPowerProfilesRequest, v1::ListPowerProfilesResponse>(
      "ListPowerProfiles", [&deps](const Call&, const v1::ListPowerProfilesRequest&,
                                   Reply<v1::ListPowerProfilesResponse> reply) {
        v1::ListPowerProfilesResponse response;
        const auto view = deps.fleet.view();
        for (const auto& profile : deps.fleet.power_profiles()) {
          auto& out = *response.add_profiles();
          out.set_name(clean_text(profile.name));
          for (const auto& argument : profile.argv) out.add_argv(clean_text(argument));
          out.set_timeout_s(profile.timeout_s);
          out.set_automatic(profile.automatic);
          out.set_away_s(profile.away_s);
          for (const auto& board : view->boards)
            if (board.power.profile == profile.name) out.add_board_uids(board.uid.str());
        }
        reply(std::move(response));
      });
}

void add_history(ApiService& service, Deps& deps) {
  service.unary<v1::ListLabEventsRequest, v1::ListLabEventsResponse>(
      "ListLabEvents", [&deps](const Call&, const v1::ListLabEventsRequest& request,
                               Reply<v1::ListLabEventsResponse> reply) {
        ODT_FIELD(const BoardUid uid, uid_field(request.board_uid(), "board_uid"));
        ODT_FIELD(auto params, list_params(request.page_size(), request.page_token(), "",
                                           *v1::LabEvent::descriptor()));
        answer_from_store(
            deps.control, reply,
            [uid, params](store::ControlStore& store) -> Result<v1::ListLabEventsResponse> {
              const auto known = store.board(uid);
              if (!known.ok()) return not_found(known.status(), "board", uid.hex());
              ODT_ASSIGN(const auto events, store.lab_events(uid));
              std::vector<v1::LabEvent> all;
              for (auto it = events.rbegin(); it != events.rend(); ++it)
                all.push_back(to_proto(*it));
              auto page = list_from_memory(params, std::move(all));
              v1::ListLabEventsResponse response;
              for (auto& item : page.items) *response.add_events() = std::move(item);
              response.set_next_page_token(page.next_token);
              return response;
            });
      });
}

}  // namespace

ServicePtr make_lab_service(Deps& deps) {
  auto service = std::make_unique<ApiService>(
      deps.gate, *v1::ReserveBoardRequest::descriptor()->file()->FindServiceByName("LabService"));
  add_reservations(*service, deps);
  add_maintenance(*service, deps);
  add_power(*service, deps);
  add_history(*service, deps);
  return service;
}

}  // namespace odt::api
