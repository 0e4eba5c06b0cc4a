#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

static const char kUsage[] =
    "usage: odt-sim-board (--listen [HOST:]PORT | --connect HOST:PORT | --pty) [options]\n"
    "  --uid HEX             chip uid, 16 to 32 hex digits\n"
    "  --type NAME           board type it reports (sim)\n"
    "  --ram BYTES           memory for model, samples and training (8388608)\n"
    "  --epoch-records N     epoch records kept until acknowledged (64)\n"
    "  --boot-seed N         entropy of this boot (random)\n"
    "  --step-delay-ms N     slower core: at least this long from step to step\n"
    "  --step-period-ms N    one step each N ms by the clock; what is late is made up for\n"
    "  --count N             boards of this process (1): uids count on from --uid; each dials, or\n"
    "                        --listen PORT, PORT + 1, ...; --nvm FILE.0, FILE.1, ...\n"
    "  --duplicate-uid       the last of them has the first one's uid\n"
    "  --drift-ppm N         its clock goes fast (or slow: -N)\n"
    "line, both directions:\n"
    "  --baud N              paced like a UART (no limit)\n"
    "  --one-way-ms N        time on the way (0)\n"
    "  --faults LIST         per mille of the frames: "
    "drop=N,flip=N,burst=N,truncate=N,duplicate=N,\n"
    "                        garbage=N,delay=N; --delay-ms N: how long a delayed one takes (2000)\n"
    "  --drop-ppm N, --corrupt-ppm N: of the bytes\n"
    "  --cut-every-ms N      with --cut-ms N (1000): the connection is closed for a while\n"
    "board:\n"
    "  --stall-every-ms N    with --stall-ms N: does nothing at all for a while\n"
    "  --busy-every-ms N     with --busy-ms N: announces BUSY, then does nothing for a while\n"
    "  --reset-every-ms N    restarts as its watchdog does, RAM lost\n"
    "  --power-every-ms N    with --power-off-ms N (1000): power cycle\n"
    "  --fault-seed N        the same faults again; the boards of a fleet have them at different "
    "times\n"
    "memory, sensor, process:\n"
    "  --nvm FILE            non-volatile memory (made where it is not there)\n"
    "  --nvm-bytes N         its size (524288)\n"
    "  --nvm-page-us N       time that a page of 128 bytes takes (0): slow memory\n"
    "  --sensor FILE         plays its time steps, little-endian; from the end on again from the "
    "start\n"
    "  --sensor-channels N, --sensor-dtype s8|u8|s16, --sensor-rate HZ: of its values (1, s16, "
    "100);\n"
    "                        a higher rate plays faster; --sensor-once: stops at the end\n"
    "  --button FILE         a button that is pressed while this file is there\n"
    "  --detach              goes on when its parent ends\n"
    "Listens on 127.0.0.1 unless HOST is given; port 0 takes a free one. Prints \"ready WHERE\".\n";

static void die(const char* option, const char* got, const char* want) {
  fprintf(stderr, "odt-sim-board: %s: got \"%s\", wanted %s\n", option, got, want);
  exit(2);
}

static uint64_t number(const char* option, const char* text, uint64_t lo, uint64_t hi) {
  char* end = NULL;
  errno = 0;
  const unsigned long long v = strtoull(text, &end, 0);
  if (errno != 0 || end == text || *end != 0 || text[0] == '-' || v < lo || v > hi) {
    char want[80];
    snprintf(want, sizeof want, "a number from %llu to %llu", (unsigned long long)lo,
             (unsigned long long)hi);
    die(option, text, want);
  }
  return v;
}

static int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

static void parse_uid(const char* text, sim_options_t* o) {
  const size_t n = strlen(text);
  if (n < 16 || n > 32 || n % 2 != 0) die("--uid", text, "16 to 32 hex digits");
  for (size_t i = 0; i < n / 2; i++) {
    const int hi = hex_digit(text[2 * i]);
    const int lo = hex_digit(text[2 * i + 1]);
    if (hi < 0 || lo < 0) die("--uid", text, "16 to 32 hex digits");
    o->uid[i] = (uint8_t)(hi * 16 + lo);
  }
  o->uid_size = (uint8_t)(n / 2);
}

