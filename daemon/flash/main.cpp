#include <signal.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "flash/image.h"
#include "flash/writer.h"

namespace {

volatile std::sig_atomic_t g_stop = 0;
void on_stop(int) { g_stop = 1; }

int fail(const odt::Status& why) {
  const std::string remedy = odt::remedy_of(why);
  std::fprintf(stderr, "odt-flash: %s%s%s\n", std::string(why.message()).c_str(),
               remedy.empty() ? "" : "\n  what to do: ", remedy.c_str());
  return absl::IsInvalidArgument(why) ? 2 : 1;
}

int inspect(const std::string& file) {
  const auto image = odt::flash::read_image(file);
  if (!image.ok()) return fail(image.status());
  std::printf("%s, %llu bytes, flash 0x%llx + %llu, board %s, core %s, version %s, build %s\n",
              image->format.c_str(), static_cast<unsigned long long>(image->size),
              static_cast<unsigned long long>(image->load_address),
              static_cast<unsigned long long>(image->load_bytes), image->board.c_str(),
              image->core.c_str(), image->version.c_str(), image->build_id.c_str());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"odt-flash: writes firmware onto boards for odtd", "odt-flash"};
  odt::flash::WriterOptions options;
  std::string image;
  bool drain = false;
  app.add_option("--spool", options.spool, "folder between odtd and this program")
      ->type_name("DIR");
  app.add_option("--profiles", options.profiles,
                 "board profiles (repeatable, later ones go first), default "
                 "/usr/share/odt-fleet/boards and /etc/odt-fleet/boards")
      ->allow_extra_args(false)
      ->type_name("DIR");
  app.add_flag("--own-profiles", options.own_profiles,
               "take profiles of this user too, not of root alone");
  app.add_option("--parallel", options.parallel, "boards at once")->check(CLI::Range(1, 64));
  app.add_flag("--drain", drain, "end when no request is left (the default)");
  app.add_flag("--watch", options.watch, "wait for requests until a signal")->excludes("--drain");
  app.add_option("--inspect", image, "say what a firmware image is, and nothing else")
      ->type_name("FILE");
  app.set_version_flag("--version", "odt-flash " ODT_VERSION, "print the version");
  CLI11_PARSE(app, argc, argv);
  if (!image.empty()) return inspect(image);
  if (options.spool.empty())
    return fail(absl::InvalidArgumentError("--spool DIR is missing; odt-flash --help"));
  if (options.profiles.empty())
    options.profiles = {"/usr/share/odt-fleet/boards", "/etc/odt-fleet/boards"};
  struct sigaction action {};
  action.sa_handler = on_stop;
  ::sigaction(SIGTERM, &action, nullptr);
  ::sigaction(SIGINT, &action, nullptr);
  const odt::Status status = odt::flash::write_all(options, g_stop);
  return status.ok() ? 0 : fail(status);
}
