#include "api/service_helpers.h"

namespace odt::api {
namespace {

void add_job_reads(ApiService& service, Deps& deps) {
  service.unary<v1::GetJobRequest, v1::GetJobResponse>(
      "GetJob",
      [&deps](const Call&, const v1::GetJobRequest& request, Reply<v1::GetJobResponse> reply) {
        ODT_FIELD(const Uuid id, uuid_field(request.id(), "id"));
        answer_from_store(deps.control, reply,
                          [id](store::ControlStore& store) -> Result<v1::GetJobResponse> {
                            const auto job = store.job(id);
                            if (!job.ok()) return not_found(job.status(), "job", id.hex());
                            v1::GetJobResponse response;
                            *response.mutable_job() = to_proto(*job);
                            return response;
                          });
      });
  service.unary<v1::ListJobsRequest, v1::ListJobsResponse>(
      "ListJobs",
      [&deps](const Call&, const v1::ListJobsRequest& request, Reply<v1::ListJobsResponse> reply) {
        ODT_FIELD(auto params, params_of<v1::Job>(request));
        answer_from_store(deps.control, reply,
                          [params](store::ControlStore& store) -> Result<v1::ListJobsResponse> {
                            ODT_ASSIGN(
                                auto page,
                                (list_from<v1::Job, model::Job>(
                                    params, [&](const auto& query) { return store.jobs(query); },
                                    [](const auto& job) { return to_proto(job); })));
                            v1::ListJobsResponse response;
                            for (auto& job : page.items) *response.add_jobs() = std::move(job);
                            response.set_next_page_token(page.next_token);
                            return response;
                          });
      });
}

Result<jobs::TrainOnPcOptions> read_training(const v1::TrainOnPcRequest& request) {
  jobs::TrainOnPcOptions options;
  ODT_ASSIGN(options.dataset_id, uuid_field(request.dataset_id(), "dataset_id"));
  if (request.hidden_size() > 8)
    return bad_field("hidden", std::to_string(request.hidden_size()) + " layers; limit 8");
  for (const auto width : request.hidden()) {
    if (width == 0 || width > 4096)
      return bad_field("hidden", std::to_string(width) + "; allowed 1 to 4096");
    options.hidden.push_back(width);
  }
  if (request.epochs() > 1000)
    return bad_field("epochs", std::to_string(request.epochs()) + "; limit 1000");
  options.epochs = request.epochs();
  options.seed = request.seed();
  options.dfp16 = request.dfp16();
  ODT_ASSIGN(options.arch, text_field(request.arch(), "arch", 4096, false));
  options.autoencode = request.autoencode();
  ODT_ASSIGN(options.augment, text_field(request.augment(), "augment", 64, false));
  ODT_ASSIGN(options.name, text_field(request.name(), "name", 64, false));
  return options;
}

}  // namespace

ServicePtr make_job_service(Deps& deps) {
  auto service = std::make_unique<ApiService>(
      deps.gate, *v1::GetJobRequest::descriptor()->file()->FindServiceByName("JobService"));
  add_job_reads(*service, deps);
  service->unary<v1::CancelJobRequest, v1::CancelJobResponse>(
      "CancelJob", [&deps](const Call& call, const v1::CancelJobRequest& request,
                           Reply<v1::CancelJobResponse> reply) {
        ODT_FIELD(const Uuid id, uuid_field(request.id(), "id"));
        auto done = answer_with<v1::CancelJobResponse, model::Job>(
            reply, &v1::CancelJobResponse::mutable_job);
        // Evaluations are carried out by boards, all other jobs by the worker.
        const CallContext ctx = call.ctx;
        const bool posted = deps.control.post([&deps, ctx, id, done](store::ControlStore& store) {
          const auto job = store.job(id);
          if (!job.ok()) return done(not_found(job.status(), "job", id.hex()));
          if (job->kind == model::Job::Kind::kEvaluate)
            deps.fleet.cancel_evaluation(ctx, id, done);
          else
            deps.jobs.cancel(ctx, id, done);
        });
        if (!posted) done(absl::UnavailableError("the daemon is stopping"));
      });
  service->unary<v1::TrainOnPcRequest, v1::TrainOnPcResponse>(
      "TrainOnPc", [&deps](const Call& call, const v1::TrainOnPcRequest& request,
                           Reply<v1::TrainOnPcResponse> reply) {
        ODT_FIELD(auto options, read_training(request));
        deps.jobs.train_on_pc(call.ctx, std::move(options),
                              answer_with<v1::TrainOnPcResponse, model::Job>(
                                  reply, &v1::TrainOnPcResponse::mutable_job));
      });
  return service;
}

}  // namespace odt::api