enum {
  kUid = 256,
  kType,
  kListen,
  kConnect,
  kPty,
  kRam,
  kEpochs,
  kBootSeed,
  kStepDelay,
  kStepPeriod,
  kBaud,
  kFaultSeed,
  kDrop,
  kCorrupt,
  kStallEvery,
  kStall,
  kBusyEvery,
  kBusy,
  kDetach,
  kNvm,
  kNvmBytes,
  kNvmPage,
  kSensor,
  kSensorChannels,
  kSensorDtype,
  kSensorRate,
  kSensorOnce,
  kButton,
  kCount,
  kDuplicateUid,
  kDrift,
  kOneWay,
  kFates,
  kDelayMs,
  kCutEvery,
  kCut,
  kResetEvery,
  kPowerEvery,
  kPowerOff,
  kHelp
};

static const struct option kOptions[] = {{"uid", 1, NULL, kUid},
                                         {"type", 1, NULL, kType},
                                         {"name", 1, NULL, kType},
                                         {"listen", 1, NULL, kListen},
                                         {"connect", 1, NULL, kConnect},
                                         {"pty", 0, NULL, kPty},
                                         {"ram", 1, NULL, kRam},
                                         {"epoch-records", 1, NULL, kEpochs},
                                         {"boot-seed", 1, NULL, kBootSeed},
                                         {"step-delay-ms", 1, NULL, kStepDelay},
                                         {"step-period-ms", 1, NULL, kStepPeriod},
                                         {"baud", 1, NULL, kBaud},
                                         {"fault-seed", 1, NULL, kFaultSeed},
                                         {"drop-ppm", 1, NULL, kDrop},
                                         {"corrupt-ppm", 1, NULL, kCorrupt},
                                         {"stall-every-ms", 1, NULL, kStallEvery},
                                         {"stall-ms", 1, NULL, kStall},
                                         {"busy-every-ms", 1, NULL, kBusyEvery},
                                         {"busy-ms", 1, NULL, kBusy},
                                         {"detach", 0, NULL, kDetach},
                                         {"nvm", 1, NULL, kNvm},
                                         {"nvm-bytes", 1, NULL, kNvmBytes},
                                         {"nvm-page-us", 1, NULL, kNvmPage},
                                         {"sensor", 1, NULL, kSensor},
                                         {"sensor-channels", 1, NULL, kSensorChannels},
                                         {"sensor-dtype", 1, NULL, kSensorDtype},
                                         {"sensor-rate", 1, NULL, kSensorRate},
                                         {"sensor-once", 0, NULL, kSensorOnce},
                                         {"button", 1, NULL, kButton},
                                         {"count", 1, NULL, kCount},
                                         {"duplicate-uid", 0, NULL, kDuplicateUid},
                                         {"drift-ppm", 1, NULL, kDrift},
                                         {"one-way-ms", 1, NULL, kOneWay},
                                         {"faults", 1, NULL, kFates},
                                         {"delay-ms", 1, NULL, kDelayMs},
                                         {"cut-every-ms", 1, NULL, kCutEvery},
                                         {"cut-ms", 1, NULL, kCut},
                                         {"reset-every-ms", 1, NULL, kResetEvery},
                                         {"power-every-ms", 1, NULL, kPowerEvery},
                                         {"power-off-ms", 1, NULL, kPowerOff},
                                         {"help", 0, NULL, kHelp},
                                         {NULL, 0, NULL, 0}};

static uint32_t u32(const char* option, uint64_t lo, uint64_t hi) {
  return (uint32_t)number(option, optarg, lo, hi);
}

static void take_where(int option, sim_options_t* o) {
  if (option == kListen) {
    const char* colon = strrchr(optarg, ':');
    (void)number("--listen", colon != NULL ? colon + 1 : optarg, 0, 65535);
    o->listen = optarg;
  } else if (option == kConnect) {
    if (strrchr(optarg, ':') == NULL) die("--connect", optarg, "HOST:PORT");
    o->connect = optarg;
  } else {
    o->pty = true;
  }
}

