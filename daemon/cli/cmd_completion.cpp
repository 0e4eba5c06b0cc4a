#include <CLI/CLI.hpp>
#include <functional>

#include "cli/commands.h"
#include "cli/context.h"

namespace odt::cli {
namespace {

constexpr char kAlways[] = "--json --address --timeout --help";

// path ("" at the root) and words of every verb below `app`, and of itself.
using EachVerb = std::function<void(const std::string& path, const std::string& words)>;
void each_verb(const CLI::App& app, const std::string& path, const EachVerb& each) {
  std::string words;
  for (const CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; })) {
    words += verb->get_name() + " ";
    each_verb(*verb, path.empty() ? verb->get_name() : path + " " + verb->get_name(), each);
  }
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) words += "--" + name + " ";
  each(path, words);
}

// A case "path") variable="words" ;; for every verb.
std::string cases_of(const CLI::App& root, const std::string& variable) {
  std::string cases;
  each_verb(root, "", [&](const std::string& path, const std::string& words) {
    cases += "    \"" + path + "\") " + variable + "=\"" + words + "\" ;;\n";
  });
  return cases;
}

// Where no word fits, all three offer files.
std::string bash_script(const CLI::App& root) {
  return "# Completion of odtctl: source <(odtctl completion bash)\n"
         "_odtctl() {\n"
         "  local path='' word words=''\n"
         "  for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n"
         "    case $word in -*) ;; *) path=\"$path${path:+ }$word\" ;; esac\n"
         "  done\n"
         "  case \"$path\" in\n" +
         cases_of(root, "words") +
         "    *) compopt -o default; return ;;\n"
         "  esac\n"
         "  compopt -o default\n"
         "  COMPREPLY=($(compgen -W \"$words " +
         kAlways +
         "\" -- \"${COMP_WORDS[COMP_CWORD]}\"))\n"
         "}\n"
         "complete -F _odtctl odtctl\n";
}

std::string zsh_script(const CLI::App& root) {
  return "#compdef odtctl\n"
         "# Completion of odtctl: source <(odtctl completion zsh) after compinit\n"
         "_odtctl() {\n"
         "  local verb='' word said=''\n"
         "  for word in \"${(@)words[2,CURRENT-1]}\"; do\n"
         "    case $word in -*) ;; *) verb=\"$verb${verb:+ }$word\" ;; esac\n"
         "  done\n"
         "  case \"$verb\" in\n" +
         cases_of(root, "said") +
         "    *) _files; return ;;\n"
         "  esac\n"
         "  compadd -- ${=said} " +
         kAlways +
         " || _files\n"
         "}\n"
         "compdef _odtctl odtctl\n";
}

std::string fish_script(const CLI::App& root) {
  std::string out =
      "# Completion of odtctl: odtctl completion fish | source\n"
      "function __odtctl_verb\n"
      "    set -l tokens (commandline -opc)\n"
      "    string join ' ' -- (string match -v -- '-*' $tokens[2..])\n"
      "end\n"
      "complete -c odtctl -e\n"
      "complete -c odtctl -a '" +
      std::string(kAlways) + "'\n";
  each_verb(root, "", [&out](const std::string& path, const std::string& words) {
    out +=
        "complete -c odtctl -n 'test \"$(__odtctl_verb)\" = \"" + path + "\"' -a '" + words + "'\n";
  });
  return out;
}

Status print_completion(const CLI::App& root, Context& context, const std::string& shell) {
  const std::string script = shell == "zsh"    ? zsh_script(root)
                             : shell == "fish" ? fish_script(root)
                                               : bash_script(root);
  context.io.out << script << std::flush;
  return {};
}

}  // namespace

void add_completion(CLI::App& app, Context& context) {
  const auto shell = std::make_shared<std::string>("bash");
  CLI::App* verb = app.add_subcommand("completion", "Script for the shell's completion");
  verb->add_option("SHELL", *shell, "bash, zsh or fish")
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  verb->callback([&context, &app, shell] {
    context.action = [&context, &app, shell] { return print_completion(app, context, *shell); };
  });
}

}  // namespace odt::cli
