#include "internal.h"

_Static_assert(odt_device_v1_Response_size <= APP_RSP_MAX, "an answer exceeds the cache");

static void get_telemetry_from(app_t* app, const request_t* q, response_t* r) {
  const uint32_t first = events_first(app);
  uint32_t from = q->op.get_telemetry_from.event_id;
  if (from - first > app->events.count) from = first; /* older, or of another boot */
  app->events.send = from;
  r->which_result = odt_device_v1_Response_telemetry_tag;
  r->result.telemetry.first = from;
  r->result.telemetry.next = app->events.next;
}

static void get_epoch(app_t* app, const request_t* q, response_t* r) {
  const uint32_t epoch = q->op.get_epoch.epoch;
  if (epochs_find(app, epoch) == NULL) {
    refuse_limit(r, odt_device_v1_StatusCode_STATUS_CODE_NOT_FOUND, "epoch record is not here",
                 epoch, ", records kept: ", app->epoch_count);
    return;
  }
  app->epoch_again = epoch;
  app->link.pending |= APP_TX_EPOCH_AGAIN;
}

static void identify(app_t* app, const request_t* q, response_t* r) {
  const uint32_t seconds = q->op.identify.seconds;
  if (seconds == 0 || seconds > 600) {
    refuse_limit(r, odt_device_v1_StatusCode_STATUS_CODE_INVALID_ARGUMENT, "seconds", seconds,
                 ", allowed 1..", 600);
    return;
  }
  app->identifying = true;
  app->identify_until_ms = app_now(app) + seconds * 1000u;
  app_log(app, 2, "identify: this is the board");
}

static void reset(app_t* app, const request_t* q, response_t* r) {
  (void)q;
  if (app->hal.reset == NULL) {
    refuse(r, odt_device_v1_StatusCode_STATUS_CODE_UNIMPLEMENTED, "this board cannot reset itself");
    return;
  }
  app->reset_wanted = true; /* after the answer has left */
  app->reset_at_ms = app_now(app) + 200u;
}

typedef struct {
  pb_size_t op;
  void (*run)(app_t*, const request_t*, response_t*);
} handler_t;

static const handler_t kHandlers[] = {
    {odt_device_v1_Request_get_state_tag, state_get},
    {odt_device_v1_Request_xfer_open_tag, xfer_open},
    {odt_device_v1_Request_xfer_commit_tag, xfer_commit},
    {odt_device_v1_Request_xfer_abort_tag, xfer_abort},
    {odt_device_v1_Request_start_run_tag, job_start},
    {odt_device_v1_Request_train_step_tag, job_train_step},
    {odt_device_v1_Request_end_epoch_tag, job_end_epoch},
    {odt_device_v1_Request_ack_epoch_tag, job_ack_epoch},
    {odt_device_v1_Request_job_control_tag, job_control},
    {odt_device_v1_Request_evaluate_tag, eval_start},
    {odt_device_v1_Request_eval_step_tag, eval_step},
    {odt_device_v1_Request_infer_tag, infer_run},
    {odt_device_v1_Request_get_telemetry_from_tag, get_telemetry_from},
    {odt_device_v1_Request_get_epoch_tag, get_epoch},
    {odt_device_v1_Request_identify_tag, identify},
    {odt_device_v1_Request_reset_tag, reset},
    {odt_device_v1_Request_get_eval_tag, eval_get},
    {odt_device_v1_Request_set_precision_tag, steer_set},
    {odt_device_v1_Request_best_kept_tag, job_best_kept},
#if APP_NVM
    {odt_device_v1_Request_nvm_commit_tag, nvm_commit},
    {odt_device_v1_Request_nvm_erase_tag, nvm_erase},
    {odt_device_v1_Request_nvm_status_tag, nvm_status},
#endif
#if APP_CAPTURE
    {odt_device_v1_Request_capture_start_tag, capture_start},
    {odt_device_v1_Request_capture_stop_tag, capture_stop},
    {odt_device_v1_Request_get_windows_tag, capture_get_windows},
    {odt_device_v1_Request_label_window_tag, capture_label},
    {odt_device_v1_Request_feed_sensor_tag, capture_feed},
#endif
};

static void run(app_t* app, const frame_t* f, response_t* r) {
  request_t q = odt_device_v1_Request_init_zero;
  if (!coder_get(&odt_device_v1_Request_coder, f->payload, f->payload_size, &q)) {
    refuse(r, odt_device_v1_StatusCode_STATUS_CODE_INVALID_ARGUMENT,
           "request cannot be decoded: a field exceeds its bound in device.options");
    return;
  }
  for (uint32_t i = 0; i < sizeof kHandlers / sizeof kHandlers[0]; i++) {
    if (kHandlers[i].op == q.which_op) {
      kHandlers[i].run(app, &q, r);
      return;
    }
  }
  refuse(r, odt_device_v1_StatusCode_STATUS_CODE_UNIMPLEMENTED,
         "this firmware does not know the request");
}

void dispatch_request(app_t* app, const frame_t* f) {
  app_link_t* l = &app->link;
  if (l->has_request) {
    const int32_t ahead = (int32_t)(f->id - l->request_id);
    if (ahead < 0) return; /* an old copy */
    if (ahead == 0) {
      l->pending |= APP_TX_RSP;
      return;
    }
  }
  response_t r = odt_device_v1_Response_init_zero;
  run(app, f, &r);
  coder_out_t out = {.bytes = l->rsp, .limit = sizeof l->rsp};
  coder_put(&out, &odt_device_v1_Response_coder, &r);
  l->rsp_size = out.used <= out.limit ? (uint16_t)out.used : 0;
  l->has_request = true;
  l->request_id = f->id;
  l->pending |= APP_TX_RSP;
}
