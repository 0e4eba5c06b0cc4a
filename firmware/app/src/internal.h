/* Between the sources of firmware/app. */
#ifndef ODT_APP_INTERNAL_H
#define ODT_APP_INTERNAL_H

#include <string.h>

#include "app/app.h"
#include "coder.h"

typedef odt_device_v1_Request request_t;
typedef odt_device_v1_Response response_t;
typedef odt_device_v1_StatusCode status_code_t;

/* ---- text.c: one clear error ---- */
typedef struct {
  char* out;
  uint32_t capacity; /* with the terminator */
  uint32_t size;
} text_t;
void text_begin(text_t* t, char* out, uint32_t capacity);
void text_str(text_t* t, const char* s);
void text_i64(text_t* t, int64_t v);
void text_error(text_t* t, const odt_error_t* e);

void refuse(response_t* r, status_code_t code, const char* text);
/* "what: got against limit" */
void refuse_limit(response_t* r, status_code_t code, const char* what, int64_t got,
                  const char* against, int64_t limit);
void refuse_odt(response_t* r, const odt_error_t* e);
/* Fills err; always false. */
bool fail(odt_error_t* err, odt_status_t status, const char* what);

/* ---- clock ---- */
static inline uint32_t app_now(app_t* app) { return app->hal.now_ms(app->hal.ctx); }
static inline bool app_live(app_t* app) {
  return app->link.session != 0 && app_now(app) - app->link.last_rx_ms < APP_LINK_DOWN_MS;
}

/* ---- link.c, session.c, tx.c ---- */
bool link_receive(app_t* app);
void link_send(app_t* app);
void session_hello(app_t* app, const frame_t* f);
void session_end(app_t* app);
void session_encode_ack(app_t* app, coder_out_t* out);

/* ---- dispatch.c ---- */
void dispatch_request(app_t* app, const frame_t* f);

/* ---- arena.c ---- */
uint32_t arena_free(const app_t* app); /* between regions and trainer */
static inline uint8_t* region_data(app_t* app, app_region_id_t id) {
  return app->config->arena + app->region[id].at;
}
/* Makes room for `bytes` in a region, its content undefined and invalid. Regions behind it move;
 * a trainer that holds only the image's weights gives way. */
bool arena_reserve(app_t* app, app_region_id_t id, uint32_t bytes, odt_error_t* err);
/* Frees every region from `from` on, and the trainer. */
void arena_drop(app_t* app, app_region_id_t from);
bool arena_samples(app_t* app, app_region_id_t id, odt_samples_t* s);
void arena_set_hash(app_t* app, uint8_t hash[32]);

/* ---- trainer.c ---- */
bool trainer_make(app_t* app, const odt_run_spec_t* spec, bool resident, app_trainer_kind_t kind,
                  odt_error_t* err);
/* Keeps the weights that the trainer holds while laying it out anew for spec. */
bool trainer_remake(app_t* app, const odt_run_spec_t* spec, bool resident, odt_error_t* err);
/* A trainer over the image's weights where there is none. */
bool trainer_ensure(app_t* app, odt_error_t* err);
void trainer_drop(app_t* app);
void trainer_default_spec(const app_t* app, uint8_t k, odt_run_spec_t* spec);
bool trainer_has_state(const app_t* app);
bool trainer_has_weights(const app_t* app);

/* ---- xfer*.c ---- */
void xfer_open(app_t* app, const request_t* q, response_t* r);
void xfer_commit(app_t* app, const request_t* q, response_t* r);
void xfer_abort(app_t* app, const request_t* q, response_t* r);
void xfer_chunk(app_t* app, const frame_t* f);
void xfer_window(app_t* app, const frame_t* f);
void xfer_poll(app_t* app);
bool xfer_freezes(const app_t* app); /* training must wait */
bool xfer_out_due(const app_t* app);
uint32_t xfer_encode_chunk(app_t* app, uint8_t* out);
void xfer_in_abort(app_t* app);
bool xfer_in_begin(app_t* app, const odt_device_v1_XferOpen* o, odt_error_t* err);
void xfer_in_data(app_t* app, const uint8_t* data, uint32_t n);
void xfer_in_end(app_t* app, odt_error_t* err);
/* A run or an evaluation reads this resident set. */
bool samples_in_use(const app_t* app, app_region_id_t id);

