#include "api/service_helpers.h"

namespace odt::api {
namespace {

constexpr std::uint32_t kDefaultFrames = 2000, kMaxFrames = 10'000;

void add_create(ApiService& service, Deps& deps) {
  service.unary<v1::CreateRunRequest, v1::CreateRunResponse>(
      "CreateRun", [&deps](const Call& call, const v1::CreateRunRequest& request,
                           Reply<v1::CreateRunResponse> reply) {
        if (!request.has_spec()) return reply(bad_field("spec", "absent"));
        ODT_FIELD(auto spec, from_proto(request.spec()));
        deps.fleet.create_run(call.ctx, std::move(spec), request.dry_run(),
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
        answer_from_store(deps.control, reply,
                          [id](store::ControlStore& store) -> Result<v1::ListEpochsResponse> {
                            if (const auto run = store.run(id); !run.ok())
                              return not_found(run.status(), "run", id.hex());
                            ODT_ASSIGN(const auto epochs, store.epochs(id));
                            v1::ListEpochsResponse response;
                            for (const auto& epoch : epochs)
                              *response.add_epochs() = to_proto(epoch);
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
