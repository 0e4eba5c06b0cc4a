#include "app/crash.h"

#include <elf.h>
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <string_view>
#include <vector>

#include "base/ids.h"

namespace odt::app {
namespace {

constexpr std::size_t kReports = 20, kFrames = 64, kModules = 64;
constexpr int kSignals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};

// All that the handler needs stands here before it is needed; written once, by catch_crashes().
struct Module {
  std::uintptr_t begin = 0, end = 0, base = 0;
  char name[80] = {};
};
struct Prepared {
  char folder[4000] = {};
  char head[300] = {};
  Module modules[kModules];
  std::size_t module_count = 0;
  volatile sig_atomic_t entered = 0;
  // The one that `context` names is whole; the other is being written.
  char contexts[2][201] = {};
  std::atomic<int> context{0};
};
Prepared g_crash;

std::size_t note_size(std::size_t size) { return (size + 3) / 4 * 4; }

std::string id_of_note(const char* data, std::size_t size) {
  while (size >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) note;
    std::memcpy(&note, data, sizeof note);
    const std::size_t whole = sizeof note + note_size(note.n_namesz) + note_size(note.n_descsz);
    if (whole > size) return {};
    const char* const name = data + sizeof note;
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && std::memcmp(name, "GNU", 4) == 0)
      return to_hex(reinterpret_cast<const std::uint8_t*>(name + 4), note.n_descsz);
    data += whole;
    size -= whole;
  }
  return {};
}

struct Seen {
  std::string build_id;
  bool first = true;
};

// The executable comes first.
int see_module(dl_phdr_info* info, std::size_t, void* data) {
  Seen& seen = *static_cast<Seen*>(data);
  const bool own = std::exchange(seen.first, false);
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& part = info->dlpi_phdr[i];
    const std::uintptr_t at = info->dlpi_addr + part.p_vaddr;
    if (own && part.p_type == PT_NOTE && seen.build_id.empty())
      seen.build_id = id_of_note(reinterpret_cast<const char*>(at), part.p_memsz);
    if (part.p_type != PT_LOAD || (part.p_flags & PF_X) == 0) continue;
    if (g_crash.module_count == kModules) continue;
    Module& module = g_crash.modules[g_crash.module_count++];
    module.begin = at;
    module.end = at + part.p_memsz;
    module.base = info->dlpi_addr;
    const char* const slash = std::strrchr(info->dlpi_name, '/');
    const char* const name = own ? "odtd" : (slash != nullptr ? slash + 1 : info->dlpi_name);
    std::strncpy(module.name, name, sizeof module.name - 1);
  }
  return 0;
}

// ---- in the handler: nothing but write(2), open(2), and arithmetic ----------------------------

struct Line {
  char text[512];
  std::size_t size = 0;
  void put(const char* words) {
    while (*words != '\0' && size < sizeof text) text[size++] = *words++;
  }
  void number(std::uint64_t value, unsigned base) {
    char digits[20];
    std::size_t n = 0;
    do digits[n++] = "0123456789abcdef"[value % base];
    while ((value /= base) != 0);
    while (n != 0 && size < sizeof text) text[size++] = digits[--n];
  }
};

void emit(int file, const Line& line) {
  for (const int to : {file, STDERR_FILENO})
    if (to >= 0) [[maybe_unused]]
      const auto written = ::write(to, line.text, line.size);
}

void put_address(Line& line, std::uintptr_t address) {
  for (std::size_t i = 0; i < g_crash.module_count; ++i) {
    const Module& module = g_crash.modules[i];
    if (address < module.begin || address >= module.end) continue;
    line.put(module.name);
    line.put("+0x");
    line.number(address - module.base, 16);
    return;
  }
  line.put("0x");
  line.number(address, 16);
}

int open_report() {
  ::mkdir(g_crash.folder, 0750);  // with the first report
  Line path;
  path.put(g_crash.folder);
  path.put("/");
  path.number(static_cast<std::uint64_t>(::time(nullptr)), 10);
  path.put("-");
  path.number(static_cast<std::uint64_t>(::getpid()), 10);
  path.put(".txt");
  if (path.size >= sizeof path.text) return -1;
  path.text[path.size] = '\0';
  return ::open(path.text, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0640);
}

void on_crash(int number, siginfo_t* info, void*) {
  // A fault in here, or in another thread meanwhile: no second report.
  if (g_crash.entered != 0) ::_exit(128 + number);
  g_crash.entered = 1;
  const int file = open_report();
  Line head;
  head.put(g_crash.head);
  head.put("signal ");
  head.number(static_cast<std::uint64_t>(number), 10);
  if (number != SIGABRT) {
    head.put(" at address 0x");
    head.number(reinterpret_cast<std::uintptr_t>(info->si_addr), 16);
  }
  head.put("\n");
  head.put(g_crash.contexts[g_crash.context.load(std::memory_order_acquire)]);
  head.put("\n");
  emit(file, head);
  void* frames[kFrames];
  const int count = ::backtrace(frames, static_cast<int>(kFrames));
  for (int i = 0; i < count; ++i) {
    Line line;
    line.put("#");
    line.number(static_cast<std::uint64_t>(i), 10);
    line.put(" ");
    put_address(line, reinterpret_cast<std::uintptr_t>(frames[i]));
    line.put("\n");
    emit(file, line);
  }
  if (file >= 0) {
    ::fsync(file);
    ::close(file);
  }
  // SA_RESETHAND: the default action, so that the service manager sees the signal and a core may
  // be.
  ::raise(number);
}

// ------------------------------------------------------------------------------------------------

void drop_old_reports(const std::string& folder) {
  std::vector<std::filesystem::path> reports;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error))
    if (entry.path().extension() == ".txt") reports.push_back(entry.path());
  std::sort(reports.begin(), reports.end());
  for (std::size_t i = 0; i + kReports < reports.size() + 1; ++i)
    std::filesystem::remove(reports[i], error);
}

}  // namespace

std::string own_build_id() {
  Seen seen;
  const std::size_t count = std::exchange(g_crash.module_count, kModules);
  ::dl_iterate_phdr(see_module, &seen);
  g_crash.module_count = count;
  return seen.build_id;
}

void crash_context(std::string_view text) {
  const int next = 1 - g_crash.context.load(std::memory_order_relaxed);
  const std::size_t size = std::min(text.size(), sizeof g_crash.contexts[next] - 1);
  std::copy_n(text.data(), size, g_crash.contexts[next]);
  g_crash.contexts[next][size] = '\0';
  g_crash.context.store(next, std::memory_order_release);
}

void catch_crashes(const std::string& data_dir, const std::string& version) {
  const std::string folder = data_dir + "/crashes";
  drop_old_reports(folder);
  std::strncpy(g_crash.folder, folder.c_str(), sizeof g_crash.folder - 1);
  g_crash.module_count = 0;
  Seen seen;
  ::dl_iterate_phdr(see_module, &seen);
  const std::string head =
      "odtd " + version + " build " + (seen.build_id.empty() ? "unknown" : seen.build_id) + "\n";
  std::strncpy(g_crash.head, head.c_str(), sizeof g_crash.head - 1);
  // The first backtrace() loads libgcc, which a handler must not.
  void* one[1];
  ::backtrace(one, 1);
  struct sigaction action {};
  action.sa_sigaction = on_crash;
  action.sa_flags = SA_SIGINFO | SA_RESETHAND | SA_ONSTACK;
  for (const int number : kSignals) ::sigaction(number, &action, nullptr);
}

}  // namespace odt::app
