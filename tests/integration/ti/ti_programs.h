// What compiles and runs odtc's files: gcc and clang on the host, gcc for a Cortex-M33 under QEMU.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "full.h"
#include "run_program.h"

namespace odt::test {

namespace fs = std::filesystem;

inline const char kHeaders[] = " -I" ODT_SRC "/../include ";
inline std::string library(const std::string& compiler) {
  return std::string(kHeaders) + ODT_TI_BUILD + "/libodt-" + compiler + ".a";
}

inline const char kStrict[] = " -std=c11 -O2 -Wall -Wextra -Werror ";
inline const char kArm[] = " -mcpu=cortex-m33 -mthumb -mfloat-abi=soft ";

// A folder of its own, gone at the end.
class TiFolder : public testing::Test {
 protected:
  TiFolder() {
    char name[] = "/tmp/odt-ti-XXXXXX";
    folder_ = ::mkdtemp(name);
  }
  ~TiFolder() override { fs::remove_all(folder_); }

  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  void write(const std::string& name, const std::string& bytes) const {
    std::ofstream(path(name), std::ios::binary) << bytes;
  }
  std::string read(const std::string& name) const { return test::read(path(name)); }
  Output odtc(const std::string& args) const { return run(std::string(ODTC_PATH) + " " + args); }
  std::string sources(const std::string& out) const {
    std::string s;
    for (const char* name :
         {"integer_model_config.c", "train_data.c", "test_vector.c", "tvmgen_default.c"})
      s += " " + path(out) + "/" + name;
    return s + " -I" + path(out);
  }
  Output on_host(const std::string& compiler, const std::string& out,
                 const std::string& defines = "") const {
    const std::string program = path(out + "-" + compiler);
    const Output built = run(compiler + kStrict + defines + ODT_TI_TESTS + "/main.c" +
                             sources(out) + library(compiler) + " -o " + program);
    if (built.code != 0) return built;
    return run(program);
  }
  Output under_qemu(const std::string& out, const std::string& defines) const {
    const std::string program = path(out + ".elf"), boards = ODT_BOARDS;
    const std::string gcc = std::string("arm-none-eabi-gcc") + kArm + kStrict;
    const std::string object = path(out + "-main.o");
    Output o = run(gcc + defines + "-Dmain=ti_main -c " + ODT_TI_TESTS + "/main.c -I" + path(out) +
                   " -I" + ODT_SRC + "/../include -o " + object);
    if (o.code != 0) return o;
    o = run(gcc + object + sources(out) + library("arm-none-eabi-gcc") + " " + ODT_TI_TESTS +
            "/qemu_board.c " + boards + "/cortex_m/startup.c " + boards + "/cortex_m/reset.c -I" +
            boards + "/cortex_m -I" + boards +
            "/../hal/include -fno-move-loop-stores -ffunction-sections " +
            "-nostartfiles --specs=nano.specs --specs=nosys.specs -Wl,--gc-sections " +
            "-Wl,--no-warn-rwx-segments -Wl,--defsym=end=__arena_start -T " + ODT_TI_BUILD +
            "/ti_link.ld" + " -o " + program);
    if (o.code != 0) return o;
    return run(
        "timeout 100 qemu-system-arm -M mps2-an505 -nographic -monitor none -serial null "
        "-semihosting-config enable=on,target=native -kernel " +
        program + " < /dev/null");
  }
  // The program of folder `out` as gcc, clang and a Cortex-M33 run it: all end in the same weights.
  // `learnt` looks at what a whole training says; everyday the others train for fewer epochs.
  template <typename Learnt>
  void expect_alike(const std::string& out, const Learnt& learnt) const {
    const std::string defines = full_run() ? "" : "-DEPOCHS=3 ";
    const Output whole = on_host("gcc", out);
    ASSERT_EQ(whole.code, 0) << whole.text;
    learnt(whole.text);
    const std::string want = hash_of((full_run() ? whole : on_host("gcc", out, defines)).text);
    EXPECT_NE(want, "none");
    for (const char* where : {"clang", "qemu"}) {
      const bool board = std::string(where) == "qemu";
      const Output o = board ? under_qemu(out, defines) : on_host(where, out, defines);
      ASSERT_EQ(o.code, 0) << where << ": " << o.text;
      for (const char* equal : {"vectors equal", "first epoch equal"})
        EXPECT_NE(o.text.find(equal), std::string::npos) << where << ": " << o.text;
      EXPECT_EQ(hash_of(o.text), want) << where;
    }
  }
  static int number(const std::string& text, const std::string& key) {
    const auto at = text.find(key);
    return at == std::string::npos ? -1 : std::atoi(text.c_str() + at + key.size());
  }
  static std::string hash_of(const std::string& text) {
    const auto at = text.find("hash ");
    return at == std::string::npos ? "none" : text.substr(at + 5, 64);
  }

  std::string folder_;
};

}  // namespace odt::test
