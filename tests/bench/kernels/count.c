/* A QEMU TCG plugin: how often each instruction ran, region by region. The functions it needs of
 * QEMU's plugin interface (version 1) are declared here, since no package ships the header.
 *
 *   -plugin libcount.so,begin=ADDR,end=ADDR,base=ADDR,bytes=N,out=FILE
 * A region lasts from one run of `begin` to the next of `end`. The file gets "region TOTAL", then a
 * line "ADDR COUNT" for each instruction that ran. */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

typedef uint64_t qemu_plugin_id_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
enum qemu_plugin_op { QEMU_PLUGIN_INLINE_ADD_U64 };
enum qemu_plugin_cb_flags { QEMU_PLUGIN_CB_NO_REGS };
typedef void (*tb_cb_t)(qemu_plugin_id_t id, struct qemu_plugin_tb* tb);
typedef void (*exec_cb_t)(unsigned int cpu, void* data);

void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id, tb_cb_t cb);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb* tb);
struct qemu_plugin_insn* qemu_plugin_tb_get_insn(const struct qemu_plugin_tb* tb, size_t i);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn* insn);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn* insn, exec_cb_t cb,
                                            enum qemu_plugin_cb_flags flags, void* data);
void qemu_plugin_register_vcpu_insn_exec_inline(struct qemu_plugin_insn* insn,
                                                enum qemu_plugin_op op, void* counter, uint64_t n);

EXPORT int qemu_plugin_version = 1;

static uint64_t begin_at, end_at, base, bytes;
static uint64_t* counts; /* one per halfword */
static FILE* out;

static void begin(unsigned int cpu, void* data) {
  (void)cpu;
  (void)data;
  memset(counts, 0, bytes / 2 * sizeof *counts);
}

static void end(unsigned int cpu, void* data) {
  (void)cpu;
  (void)data;
  uint64_t total = 0;
  for (uint64_t i = 0; i < bytes / 2; i++) total += counts[i];
  fprintf(out, "region %" PRIu64 "\n", total);
  for (uint64_t i = 0; i < bytes / 2; i++) {
    if (counts[i]) fprintf(out, "%" PRIx64 " %" PRIu64 "\n", base + 2 * i, counts[i]);
  }
  fflush(out);
}

static void translate(qemu_plugin_id_t id, struct qemu_plugin_tb* tb) {
  (void)id;
  for (size_t i = 0; i < qemu_plugin_tb_n_insns(tb); i++) {
    struct qemu_plugin_insn* insn = qemu_plugin_tb_get_insn(tb, i);
    uint64_t at = qemu_plugin_insn_vaddr(insn);
    exec_cb_t mark = at == begin_at ? begin : at == end_at ? end : NULL;
    if (mark) qemu_plugin_register_vcpu_insn_exec_cb(insn, mark, QEMU_PLUGIN_CB_NO_REGS, NULL);
    if (at < base || at - base >= bytes) continue;
    qemu_plugin_register_vcpu_insn_exec_inline(insn, QEMU_PLUGIN_INLINE_ADD_U64,
                                               &counts[(at - base) / 2], 1);
  }
}

static bool option(const char* arg, const char* name, uint64_t* value) {
  size_t n = strlen(name);
  if (strncmp(arg, name, n) != 0 || arg[n] != '=') return false;
  *value = strtoull(arg + n + 1, NULL, 0);
  return true;
}

EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const void* info, int argc, char** argv);
int qemu_plugin_install(qemu_plugin_id_t id, const void* info, int argc, char** argv) {
  (void)info;
  for (int i = 0; i < argc; i++) {
    if (option(argv[i], "begin", &begin_at) || option(argv[i], "end", &end_at)) continue;
    if (option(argv[i], "base", &base) || option(argv[i], "bytes", &bytes)) continue;
    if (strncmp(argv[i], "out=", 4) == 0) out = fopen(argv[i] + 4, "w");
  }
  counts = calloc(bytes / 2 + 1, sizeof *counts);
  if (!out || !counts || !begin_at || !end_at) return -1;
  qemu_plugin_register_vcpu_tb_trans_cb(id, translate);
  return 0;
}
