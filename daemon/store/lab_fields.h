#pragma once

#include "store/body_fields.h"

// body_fields.h of what happens to boards in a lab. Inside of body_codec.cpp.
namespace odt::store {

template <typename V>
void fields(V& f, model::Reservation& v) {
  f("owner", v.owner);
  f("note", v.note);
  f("actor", v.actor);
  f("since_us", v.since_us);
  f("expire_us", v.expire_us);
}
template <typename V>
void fields(V& f, model::Maintenance& v) {
  f("note", v.note);
  f("actor", v.actor);
  f("since_us", v.since_us);
}
template <typename V>
void fields(V& f, model::PowerResult& v) {
  f("profile", v.profile);
  f("automatic", v.automatic);
  f("ok", v.ok);
  f("exit_code", v.exit_code);
  f("output", v.output);
  f("took_ms", v.took_ms);
  f("reason", v.reason);
}
template <typename V>
void fields(V& f, model::LabEvent& v) {
  f("board", v.board);
  f("seq", v.seq);
  f("time_us", v.time_us);
  f("kind", v.kind);
  f("actor", v.actor);
  f("command_id", v.command_id);
  f("owner", v.owner);
  f("note", v.note);
  f("expire_us", v.expire_us);
  f("previous", v.previous);
  f("other", v.other);
  f("place", v.place);
  f("power", v.power);
}

}  // namespace odt::store
