/* Main loop of every Cortex-M board: one app over the UART, WFI when there is nothing to do. */
#include "app/app.h"
#include "board.h"

/* Window that HELLO_ACK promises, and a control frame beside it. */
#define RX_WINDOW ((uint32_t)(BOARD_RX_WINDOW))
#define RX_RING (RX_WINDOW + 768u)

#define LOG_CRITICAL 5

extern uint8_t __arena_start[], __arena_end[];
/* ELF note: three words of sizes and type, "GNU", then the id. */
extern const uint8_t __build_note[];
#define BUILD_ID_AT 16u

typedef struct {
  uint8_t data[RX_RING];
  volatile uint32_t head; /* written by the interrupt */
  volatile uint32_t tail;
  volatile uint32_t overruns;
} ring_t;

/* The main program's own objects: nothing else in the firmware is static. */
static ring_t rx;
static app_t app;
static uint64_t epochs[BOARD_EPOCH_BYTES / 8];
_Static_assert(sizeof epochs >= sizeof(app_epoch_t), "not even one epoch's record fits");
static board_identity_t identity;
static uint32_t fed_ms;

void uart_received(uint8_t byte) {
  const uint32_t next = rx.head + 1 == RX_RING ? 0 : rx.head + 1;
  if (next == rx.tail) {
    rx.overruns++;
    return;
  }
  rx.data[rx.head] = byte;
  rx.head = next;
}

static uint32_t uart_read(void* ctx, uint8_t* out, uint32_t capacity) {
  (void)ctx;
  uint32_t n = 0;
  uint32_t tail = rx.tail;
  while (n < capacity && tail != rx.head) {
    out[n++] = rx.data[tail];
    tail = tail + 1 == RX_RING ? 0 : tail + 1;
  }
  rx.tail = tail;
  return n;
}

static uint32_t uart_write(void* ctx, const uint8_t* data, uint32_t n) {
  (void)ctx;
  uint32_t sent = 0;
  while (sent < n && board_uart_put(data[sent])) sent++;
  return sent;
}

static uint32_t now_ms(void* ctx) {
  (void)ctx;
  return clock_ms();
}
static uint32_t now_us(void* ctx) {
  (void)ctx;
  return clock_us();
}
static uint64_t entropy(void* ctx) {
  (void)ctx;
  return identity.seed;
}
static void reset(void* ctx) {
  (void)ctx;
  board_restart(RESET_REQUESTED);
}
static void led(void* ctx, bool on) {
  (void)ctx;
  board_led(on);
}
/* Often enough, and not at every byte that comes: it is slow where the bus is. */
static void feed(void* ctx) {
  (void)ctx;
  const uint32_t now = clock_ms();
  if (now - fed_ms < 100u) return;
  fed_ms = now;
  board_watchdog_feed();
}
static uint32_t high_water(void* ctx) {
  (void)ctx;
  return stack_used();
}

/* A byte that comes between the look at the ring and WFI still ends the sleep: a pending interrupt
 * wakes the core although it is masked. */
static void sleep_until_interrupt(void) {
  __asm__ volatile("cpsid i" ::: "memory");
  if (rx.head == rx.tail) __asm__ volatile("wfi" ::: "memory");
  __asm__ volatile("cpsie i" ::: "memory");
}

/* Not inlined: the text shall not stay on the stack. */
static __attribute__((noinline)) bool tell_fault(void) {
  char fault[FAULT_TEXT];
  const bool told = fault_text(fault);
  if (told) app_log(&app, LOG_CRITICAL, fault);
  return told;
}

int main(void);
int main(void) {
  board_reset_t started;
  board_clock_init();
  reset_read(&started);
  identity_read(&identity);
  board_watchdog_start();
  clock_init(kBoard.cpu_hz);
  board_uart_init();
  const hal_t hal = {.uart_read = uart_read,
                     .uart_write = uart_write,
                     .now_ms = now_ms,
                     .now_us = now_us,
                     .entropy = entropy,
                     .reset = reset,
                     .led = led,
                     .watchdog_feed = feed,
                     .stack_high_water = high_water,
                     .nvm = board_nvm()};
  const app_config_t config = {.board = kBoard.name,
                               .core = kBoard.core,
                               .build_id = __build_note + BUILD_ID_AT,
                               .uid = identity.uid,
                               .uid_size = identity.uid_size,
                               .reset_reason = (uint8_t)started.reason,
                               .reset_count = started.count,
                               .extra_caps = identity.has_seed ? 0u : APP_CAP_WEAK_ENTROPY,
                               .max_poll_ms = 250,
                               .rx_window = RX_WINDOW,
                               .arena = __arena_start,
                               .arena_size = (uint32_t)(__arena_end - __arena_start),
                               .epochs = epochs,
                               .epoch_bytes = sizeof epochs,
                               .epoch_capacity = APP_EVENTS};
  app_init(&app, &config, &hal);
  bool untold = tell_fault();
  for (;;) {
    if (app_poll(&app) || app.link.tx_size != 0) continue;
    /* Kept until a host has had it: boards may start again before one comes. */
    if (untold && app.link.session != 0 && app.logs.count == 0) {
      untold = false;
      fault_forget();
    }
    sleep_until_interrupt();
  }
}
