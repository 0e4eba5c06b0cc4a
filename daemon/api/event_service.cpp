#include <absl/strings/numbers.h>

#include "api/event_match.h"
#include "api/service_helpers.h"
#include "odt/api/v1/events.pb.h"

namespace odt::api {
namespace {

using Response = v1::SearchEventsResponse;

constexpr std::uint32_t kChunk = 500;  // events looked at before the store serves others
constexpr std::uint64_t kMostScanned = 20'000;

struct Search {
  EventSearch what;
  std::uint32_t page_size = 100;
  std::int64_t before = 0;  // 0: from the newest
  std::int64_t after = 0;
  Response response;
};

Result<Search> read_search(const v1::SearchEventsRequest& request) {
  Search search;
  if (request.page_size() > 1000)
    return bad_field("page_size", std::to_string(request.page_size()) + "; limit 1000",
                     "ask for less and follow next_page_token");
  if (request.page_size() != 0) search.page_size = request.page_size();
  if (!request.page_token().empty() &&
      (!absl::SimpleAtoi(request.page_token(), &search.before) || search.before < 1))
    return bad_field("page_token", "not a token of this list",
                     "pass next_page_token as it was given, or nothing");
  const auto* what = v1::Event::descriptor()->FindOneofByName("what");
  for (const auto& kind : request.kinds()) {
    const auto* field = v1::Event::descriptor()->FindFieldByName(kind);
    if (field == nullptr || field->containing_oneof() != what)
      return bad_field("kinds", "no kind '" + clean_text(kind) + "'",
                       "fields of Event.what: board, run_event, epoch, warning, ...");
    search.what.kinds.insert(kind);
  }
  if (!request.board_uid().empty()) {
    ODT_ASSIGN(const auto uid, uid_field(request.board_uid(), "board_uid"));
    search.what.board_uid = uid.str();
  }
  search.what.problems = request.problems();
  if (request.after_seq() < 0) return bad_field("after_seq", "less than 0");
  search.after = request.after_seq();
  ODT_ASSIGN(search.what.words, search_words(request.search()));
  return search;
}

// One chunk towards older events. True: done.
Result<bool> look(store::ControlStore& store, Search& search) {
  ODT_ASSIGN(const std::int64_t kept, store.first_event_seq());
  search.response.set_oldest_event_seq(kept);
  if (search.response.store_epoch() == 0) {
    search.response.set_store_epoch(store.identity().store_epoch);
    search.response.set_newest_event_seq(store.next_seq() - 1);
  }
  const std::int64_t oldest = std::max(kept, search.after + 1);
  if (search.before == 0 || search.before > store.next_seq()) search.before = store.next_seq();
  if (search.before <= oldest) return true;
  const std::int64_t first = std::max(oldest, search.before - std::int64_t{kChunk});
  ODT_ASSIGN(const auto events,
             store.events_from(first, static_cast<std::uint32_t>(search.before - first)));
  EventNames names(store);
  for (auto event = events.rbegin(); event != events.rend(); ++event) {
    v1::Event converted = to_proto(*event);
    if (matches(converted, search.what, names)) {
      if (search.response.events_size() == static_cast<int>(search.page_size)) {
        search.response.set_next_page_token(std::to_string(event->seq + 1));
        return true;
      }
      *search.response.add_events() = std::move(converted);
    }
    search.response.set_scanned(search.response.scanned() + 1);
  }
  search.before = first;
  if (first > oldest && search.response.scanned() >= kMostScanned) {
    search.response.set_next_page_token(std::to_string(first));
    return true;
  }
  return first <= oldest;
}

// Chunk by chunk, so that commits and other calls get between.
void look_on(store::ControlThread& control, const std::shared_ptr<Search>& search,
             const Reply<Response>& reply) {
  const bool posted = control.post([&control, search, reply](store::ControlStore& store) {
    const auto done = look(store, *search);
    if (!done.ok()) return reply(done.status());
    if (*done) return reply(std::move(search->response));
    look_on(control, search, reply);
  });
  if (!posted) reply(absl::UnavailableError("odtd is stopping"));
}

}  // namespace

ServicePtr make_event_service(Deps& deps) {
  auto service = std::make_unique<ApiService>(
      deps.gate, *v1::SearchEventsRequest::descriptor()->file()->FindServiceByName("EventService"));
  service->unary<v1::SearchEventsRequest, Response>(
      "SearchEvents",
      [&deps](const Call&, const v1::SearchEventsRequest& request, Reply<Response> reply) {
        ODT_FIELD(auto search, read_search(request));
        look_on(deps.control, std::make_shared<Search>(std::move(search)), reply);
      });
  return service;
}

}  // namespace odt::api