static void take_fault(int option, sim_options_t* o) {
  const uint32_t hour = 3600u * 1000u;
  switch (option) {
    case kBaud:
      o->baud = u32("--baud", 300, 100000000);
      break;
    case kFaultSeed:
      o->fault_seed = number("--fault-seed", optarg, 0, UINT64_MAX);
      break;
    case kDrop:
      o->drop_ppm = u32("--drop-ppm", 0, 1000000);
      break;
    case kCorrupt:
      o->corrupt_ppm = u32("--corrupt-ppm", 0, 1000000);
      break;
    case kStallEvery:
      o->stall_every_ms = u32("--stall-every-ms", 1, hour);
      break;
    case kStall:
      o->stall_ms = u32("--stall-ms", 1, hour);
      break;
    case kBusyEvery:
      o->busy_every_ms = u32("--busy-every-ms", 1, hour);
      break;
    default:
      o->busy_ms = u32("--busy-ms", 1, hour);
      break;
  }
}

/* "drop=10,flip=5" */
static void take_fates(const char* text, sim_fates_t* f) {
  const struct {
    const char* name;
    uint32_t* value;
  } known[] = {{"drop", &f->drop},         {"flip", &f->flip},           {"burst", &f->burst},
               {"truncate", &f->truncate}, {"duplicate", &f->duplicate}, {"garbage", &f->garbage},
               {"delay", &f->delay}};
  char copy[256];
  snprintf(copy, sizeof copy, "%s", text);
  char* rest = NULL;
  for (char* item = strtok_r(copy, ",", &rest); item != NULL; item = strtok_r(NULL, ",", &rest)) {
    char* equal = strchr(item, '=');
    uint32_t* value = NULL;
    if (equal != NULL) *equal = 0;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
      if (strcmp(item, known[i].name) == 0) value = known[i].value;
    }
    if (value == NULL || equal == NULL) die("--faults", text, "NAME=PER_MILLE,... (see --help)");
    *value = (uint32_t)number("--faults", equal + 1, 0, 1000);
  }
}

static int32_t drift_of(const char* text) {
  char* end = NULL;
  const long v = strtol(text, &end, 10);
  if (end == text || *end != 0 || v < -100000 || v > 100000) {
    die("--drift-ppm", text, "a number from -100000 to 100000");
  }
  return (int32_t)v;
}

static void take_life(int option, sim_options_t* o) {
  const uint32_t day = 24u * 3600u * 1000u;
  switch (option) {
    case kCount:
      o->count = u32("--count", 1, 10000);
      break;
    case kDuplicateUid:
      o->duplicate_uid = true;
      break;
    case kDrift:
      o->drift_ppm = drift_of(optarg);
      break;
    case kOneWay:
      o->one_way_ms = u32("--one-way-ms", 0, 10000);
      break;
    case kFates:
      take_fates(optarg, &o->fates);
      break;
    case kDelayMs:
      o->delay_ms = u32("--delay-ms", 1, day);
      break;
    case kCutEvery:
      o->cut_every_ms = u32("--cut-every-ms", 1, day);
      break;
    case kCut:
      o->cut_ms = u32("--cut-ms", 1, day);
      break;
    case kResetEvery:
      o->reset_every_ms = u32("--reset-every-ms", 1, day);
      break;
    case kPowerEvery:
      o->power_every_ms = u32("--power-every-ms", 1, day);
      break;
    default:
      o->power_off_ms = u32("--power-off-ms", 1, day);
      break;
  }
}

static void take_nvm(int option, sim_options_t* o) {
  if (option == kNvm) {
    o->nvm = optarg;
  } else if (option == kNvmBytes) {
    o->nvm_bytes = u32("--nvm-bytes", 1024, 1u << 30);
  } else {
    o->nvm_page_us = u32("--nvm-page-us", 0, 1000000);
  }
}

