#include "api/epoch_range.h"
#include "api/service_helpers.h"

namespace odt::api {
namespace {

constexpr std::uint32_t kDefaultFrames = 2000, kMaxFrames = 10'000;

// The run as it would be, and how long it would take.
void dry_run(Deps& deps, const Call& call, model::RunSpec spec,
             Reply<v1::CreateRunResponse> reply) {
  deps.fleet.create_run(call.ctx, spec, true, [&deps, call, spec, reply](Result<model::Run> run) {
    if (!run.ok()) return reply(run.status());
    deps.fleet.estimate_run(call.ctx, spec,
                            [reply, run = *run](Result<model::RunEstimate> estimate) {
                              if (!estimate.ok()) return reply(estimate.status());
                              v1::CreateRunResponse out;
                              *out.mutable_run() = to_proto(run);
                              *out.mutable_estimate() = to_proto(*estimate);
                              reply(std::move(out));
                            });
  });
}

void add_create(ApiService& service, Deps& deps) {
  service.unary<v1::CreateRunRequest, v1::CreateRunResponse>(
      "CreateRun", [&deps](const Call& call, const v1::CreateRunRequest& request,
                           Reply<v1::CreateRunResponse> reply) {
        if (!request.has_spec()) return reply(bad_field("spec", "absent"));
        ODT_FIELD(auto spec, from_proto(request.spec()));
        if (request.dry_run()) return dry_run(deps, call, std::move(spec), std::move(reply));
        deps.fleet.create_run(call.ctx, std::move(spec), false,
                              answer_with<v1::CreateRunResponse, model::Run>(
                                  reply, &v1::CreateRunResponse::mutable_run));
      });
}

void add_reads(ApiService& service, Deps& deps) {
  service.unary<v1::ListRunsRequest, v1::ListRunsResponse>(
      "ListRuns",
      [&deps](const Call&, const v1::ListRunsRequest& request, Reply<v1::ListRunsResponse> reply) {
        ODT_FIELD(auto params, params_of<v1::Run>(request));
        answer_from_store(deps.control, reply,
                          [params](store::ControlStore& store) -> Result<v1::ListRunsResponse> {
                            ODT_ASSIGN(
                                auto page,
                                (list_from<v1::Run, model::Run>(
                                    params, [&](const auto& query) { return store.runs(query); },
                                    [](const auto& run) { return to_proto(run); })));
                            v1::ListRunsResponse response;
                            for (auto& run : page.items) *response.add_runs() = std::move(run);
                            response.set_next_page_token(page.next_token);
                            return response;
                          });
      });
  service.unary<v1::GetRunRequest, v1::GetRunResponse>(
      "GetRun",
      [&deps](const Call&, const v1::GetRunRequest& request, Reply<v1::GetRunResponse> reply) {
        ODT_FIELD(const Uuid id, uuid_field(request.id(), "id"));
        answer_from_store(deps.control, reply,
                          [id](store::ControlStore& store) -> Result<v1::GetRunResponse> {
                            const auto run = store.run(id);
                            if (!run.ok()) return not_found(run.status(), "run", id.hex());
                            v1::GetRunResponse response;
                            *response.mutable_run() = to_proto(*run);
                            return response;
                          });
      });
}

// Pause, resume and cancel differ in what is desired.
template <typename Req, typename Resp>
void add_desired(ApiService& service, Deps& deps, const char* name, model::Desired desired) {
  service.unary<Req, Resp>(
      name, [&deps, desired](const Call& call, const Req& request, Reply<Resp> reply) {
        ODT_FIELD(const Uuid id, uuid_field(request.id(), "id"));
        deps.fleet.set_desired(call.ctx, id, desired,
                               answer_with<Resp, model::Run>(reply, &Resp::mutable_run));
      });
}

Result<std::optional<std::int32_t>> priority_field(bool given, std::int32_t value) {
  if (!given) return std::optional<std::int32_t>();
  if (value < -100 || value > 100)
    return bad_field("priority", std::to_string(value), "allowed: -100 to 100");
  return std::optional<std::int32_t>(value);
}

// Runs and campaigns stop at the same time; the answers of both come on the links thread.
struct StopAnswer {
  explicit StopAnswer(Reply<v1::StopAllResponse> to) : reply(std::move(to)) {}
  Reply<v1::StopAllResponse> reply;
  v1::StopAllResponse out;
  Status status;
  int open = 2;
  void part() {
    if (--open != 0) return;
    if (status.ok())
      reply(std::move(out));
    else
      reply(status);
  }
};

void add_report(const training::FleetControl::StopReport& report, v1::StopAllResponse& out) {
  for (const auto& one : report.runs) {
    auto* item = out.add_runs();
    item->set_run_id(one.run.str());
    item->set_board_uid(one.board.str());
    item->set_told(one.told);
    if (!one.reason.code.empty()) *item->mutable_reason() = to_proto(one.reason);
  }
  out.set_evaluations(report.evaluations);
  out.set_boards_told(report.boards_told);
  out.set_boards_silent(report.boards_silent);
}

void add_queue(ApiService& service, Deps& deps) {
  service.unary<v1::RetryRunRequest, v1::RetryRunResponse>(
      "RetryRun", [&deps](const Call& call, const v1::RetryRunRequest& request,
                          Reply<v1::RetryRunResponse> reply) {
        ODT_FIELD(const Uuid id, uuid_field(request.id(), "id"));
        ODT_FIELD(const auto priority, priority_field(request.has_priority(), request.priority()));
        deps.fleet.retry_run(call.ctx, id, priority,
                             answer_with<v1::RetryRunResponse, model::Run>(
                                 reply, &v1::RetryRunResponse::mutable_run));
      });
  service.unary<v1::ReorderRunRequest, v1::ReorderRunResponse>(
      "ReorderRun", [&deps](const Call& call, const v1::ReorderRunRequest& request,
                            Reply<v1::ReorderRunResponse> reply) {
        ODT_FIELD(const Uuid id, uuid_field(request.id(), "id"));
        ODT_FIELD(const auto priority, priority_field(request.has_priority(), request.priority()));
        Uuid before;
        if (!request.before().empty()) {
          ODT_FIELD(before, uuid_field(request.before(), "before"));
        }
        if (!priority && before.is_zero())
          return reply(bad_field("priority", "absent, and before too", "give one of them"));
        deps.fleet.reorder_run(call.ctx, id, priority, before,
                               answer_with<v1::ReorderRunResponse, model::Run>(
                                   reply, &v1::ReorderRunResponse::mutable_run));
      });
  service.unary<v1::ListQueuesRequest, v1::ListQueuesResponse>(
      "ListQueues", [&deps](const Call&, const v1::ListQueuesRequest& request,
                            Reply<v1::ListQueuesResponse> reply) {
        BoardUid uid;
        if (!request.board_uid().empty()) {
          ODT_FIELD(uid, uid_field(request.board_uid(), "board_uid"));
        }
        deps.fleet.list_queues(
            uid, [reply](Result<std::vector<training::FleetControl::BoardQueue>> queues) {
              if (!queues.ok()) return reply(queues.status());
              v1::ListQueuesResponse out;
              for (const auto& queue : *queues) {
                auto* item = out.add_queues();
                item->set_board_uid(queue.uid.str());
                if (!queue.lease.what.empty()) *item->mutable_lease() = to_proto(queue.lease);
                for (const auto& run : queue.runs) *item->add_runs() = to_proto(run);
              }
              reply(std::move(out));
            });
      });
  service.unary<v1::StopAllRequest, v1::StopAllResponse>(
      "StopAll", [&deps](const Call& call, const v1::StopAllRequest& request,
                         Reply<v1::StopAllResponse> reply) {
        // Both at once: neither boards nor campaigns wait for the others.
        const auto both = std::make_shared<StopAnswer>(std::move(reply));
        deps.campaigns.stop_all(call.ctx, request.cancel(),
                                [both](Result<std::vector<Uuid>> campaigns) {
                                  if (campaigns.ok()) {
                                    for (const auto& id : *campaigns)
                                      both->out.add_campaigns(id.str());
                                  } else {
                                    both->status.Update(campaigns.status());
                                  }
                                  both->part();
                                });
        deps.fleet.stop_all(call.ctx, request.cancel(),
                            [both](Result<training::FleetControl::StopReport> report) {
                              if (report.ok())
                                add_report(*report, both->out);
                              else
                                both->status.Update(report.status());
                              both->part();
                            });
      });
}

void add_history(ApiService& service, Deps& deps) {
  service.unary<v1::ListRunEventsRequest, v1::ListRunEventsResponse>(
      "ListRunEvents", [&deps](const Call&, const v1::ListRunEventsRequest& request,
                               Reply<v1::ListRunEventsResponse> reply) {
        ODT_FIELD(const Uuid id, uuid_field(request.run_id(), "run_id"));
        answer_from_store(deps.control, reply,
                          [id](store::ControlStore& store) -> Result<v1::ListRunEventsResponse> {
                            if (const auto run = store.run(id); !run.ok())
                              return not_found(run.status(), "run", id.hex());
                            ODT_ASSIGN(const auto events, store.run_events(id));
                            v1::ListRunEventsResponse response;
                            for (const auto& event : events)
                              *response.add_events() = to_proto(event);
                            return response;
                          });
      });
  service.unary<v1::ListEpochsRequest, v1::ListEpochsResponse>(
      "ListEpochs", [&deps](const Call&, const v1::ListEpochsRequest& request,
                            Reply<v1::ListEpochsResponse> reply) {
        ODT_FIELD(const Uuid id, uuid_field(request.run_id(), "run_id"));
        const EpochRange range{.first_step = request.first_step(),
                               .last_step = request.last_step(),
                               .most = request.max_epochs()};
        if (range.last_step != 0 && range.last_step < range.first_step)
          return reply(bad_field("last_step", std::to_string(range.last_step) +
                                                  " lies before first_step " +
                                                  std::to_string(range.first_step)));
        answer_from_store(
            deps.control, reply,
            [id, range](store::ControlStore& store) -> Result<v1::ListEpochsResponse> {
              if (const auto run = store.run(id); !run.ok())
                return not_found(run.status(), "run", id.hex());
              ODT_ASSIGN(const auto epochs, store.epochs(id));
              const auto chosen = choose_epochs(epochs, range);
              v1::ListEpochsResponse response;
              response.set_total(chosen.total);
              for (const auto* epoch : chosen.epochs) *response.add_epochs() = to_proto(*epoch);
              return response;
            });
      });
}

void add_telemetry(ApiService& service, Deps& deps) {
  service.unary<v1::GetTelemetryRequest, v1::GetTelemetryResponse>(
      "GetTelemetry", [&deps](const Call&, const v1::GetTelemetryRequest& request,
                              Reply<v1::GetTelemetryResponse> reply) {
        store::TelemetryStore::Range range;
        ODT_FIELD(range.run, uuid_field(request.run_id(), "run_id"));
        range.attempt = request.attempt();
        range.first_step = request.first_step();
        if (request.last_step() != 0) range.last_step = request.last_step();
        if (range.last_step < range.first_step)
          return reply(bad_field("last_step", std::to_string(range.last_step) +
                                                  " lies before first_step " +
                                                  std::to_string(range.first_step)));
        range.max_frames = request.max_frames() == 0 ? kDefaultFrames : request.max_frames();
        if (range.max_frames > kMaxFrames)
          return reply(
              bad_field("max_frames",
                        std::to_string(range.max_frames) + "; limit " + std::to_string(kMaxFrames),
                        "ask for shorter step ranges"));
        deps.control.post([&deps, range, reply](store::ControlStore& store) {
          if (const auto run = store.run(range.run); !run.ok())
            return reply(not_found(run.status(), "run", range.run.hex()));
          deps.telemetry.post([range, reply](store::TelemetryStore& telemetry) {
            const auto read = telemetry.read(range);
            if (!read.ok()) return reply(read.status());
            v1::GetTelemetryResponse response;
            for (const auto& frame : read->frames) *response.add_frames() = to_proto(frame);
            response.set_total(read->total);
            reply(std::move(response));
          });
        });
      });
}

}  // namespace

ServicePtr make_run_service(Deps& deps) {
  auto service = std::make_unique<ApiService>(
      deps.gate, *v1::GetRunRequest::descriptor()->file()->FindServiceByName("RunService"));
  add_create(*service, deps);
  add_reads(*service, deps);
  add_desired<v1::PauseRunRequest, v1::PauseRunResponse>(*service, deps, "PauseRun",
                                                         model::Desired::kPause);
  add_desired<v1::ResumeRunRequest, v1::ResumeRunResponse>(*service, deps, "ResumeRun",
                                                           model::Desired::kRun);
  add_desired<v1::CancelRunRequest, v1::CancelRunResponse>(*service, deps, "CancelRun",
                                                           model::Desired::kCancel);
  service->unary<v1::SetLayerPrecisionRequest, v1::SetLayerPrecisionResponse>(
      "SetLayerPrecision", [&deps](const Call& call, const v1::SetLayerPrecisionRequest& request,
                                   Reply<v1::SetLayerPrecisionResponse> reply) {
        ODT_FIELD(const Uuid id, uuid_field(request.id(), "id"));
        deps.fleet.set_precision(call.ctx, id, {request.step(), request.layer(), request.k()},
                                 answer_with<v1::SetLayerPrecisionResponse, model::Run>(
                                     reply, &v1::SetLayerPrecisionResponse::mutable_run));
      });
  add_queue(*service, deps);
  add_history(*service, deps);
  add_telemetry(*service, deps);
  service->unary<v1::ReplayRunRequest, v1::ReplayRunResponse>(
      "ReplayRun", [&deps](const Call& call, const v1::ReplayRunRequest& request,
                           Reply<v1::ReplayRunResponse> reply) {
        ODT_FIELD(const Uuid id, uuid_field(request.run_id(), "run_id"));
        deps.jobs.replay(call.ctx, id,
                         answer_with<v1::ReplayRunResponse, model::Job>(
                             reply, &v1::ReplayRunResponse::mutable_job));
      });
  return service;
}

}  // namespace odt::api
