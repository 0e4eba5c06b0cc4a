"""What odtctl says of itself: its man page, and completion in bash, zsh and fish."""
import itertools
import pathlib
import re
import subprocess
import sys
import tempfile

from world import World

ROOT = pathlib.Path(__file__).resolve().parents[2]


def ran(*command, **more):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL, **more)
    assert done.returncode == 0 and not done.stderr, (command, done.returncode, done.stderr)
    return done.stdout


def verbs_of(odtctl, *path):
    """Every verb by its words, as the help has them."""
    text = ran(odtctl, *path, "--help")
    names = re.findall(r"^  ([a-z][\w-]*)", text.partition("Subcommands:\n")[2].partition("\n\n")[0], re.M)
    return [" ".join(path)] * bool(path) + [v for name in names for v in verbs_of(odtctl, *path, name)]


def test_cli_man_page(bin_dir):
    odtctl = bin_dir / "odtctl"
    with tempfile.TemporaryDirectory() as name:
        page = pathlib.Path(name) / "man" / "odtctl.1"
        ran(sys.executable, ROOT / "daemon" / "cli" / "man_page.py", odtctl, page)
        shown = ran("groff", "-man", "-ww", "-Tascii", "-P-c", "-P-b", "-P-u", "-rLL=200n", page)
    assert shown.startswith("ODTCTL(1)") and "odtctl - boards that learn, from the command line" in shown
    verbs = verbs_of(odtctl)
    assert len(verbs) > 60 and "campaign federated" in verbs
    for verb in verbs:
        assert re.search(rf"^ +{re.escape(verb)}$", shown, re.M), f"{verb} is not in the page"
    for text in ("--mu-weight", "130 interrupted", "$ODT_ADDRESS", "--address TEXT"):
        assert text in shown, text


def completed(bin_dir, shell, *words):
    """What the shell offers behind `odtctl WORDS...`; the last word is the beginning of what is wanted."""
    path = {"PATH": f"{bin_dir}:/usr/bin:/bin", "HOME": "/nonexistent", "TERM": "dumb"}
    line = " ".join(["odtctl", *words])
    if shell == "bash":
        given = " ".join(f"'{w}'" for w in ("odtctl", *words))
        code = (f"source <(odtctl completion bash); compopt() {{ :; }}; COMP_WORDS=({given}); COMP_CWORD={len(words)}; _odtctl; "
                'printf "%s\\n" "${COMPREPLY[@]}"')
        return ran("bash", "--norc", "-c", code, env=path).split()
    if shell == "zsh":
        given = " ".join(f"'{w}'" for w in ("odtctl", *words))
        # compinit reads hundreds of files: once is enough.
        ready = "autoload -U compinit; compinit -D -u" if words == ("",) else "compdef() { : }"
        code = (f"{ready}; source <(odtctl completion zsh); compadd() {{ shift; print -l -- \"$@\" }}; "
                f"_files() {{ print FILES }}; words=({given}); CURRENT={len(words) + 1}; _odtctl")
        return [w for w in ran("zsh", "-f", "-c", code, env=path).split() if w.startswith(words[-1]) or w == "FILES"]
    with tempfile.TemporaryDirectory() as home:
        code = f"odtctl completion fish | source; complete -C '{line}'"
        return [entry.split("\t")[0] for entry in ran("fish", "--no-config", "-c", code, env={**path, "HOME": home}, cwd=home).splitlines()]


def check_shell(bin_dir, shell):
    top = completed(bin_dir, shell, "")
    assert {"board", "campaign", "stop-all", "completion"} <= set(top), (shell, top)
    assert sorted(completed(bin_dir, shell, "boa")) == ["board"], shell
    assert {"list", "show", "label"} <= set(completed(bin_dir, shell, "board", "")), shell
    assert "list" not in completed(bin_dir, shell, "train", ""), shell
    assert set(completed(bin_dir, shell, "campaign", "create", "--mu")) == {"--mu-weight", "--mu-offset"}, shell
    assert {"--json", "--timeout"} <= set(completed(bin_dir, shell, "--json", "run", "--")), shell


def test_cli_completion_bash(bin_dir):
    check_shell(bin_dir, "bash")


def test_cli_completion_zsh(bin_dir):
    check_shell(bin_dir, "zsh")


def test_cli_completion_fish(bin_dir):
    check_shell(bin_dir, "fish")


def test_cli_completion_of_another_shell_is_refused(bin_dir):
    done = subprocess.run([bin_dir / "odtctl", "completion", "tcsh"], capture_output=True, text=True)
    assert done.returncode == 2 and "fish" in done.stderr, done


def test_cli_reader_that_leaves(bin_dir):
    """`odtctl ... | head`: no error; what streams ends."""
    with World(bin_dir) as world:
        world.add_sim("c0", "6d00000000000001")

        def piped(reader, *args):
            command = f'"$@" | {reader}; exit "${{PIPESTATUS[0]}}"'
            return subprocess.Popen(["bash", "-c", command, "bash", str(world.bin / "odtctl"), "--address",
                                     f"unix:{world.socket_path}", *args], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                    stderr=subprocess.PIPE, text=True)
        for args in (["board", "list"], ["--json", "board", "list"], ["--help"]):
            done = piped("true", *args)
            assert done.communicate(timeout=60)[1] == "" and done.returncode in (0, 141), (args, done.returncode)
        for args in (["watch"], ["--json", "watch"]):
            streams = piped("head -1", *args)
            numbers = itertools.count()
            # It learns of it when it has something to say.
            world.wait_for("its end", lambda: streams.poll() is not None or world.ctl(
                "board", "label", "c0", f"n={next(numbers)}") is None, 30)
            assert streams.returncode in (0, 141) and "written whole" not in streams.stderr.read(), (args, streams.returncode)
        full = subprocess.run(["bash", "-c", '"$@" > /dev/full', "bash", str(world.bin / "odtctl"), "--address",
                               f"unix:{world.socket_path}", "board", "list"], capture_output=True, text=True, timeout=60)
        assert full.returncode == 1 and "written whole" in full.stderr, full
