// The conformance suite of ControlStore: the same for SQLite and memory.
#include <gtest/gtest.h>

#include "any_control_store.h"
#include "store/store.h"

namespace odt::store {
namespace {

using model::RunState;

class ControlStoreTest : public AnyControlStore {
 protected:
  std::vector<model::Event> commit(Batch batch) {
    auto events = store_->commit(std::move(batch));
    EXPECT_TRUE(events.ok()) << events.status();
    return events.ok() ? *events : std::vector<model::Event>();
  }
  std::vector<model::Event> put(Change change) { return commit(batch_of(std::move(change))); }
  absl::StatusCode code_of(Change change) {
    return store_->commit(batch_of(std::move(change))).status().code();
  }
};

INSTANTIATE_TEST_SUITE_P(All, ControlStoreTest, testing::Bool(),
                         [](const auto& p) { return p.param ? "Sqlite" : "Memory"; });

TEST_P(ControlStoreTest, NumbersEventsDenselyFromOneInOrderOfChanges) {
  EXPECT_EQ(store_->next_seq(), 1);
  Batch batch = batch_of(PutBoard{board_of(1)});
  batch.changes.push_back(PutModel{model_of(1)});
  batch.changes.push_back(PutSetting{"a", "b"});
  batch.changes.push_back(PutJob{job_of(1)});
  batch.actor = "ann";
  batch.command_id = new_uuid();
  const Uuid command = batch.command_id;
  const auto events = commit(std::move(batch));
  ASSERT_EQ(events.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(events[i].seq, static_cast<std::int64_t>(i) + 1);
    EXPECT_EQ(events[i].actor, "ann");
    EXPECT_EQ(events[i].command_id, command);
    EXPECT_EQ(events[i].time_us, clock_.time_us);
  }
  EXPECT_TRUE(std::holds_alternative<model::Board>(events[0].body));
  EXPECT_TRUE(std::holds_alternative<model::Job>(events[2].body));
  EXPECT_EQ(std::get<model::Board>(events[0].body).meta.etag, 1);
  EXPECT_EQ(store_->next_seq(), 4);
  EXPECT_EQ(put(PutPort{port_of(1)}).front().seq, 4);
}

TEST_P(ControlStoreTest, FailedBatchLeavesNothingAndReusesItsNumbers) {
  Batch batch = batch_of(PutBoard{board_of(1)});
  batch.changes.push_back(PutSnapshot{[] {
    auto s = snapshot_of(1);
    s.aliases = {"best"};
    return s;
  }()});
  batch.changes.push_back(PutSetting{"k", "v"});
  batch.changes.push_back(Delete{"model", hash_of(1).str()});
  batch.request_id = "r1";
  EXPECT_EQ(store_->commit(batch).status().code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(absl::IsNotFound(store_->board(uid_of(1)).status()));
  EXPECT_TRUE(absl::IsNotFound(store_->snapshot(snapshot_of(1).hash).status()));
  EXPECT_TRUE(absl::IsNotFound(store_->setting("k").status()));
  EXPECT_TRUE(absl::IsNotFound(store_->find_request("odtd", "r1").status()));
  EXPECT_EQ(store_->next_seq(), 1);
  EXPECT_EQ(store_->events_from(1, 10)->size(), 0u);
  EXPECT_EQ(put(PutBoard{board_of(1)}).front().seq, 1);
}

TEST_P(ControlStoreTest, FillsMetaOnceAndKeepsIt) {
  Batch batch = batch_of(PutBoard{board_of(1)});
  batch.actor = "ann";
  commit(std::move(batch));
  const std::int64_t created = clock_.time_us;
  clock_.time_us += 5;
  put(PutBoard{board_of(1)});
  const auto board = store_->board(uid_of(1));
  ASSERT_TRUE(board.ok());
  EXPECT_EQ(board->meta.created_by, "ann");
  EXPECT_EQ(board->meta.create_time_us, created);
  EXPECT_EQ(board->meta.gateway_id, store_->identity().gateway_id);
  EXPECT_EQ(board->meta.etag, 2);
}

TEST_P(ControlStoreTest, EtagThatDiffersIsAborted) {
  put(PutBoard{board_of(1)});
  auto board = *store_->board(uid_of(1));
  board.name = "new";
  put(PutBoard{board});  // with the right etag
  EXPECT_EQ(code_of(PutBoard{board}), absl::StatusCode::kAborted);
  EXPECT_EQ(store_->board(uid_of(1))->name, "new");
  board.meta.etag = 0;  // not checked
  EXPECT_EQ(code_of(PutBoard{board}), absl::StatusCode::kOk);
  auto gone = board_of(2);
  gone.meta.etag = 1;
  EXPECT_EQ(code_of(PutBoard{gone}), absl::StatusCode::kAborted);
}

TEST_P(ControlStoreTest, OneBatchMayChangeAResourceTwiceWithTheEtagItRead) {
  model::Run run = run_of(1);
  put(CreateRun{run, "ann"});
  run = *store_->run(run.id);
  Batch batch;
  auto transition = transition_of(run, RunState::kPreparing);
  transition.value.meta.etag = run.meta.etag;
  batch.changes.push_back(transition);
  auto update = transition.value;
  update.steps_done = 5;
  batch.changes.push_back(UpdateRun{update});
  EXPECT_EQ(commit(std::move(batch)).size(), 3u);
  EXPECT_EQ(store_->run(run.id)->steps_done, 5u);
}

TEST_P(ControlStoreTest, RemembersARequestForADay) {
  Batch batch = batch_of(PutBoard{board_of(1)});
  batch.actor = "ann";
  batch.request_id = "r1";
  batch.response = std::string("\0\xFFx", 3);
  commit(batch);
  EXPECT_EQ(*store_->find_request("ann", "r1"), batch.response);
  EXPECT_TRUE(absl::IsNotFound(store_->find_request("bob", "r1").status()));
  EXPECT_EQ(store_->commit(batch).status().code(), absl::StatusCode::kAlreadyExists);
  const std::int64_t day = 24LL * 3600 * 1'000'000;
  clock_.time_us += day;
  EXPECT_TRUE(store_->find_request("ann", "r1").ok());
  clock_.time_us += 1;
  EXPECT_TRUE(absl::IsNotFound(store_->find_request("ann", "r1").status()));
  EXPECT_EQ(commit(batch).size(), 1u);
}

TEST_P(ControlStoreTest, RunFollowsTheWholeTableOfTransitions) {
  const RunState all[] = {RunState::kQueued,    RunState::kPreparing,    RunState::kRunning,
                          RunState::kPaused,    RunState::kWaitingBoard, RunState::kEvaluating,
                          RunState::kSucceeded, RunState::kFailed,       RunState::kCancelled};
  // One path to each state.
  const std::map<RunState, std::vector<RunState>> path = {
      {RunState::kQueued, {}},
      {RunState::kPreparing, {RunState::kPreparing}},
      {RunState::kRunning, {RunState::kPreparing, RunState::kRunning}},
      {RunState::kPaused, {RunState::kPreparing, RunState::kPaused}},
      {RunState::kWaitingBoard, {RunState::kWaitingBoard}},
      {RunState::kEvaluating, {RunState::kPreparing, RunState::kEvaluating}},
      {RunState::kSucceeded, {RunState::kPreparing, RunState::kEvaluating, RunState::kSucceeded}},
      {RunState::kFailed, {RunState::kFailed}},
      {RunState::kCancelled, {RunState::kCancelled}}};
  for (RunState from : all)
    for (RunState to : all) {
      model::Run run = run_of(1);
      put(CreateRun{run, "ann"});
      for (RunState step : path.at(from)) {
        put(transition_of(run, step));
        run.state = step;
      }
      const auto code = code_of(transition_of(run, to));
      EXPECT_EQ(code, model::is_legal_transition(from, to) ? absl::StatusCode::kOk
                                                           : absl::StatusCode::kFailedPrecondition)
          << static_cast<int>(from) << " -> " << static_cast<int>(to);
    }
}

TEST_P(ControlStoreTest, TransitionIsACompareAndSetWithItsOwnRecord) {
  model::Run run = run_of(1);
  put(CreateRun{run, "ann"});
  const auto stale = transition_of(run, RunState::kPreparing);
  const auto events = put(stale);
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(std::get<model::Run>(events[0].body).state, RunState::kPreparing);
  EXPECT_EQ(std::get<model::RunEvent>(events[1].body).seq, 2u);
  EXPECT_EQ(code_of(stale), absl::StatusCode::kFailedPrecondition);
  auto lying = transition_of(*store_->run(run.id), RunState::kRunning);
  lying.event.to = RunState::kPaused;
  EXPECT_EQ(code_of(lying), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code_of(transition_of(run_of(9), RunState::kPreparing)), absl::StatusCode::kNotFound);
  const auto records = *store_->run_events(run.id);
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[0].from, RunState::kUnspecified);
  EXPECT_EQ(records[0].to, RunState::kQueued);
  EXPECT_EQ(records[0].actor, "ann");
  EXPECT_EQ(records[1].cause, "test");
  EXPECT_EQ(records[1].time_us, clock_.time_us);
}

TEST_P(ControlStoreTest, CreateAndUpdateRunKeepTheStateMachineWhole) {
  model::Run run = run_of(1);
  put(CreateRun{run, "ann"});
  EXPECT_EQ(code_of(CreateRun{run, "ann"}), absl::StatusCode::kAlreadyExists);
  model::Run running = run_of(2);
  running.state = RunState::kRunning;
  EXPECT_EQ(code_of(CreateRun{running, "ann"}), absl::StatusCode::kInvalidArgument);
  run.state = RunState::kRunning;
  EXPECT_EQ(code_of(UpdateRun{run}), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(code_of(UpdateRun{run_of(3)}), absl::StatusCode::kNotFound);
  EXPECT_EQ(store_->run(run.id)->meta.created_by, "ann");
}

TEST_P(ControlStoreTest, ActiveRunsAreThoseNotFinalOldestFirst) {
  model::Run a = run_of(1), b = run_of(2), c = run_of(3);
  for (const auto& r : {a, b, c}) put(CreateRun{r, "ann"});
  put(transition_of(b, RunState::kCancelled));
  const auto active = *store_->active_runs();
  ASSERT_EQ(active.size(), 2u);
  EXPECT_EQ(active[0].id, a.id);
  EXPECT_EQ(active[1].id, c.id);
}

TEST_P(ControlStoreTest, EqualEpochIsIgnoredADifferentOneIsDataLoss) {
  const model::Run run = run_of(1);
  put(CreateRun{run, "ann"});
  auto epoch = epoch_of(run.id, 2);
  EXPECT_EQ(put(AppendEpoch{epoch}).size(), 1u);
  epoch.time_us += 1000;
  epoch.step_us += 1;
  EXPECT_EQ(put(AppendEpoch{epoch}).size(), 0u);
  epoch.loss.sum += 1;
  EXPECT_EQ(code_of(AppendEpoch{epoch}), absl::StatusCode::kDataLoss);
  epoch.loss.sum -= 1;
  epoch.heldout_loss.sum += 1;
  EXPECT_EQ(code_of(AppendEpoch{epoch}), absl::StatusCode::kDataLoss);
  epoch.loss.sum += 1;
  epoch.attempt = 2;
  EXPECT_EQ(put(AppendEpoch{epoch}).size(), 1u);
  put(AppendEpoch{epoch_of(run.id, 1)});
  const auto epochs = *store_->epochs(run.id);
  ASSERT_EQ(epochs.size(), 3u);
  EXPECT_EQ(epochs[0].epoch, 1u);
  EXPECT_EQ(epochs[1].loss.sum, 123456789012);
  EXPECT_EQ(epochs[2].attempt, 2u);
  EXPECT_EQ(code_of(AppendEpoch{epoch_of(new_uuid(), 1)}), absl::StatusCode::kNotFound);
}

TEST_P(ControlStoreTest, AliasMovesToWhoTakesItWithAnEventOfTheLoser) {
  auto a = snapshot_of(1), b = snapshot_of(2);
  a.aliases = {"golden", "best", "best"};
  put(PutSnapshot{a});
  b.aliases = {"best"};
  const auto events = put(PutSnapshot{b});
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(std::get<model::Snapshot>(events[0].body).hash, a.hash);
  EXPECT_EQ(store_->snapshot(a.hash)->aliases, std::vector<std::string>{"golden"});
  EXPECT_EQ(store_->snapshot(b.hash)->aliases, std::vector<std::string>{"best"});
  b.aliases.clear();  // given up: the next taker takes it from nobody
  put(PutSnapshot{b});
  a.aliases = {"best"};
  EXPECT_EQ(put(PutSnapshot{a}).size(), 1u);
  put(Delete{"snapshot", a.hash.str()});
  b.aliases = {"best"};
  EXPECT_EQ(put(PutSnapshot{b}).size(), 1u);
}

TEST_P(ControlStoreTest, PagesThroughListsInTheirOrder) {
  for (int n : {3, 1, 5, 2, 4}) {
    put(PutBoard{board_of(n)});
    put(PutModel{model_of(n)});
    clock_.time_us += 1;
  }
  std::vector<std::string> boards, models;
  for (ListQuery q{2, ""};;) {
    const auto page = *store_->boards(q);
    EXPECT_LE(page.items.size(), 2u);
    for (const auto& b : page.items) boards.push_back(b.name);
    if (page.next_token.empty()) break;
    q.page_token = page.next_token;
  }
  for (ListQuery q{2, ""};;) {
    const auto page = *store_->models(q);
    for (const auto& m : page.items) models.push_back(m.name);
    if (page.next_token.empty()) break;
    q.page_token = page.next_token;
  }
  EXPECT_EQ(boards,
            (std::vector<std::string>{"board-01", "board-02", "board-03", "board-04", "board-05"}));
  EXPECT_EQ(models,
            (std::vector<std::string>{"model-4", "model-2", "model-5", "model-1", "model-3"}));
  EXPECT_TRUE(store_->boards({5, ""})->next_token.empty());
}

TEST_P(ControlStoreTest, RefusesBadPageSizeAndToken) {
  for (std::uint32_t size : {0u, 1001u})
    EXPECT_TRUE(absl::IsInvalidArgument(store_->runs({size, ""}).status())) << size;
  for (std::uint32_t size : {1u, 1000u}) EXPECT_TRUE(store_->runs({size, ""}).ok());
  for (const char* token : {"x", "zz.00", "0.0"})
    EXPECT_TRUE(absl::IsInvalidArgument(store_->runs({10, token}).status())) << token;
}

TEST_P(ControlStoreTest, DeleteIsRefusedWhileAnActiveRunRefers) {
  model::Run run = run_of(1);
  auto dataset = dataset_of(1);
  run.spec.dataset_id = dataset.id;
  auto snapshot = snapshot_of(1);
  snapshot.aliases = {"best"};
  for (const Change& c :
       std::vector<Change>{PutBoard{board_of(1)}, PutModel{model_of(1)}, PutDataset{dataset},
                           PutSnapshot{snapshot}, PutPort{port_of(1)}, CreateRun{run, "ann"}})
    put(c);
  const std::vector<Delete> refused = {{"board", uid_of(1).str()},
                                       {"model", run.spec.model_hash.str()},
                                       {"dataset", dataset.id.str()},
                                       {"snapshot", snapshot.hash.str()}};
  for (const Delete& d : refused)
    EXPECT_EQ(code_of(d), absl::StatusCode::kFailedPrecondition) << d.kind;
  put(transition_of(run, RunState::kCancelled));
  // A model also stays as long as weights belong to it.
  snapshot.model_hash = run.spec.model_hash;
  put(PutSnapshot{snapshot});
  Batch model_only = batch_of(refused[1]);
  const Status kept = store_->commit(model_only).status();
  EXPECT_EQ(kept.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(kept.message().find("has 1 snapshot of weights (best)"), std::string::npos) << kept;
  EXPECT_EQ(reason_of(kept), "MODEL_IN_USE");
  std::vector<Delete> in_order = refused;
  std::swap(in_order[1], in_order[3]);
  for (const Delete& d : in_order) {
    const auto events = put(d);
    ASSERT_EQ(events.size(), 1u);
    EXPECT_EQ(std::get<model::Deleted>(events[0].body).kind, d.kind);
    EXPECT_EQ(std::get<model::Deleted>(events[0].body).key, d.key);
    EXPECT_EQ(code_of(d), absl::StatusCode::kNotFound) << d.kind;
  }
  EXPECT_EQ(code_of(Delete{"run", run.id.str()}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(put(Delete{"port", "/dev/ttyACM1"}).size(), 1u);
  const auto upload = upload_of(1);
  put(PutUpload{upload});
  EXPECT_EQ(put(Delete{"upload", upload.id.str()}).size(), 0u);
}

TEST_P(ControlStoreTest, EventsFromGivesBodiesAsTheyAreNow) {
  put(PutBoard{board_of(1)});
  auto renamed = board_of(1);
  renamed.name = "renamed";
  put(PutBoard{renamed});
  put(PutModel{model_of(1)});
  put(Delete{"model", model_of(1).hash.str()});
  model::Warning warning;
  warning.reason = {"DISK", "nearly full", "free some"};
  put(AppendWarning{warning});
  const auto events = *store_->events_from(1, 100);
  ASSERT_EQ(events.size(), 5u);
  for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(events[i].seq, static_cast<std::int64_t>(i) + 1);
  EXPECT_EQ(std::get<model::Board>(events[0].body).name, "renamed");
  EXPECT_EQ(std::get<model::Board>(events[0].body).meta.etag, 2);
  EXPECT_EQ(std::get<model::Deleted>(events[2].body).kind, "model");
  EXPECT_EQ(std::get<model::Deleted>(events[3].body).key, model_of(1).hash.str());
  EXPECT_EQ(std::get<model::Warning>(events[4].body).reason, warning.reason);
  EXPECT_EQ(store_->events_from(2, 2)->size(), 2u);
  EXPECT_EQ(store_->events_from(2, 2)->front().seq, 2);
  EXPECT_TRUE(store_->events_from(6, 10)->empty());
  EXPECT_TRUE(absl::IsOutOfRange(store_->events_from(0, 10).status()));
}

TEST_P(ControlStoreTest, OpenCommandsAreThoseOfTheBoardNotDone) {
  using S = model::CommandState;
  std::vector<Uuid> open;
  for (S state : {S::kIntent, S::kSent, S::kDone, S::kUnknown}) {
    model::BoardCommand c;
    c.id = new_uuid();
    c.uid = uid_of(1);
    c.kind = "restore";
    c.target = hash_of(3);
    c.state = state;
    c.deadline_us = 77;
    c.run_id = new_uuid();
    EXPECT_TRUE(put(PutCommand{c}).empty());
    if (state != S::kDone) open.push_back(c.id);
    c.id = new_uuid();
    c.uid = uid_of(2);
    put(PutCommand{c});
  }
  auto commands = *store_->open_commands(uid_of(1));
  ASSERT_EQ(commands.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(commands[i].id, open[i]);
  EXPECT_EQ(commands[0].deadline_us, 77);
  EXPECT_EQ(commands[0].target, hash_of(3));
  commands[0].state = S::kDone;
  put(PutCommand{commands[0]});
  EXPECT_EQ(store_->open_commands(uid_of(1))->size(), 2u);
}

TEST_P(ControlStoreTest, KeepsEveryFieldOverReopening) {
  const model::Outputs outputs{model::Task::kRegress, 2, {0.1f, -3e-30f}, {1 / 3.0f, 2e20f}};
  auto evaluation = evaluation_of(1);
  evaluation.outputs = outputs;
  evaluation.scores = {1, 2, 3, 5'000'000'000, hash_of(9)};
  const auto job = job_of(1);
  const auto upload = upload_of(1);
  auto run = run_of(1);
  run.outputs = outputs;
  run.heldout_best_loss = {0xFFFFFFFE, -4, 80, model::LossKind::kMse};
  model::DerivedSamples derived{hash_of(1), hash_of(2), hash_of(3), hash_of(4), Hash(),
                                hash_of(5), outputs,    {},         {},         {}};
  put(PutEvaluation{evaluation});
  put(PutJob{job});
  put(PutUpload{upload});
  put(CreateRun{run, "ann"});
  put(PutDerived{derived});
  put(PutModel{model_of(1)});
  put(PutBoard{board_of(1)});
  put(PutPort{port_of(1)});
  put(PutSetting{"raw", std::string("\0\xFF", 2)});
  const Identity identity = store_->identity();
  if (GetParam()) open();
  EXPECT_EQ(store_->identity().gateway_id, identity.gateway_id);
  EXPECT_EQ(store_->identity().store_epoch, identity.store_epoch);
  EXPECT_EQ(store_->next_seq(), 8);
  EXPECT_EQ(*store_->setting("raw"), std::string("\0\xFF", 2));
  const auto e = *store_->evaluation(evaluation.id);
  EXPECT_EQ(e.confusion, evaluation.confusion);
  EXPECT_EQ(e.loss, evaluation.loss);
  EXPECT_EQ(e.outputs, outputs) << "floats come back bit by bit";
  EXPECT_EQ(e.scores, evaluation.scores);
  const auto j = *store_->job(job.id);
  EXPECT_EQ(j.state, job.state);
  EXPECT_EQ(j.result_key, job.result_key);
  EXPECT_EQ(j.reason, job.reason);
  EXPECT_EQ(j.request_json, job.request_json);
  EXPECT_EQ(store_->upload(upload.id)->received, 10u);
  const auto r = *store_->run(run.id);
  EXPECT_EQ(r.spec, run.spec);
  EXPECT_EQ(r.effective, run.effective);
  EXPECT_FALSE(r.effective.batch.has_value());
  EXPECT_EQ(r.before, run.before);
  EXPECT_EQ(r.outputs, outputs);
  EXPECT_EQ(r.heldout_best_loss, run.heldout_best_loss);
  EXPECT_EQ(r.before_loss, model::Loss{});
  EXPECT_EQ(store_->derived(hash_of(1), hash_of(2))->outputs, outputs);
  EXPECT_EQ(store_->derived(hash_of(1), hash_of(2))->sample_set_hash, hash_of(5));
  EXPECT_TRUE(store_->derived(hash_of(1), hash_of(2))->test.is_zero());
  const auto m = *store_->model(model_of(1).hash);
  EXPECT_EQ(m.image_bytes, 5'000'000'000u);
  ASSERT_EQ(m.layers.size(), 2u);
  EXPECT_EQ(m.layers[0].weight_shape, (std::vector<std::uint32_t>{32, 196}));
  EXPECT_TRUE(m.layers[0].trainable);
  const auto b = *store_->board(uid_of(1));
  EXPECT_EQ(b.boot_id, 0xFEDCBA9876543210);
  EXPECT_EQ(b.labels.at("target"), "m33");
  EXPECT_EQ(b.status, model::BoardStatus::kQuarantined);
  EXPECT_EQ(store_->port("/dev/ttyACM1")->expect_uid, uid_of(1));
}

TEST_P(ControlStoreTest, TextOfABoardNeedNotBeUtf8) {
  auto board = board_of(1);
  board.core = "bad\xFF\xFEtext";
  put(PutBoard{board});
  EXPECT_EQ(store_->board(uid_of(1))->core, "bad\xEF\xBF\xBD\xEF\xBF\xBDtext");
}

TEST_P(ControlStoreTest, ResourceWithoutKeyIsRefused) {
  EXPECT_EQ(code_of(PutBoard{}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code_of(PutSnapshot{}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code_of(CreateRun{}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(store_->next_seq(), 1);
}

}  // namespace
}  // namespace odt::store