static uint8_t dtype_of(const char* text) {
  if (strcmp(text, "s8") == 0) return 1;
  if (strcmp(text, "u8") == 0) return 2;
  if (strcmp(text, "s16") != 0) die("--sensor-dtype", text, "s8, u8 or s16");
  return 3;
}

static uint32_t milli_hz(const char* text) {
  char* end = NULL;
  const double hz = strtod(text, &end);
  if (end == text || *end != 0 || !(hz >= 0.001 && hz <= 1e6)) {
    die("--sensor-rate", text, "Hz from 0.001 to 1000000");
  }
  return (uint32_t)(hz * 1000.0 + 0.5);
}

static void take_sensor(int option, sim_options_t* o) {
  switch (option) {
    case kSensor:
      o->sensor = optarg;
      break;
    case kSensorChannels:
      o->sensor_channels = u32("--sensor-channels", 1, 64);
      break;
    case kSensorDtype:
      o->sensor_dtype = dtype_of(optarg);
      break;
    case kSensorRate:
      o->sensor_milli_hz = milli_hz(optarg);
      break;
    case kSensorOnce:
      o->sensor_once = true;
      break;
    default:
      o->button = optarg;
      break;
  }
}

static void take(int option, sim_options_t* o) {
  switch (option) {
    case kNvm:
    case kNvmBytes:
    case kNvmPage:
      take_nvm(option, o);
      break;
    case kSensor:
    case kSensorChannels:
    case kSensorDtype:
    case kSensorRate:
    case kSensorOnce:
    case kButton:
      take_sensor(option, o);
      break;
    case kCount:
    case kDuplicateUid:
    case kDrift:
    case kOneWay:
    case kFates:
    case kDelayMs:
    case kCutEvery:
    case kCut:
    case kResetEvery:
    case kPowerEvery:
    case kPowerOff:
      take_life(option, o);
      break;
    case kUid:
      parse_uid(optarg, o);
      break;
    case kType:
      if (strlen(optarg) == 0 || strlen(optarg) > 16) die("--type", optarg, "1 to 16 characters");
      o->type = optarg;
      break;
    case kListen:
    case kConnect:
    case kPty:
      take_where(option, o);
      break;
    case kRam:
      o->ram = u32("--ram", 1024, 1u << 30);
      break;
    case kEpochs:
      o->epochs = u32("--epoch-records", 1, 4096);
      break;
    case kBootSeed:
      o->boot_seed = number("--boot-seed", optarg, 0, UINT64_MAX);
      o->has_boot_seed = true;
      break;
    case kStepDelay:
      o->step_delay_ms = u32("--step-delay-ms", 0, 60000);
      break;
    case kStepPeriod:
      o->step_period_ms = u32("--step-period-ms", 1, 60000);
      break;
    case kDetach:
      o->detach = true;
      break;
    case kHelp:
      fputs(kUsage, stdout);
      exit(0);
    case '?':
      fputs(kUsage, stderr);
      exit(2);
    default:
      take_fault(option, o);
      break;
  }
}

void sim_parse(int argc, char** argv, sim_options_t* o) {
  *o = (sim_options_t){.type = "sim",
                       .count = 1,
                       .delay_ms = 2000,
                       .cut_ms = 1000,
                       .power_off_ms = 1000,
                       .ram = 8u << 20,
                       .epochs = 64,
                       .nvm_bytes = 512u << 10,
                       .sensor_channels = 1,
                       .sensor_dtype = 3,
                       .sensor_milli_hz = 100000};
  parse_uid("0d70000000000001", o);
  int option;
  while ((option = getopt_long(argc, argv, "", kOptions, NULL)) != -1) take(option, o);
  const int ways = (o->listen != NULL) + (o->connect != NULL) + o->pty;
  if (optind < argc || ways != 1) {
    fprintf(stderr, "odt-sim-board: %s\n%s",
            optind < argc ? "argument not understood" : "give one of --listen, --connect, --pty",
            kUsage);
    exit(2);
  }
}
