#include "api/service_helpers.h"
#include "store/garbage.h"

// StorageService: the trash. What else is kept on disk: storage_reads.cpp.
namespace odt::api {
namespace {

v1::TrashItem trash_message(const store::TrashItem& item) {
  v1::TrashItem out;
  out.set_kind(item.kind);
  out.set_key(item.key);
  out.set_name(item.name);
  out.set_trashed_time_us(item.trashed_time_us);
  out.set_trashed_by(item.trashed_by);
  out.set_purge_time_us(item.trashed_time_us + store::kTrashKeptUs);
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

// One purge, by the steps of store/garbage.h.
struct Purge {
  v1::PurgeRequest request;
  std::string key;
  store::Batch batch;
  std::vector<store::TrashItem> items;
  Status kept;  // why some of what was asked for stays in the trash
  std::uint64_t records = 0;
  std::set<Hash> named;
};

Status find_items(Purge& purge, store::ControlStore& store, std::int64_t now_us) {
  const std::int64_t before =
      now_us - static_cast<std::int64_t>(purge.request.older_than_s()) * 1'000'000;
  if (purge.key.empty()) {
    ODT_ASSIGN(purge.items, store::trash_before(store, before));
    return {};
  }
  ODT_ASSIGN(auto item, store.trash_item(purge.request.kind(), purge.key));
  if (item.trashed_time_us <= before) purge.items.push_back(std::move(item));
  return {};
}

// One run that fails does not keep the others.
void erase_telemetry(Purge& purge, store::TelemetryStore& telemetry) {
  std::erase_if(purge.items, [&](const store::TrashItem& item) {
    const auto records = store::erase_telemetry_of(item, telemetry, purge.request.dry_run());
    if (records.ok()) purge.records += *records;
    purge.kept.Update(records.status());
    return !records.ok();
  });
}

// Leaves what is named once the items are gone; a dry run only supposes so.
Status purge_items(Purge& purge, store::ControlStore& store) {
  std::set<std::pair<std::string, std::string>> supposed;
  if (purge.request.dry_run()) {
    for (const auto& item : purge.items) supposed.insert({item.kind, item.key});
  } else {
    ODT_ASSIGN(purge.items, store::purge_rows(store, purge.items, std::move(purge.batch)));
  }
  ODT_ASSIGN(purge.named, store.named_hashes(supposed));
  return {};
}

Result<v1::PurgeResponse> free_blobs(Deps& deps, const Purge& purge) {
  ODT_ASSIGN(const store::Freed freed,
             store::collect_garbage(deps.blobs, purge.named, store::candidates_of(purge.items),
                                    deps.clock.now_us(), purge.request.dry_run()));
  ODT_TRY(purge.kept);
  v1::PurgeResponse response;
  response.set_items(purge.items.size());
  response.set_telemetry_frames(purge.records);
  response.set_bytes_freed(freed.bytes);
  response.set_blobs(freed.blobs);
  return response;
}

void run_purge(Deps& deps, const std::shared_ptr<Purge>& purge,
               const Reply<v1::PurgeResponse>& reply) {
  const auto stopping = [reply] { reply(absl::UnavailableError("odtd is stopping")); };
  const auto blobs = [&deps, purge, reply](store::TelemetryStore&) {
    reply(free_blobs(deps, *purge));
  };
  const auto rows = [&deps, purge, reply, stopping, blobs](store::ControlStore& store) {
    if (const Status done = purge_items(*purge, store); !done.ok()) return reply(done);
    if (!deps.telemetry.post(blobs)) stopping();
  };
  const auto telemetry = [&deps, purge, stopping, rows](store::TelemetryStore& store) {
    erase_telemetry(*purge, store);
    if (!deps.control.post(rows)) stopping();
  };
  const auto find = [&deps, purge, reply, stopping, telemetry](store::ControlStore& store) {
    if (const Status found = find_items(*purge, store, deps.clock.now_us()); !found.ok())
      return reply(found);
    if (!deps.telemetry.post(telemetry)) stopping();
  };
  if (!deps.control.post(find)) stopping();
}

void add_purge(ApiService& service, Deps& deps) {
  service.unary<v1::PurgeRequest, v1::PurgeResponse>(
      "Purge",
      [&deps](const Call& call, const v1::PurgeRequest& request, Reply<v1::PurgeResponse> reply) {
        auto purge = std::make_shared<Purge>();
        purge->request = request;
        if (request.kind().empty() != request.key().empty())
          return reply(bad_field("key", "kind and key come together", "or neither of them"));
        if (!request.key().empty()) {
          ODT_FIELD(purge->key, trash_key_field(request.kind(), request.key()));
        }
        purge->batch.actor = call.ctx.actor;
        purge->batch.command_id = call.ctx.command_id;
        run_purge(deps, purge, reply);
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
