#include <thread>

#include "api/export_text.h"
#include "api/pull_stream.h"
#include "api/service_helpers.h"
#include "store/backup.h"
#include "store/disk_guard.h"

// StorageService: what is kept on disk, series for charts, export, backup.
namespace odt::api {
namespace {

constexpr std::uint32_t kMostRuns = 200, kMostBuckets = 5000, kBuckets = 200;
constexpr std::uint32_t kExportPart = 2000;
constexpr std::size_t kBackupPart = 256 * 1024;

// Fills everything but the run.
Result<store::SeriesQuery> series_query(const v1::GetSeriesRequest& request) {
  store::SeriesQuery query;
  query.attempt = request.attempt();
  query.first_step = request.first_step();
  if (request.last_step() != 0) query.last_step = request.last_step();
  if (query.last_step < query.first_step)
    return bad_field("last_step", std::to_string(query.last_step) + " lies before first_step " +
                                      std::to_string(query.first_step));
  query.buckets = request.buckets() == 0 ? kBuckets : request.buckets();
  if (query.buckets > kMostBuckets)
    return bad_field("buckets",
                     std::to_string(query.buckets) + "; limit " + std::to_string(kMostBuckets));
  for (const int kind : request.kinds()) {
    if (kind < v1::SERIES_KIND_LOSS || kind > v1::SERIES_KIND_K)
      return bad_field("kinds", std::to_string(kind) + "; expected 1 to 5");
    query.kinds.push_back(static_cast<store::SeriesKind>(kind));
  }
  query.layers.assign(request.layers().begin(), request.layers().end());
  return query;
}

void fill(const Uuid& run, const store::SeriesAnswer& answer, v1::RunSeries& out) {
  out.set_run_id(run.str());
  out.set_first_step(answer.first_step);
  out.set_last_step(answer.last_step);
  out.mutable_bucket_first_step()->Assign(answer.bucket_first.begin(), answer.bucket_first.end());
  out.mutable_count()->Assign(answer.count.begin(), answer.count.end());
  out.set_points(answer.points);
  out.set_gap_steps(answer.gap_steps);
  out.set_thinned_points(answer.thinned_points);
  for (const store::Series& from : answer.series) {
    v1::Series& to = *out.add_series();
    to.set_kind(static_cast<v1::SeriesKind>(from.kind));
    to.set_layer(from.layer);
    to.mutable_min()->Assign(from.min.begin(), from.min.end());
    to.mutable_max()->Assign(from.max.begin(), from.max.end());
    to.mutable_sum()->Assign(from.sum.begin(), from.sum.end());
    to.mutable_count()->Assign(from.count.begin(), from.count.end());
  }
}

void add_series(ApiService& service, Deps& deps) {
  service.unary<v1::GetSeriesRequest, v1::GetSeriesResponse>(
      "GetSeries", [&deps](const Call&, const v1::GetSeriesRequest& request,
                           Reply<v1::GetSeriesResponse> reply) {
        if (request.run_ids().empty() || request.run_ids_size() > static_cast<int>(kMostRuns))
          return reply(bad_field("run_ids", std::to_string(request.run_ids_size()) +
                                                " runs; expected 1 to " +
                                                std::to_string(kMostRuns)));
        store::SeriesQuery query;
        ODT_FIELD(query, series_query(request));
        std::vector<Uuid> runs;
        for (const std::string& raw : request.run_ids()) {
          ODT_FIELD(runs.emplace_back(), uuid_field(raw, "run_ids"));
        }
        deps.telemetry.read([query, runs, reply](store::TelemetryStore& telemetry) mutable {
          v1::GetSeriesResponse response;
          for (const Uuid& run : runs) {
            query.run = run;
            const auto answer = telemetry.series(query);
            if (!answer.ok()) return reply(answer.status());
            fill(run, *answer, *response.add_runs());
          }
          reply(std::move(response));
        });
      });
}

void fill(const store::TelemetryStore::Use& use, const model::Run& run, v1::RunStorage& out) {
  out.set_run_id(run.id.str());
  out.set_raw_frames(use.raw_frames);
  out.set_thinned_frames(use.thinned_frames);
  out.set_raw_bytes(use.raw_bytes);
  out.set_rollup_bytes(use.rollup_bytes);
  out.set_pinned(run.pinned);
}

// Calls fn(run, telemetry) on the telemetry thread.
template <typename Resp, typename F>
void with_run_telemetry(Deps& deps, const Uuid& id, Reply<Resp> reply, F fn) {
  deps.control.post([&deps, id, reply, fn](store::ControlStore& store) {
    const auto run = store.run(id);
    if (!run.ok()) return reply(not_found(run.status(), "run", id.hex()));
    deps.telemetry.post(
        [run = *run, reply, fn](store::TelemetryStore& telemetry) { reply(fn(run, telemetry)); });
  });
}

void add_runs(ApiService& service, Deps& deps) {
  service.unary<v1::GetRunStorageRequest, v1::GetRunStorageResponse>(
      "GetRunStorage", [&deps](const Call&, const v1::GetRunStorageRequest& request,
                               Reply<v1::GetRunStorageResponse> reply) {
        ODT_FIELD(const Uuid id, uuid_field(request.run_id(), "run_id"));
        with_run_telemetry(
            deps, id, reply,
            [](const model::Run& run,
               store::TelemetryStore& telemetry) -> Result<v1::GetRunStorageResponse> {
              ODT_ASSIGN(const auto use, telemetry.use(run.id));
              v1::GetRunStorageResponse response;
              fill(use, run, *response.mutable_storage());
              return response;
            });
      });
  service.unary<v1::ThinRunRequest, v1::ThinRunResponse>(
      "ThinRun",
      [&deps](const Call&, const v1::ThinRunRequest& request, Reply<v1::ThinRunResponse> reply) {
        ODT_FIELD(const Uuid id, uuid_field(request.run_id(), "run_id"));
        with_run_telemetry(
            deps, id, reply,
            [](const model::Run& run,
               store::TelemetryStore& telemetry) -> Result<v1::ThinRunResponse> {
              if (!model::is_final(run.state) || run.pinned)
                return with_reason(
                    absl::FailedPreconditionError("run " + run.id.hex() +
                                                  (run.pinned ? " is pinned" : " has not ended")),
                    run.pinned ? "RUN_PINNED" : "RUN_IN_USE",
                    run.pinned ? "unpin it first" : "wait for its end");
              v1::ThinRunResponse response;
              ODT_ASSIGN(const std::uint64_t freed, telemetry.thin(run.id));
              response.set_bytes_freed(freed);
              ODT_ASSIGN(const auto use, telemetry.use(run.id));
              fill(use, run, *response.mutable_storage());
              return response;
            });
      });
  service.unary<v1::PinRunRequest, v1::PinRunResponse>(
      "PinRun",
      [&deps](const Call& call, const v1::PinRunRequest& request, Reply<v1::PinRunResponse> reply) {
        ODT_FIELD(const Uuid id, uuid_field(request.run_id(), "run_id"));
        const bool pinned = request.pinned();
        answer_from_store(
            deps.control, reply,
            [call, id, pinned](store::ControlStore& store) -> Result<v1::PinRunResponse> {
              auto run = store.run(id);
              if (!run.ok()) return not_found(run.status(), "run", id.hex());
              run->pinned = pinned;
              ODT_TRY(store.commit(batch_of(call, store::UpdateRun{*run})).status());
              ODT_ASSIGN(const auto now, store.run(id));
              v1::PinRunResponse response;
              *response.mutable_run() = to_proto(now);
              return response;
            });
      });
}

Result<std::optional<v1::ExportTelemetryResponse>> next_part(Export& job,
                                                             store::TelemetryStore& telemetry) {
  std::optional<v1::ExportTelemetryResponse> response;
  ODT_ASSIGN(std::optional<std::string> text, job.next(telemetry));
  if (text) response.emplace().set_data(std::move(*text));
  return response;
}

void add_export(ApiService& service, Deps& deps) {
  using Stream = PullStream<v1::ExportTelemetryResponse>;
  service.server_stream<v1::ExportTelemetryRequest, v1::ExportTelemetryResponse>(
      "ExportTelemetry",
      [&deps](const Call&, const v1::ExportTelemetryRequest& request)
          -> grpc::ServerWriteReactor<v1::ExportTelemetryResponse>* {
        using Refused = RefusedStream<v1::ExportTelemetryResponse>;
        const auto run = uuid_field(request.run_id(), "run_id");
        if (!run.ok()) return new Refused(run.status());
        if (request.format() != v1::EXPORT_FORMAT_CSV &&
            request.format() != v1::EXPORT_FORMAT_JSONL)
          return new Refused(bad_field("format", "expected CSV or JSONL"));
        store::TelemetryStore::Range range{*run, request.attempt(), request.first_step()};
        range.max_frames = kExportPart;
        if (request.last_step() != 0) range.last_step = request.last_step();
        if (range.last_step < range.first_step)
          return new Refused(bad_field("last_step", std::to_string(request.last_step()) +
                                                        " lies before first_step " +
                                                        std::to_string(request.first_step())));
        auto job = std::make_shared<Export>(range, request.format() == v1::EXPORT_FORMAT_CSV);
        auto known = std::make_shared<bool>(false);
        return Stream::start([&deps, job, id = *run, known](Stream::Answer answer) {
          const auto read = [job, answer](store::TelemetryStore& telemetry) {
            answer(next_part(*job, telemetry));
          };
          if (*known) {
            if (!deps.telemetry.post(read)) answer(absl::UnavailableError("odtd is stopping"));
            return;
          }
          const auto find = [&deps, id, known, answer, read](store::ControlStore& store) {
            if (const auto there = store.run(id); !there.ok())
              return answer(not_found(there.status(), "run", id.hex()));
            *known = true;
            if (!deps.telemetry.post(read)) answer(absl::UnavailableError("odtd is stopping"));
          };
          if (!deps.control.post(find)) answer(absl::UnavailableError("odtd is stopping"));
        });
      });
}

void add_backup(ApiService& service, Deps& deps) {
  using Stream = PullStream<v1::BackupResponse>;
  service.server_stream<v1::BackupRequest, v1::BackupResponse>(
      "Backup",
      [&deps](const Call&,
              const v1::BackupRequest&) -> grpc::ServerWriteReactor<v1::BackupResponse>* {
        auto reader = std::make_shared<std::unique_ptr<store::BackupReader>>();
        // Copying a database takes as long as it takes: not on gRPC's threads, nor on a store's.
        return Stream::start([&deps, reader](Stream::Answer answer) {
          std::thread([dir = deps.info().data_dir, reader, answer] {
            const auto next = [&]() -> Result<std::optional<v1::BackupResponse>> {
              if (!*reader) {
                ODT_ASSIGN(*reader, store::BackupReader::open(dir));
              }
              ODT_ASSIGN(std::string data, (*reader)->read(kBackupPart));
              if (data.empty()) return std::optional<v1::BackupResponse>();
              std::optional<v1::BackupResponse> response(std::in_place);
              response->set_data(std::move(data));
              response->set_total_bytes((*reader)->total_bytes());
              return response;
            };
            answer(next());
          }).detach();
        });
      });
}

void add_storage(ApiService& service, Deps& deps) {
  service.unary<v1::GetStorageRequest, v1::GetStorageResponse>(
      "GetStorage",
      [&deps](const Call&, const v1::GetStorageRequest&, Reply<v1::GetStorageResponse> reply) {
        auto response = std::make_shared<v1::GetStorageResponse>();
        deps.control.post([&deps, response, reply](store::ControlStore& store) {
          store::ListQuery query{1000, {}};
          do {
            const auto page = store.runs(query);
            if (!page.ok()) return reply(page.status());
            for (const auto& run : page->items)
              if (run.pinned) response->set_runs_pinned(response->runs_pinned() + 1);
            query.page_token = page->next_token;
          } while (!query.page_token.empty());
          query.page_token.clear();
          do {
            const auto page = store.trash(query);
            if (!page.ok()) return reply(page.status());
            response->set_trash_count(response->trash_count() + page->items.size());
            query.page_token = page->next_token;
          } while (!query.page_token.empty());
          deps.telemetry.post([&deps, response, reply](store::TelemetryStore& telemetry) {
            const auto room = telemetry.room();
            const auto use = telemetry.use_of_all();
            const auto thinned = telemetry.runs_thinned();
            const auto blobs = deps.blobs.list();
            for (const Status& s : {room.status(), use.status(), thinned.status(), blobs.status()})
              if (!s.ok()) return reply(s);
            response->set_telemetry_bytes(room->file_bytes);
            response->set_telemetry_used_bytes(room->used_bytes);
            response->set_telemetry_quota_bytes(room->quota_bytes);
            response->set_telemetry_frames(use->raw_frames);
            response->set_runs_thinned(*thinned);
            response->set_blob_count(blobs->size());
            for (const auto& blob : *blobs)
              response->set_blob_bytes(response->blob_bytes() + blob.bytes);
            const SystemInfo info = deps.info();
            response->set_control_bytes(info.control_db_bytes);
            response->set_disk_free_bytes(info.disk_free_bytes);
            response->set_ballast_bytes(info.disk.ballast_bytes);
            response->set_state(static_cast<v1::DiskState>(info.disk.state));
            response->set_text(info.disk.text);
            response->set_frames_dropped(info.disk.frames_refused);
            reply(std::move(*response));
          });
        });
      });
}

}  // namespace

void add_storage_reads(ApiService& service, Deps& deps) {
  add_storage(service, deps);
  add_series(service, deps);
  add_runs(service, deps);
  add_export(service, deps);
  add_backup(service, deps);
}

}  // namespace odt::api
