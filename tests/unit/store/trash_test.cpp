// Delete with undo: one suite for both control stores, and what blobs it frees.
#include "any_control_store.h"
#include "model/provenance.h"
#include "store/fs_blob_store.h"
#include "store/garbage.h"

namespace odt::store {
namespace {

using model::RunState;

class TrashTest : public AnyControlStore {
 protected:
  std::vector<model::Event> put(Change change) {
    auto events = store_->commit(batch_of(std::move(change)));
    EXPECT_TRUE(events.ok()) << events.status();
    return events.ok() ? *events : std::vector<model::Event>();
  }
  Status refused(Change change) { return store_->commit(batch_of(std::move(change))).status(); }
  // A finished run of model 1 and dataset 1, with an epoch.
  model::Run finished_run() {
    model::Run run = run_of(1);
    run.spec.model_hash = model_of(1).hash;
    run.spec.dataset_id = dataset_.id;
    run.spec.start_snapshot = {};
    put(PutModel{model_of(1)});
    put(PutDataset{dataset_});
    put(CreateRun{run, "ann"});
    put(AppendEpoch{epoch_of(run.id, 1)});
    put(transition_of(run, RunState::kCancelled));
    return *store_->run(run.id);
  }

  model::Dataset dataset_ = dataset_of(1);
};

INSTANTIATE_TEST_SUITE_P(All, TrashTest, testing::Bool(),
                         [](const auto& p) { return p.param ? "Sqlite" : "Memory"; });

TEST_P(TrashTest, ThingIsGoneFromListsAndComesBackAsItWas) {
  const model::Run run = finished_run();
  const auto gone = put(Trash{"run", run.id.str()});
  ASSERT_EQ(gone.size(), 1u);
  EXPECT_EQ(std::get<model::Deleted>(gone[0].body).kind, "run");
  EXPECT_TRUE(absl::IsNotFound(store_->run(run.id).status()));
  EXPECT_TRUE(store_->runs({})->items.empty());
  if (GetParam()) open();
  const auto trash = store_->trash({});
  ASSERT_EQ(trash->items.size(), 1u);
  EXPECT_EQ(trash->items[0].kind, "run");
  EXPECT_EQ(trash->items[0].key, run.id.str());
  EXPECT_EQ(trash->items[0].name, run.spec.name);
  EXPECT_EQ(trash->items[0].trashed_time_us, clock_.time_us);
  const auto back = put(Untrash{"run", run.id.str()});
  ASSERT_EQ(back.size(), 1u);
  EXPECT_EQ(std::get<model::Run>(back[0].body).meta.etag, back[0].seq);
  const auto again = store_->run(run.id);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->spec, run.spec);
  EXPECT_EQ(again->state, RunState::kCancelled);
  EXPECT_EQ(again->meta.create_time_us, run.meta.create_time_us);
  EXPECT_EQ(store_->epochs(run.id)->size(), 1u);
  EXPECT_TRUE(store_->trash({})->items.empty());
  EXPECT_TRUE(absl::IsNotFound(refused(Untrash{"run", run.id.str()})));
}

TEST_P(TrashTest, EveryKindGoesAndComesBack) {
  auto snapshot = snapshot_of(2);
  snapshot.model_hash = model_of(2).hash;
  put(PutBoard{board_of(2)});
  put(PutModel{model_of(2)});
  put(PutDataset{dataset_});
  put(PutSnapshot{snapshot});
  const std::vector<std::pair<std::string, std::string>> things = {
      {"snapshot", snapshot.hash.str()},
      {"board", uid_of(2).str()},
      {"model", model_of(2).hash.str()},
      {"dataset", dataset_.id.str()}};
  for (const auto& [kind, key] : things) put(Trash{kind, key});
  EXPECT_EQ(store_->trash({})->items.size(), things.size());
  EXPECT_TRUE(store_->boards({})->items.empty() && store_->models({})->items.empty() &&
              store_->datasets({})->items.empty() && store_->snapshots({})->items.empty());
  // Weights come back after their model only.
  const Status alone = refused(Untrash{"snapshot", snapshot.hash.str()});
  EXPECT_EQ(reason_of(alone), "MODEL_UNKNOWN") << alone;
  for (auto it = things.rbegin(); it != things.rend(); ++it) put(Untrash{it->first, it->second});
  EXPECT_EQ(store_->board(uid_of(2))->name, board_of(2).name);
  EXPECT_EQ(store_->model(model_of(2).hash)->name, model_of(2).name);
  EXPECT_EQ(store_->dataset(dataset_.id)->name, dataset_.name);
  EXPECT_EQ(store_->snapshot(snapshot.hash)->aliases, snapshot.aliases);
}

TEST_P(TrashTest, RefusesWhatIsUsedAndSaysByWhat) {
  model::Run run = run_of(1);
  run.spec.model_hash = model_of(1).hash;
  run.spec.dataset_id = dataset_.id;
  put(PutBoard{board_of(1)});
  put(PutModel{model_of(1)});
  put(PutDataset{dataset_});
  put(CreateRun{run, "ann"});
  EXPECT_EQ(reason_of(refused(Trash{"board", uid_of(1).str()})), "BOARD_IN_USE");
  EXPECT_EQ(reason_of(refused(Trash{"run", run.id.str()})), "RUN_IN_USE");
  put(transition_of(run, RunState::kCancelled));
  const Status kept = refused(Trash{"dataset", dataset_.id.str()});
  EXPECT_EQ(reason_of(kept), "DATASET_IN_USE");
  EXPECT_NE(kept.message().find("is used by 1 run"), std::string::npos) << kept;
  EXPECT_EQ(reason_of(refused(Trash{"model", model_of(1).hash.str()})), "MODEL_IN_USE");
  put(Trash{"board", uid_of(1).str()});
  put(Trash{"run", run.id.str()});
  put(Trash{"dataset", dataset_.id.str()});
  put(Trash{"model", model_of(1).hash.str()});
  EXPECT_TRUE(absl::IsInvalidArgument(refused(Trash{"port", "/dev/ttyACM1"})));
  EXPECT_TRUE(absl::IsNotFound(refused(Trash{"run", new_uuid().str()})));
  Trash stale{"run", run.id.str(), 1};
  put(Untrash{"run", run.id.str()});
  EXPECT_TRUE(absl::IsAborted(refused(stale)));
}

TEST_P(TrashTest, AliasesThatOthersTookStayWithThem) {
  auto a = snapshot_of(1), b = snapshot_of(2);
  a.model_hash = b.model_hash = model_of(1).hash;
  a.aliases = {"best", "old"};
  b.aliases = {"best"};
  put(PutModel{model_of(1)});
  put(PutSnapshot{a});
  put(Trash{"snapshot", a.hash.str()});
  put(PutSnapshot{b});
  put(Untrash{"snapshot", a.hash.str()});
  EXPECT_EQ(store_->snapshot(a.hash)->aliases, std::vector<std::string>{"old"});
  EXPECT_EQ(store_->snapshot(b.hash)->aliases, std::vector<std::string>{"best"});
}

TEST_P(TrashTest, OneThatIsThereAgainIsNotOverwritten) {
  put(PutBoard{board_of(1)});
  put(Trash{"board", uid_of(1).str()});
  auto fresh = board_of(1);
  fresh.name = "fresh";
  put(PutBoard{fresh});
  EXPECT_TRUE(absl::IsAlreadyExists(refused(Untrash{"board", uid_of(1).str()})));
  EXPECT_EQ(store_->board(uid_of(1))->name, "fresh");
  put(Purge{"board", uid_of(1).str()});
  EXPECT_TRUE(store_->trash({})->items.empty());
}

TEST_P(TrashTest, PurgeTakesWhatHangsOnARunAndWatchersReadOn) {
  const model::Run run = finished_run();
  put(Trash{"run", run.id.str()});
  put(Purge{"run", run.id.str()});
  EXPECT_TRUE(store_->epochs(run.id)->empty());
  EXPECT_TRUE(store_->run_events(run.id)->empty());
  EXPECT_TRUE(absl::IsNotFound(refused(Purge{"run", run.id.str()})));
  const auto events = store_->events_from(1, 100);
  ASSERT_TRUE(events.ok()) << events.status();
  for (const model::Event& event : *events)
    if (const auto* deleted = std::get_if<model::Deleted>(&event.body)) {
      EXPECT_EQ(deleted->kind, "run");
      EXPECT_EQ(deleted->key, run.id.str());
    }
}

TEST_P(TrashTest, BlobsGoWhenNothingNamesThemAnyMore) {
  auto blobs = FsBlobStore::open(dir_.file("blobs"));
  ASSERT_TRUE(blobs.ok());
  const Hash kept = *(*blobs)->put("kept"), shared = *(*blobs)->put("shared");
  const Hash freed = *(*blobs)->put(std::string(1000, 'x')), stray = *(*blobs)->put("stray");
  auto a = dataset_of(1), b = dataset_of(2);
  a.content_hash = freed;
  a.report_hash = shared;
  b.content_hash = kept;
  b.report_hash = shared;
  put(PutDataset{a});
  put(PutDataset{b});
  clock_.time_us = SystemClock().now_us() + 1;
  put(Trash{"dataset", a.id.str()});
  EXPECT_TRUE(store_->named_hashes()->contains(freed));  // still to be restored
  EXPECT_FALSE(store_->named_hashes({{"dataset", a.id.str()}})->contains(freed));
  const auto item = store_->trash_item("dataset", a.id.str());
  const auto candidates = candidates_of({*item});
  put(Purge{"dataset", a.id.str()});
  const auto named = store_->named_hashes();
  EXPECT_EQ(collect_garbage(**blobs, *named, candidates, clock_.time_us, true)->bytes, 1000u);
  EXPECT_TRUE((*blobs)->has(kept));
  const auto done = collect_garbage(**blobs, *named, candidates, clock_.time_us);
  ASSERT_TRUE(done.ok());
  EXPECT_EQ(done->bytes, 1000u);
  EXPECT_EQ(done->blobs, 1u);
  EXPECT_FALSE((*blobs)->has(freed));
  EXPECT_TRUE((*blobs)->has(kept) && (*blobs)->has(shared) && (*blobs)->has(stray));
  // Nobody has asked for the stray one for long.
  const auto later = collect_garbage(**blobs, *named, {}, clock_.time_us + 2 * kOrphanAgeUs);
  EXPECT_EQ(later->blobs, 1u);
}

TEST_P(TrashTest, WhatHangsOnAThingIsLeftOutWithIt) {
  const auto a = dataset_of(1);
  put(PutDataset{a});
  model::DerivedSamples derived;
  derived.content_hash = a.content_hash;
  derived.model_hash = sha256("model");
  derived.train = sha256("samples");
  put(PutDerived{derived});
  put(Trash{"dataset", a.id.str()});
  EXPECT_TRUE(store_->named_hashes()->contains(derived.train));
  const auto supposed = store_->named_hashes({{"dataset", a.id.str()}});
  put(Purge{"dataset", a.id.str()});
  EXPECT_EQ(*supposed, *store_->named_hashes());
  EXPECT_FALSE(supposed->contains(derived.train));
}

TEST_P(TrashTest, PurgeTakesOnlyWhatIsStillInTheTrashAsItWas) {
  const std::int64_t time = clock_.time_us;
  for (const int n : {1, 2, 3, 4}) put(PutModel{model_of(n)});
  const auto key = [](int n) { return model_of(n).hash.str(); };
  for (const int n : {1, 2, 3}) put(Trash{"model", key(n)});
  clock_.time_us += 10;
  put(Trash{"model", key(4)});
  auto items = trash_before(*store_, time);
  ASSERT_TRUE(items.ok());
  ASSERT_EQ(items->size(), 3u);
  put(Untrash{"model", key(2)});
  put(Untrash{"model", key(3)});
  put(Trash{"model", key(3)});  // anew: its time begins again
  const auto purged = purge_rows(*store_, *items, {});
  ASSERT_TRUE(purged.ok()) << purged.status();
  ASSERT_EQ(purged->size(), 1u);
  EXPECT_EQ(purged->front().key, key(1));
  EXPECT_TRUE(store_->model(model_of(2).hash).ok());
  EXPECT_EQ(store_->trash({})->items.size(), 2u);
}

TEST(GarbageTest, CandidatesHaveTheLatestTime) {
  TrashItem early, late;
  early.blobs = late.blobs = {sha256("shared")};
  early.trashed_time_us = 10;
  late.trashed_time_us = 20;
  EXPECT_EQ(candidates_of({late, early}).at(sha256("shared")), 20);
}

TEST(GarbageTest, DryRunCountsTheRecordsThatErasingTakes) {
  MemoryTelemetryStore telemetry;
  const Uuid run = new_uuid();
  ASSERT_TRUE(telemetry.append({frame_of(run, 1), frame_of(run, 2)}).ok());
  TrashItem item;
  item.kind = "run";
  item.key = run.str();
  EXPECT_EQ(*erase_telemetry_of(item, telemetry, true), 2u);
  EXPECT_EQ(*erase_telemetry_of(item, telemetry), 2u);
  EXPECT_EQ(telemetry.use(run)->raw_frames, 0u);
}

TEST(GarbageTest, BlobThatSomebodyAskedForMeanwhileStays) {
  MemoryBlobStore blobs;
  const Hash hash = *blobs.put("content");
  const std::int64_t before = SystemClock().now_us() - 1'000'000;
  EXPECT_EQ(collect_garbage(blobs, {}, {{hash, before}}, before)->blobs, 0u);
  EXPECT_TRUE(blobs.has(hash));
}

TEST_P(TrashTest, SnapshotsAreLinksOfAChain) {
  auto a = snapshot_of(1), b = snapshot_of(2);
  a.parent = b.parent = Hash{};
  a.chain = b.chain = sha256("what somebody says");
  put(PutSnapshot{a});
  const Hash first = store_->snapshot(a.hash)->chain;
  EXPECT_EQ(first, model::chain_link(a, Hash{}));
  b.parent = a.hash;
  put(PutSnapshot{b});
  EXPECT_EQ(store_->snapshot(b.hash)->chain, model::chain_link(b, first));
  EXPECT_EQ(store_->snapshot(b.hash)->parent_chain, first);
  // What people change is not in it; where weights came from is said once.
  auto edited = *store_->snapshot(b.hash);
  edited.aliases = {"best"};
  edited.note = "good";
  edited.pinned = true;
  edited.meta.etag = 0;
  edited.chain = Hash{};
  put(PutSnapshot{edited});
  EXPECT_EQ(store_->snapshot(b.hash)->chain, model::chain_link(b, first));
  // A link to weights that nobody has is a link to their hash alone.
  auto c = snapshot_of(3);
  c.parent = sha256("gone");
  put(PutSnapshot{c});
  EXPECT_EQ(store_->snapshot(c.hash)->chain, model::chain_link(c, Hash{}));
}

TEST_P(TrashTest, PinnedSnapshotsStay) {
  auto a = snapshot_of(1);
  a.pinned = true;
  put(PutSnapshot{a});
  EXPECT_EQ(reason_of(refused(Trash{"snapshot", a.hash.str()})), "SNAPSHOT_IN_USE");
  a.pinned = false;
  put(PutSnapshot{a});
  EXPECT_EQ(put(Trash{"snapshot", a.hash.str()}).size(), 1u);
}

}  // namespace
}  // namespace odt::store