/* ---- events.c ---- */
/* An Event of one of its messages. */
void events_push(app_t* app, uint32_t tag, const coder_message_t* m, const void* message);
void events_push_epoch(app_t* app, uint32_t step_us);
bool events_encode_next(app_t* app, coder_out_t* out, uint32_t* id);
bool epochs_encode(app_t* app, uint32_t epoch, coder_out_t* out, uint32_t* id);
app_epoch_t* epochs_find(app_t* app, uint32_t epoch);
app_epoch_t* epochs_next(app_t* app); /* place of the next record, where they are not full */
bool epochs_full(const app_t* app);
uint32_t epochs_capacity(const app_t* app); /* records, of the model at hand */
uint32_t epochs_oldest(const app_t* app);   /* epoch of the first one: there is one */
void epochs_ack(app_t* app, uint32_t epoch);
void epochs_clear(app_t* app);
static inline uint32_t events_first(const app_t* app) {
  return app->events.next - app->events.count;
}

/* ---- log.c ---- */
bool log_encode_next(app_t* app, coder_out_t* out, uint32_t* id);

/* ---- convert.c ---- */
bool spec_from_wire(const odt_device_v1_RunSpec* w, const odt_model_t* m, odt_run_spec_t* spec,
                    odt_error_t* err);
void step_to_wire(const app_t* app, const odt_step_record_t* s, odt_device_v1_StepRecord* w);
/* But for the layers. */
void epoch_to_wire(const app_epoch_t* e, odt_device_v1_EpochRecord* w);
/* whole: with what 0.1 did not know. */
void layer_to_wire(const app_t* app, const odt_epoch_record_t* e, uint32_t i, bool whole,
                   odt_device_v1_LayerEpoch* w);

/* ---- job*.c ---- */
bool job_active(const app_t* app);
bool job_work(app_t* app); /* true: there is more */
void job_enter(app_t* app, odt_device_v1_JobState state, const char* text);
void job_fail(app_t* app, const odt_error_t* err);
void job_clear(app_t* app);
bool job_epoch_end(app_t* app, uint32_t correct, uint32_t total, odt_error_t* err);
/* spec.best_on_host: the run stands still until the host has taken or brought the best weights. */
bool job_waits_for_best(const app_t* app);
bool job_best_wanted(const app_t* app);
/* The best has been written: the last epoch's end. */
void job_best_written(app_t* app);
void job_best_kept(app_t* app, const request_t* q, response_t* r);
bool job_start_due(const app_t* app);
uint8_t job_reported_state(const app_t* app);
void job_start(app_t* app, const request_t* q, response_t* r);
void job_train_step(app_t* app, const request_t* q, response_t* r);
/* Carries out a step that was answered with ACCEPTED; true: there is more. */
bool job_step_later(app_t* app);
void job_end_epoch(app_t* app, const request_t* q, response_t* r);
void job_ack_epoch(app_t* app, const request_t* q, response_t* r);
void job_control(app_t* app, const request_t* q, response_t* r);
bool job_is_run(const app_t* app, const void* bytes, uint32_t n);

/* False, with the answer filled: run_id or attempt are not those of the board's run. */
bool job_run_is(app_t* app, const uint8_t* run_id, uint32_t n, uint32_t attempt, response_t* r);

/* ---- steer.c ---- */
/* Those that come with START_RUN: first whether they are in order, then take them. */
bool steer_check(const app_t* app, const odt_run_spec_t* spec, const odt_device_v1_StartRun* s,
                 response_t* r);
void steer_take(app_t* app, const odt_device_v1_StartRun* s);
void steer_set(app_t* app, const request_t* q, response_t* r);
/* Carries out what comes into force with the step to come. */
bool steer_due(app_t* app, odt_error_t* err);

