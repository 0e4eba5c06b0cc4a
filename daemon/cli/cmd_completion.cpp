#include <CLI/CLI.hpp>

#include "cli/commands.h"
#include "cli/context.h"

namespace odt::cli {
namespace {

// "path) words ;;" of every verb below `app`.
void add_cases(const CLI::App& app, const std::string& path, std::string& out) {
  std::string words;
  for (const CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; })) {
    words += verb->get_name() + " ";
    add_cases(*verb, path.empty() ? verb->get_name() : path + " " + verb->get_name(), out);
  }
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) words += "--" + name + " ";
  out += "    \"" + path + "\") words=\"" + words + "\" ;;\n";
}

std::string bash_script(const CLI::App& root) {
  std::string cases;
  add_cases(root, "", cases);
  return "# Completion of odtctl: source <(odtctl completion bash)\n"
         "_odtctl() {\n"
         "  local path='' word words=''\n"
         "  for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n"
         "    case $word in -*) ;; *) path=\"$path${path:+ }$word\" ;; esac\n"
         "  done\n"
         "  case \"$path\" in\n" +
         cases +
         "    *) compopt -o default; return ;;\n"
         "  esac\n"
         "  COMPREPLY=($(compgen -W \"$words --json --address --help\" -- "
         "\"${COMP_WORDS[COMP_CWORD]}\"))\n"
         "}\n"
         "complete -F _odtctl odtctl\n";
}

}  // namespace

void add_completion(CLI::App& app, Context& context) {
  const auto shell = std::make_shared<std::string>("bash");
  CLI::App* verb = app.add_subcommand("completion", "Script for the shell's completion");
  verb->add_option("SHELL", *shell, "bash")->check(CLI::IsMember({"bash"}));
  verb->callback([&context, &app, shell] {
    context.action = [&context, &app]() -> Status {
      context.io.out << bash_script(app) << std::flush;
      return {};
    };
  });
}

}  // namespace odt::cli
