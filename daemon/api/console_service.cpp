#include "api/search_words.h"
#include "api/service_helpers.h"
#include "odt/api/v1/console.pb.h"

namespace odt::api {
namespace {

constexpr int kMaxBoards = 100;

Result<store::ConsoleQuery> read_query(const v1::ListConsoleRequest& request) {
  store::ConsoleQuery query;
  if (request.page_size() > 1000)
    return bad_field("page_size", std::to_string(request.page_size()) + "; limit 1000",
                     "ask for less, and go on with after_seq or before_seq");
  if (request.page_size() != 0) query.page_size = request.page_size();
  if (request.board_uids_size() > kMaxBoards)
    return bad_field("board_uids", std::to_string(request.board_uids_size()) + "; limit 100",
                     "leave it empty for all boards");
  for (const auto& raw : request.board_uids()) {
    ODT_ASSIGN(auto uid, uid_field(raw, "board_uids"));
    query.boards.push_back(std::move(uid));
  }
  const int directions = (request.after_seq() != 0) + (request.before_seq() != 0) + request.begin();
  if (directions > 1)
    return bad_field("after_seq", "only one of after_seq, before_seq and begin is allowed",
                     "leave the others out");
  // SQLite's numbers have a sign.
  constexpr std::uint64_t kMost = 0x7FFF'FFFF'FFFF'FFFF;
  query.after_seq = std::min(request.after_seq(), kMost);
  query.before_seq = std::min(request.before_seq(), kMost);
  query.begin = request.begin();
  if (request.least_level() > 5)
    return bad_field("least_level", std::to_string(request.least_level()) + "; allowed 0 to 5");
  query.least_level = request.least_level();
  ODT_ASSIGN(auto words, search_words(request.search()));
  query.with = std::move(words.with);
  query.without = std::move(words.without);
  return query;
}

v1::ListConsoleResponse to_response(const store::ConsolePage& page,
                                    const store::ConsoleLimits& limits) {
  v1::ListConsoleResponse response;
  for (const auto& line : page.lines) {
    auto* out = response.add_lines();
    out->set_seq(line.seq);
    out->set_time_us(line.time_us);
    out->set_board_uid(line.board_uid.str());
    out->set_source(static_cast<v1::ConsoleSource>(line.source));
    out->set_level(line.level);
    out->set_text(clean_text(line.text));
  }
  response.set_more(page.more);
  response.set_newest_seq(page.newest_seq);
  response.set_epoch(page.epoch);
  response.set_kept(page.kept);
  response.set_kept_per_board(limits.per_board);
  response.set_kept_of_all(limits.of_all);
  response.set_lost(page.lost);
  return response;
}

}  // namespace

ServicePtr make_console_service(Deps& deps) {
  auto service = std::make_unique<ApiService>(
      deps.gate,
      *v1::ListConsoleRequest::descriptor()->file()->FindServiceByName("ConsoleService"));
  service->unary<v1::ListConsoleRequest, v1::ListConsoleResponse>(
      "ListConsole", [&deps](const Call&, const v1::ListConsoleRequest& request,
                             Reply<v1::ListConsoleResponse> reply) {
        ODT_FIELD(auto query, read_query(request));
        if (deps.console == nullptr)
          return reply(absl::UnavailableError("this daemon keeps no consoles"));
        deps.console->list(std::move(query), [&deps, reply](Result<store::ConsolePage> page) {
          if (!page.ok()) return reply(page.status());
          reply(to_response(*page, deps.console->limits()));
        });
      });
  return service;
}

}  // namespace odt::api