/* ---- nvm*.c: non-volatile memory ---- */
#if APP_NVM
/* One page's work of a commit; true: there is more. Nothing else may change the weights then. */
bool nvm_work(app_t* app);
bool nvm_busy(const app_t* app);
/* A request that has to wait until a commit is over is answered with ACCEPTED: true. */
bool nvm_wait(const app_t* app, response_t* r);
uint32_t nvm_left_ms(const app_t* app);
bool nvm_usable(const app_t* app);
void nvm_boot(app_t* app);
void nvm_fill_state(const app_t* app, odt_device_v1_State* s);
/* A run begins with commit_every; false: its state does not fit a slot. */
bool nvm_run_starts(app_t* app, uint32_t every, odt_error_t* err);
void nvm_after_step(app_t* app);
void nvm_run_done(app_t* app);
/* Takes the newest commit into memory. */
bool nvm_restore(app_t* app, odt_error_t* err);
bool nvm_begin(app_t* app, uint32_t commit_id, odt_error_t* err);
void nvm_commit(app_t* app, const request_t* q, response_t* r);
void nvm_erase(app_t* app, const request_t* q, response_t* r);
void nvm_status(app_t* app, const request_t* q, response_t* r);
static inline bool nvm_restored(const app_t* app) { return app->nvm.restored; }
static inline void nvm_forget_restored(app_t* app) { app->nvm.restored = false; }
static inline bool nvm_resident(const app_t* app) { return app->nvm.restoring_resident; }
#else
static inline bool nvm_work(app_t* app) {
  (void)app;
  return false;
}
static inline bool nvm_busy(const app_t* app) {
  (void)app;
  return false;
}
static inline bool nvm_wait(const app_t* app, response_t* r) {
  (void)app;
  (void)r;
  return false;
}
static inline uint32_t nvm_left_ms(const app_t* app) {
  (void)app;
  return 0;
}
static inline bool nvm_usable(const app_t* app) {
  (void)app;
  return false;
}
static inline void nvm_boot(app_t* app) { (void)app; }
static inline bool nvm_run_starts(app_t* app, uint32_t every, odt_error_t* err) {
  (void)app;
  if (every == 0) return true;
  *err = (odt_error_t){.status = ODT_UNIMPLEMENTED,
                       .what = "commit_every: this board has no non-volatile memory",
                       .index = -1};
  return false;
}
static inline void nvm_after_step(app_t* app) { (void)app; }
static inline void nvm_run_done(app_t* app) { (void)app; }
static inline bool nvm_restored(const app_t* app) {
  (void)app;
  return false;
}
static inline void nvm_forget_restored(app_t* app) { (void)app; }
static inline bool nvm_resident(const app_t* app) {
  (void)app;
  return false;
}
#endif

/* ---- capture*.c: windows of a sensor ---- */
#if APP_CAPTURE
/* Takes what the sensor has brought; true: there may be more. */
bool capture_poll(app_t* app);
bool capture_active(app_t* app);
/* Bytes of a window as a sample, NULL: it is not in memory. */
const uint8_t* capture_window(app_t* app, uint32_t id, uint32_t* bytes);
void capture_start(app_t* app, const request_t* q, response_t* r);
void capture_stop(app_t* app, const request_t* q, response_t* r);
void capture_get_windows(app_t* app, const request_t* q, response_t* r);
void capture_label(app_t* app, const request_t* q, response_t* r);
void capture_feed(app_t* app, const request_t* q, response_t* r);
#endif

/* ---- eval.c ---- */
void eval_begin(app_eval_t* e, uint32_t id, uint8_t role, uint32_t total, uint32_t step);
bool eval_slice(app_t* app, app_eval_t* e); /* true: done */
/* The guard's score: correct samples or, without classes, the loss as far as 32 bits go. */
uint32_t eval_score(const app_t* app, const app_eval_t* e);
bool eval_work(app_t* app); /* the evaluation that the host asked for */
void eval_start(app_t* app, const request_t* q, response_t* r);
void eval_step(app_t* app, const request_t* q, response_t* r);
void eval_get(app_t* app, const request_t* q, response_t* r);
void infer_run(app_t* app, const request_t* q, response_t* r);
uint32_t eval_largest(const int8_t* logits, uint32_t n); /* the first of the largest */

/* ---- state.c ---- */
void state_get(app_t* app, const request_t* q, response_t* r);
void state_fill(app_t* app, bool with_hash, response_t* r);

static inline uint32_t min_u32(uint32_t a, uint32_t b) { return a < b ? a : b; }
static inline uint32_t get_u16(const uint8_t* p) { return (uint32_t)p[0] | ((uint32_t)p[1] << 8); }
static inline uint32_t get_u32(const uint8_t* p) { return get_u16(p) | (get_u16(p + 2) << 16); }
static inline void put_u32(uint8_t* p, uint32_t v) {
  for (uint32_t i = 0; i < 4; i++) p[i] = (uint8_t)(v >> (8 * i));
}

#endif
