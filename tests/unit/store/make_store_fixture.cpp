// Writes a real control.db and telemetry.db of this release for upgrade tests:
//   make_store_fixture tests/fixtures/v0.1
#include <cstdio>
#include <filesystem>

#include "store/sqlite_db.h"
#include "store/sqlite_store.h"
#include "store_fixture.h"

namespace odt::store {
namespace {

Status fill(SqliteControlStore& store, model::Run run) {
  model::Dataset dataset = dataset_of(1);
  run.spec.dataset_id = dataset.id;
  model::Snapshot snapshot = snapshot_of(1);
  snapshot.aliases = {"best", "golden"};
  snapshot.run_id = run.id;
  model::BoardCommand command;
  command.id = new_uuid();
  command.uid = uid_of(1);
  command.kind = "restore";
  command.state = model::CommandState::kSent;
  model::Warning warning;
  warning.reason = {"DISK_NEARLY_FULL", "80 % used", "free some space"};
  const std::vector<Change> changes = {PutBoard{board_of(1)},
                                       PutBoard{board_of(2)},
                                       PutPort{port_of(1)},
                                       PutModel{model_of(1)},
                                       PutDataset{dataset},
                                       PutSnapshot{snapshot},
                                       PutEvaluation{evaluation_of(1)},
                                       PutJob{job_of(1)},
                                       PutUpload{upload_of(1)},
                                       PutCommand{command},
                                       PutSetting{"key", "value"},
                                       AppendWarning{warning},
                                       CreateRun{run, "ann"}};
  for (const Change& change : changes) {
    Batch batch = batch_of(change);
    batch.request_id = new_uuid().hex();
    batch.response = "answer";
    ODT_TRY(store.commit(batch));
  }
  for (model::RunState to : {model::RunState::kPreparing, model::RunState::kRunning}) {
    ODT_TRY(store.commit(batch_of(transition_of(run, to))));
    run.state = to;
  }
  for (std::uint32_t epoch : {1u, 2u})
    ODT_TRY(store.commit(batch_of(AppendEpoch{epoch_of(run.id, epoch)})));
  return to_status(store.commit(batch_of(Delete{"board", uid_of(2).str()})));
}

// One plain file without a log beside it.
Status close_whole(const std::string& path) {
  ODT_ASSIGN(const auto db, SqliteDb::open(path, "FULL"));
  return db->exec("PRAGMA wal_checkpoint(TRUNCATE); VACUUM; PRAGMA journal_mode=DELETE;");
}

Status make(const std::string& folder) {
  std::filesystem::create_directories(folder);
  const std::string control = folder + "/control.db", telemetry = folder + "/telemetry.db";
  for (const std::string& path : {control, telemetry})
    if (std::filesystem::exists(path))
      return absl::AlreadyExistsError(path + " exists; a fixture of a release never changes");
  FakeClock clock;
  const model::Run run = run_of(1);
  {
    ODT_ASSIGN(const auto store, SqliteControlStore::open(control, clock));
    ODT_TRY(fill(*store, run));
    ODT_ASSIGN(const auto frames, SqliteTelemetryStore::open(telemetry, 1 << 30));
    std::vector<model::TelemetryFrame> all;
    for (std::uint32_t step = 1; step <= 50; ++step) all.push_back(frame_of(run.id, step));
    all.back().gap = 4;
    ODT_TRY(frames->append(all));
  }
  std::filesystem::remove(control + ".host");  // of the machine that made it
  ODT_TRY(close_whole(control));
  return close_whole(telemetry);
}

}  // namespace
}  // namespace odt::store

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: make_store_fixture FOLDER\n");
    return 2;
  }
  const odt::Status status = odt::store::make(argv[1]);
  if (!status.ok()) std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  return status.ok() ? 0 : 1;
}
