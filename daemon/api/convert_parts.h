#pragma once

#include <string>

#include "api/api_convert.h"
#include "api/errors.h"

// What conversions to messages share. For the *_convert.cpp files.
namespace odt::api {

template <typename Id>
std::string id_bytes(const Id& id) {
  return id.is_zero() ? std::string() : id.str();
}

inline void set_meta(const model::Meta& meta, v1::Meta* out) {
  out->set_gateway_id(id_bytes(meta.gateway_id));
  out->set_created_by(clean_text(meta.created_by));
  out->set_create_time_us(meta.create_time_us);
  out->set_etag(static_cast<std::uint64_t>(meta.etag));
}

inline void set_reason(const model::Reason& reason, v1::Reason* out) {
  out->set_code(clean_text(reason.code));
  out->set_text(clean_text(reason.text));
  out->set_remedy(clean_text(reason.remedy));
}

// Reservation, maintenance, target snapshot, power (lab_convert.cpp).
void add_lab(const model::Board& board, v1::Board& out);

inline void set_accuracy(const model::Accuracy& accuracy, v1::Accuracy* out) {
  out->set_correct(accuracy.correct);
  out->set_total(accuracy.total);
}

inline void set_loss(const model::Loss& loss, v1::Loss* out) {
  out->set_sum(loss.sum);
  out->set_exp2(loss.exp2);
  out->set_count(loss.count);
  out->set_kind(static_cast<v1::Loss::Kind>(loss.kind));
}

// Absent, as a message, where nothing was measured.
template <typename Make>
void set_known_loss(const model::Loss& loss, Make make) {
  if (loss.count != 0) set_loss(loss, make());
}

template <typename From, typename To>
void copy_all(const From& from, To* to) {
  to->Add(from.begin(), from.end());
}

}  // namespace odt::api
