#pragma once

#include <functional>
#include <string>
#include <vector>

#include "api/api_convert.h"
#include "api/errors.h"
#include "api/filter.h"
#include "store/store.h"

// page_size, page_token and filter of every List. A token is "<items to pass over>.<token of the
// store's page>", because a filter looks at more items than it returns.
namespace odt::api {

struct ListParams {
  std::uint32_t page_size = 100;
  std::uint32_t skip = 0;
  std::string store_token;
  Filter filter;
};
template <typename P>
struct ListPage {
  std::vector<P> items;
  std::string next_token;
};

// INVALID_ARGUMENT: page_size over 1000, a token that is none, a bad filter.
Result<ListParams> list_params(std::uint32_t page_size, const std::string& token,
                               const std::string& filter,
                               const google::protobuf::Descriptor& resource);
std::string list_token(std::size_t skip, const std::string& store_token);

template <typename P, typename Request>
Result<ListParams> params_of(const Request& request) {
  return list_params(request.page_size(), request.page_token(), request.filter(), *P::descriptor());
}

// Reads store pages until the page is full or the end is reached. fetch: one page of the store;
// convert: an item as the resource of the API.
template <typename P, typename Model>
Result<ListPage<P>> list_from(
    const ListParams& params,
    const std::function<Result<store::Page<Model>>(const store::ListQuery&)>& fetch,
    const std::function<P(const Model&)>& convert) {
  ListPage<P> page;
  std::string token = params.store_token;
  std::size_t skip = params.skip;
  while (true) {
    // The same size each time: a token's count of items is of such a page.
    ODT_ASSIGN(const auto read, fetch({1000, token}));
    for (std::size_t i = skip; i < read.items.size(); ++i) {
      P item = convert(read.items[i]);
      if (!params.filter.matches(item)) continue;
      if (page.items.size() == params.page_size) {
        page.next_token = list_token(i, token);
        return page;
      }
      page.items.push_back(std::move(item));
    }
    if (read.next_token.empty()) return page;
    token = read.next_token;
    skip = 0;
  }
}

// The same for a list in memory.
template <typename P>
ListPage<P> list_from_memory(const ListParams& params, std::vector<P> all) {
  ListPage<P> page;
  for (std::size_t i = params.skip; i < all.size(); ++i) {
    if (!params.filter.matches(all[i])) continue;
    if (page.items.size() == params.page_size) {
      page.next_token = list_token(i, "");
      return page;
    }
    page.items.push_back(std::move(all[i]));
  }
  return page;
}

}  // namespace odt::api
