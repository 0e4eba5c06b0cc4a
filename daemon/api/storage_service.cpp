#include <map>

#include "api/service_helpers.h"
#include "store/garbage.h"

// StorageService: the trash. What else is kept on disk: storage_reads.cpp.
namespace odt::api {
namespace {

constexpr std::int64_t kTrashKeptUs = 30LL * 24 * 3600 * 1'000'000;

v1::TrashItem trash_message(const store::TrashItem& item) {
  v1::TrashItem out;
  out.set_kind(item.kind);
  out.set_key(item.key);
  out.set_name(item.name);
  out.set_trashed_time_us(item.trashed_time_us);
  out.set_trashed_by(item.trashed_by);
  out.set_purge_time_us(item.trashed_time_us + kTrashKeptUs);
  return out;
}

// The raw key of a thing of a kind that has a trash.
Result<std::string> trash_key_field(const std::string& kind, const std::string& key) {
  if (kind == "board") {
    ODT_ASSIGN(const BoardUid uid, uid_field(key, "key"));
    return uid.str();
  }
  if (kind == "model" || kind == "snapshot") {
    ODT_ASSIGN(const Hash hash, hash_field(key, "key"));
    return hash.str();
  }
  if (kind == "dataset" || kind == "run") {
    ODT_ASSIGN(const Uuid id, uuid_field(key, "key"));
    return id.str();
  }
  return bad_field("kind", "'" + kind + "'; expected board, model, dataset, snapshot or run");
}

void answer_trashed(Deps& deps, const std::string& kind, const std::string& key,
                    const Reply<v1::TrashResponse>& reply) {
  answer_from_store(deps.control, reply,
                    [kind, key](store::ControlStore& store) -> Result<v1::TrashResponse> {
                      ODT_ASSIGN(const auto item, store.trash_item(kind, key));
                      v1::TrashResponse response;
                      *response.mutable_item() = trash_message(item);
                      return response;
                    });
}

void add_trash(ApiService& service, Deps& deps) {
  service.unary<v1::TrashRequest, v1::TrashResponse>(
      "Trash",
      [&deps](const Call& call, const v1::TrashRequest& request, Reply<v1::TrashResponse> reply) {
        ODT_FIELD(const std::string key, trash_key_field(request.kind(), request.key()));
        const std::string kind = request.kind();
        const auto answer = [&deps, kind, key, reply](const auto& done) {
          if (!done.ok()) return reply(done.status());
          answer_trashed(deps, kind, key, reply);
        };
        if (kind == "board") {
          // The fleet knows whether it is online or busy; a board changes by itself, so no etag
          // holds long.
          if (request.etag() != 0)
            return reply(bad_field("etag", "is not taken for a board", "Leave it out."));
          ODT_FIELD(const BoardUid uid, uid_field(key, "key"));
          CallContext ctx = call.ctx;
          ctx.request_id.clear();  // the answer is remembered here
          return deps.fleet.delete_board(std::move(ctx), uid, answer);
        }
        deps.control.commit(
            batch_of(call, store::Trash{kind, key, static_cast<std::int64_t>(request.etag())}),
            answer);
      });
  service.unary<v1::ListTrashRequest, v1::ListTrashResponse>(
      "ListTrash", [&deps](const Call&, const v1::ListTrashRequest& request,
                           Reply<v1::ListTrashResponse> reply) {
        ODT_FIELD(auto params, params_of<v1::TrashItem>(request));
        answer_from_store(deps.control, reply,
                          [params](store::ControlStore& store) -> Result<v1::ListTrashResponse> {
                            ODT_ASSIGN(auto page,
                                       (list_from<v1::TrashItem, store::TrashItem>(
                                           params, [&](const auto& q) { return store.trash(q); },
                                           [](const auto& item) { return trash_message(item); })));
                            v1::ListTrashResponse response;
                            for (auto& item : page.items) *response.add_items() = std::move(item);
                            response.set_next_page_token(page.next_token);
                            return response;
                          });
      });
  service.unary<v1::UntrashRequest, v1::UntrashResponse>(
      "Untrash", [&deps](const Call& call, const v1::UntrashRequest& request,
                         Reply<v1::UntrashResponse> reply) {
        ODT_FIELD(const std::string key, trash_key_field(request.kind(), request.key()));
        deps.control.commit(batch_of(call, store::Untrash{request.kind(), key}),
                            [&deps, reply](const auto& done) {
                              if (!done.ok()) return reply(done.status());
                              for (const model::Event& event : *done)
                                if (const auto* board = std::get_if<model::Board>(&event.body))
                                  deps.fleet.board_restored(*board);
                              reply(v1::UntrashResponse());
                            });
      });
}

// One purge: rows first, then telemetry, then the blobs that nothing names any more.
struct Purge {
  std::vector<store::TrashItem> items;
  std::set<Hash> named;
  bool dry_run = false;
};

Result<std::vector<store::TrashItem>> items_to_purge(store::ControlStore& store,
                                                     const v1::PurgeRequest& request,
                                                     const std::string& key, std::int64_t now_us) {
  std::vector<store::TrashItem> items;
  const std::int64_t before =
      now_us - static_cast<std::int64_t>(request.older_than_s()) * 1'000'000;
  if (!key.empty()) {
    ODT_ASSIGN(auto item, store.trash_item(request.kind(), key));
    if (item.trashed_time_us <= before) items.push_back(std::move(item));
    return items;
  }
  store::ListQuery query{1000, {}};
  do {
    ODT_ASSIGN(auto page, store.trash(query));
    for (auto& item : page.items)
      if (item.trashed_time_us <= before) items.push_back(std::move(item));
    query.page_token = page.next_token;
  } while (!query.page_token.empty());
  return items;
}

// What is named once the items are gone; a dry run only supposes so.
Result<std::set<Hash>> named_without(store::ControlStore& store, const Purge& purge) {
  if (!purge.dry_run) return store.named_hashes();
  std::set<std::pair<std::string, std::string>> gone;
  for (const auto& item : purge.items) gone.insert({item.kind, item.key});
  return store.named_hashes(gone);
}

Result<v1::PurgeResponse> free_room(Deps& deps, store::TelemetryStore& telemetry,
                                    const Purge& purge) {
  v1::PurgeResponse response;
  response.set_items(purge.items.size());
  std::map<Hash, std::int64_t> candidates;
  for (const store::TrashItem& item : purge.items) {
    for (const Hash& hash : item.blobs)
      candidates[hash] = std::max(candidates[hash], item.trashed_time_us);
    if (item.kind != "run") continue;
    ODT_ASSIGN(const Uuid run, Uuid::from_bytes(item.key));
    ODT_ASSIGN(const auto use, telemetry.use(run));
    if (!purge.dry_run) ODT_TRY(telemetry.erase(run).status());
    response.set_telemetry_frames(response.telemetry_frames() + use.raw_frames +
                                  use.thinned_frames);
  }
  ODT_ASSIGN(const store::Freed freed, store::collect_garbage(deps.blobs, purge.named, candidates,
                                                              deps.clock.now_us(), purge.dry_run));
  response.set_bytes_freed(freed.bytes);
  response.set_blobs(freed.blobs);
  return response;
}

void add_purge(ApiService& service, Deps& deps) {
  service.unary<v1::PurgeRequest, v1::PurgeResponse>(
      "Purge",
      [&deps](const Call& call, const v1::PurgeRequest& request, Reply<v1::PurgeResponse> reply) {
        std::string key;
        if (request.kind().empty() != request.key().empty())
          return reply(bad_field("key", "kind and key come together", "or neither of them"));
        if (!request.key().empty()) {
          ODT_FIELD(key, trash_key_field(request.kind(), request.key()));
        }
        deps.control.post([&deps, call, request, key, reply](store::ControlStore& store) {
          auto items = items_to_purge(store, request, key, deps.clock.now_us());
          if (!items.ok()) return reply(items.status());
          auto purge = std::make_shared<Purge>();
          purge->items = std::move(*items);
          purge->dry_run = request.dry_run();
          store::Batch batch;
          batch.actor = call.ctx.actor;
          batch.command_id = call.ctx.command_id;
          for (const auto& item : purge->items)
            batch.changes.push_back(store::Purge{item.kind, item.key});
          if (!purge->dry_run && !batch.changes.empty())
            if (const auto done = store.commit(std::move(batch)); !done.ok())
              return reply(done.status());
          auto named = named_without(store, *purge);
          if (!named.ok()) return reply(named.status());
          purge->named = std::move(*named);
          deps.telemetry.post([&deps, purge, reply](store::TelemetryStore& telemetry) {
            reply(free_room(deps, telemetry, *purge));
          });
        });
      });
}

}  // namespace

ServicePtr make_storage_service(Deps& deps) {
  auto service = std::make_unique<ApiService>(
      deps.gate, *v1::TrashRequest::descriptor()->file()->FindServiceByName("StorageService"));
  add_trash(*service, deps);
  add_purge(*service, deps);
  add_storage_reads(*service, deps);
  return service;
}

}  // namespace odt::api
