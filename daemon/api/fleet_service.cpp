#include <algorithm>
#include <map>

#include "api/service_helpers.h"

namespace odt::api {
namespace {

constexpr std::size_t kMaxLabels = 64;

// Stored boards, with what the fleet knows of them now.
using LiveBoards = std::map<BoardUid, model::Board>;
LiveBoards live_boards(const training::FleetControl& fleet) {
  LiveBoards boards;
  const auto view = fleet.view();
  for (const auto& board : view->boards) boards[board.uid] = board;
  return boards;
}
v1::Board as_now(const LiveBoards& live, const model::Board& stored) {
  const auto it = live.find(stored.uid);
  if (it == live.end()) {  // stored a moment ago, or not yet seen since the start
    model::Board board = stored;
    board.status = model::BoardStatus::kOffline;
    return to_proto(board);
  }
  model::Board board = it->second;
  // The view may be older than the last change.
  board.name = stored.name;
  board.place = stored.place;
  board.labels = stored.labels;
  board.maintenance = stored.maintenance;
  board.target_snapshot = stored.target_snapshot;
  // One that is over is in the store for a moment more.
  if (stored.meta.etag > board.meta.etag) board.reservation = stored.reservation;
  board.meta = stored.meta;
  return to_proto(board);
}

Result<training::FleetControl::BoardUpdate> read_update(const v1::UpdateBoardRequest& request) {
  training::FleetControl::BoardUpdate update;
  ODT_ASSIGN(update.uid, uid_field(request.uid(), "uid"));
  update.etag = static_cast<std::int64_t>(request.etag());
  if (request.has_name()) {
    ODT_ASSIGN(update.name, text_field(request.name(), "name", 64, true));
  }
  if (request.has_place()) {
    ODT_ASSIGN(update.place, text_field(request.place(), "place", 64, false));
  }
  if (request.set_labels_size() > static_cast<int>(kMaxLabels))
    return bad_field("set_labels", std::to_string(request.set_labels_size()) + "; limit 64");
  for (const auto& [key, value] : request.set_labels()) {
    ODT_ASSIGN(const auto name, text_field(key, "set_labels", 64, true));
    if (name.find_first_of("=,! ") != std::string::npos)
      return bad_field("set_labels", "'" + name + "': a label's name has no '=', ',', '!', blank");
    ODT_ASSIGN(update.set_labels[name], text_field(value, "set_labels", 128, false));
  }
  update.remove_labels.assign(request.remove_labels().begin(), request.remove_labels().end());
  return update;
}

void add_reads(ApiService& service, Deps& deps) {
  service.unary<v1::ListBoardsRequest, v1::ListBoardsResponse>(
      "ListBoards", [&deps](const Call&, const v1::ListBoardsRequest& request,
                            Reply<v1::ListBoardsResponse> reply) {
        ODT_FIELD(auto params, params_of<v1::Board>(request));
        answer_from_store(
            deps.control, reply,
            [&deps, params](store::ControlStore& store) -> Result<v1::ListBoardsResponse> {
              const auto live = live_boards(deps.fleet);
              ODT_ASSIGN(auto page,
                         (list_from<v1::Board, model::Board>(
                             params, [&](const auto& query) { return store.boards(query); },
                             [&](const auto& board) { return as_now(live, board); })));
              v1::ListBoardsResponse response;
              for (auto& board : page.items) *response.add_boards() = std::move(board);
              response.set_next_page_token(page.next_token);
              return response;
            });
      });
  service.unary<v1::GetBoardRequest, v1::GetBoardResponse>(
      "GetBoard",
      [&deps](const Call&, const v1::GetBoardRequest& request, Reply<v1::GetBoardResponse> reply) {
        ODT_FIELD(const BoardUid uid, uid_field(request.uid(), "uid"));
        answer_from_store(deps.control, reply,
                          [&deps, uid](store::ControlStore& store) -> Result<v1::GetBoardResponse> {
                            const auto board = store.board(uid);
                            if (!board.ok()) return not_found(board.status(), "board", uid.hex());
                            v1::GetBoardResponse response;
                            *response.mutable_board() = as_now(live_boards(deps.fleet), *board);
                            return response;
                          });
      });
  service.unary<v1::ListPortsRequest, v1::ListPortsResponse>(
      "ListPorts", [&deps](const Call&, const v1::ListPortsRequest& request,
                           Reply<v1::ListPortsResponse> reply) {
        ODT_FIELD(auto params, params_of<v1::Port>(request));
        std::vector<v1::Port> ports;
        const auto view = deps.fleet.view();
        for (const auto& port : view->ports) ports.push_back(to_proto(port));
        std::sort(ports.begin(), ports.end(),
                  [](const auto& a, const auto& b) { return a.path() < b.path(); });
        auto page = list_from_memory(params, std::move(ports));
        v1::ListPortsResponse response;
        for (auto& port : page.items) *response.add_ports() = std::move(port);
        response.set_next_page_token(page.next_token);
        reply(std::move(response));
      });
}

void add_board_changes(ApiService& service, Deps& deps) {
  service.unary<v1::UpdateBoardRequest, v1::UpdateBoardResponse>(
      "UpdateBoard", [&deps](const Call& call, const v1::UpdateBoardRequest& request,
                             Reply<v1::UpdateBoardResponse> reply) {
        ODT_FIELD(auto update, read_update(request));
        deps.fleet.update_board(call.ctx, std::move(update),
                                answer_with<v1::UpdateBoardResponse, model::Board>(
                                    reply, &v1::UpdateBoardResponse::mutable_board));
      });
  service.unary<v1::DeleteBoardRequest, v1::DeleteBoardResponse>(
      "DeleteBoard", [&deps](const Call& call, const v1::DeleteBoardRequest& request,
                             Reply<v1::DeleteBoardResponse> reply) {
        ODT_FIELD(const BoardUid uid, uid_field(request.uid(), "uid"));
        deps.fleet.delete_board(call.ctx, uid, answer_done(reply));
      });
  service.unary<v1::IdentifyBoardRequest, v1::IdentifyBoardResponse>(
      "IdentifyBoard", [&deps](const Call& call, const v1::IdentifyBoardRequest& request,
                               Reply<v1::IdentifyBoardResponse> reply) {
        ODT_FIELD(const BoardUid uid, uid_field(request.uid(), "uid"));
        if (request.seconds() > 600)
          return reply(bad_field("seconds", std::to_string(request.seconds()) + "; limit 600"));
        const std::uint32_t seconds = request.seconds() == 0 ? 10 : request.seconds();
        deps.fleet.identify_board(call.ctx, uid, seconds, answer_done(reply));
      });
  service.unary<v1::ResetBoardRequest, v1::ResetBoardResponse>(
      "ResetBoard", [&deps](const Call& call, const v1::ResetBoardRequest& request,
                            Reply<v1::ResetBoardResponse> reply) {
        ODT_FIELD(const BoardUid uid, uid_field(request.uid(), "uid"));
        deps.fleet.reset_board(call.ctx, uid, answer_done(reply));
      });
}

void add_nvm(ApiService& service, Deps& deps) {
  using Action = training::FleetControl::NvmAction;
  service.unary<v1::GetBoardNvmRequest, v1::GetBoardNvmResponse>(
      "GetBoardNvm", [&deps](const Call& call, const v1::GetBoardNvmRequest& request,
                             Reply<v1::GetBoardNvmResponse> reply) {
        ODT_FIELD(const BoardUid uid, uid_field(request.uid(), "uid"));
        deps.fleet.board_nvm(call.ctx, uid, Action::kStatus,
                             answer_with<v1::GetBoardNvmResponse, model::NvmInfo>(
                                 reply, &v1::GetBoardNvmResponse::mutable_nvm));
      });
  service.unary<v1::CommitBoardRequest, v1::CommitBoardResponse>(
      "CommitBoard", [&deps](const Call& call, const v1::CommitBoardRequest& request,
                             Reply<v1::CommitBoardResponse> reply) {
        ODT_FIELD(const BoardUid uid, uid_field(request.uid(), "uid"));
        deps.fleet.board_nvm(call.ctx, uid, Action::kCommit,
                             answer_with<v1::CommitBoardResponse, model::NvmInfo>(
                                 reply, &v1::CommitBoardResponse::mutable_nvm));
      });
  service.unary<v1::EraseBoardNvmRequest, v1::EraseBoardNvmResponse>(
      "EraseBoardNvm", [&deps](const Call& call, const v1::EraseBoardNvmRequest& request,
                               Reply<v1::EraseBoardNvmResponse> reply) {
        ODT_FIELD(const BoardUid uid, uid_field(request.uid(), "uid"));
        deps.fleet.board_nvm(call.ctx, uid, Action::kErase,
                             answer_with<v1::EraseBoardNvmResponse, model::NvmInfo>(
                                 reply, &v1::EraseBoardNvmResponse::mutable_nvm));
      });
}

void add_port_changes(ApiService& service, Deps& deps) {
  service.unary<v1::AdoptPortRequest, v1::AdoptPortResponse>(
      "AdoptPort", [&deps](const Call& call, const v1::AdoptPortRequest& request,
                           Reply<v1::AdoptPortResponse> reply) {
        ODT_FIELD(const auto path, text_field(request.path(), "path", 256, true));
        BoardUid expected;
        if (!request.expect_uid().empty()) {
          ODT_FIELD(expected, uid_field(request.expect_uid(), "expect_uid"));
        }
        deps.fleet.adopt_port(call.ctx, path, request.baud(), expected,
                              answer_with<v1::AdoptPortResponse, model::Port>(
                                  reply, &v1::AdoptPortResponse::mutable_port));
      });
  service.unary<v1::ReleasePortRequest, v1::ReleasePortResponse>(
      "ReleasePort", [&deps](const Call& call, const v1::ReleasePortRequest& request,
                             Reply<v1::ReleasePortResponse> reply) {
        ODT_FIELD(const auto path, text_field(request.path(), "path", 256, true));
        deps.fleet.release_port(call.ctx, path,
                                answer_with<v1::ReleasePortResponse, model::Port>(
                                    reply, &v1::ReleasePortResponse::mutable_port));
      });
}

}  // namespace

ServicePtr make_fleet_service(Deps& deps) {
  auto service = std::make_unique<ApiService>(
      deps.gate, *v1::ListBoardsRequest::descriptor()->file()->FindServiceByName("FleetService"));
  add_reads(*service, deps);
  add_board_changes(*service, deps);
  add_nvm(*service, deps);
  add_port_changes(*service, deps);
  return service;
}

}  // namespace odt::api
