#!/usr/bin/python3
"""The Debian packages in a system of their own: a debootstrap chroot in which they are installed, started as the unit
starts them, used, upgraded from an older package with its database, removed and purged. Needs root and debootstrap
(or --base), else it is skipped. Prints PASS, FAIL or SKIP package/install.

  install.py --debs DIR --sim-board FILE [--old DEB] [--base DIR]

  --debs        folder of the packages (ninja debs)
  --sim-board   odt-sim-board of the same build: boards that train, outside of the packages
  --old         package of an earlier version: installed first, its database is upgraded (build_old.sh makes that of a tag)
  --base        a bookworm root to copy instead of a fresh debootstrap
Not tried here, for there is no systemd in a chroot: the unit's sandbox at work, udev rules, journald.
"""
import argparse
import csv
import json
import os
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

UNIT = "/lib/systemd/system/odtd.service"
CONFIG = "etc/odt-fleet/odtd.toml"
THRESHOLD = 30  # of systemd-analyze security, in tenths
ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive", "HOME": "/root"}
# What every installation of any package leaves behind.
EVERYDAY = ("/var/lib/dpkg/", "/var/lib/apt/", "/var/cache/", "/var/log/", "/etc/ld.so.cache", "/etc/passwd", "/etc/group",
            "/etc/shadow", "/etc/gshadow", "/etc/.pwd.lock", "/var/lib/systemd/deb-systemd-helper", "/usr/share/mime", "/etc/subuid",
            "/etc/subgid")


def fail(text):
    raise SystemExit(f"install.py: {text}")


def check(fact, text):
    if not fact:
        fail(text)


class Chroot:
    def __init__(self, base):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="odt-package-", dir="/var/tmp"))
        self.mounted, self.children = [], []
        self.base = base

    def __enter__(self):
        try:
            if self.base:
                subprocess.run(["cp", "-a", f"{self.base}/.", str(self.root)], check=True)
            else:
                subprocess.run(["debootstrap", "--variant=minbase", "bookworm", str(self.root)], check=True)
            for name in ("resolv.conf", "hosts"):
                shutil.copy(f"/etc/{name}", self.root / "etc" / name)
            shutil.copytree("/etc/ssl/certs", self.root / "etc/ssl/certs", dirs_exist_ok=True, ignore_dangling_symlinks=True)
            for file in pathlib.Path("/etc/apt").glob("sources.list.d/*.sources"):
                shutil.copy(file, self.root / "etc/apt/sources.list.d")
            for file in pathlib.Path("/etc/apt/apt.conf.d").iterdir():
                if "proxy" in file.read_text().lower() or "Verify" in file.read_text():
                    shutil.copy(file, self.root / "etc/apt/apt.conf.d")
            if list(pathlib.Path("/etc/apt").glob("sources.list.d/*.sources")):
                (self.root / "etc/apt/sources.list").write_text("")
            # Services stay down: nobody is there to run them.
            policy = self.root / "usr/sbin/policy-rc.d"
            policy.write_text("#!/bin/sh\nexit 101\n")
            policy.chmod(0o755)
            for what in ("proc", "dev", "dev/pts"):
                subprocess.run(["mount", "--bind", f"/{what}", str(self.root / what)], check=True)
                self.mounted.append(what)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for child in self.children:
            if child.poll() is None:
                child.kill()
                child.wait()
        for what in reversed(self.mounted):
            subprocess.run(["umount", "-l", str(self.root / what)], check=False)
        left = [line for line in pathlib.Path("/proc/mounts").read_text().splitlines() if f" {self.root}" in line]
        if left:
            print(f"install.py: still mounted, {self.root} stays: {left}", file=sys.stderr)
            return
        shutil.rmtree(self.root)

    def run(self, *argv, user=None, ok=(0,), timeout=1200):
        who = [f"--userspec={user}", f"--groups={user},dialout"] if user else []
        done = subprocess.run(["chroot", *who, str(self.root), *map(str, argv)], env=ENVIRONMENT, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=timeout)
        if ok is not None and done.returncode not in ok:
            fail(f"{' '.join(map(str, argv))} ended with {done.returncode}:\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
        return done

    def start(self, *argv, user, log, **extra):
        out = open(log, "ab")
        child = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", "chroot", f"--userspec={user}", f"--groups={user},dialout",
                                  str(self.root), *map(str, argv)], env={**ENVIRONMENT, **extra},
                                 stdin=subprocess.DEVNULL, stdout=out, stderr=out)
        self.children.append(child)
        return child

    def files(self):
        found = set()
        for folder, names, files in os.walk(self.root):
            path = os.path.normpath("/" + os.path.relpath(folder, self.root))
            names[:] = [n for n in names if os.path.join(path, n) not in ("/proc", "/dev", "/sys", "/run", "/tmp")]
            found.update(os.path.normpath(os.path.join(path, n)) for n in [*names, *files])
        return {f for f in found if not f.startswith(EVERYDAY)}


class Daemon:
    """odtd as its unit starts it, with a stub in the place of systemd's notification socket."""

    def __init__(self, chroot, *extra):
        self.chroot = chroot
        root = chroot.root
        lines = (root / UNIT[1:]).read_text().splitlines()
        command = next(line.partition("=")[2] for line in lines if line.startswith("ExecStart=")).split()
        self.type = next(line.partition("=")[2] for line in lines if line.startswith("Type="))
        # StateDirectory= and RuntimeDirectory= are systemd's to make.
        chroot.run("install", "-d", "-o", "odt", "-g", "odt", "-m", "0755", "/run/odt-fleet")
        chroot.run("install", "-d", "-o", "odt", "-g", "odt", "-m", "0750", "/var/lib/odt-fleet")
        path = root / "run/notify"
        path.unlink(missing_ok=True)
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(str(path))
        path.chmod(0o777)
        self.log = root / "tmp/odtd.log"
        # Ports of its own: other programs of this machine may have the usual ones.
        self.process = chroot.start(*command, "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0", "--listen", "127.0.0.1:0", *extra,
                                    user="odt", log=self.log, NOTIFY_SOCKET="/run/notify", WATCHDOG_USEC="3000000")
        self.hear("READY=1", 120)
        self.endpoints = json.loads((root / "var/lib/odt-fleet/endpoints.json").read_text())

    def hear(self, word, seconds):
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self.socket.settimeout(0.5)
            try:
                said = self.socket.recv(4096).decode()
            except TimeoutError:
                check(self.process.poll() is None, f"odtd ended with {self.process.returncode}:\n{self.log.read_text()[-3000:]}")
                continue
            if word in said.split("\n"):
                return
        fail(f"odtd did not say {word} within {seconds} s:\n{self.log.read_text()[-3000:]}")

    def ctl(self, *argv, ok=(0,)):
        done = self.chroot.run("odtctl", "--json", *argv, ok=ok)
        return json.loads(done.stdout) if done.stdout.strip().startswith(("{", "[")) else done.stdout

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.hear("STOPPING=1", 20)
        code = self.process.wait(timeout=30)
        check(code == 0, f"odtd ended with {code} on SIGTERM")


def sample_file(path):
    """Two classes of four values that a small network learns."""
    rng = random.Random(7)
    with open(path, "w", newline="") as out:
        rows = csv.writer(out)
        rows.writerow(["a", "b", "c", "d", "label"])
        for _ in range(600):
            label = rng.randrange(2)
            rows.writerow([rng.randrange(40) + (60 if label else 0), rng.randrange(100), rng.randrange(30) + (0 if label else 50),
                           rng.randrange(100), label])


def board(chroot, daemon, sim_board, uid):
    """A simulated board from outside of the package, for ever."""
    target = chroot.root / "usr/local/bin/odt-sim-board"
    if not target.exists():
        shutil.copy(sim_board, target)
    listen = daemon.endpoints.get("boards") or daemon.endpoints.get("listen")
    address = listen[0] if isinstance(listen, list) else listen
    return chroot.start("/usr/local/bin/odt-sim-board", "--connect", address, "--uid", uid, user="odt",
                        log=chroot.root / "tmp/board.log")


def wait_for(what, fact, seconds=60):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        value = fact()
        if value:
            return value
        time.sleep(0.2)
    return fail(f"no {what} within {seconds} s")


def train(daemon, uid, prepare):
    if prepare:
        daemon.ctl("data", "import", "/tmp/samples.csv", "--name", "points", "--train", 300, "--heldout", 100, "--test", 100,
                   "--seed", 1)
        daemon.ctl("pc-train", "--data", "points", "--hidden", 8, "--epochs", 4, "--seed", 1, "--name", "small")
    wait_for("board", lambda: any(b["uid"] == uid and b["status"] == "ONLINE" for b in listed(daemon.ctl("board", "list"))))
    run = daemon.ctl("train", "--board", uid, "--model", "small", "--data", "points", "--epochs", 2, "--batch", 8, "--detach")["id"]
    state = wait_for("end of the run", lambda: final(daemon.ctl("run", "show", run)), 120)
    check(state == "SUCCEEDED", f"run {run} is {state}")
    return run


def listed(answer):
    return answer if isinstance(answer, list) else next(v for v in answer.values() if isinstance(v, list))


def final(run):
    state = run.get("state", "")
    return state if state in ("SUCCEEDED", "FAILED", "CANCELLED") else None


def install(chroot, debs):
    inside = chroot.root / "tmp/debs"
    shutil.rmtree(inside, ignore_errors=True)
    inside.mkdir(parents=True)
    for deb in debs:
        shutil.copy(deb, inside)
    chroot.run("apt-get", "install", "-y", "--no-install-recommends", "-o", "Dpkg::Options::=--force-confold",
               *[f"/tmp/debs/{pathlib.Path(d).name}" for d in debs])


def check_installed(chroot, version):
    root = chroot.root
    for package in ("odt-fleet", "odt-fleet-dev", "python3-odtfleet"):
        said = chroot.run("dpkg-query", "-W", "-f", "${Status} ${Version}", package).stdout
        check(said == f"install ok installed {version}", f"{package}: {said}")
    data = (root / "var/lib/odt-fleet").stat()
    check(chroot.run("stat", "-c", "%U:%G %a", "/var/lib/odt-fleet").stdout.strip() == "odt:odt 750",
          f"/var/lib/odt-fleet: mode {data.st_mode:o}, owner {data.st_uid}")
    check("dialout" in chroot.run("id", "-nG", "odt").stdout.split(), "odt is not in dialout")
    chroot.run("odtd", "check-config")
    chroot.run("bash", "-n", "/usr/share/bash-completion/completions/odtctl")
    chroot.run("python3", "-c", "import odtfleet; print(odtfleet.__version__)")
    for page in ("man1/odtctl.1", "man1/odtc.1", "man1/odt-worker.1", "man8/odtd.8", "man8/odt-flash.8"):
        check((root / "usr/share/man" / page).exists(), f"no {page}")
    check(list((root / "usr/share/odt-fleet/firmware").glob("*.elf")), "no firmware images in the package")
    # systemd's own targets, which the units name; there is no systemd in the chroot.
    made = [root / f"lib/systemd/system/{name}.target" for name in ("sysinit", "basic", "shutdown", "network", "multi-user", "paths")]
    made = [file for file in made if not file.exists()]
    for file in made:
        file.write_text("[Unit]\n")
    said = subprocess.run(["systemd-analyze", f"--root={root}", "verify", "--man=no", "odtd.service", "odt-flash@odtd.service",
                           "odt-flash@odtd.path"], capture_output=True, text=True)
    check(said.returncode == 0 and not said.stderr, f"systemd-analyze verify: {said.stdout}{said.stderr}")
    for file in made:
        file.unlink()
    for unit in ("odtd.service", "odt-flash@odtd.service"):
        rated = subprocess.run(["systemd-analyze", f"--root={root}", "security", "--offline=yes", f"--threshold={THRESHOLD}",
                                unit], capture_output=True, text=True)
        check(rated.returncode == 0, f"systemd-analyze security {unit}:\n{rated.stdout[-400:]}{rated.stderr}")
        print(rated.stdout.strip().splitlines()[-1].lstrip("→ "))
    spool = chroot.run("stat", "-c", "%U:%G %a", "/var/spool/odt-flash/odtd/requests", "/var/spool/odt-flash/odtd/results")
    check(spool.stdout.split("\n")[:2] == ["odt:odt-flash 2770", "odt-flash:odt 2750"], spool.stdout)


def go(chroot, options):
    debs = sorted(pathlib.Path(options.debs).glob("*.deb"))
    check(len(debs) == 3, f"{options.debs}: {len(debs)} packages, expected odt-fleet, odt-fleet-dev, python3-odtfleet")
    main = next(d for d in debs if d.name.startswith("odt-fleet_"))
    version = subprocess.run(["dpkg-deb", "-f", str(main), "Version"], capture_output=True, text=True).stdout.strip()
    chroot.run("apt-get", "update")
    chroot.run("apt-get", "install", "-y", "--no-install-recommends", "passwd", "init-system-helpers", "python3-minimal", "groff-base")
    sample_file(chroot.root / "tmp/samples.csv")
    before, old_runs, uid = chroot.files(), [], "aabbccdd00000001"
    if options.old:
        install(chroot, [options.old])
        config = chroot.root / CONFIG
        config.write_text(config.read_text().replace("#resume_deadline_s = 86400", "resume_deadline_s = 4321"))
        check("4321" in config.read_text(), f"{config}: no resume_deadline_s to change")
        daemon = Daemon(chroot)
        child = board(chroot, daemon, options.sim_board, uid)
        old_runs.append(train(daemon, uid, True))
        child.terminate()
        daemon.stop()
        print("old package: a run and its database")
    install(chroot, debs)
    if options.old:
        check("4321" in (chroot.root / CONFIG).read_text(), "the upgrade lost the administrator's configuration")
    check_installed(chroot, version)
    daemon = Daemon(chroot)
    daemon.hear("WATCHDOG=1", 10)
    child = board(chroot, daemon, options.sim_board, uid)
    for run in old_runs:
        kept = daemon.ctl("run", "show", run)
        check(kept["state"] == "SUCCEEDED", f"the run of the old version: {kept}")
    train(daemon, uid, not old_runs)
    bad = chroot.run("odtctl", "--json", "doctor", ok=None)
    check(bad.returncode in (0, 1), f"odtctl doctor ended with {bad.returncode}: {bad.stderr}")
    backup = chroot.run("odtctl", "backup", "/tmp/all.tar")
    check((chroot.root / "tmp/all.tar").stat().st_size > 0, backup.stderr)
    child.terminate()
    daemon.stop()
    print("packages: installed, started by ExecStart with notification and watchdog, trained, stopped")
    # The same version again: as an upgrade that changes nothing.
    chroot.run("dpkg", "-i", *[f"/tmp/debs/{d.name}" for d in debs])
    # A configuration that somebody broke is refused before the daemon starts, with line and remedy.
    config = chroot.root / CONFIG
    whole = config.read_text()
    config.write_text(whole + "\n[htp]\nlisten = 1\n")
    refused = chroot.run("odtd", "check-config", ok=(2,))
    check("did you mean http?" in refused.stderr and "what to do" in refused.stderr, refused.stderr)
    config.write_text(whole)
    chroot.run("apt-get", "remove", "-y", "odt-fleet", "odt-fleet-dev", "python3-odtfleet")
    check(not (chroot.root / "usr/bin/odtd").exists(), "odtd is there after the removal")
    check((chroot.root / "var/lib/odt-fleet/control.db").exists(), "the removal deleted the database")
    check(config.exists(), "the removal deleted the configuration")
    chroot.run("dpkg", "--purge", "odt-fleet", "odt-fleet-dev", "python3-odtfleet")
    chroot.run("apt-get", "autoremove", "--purge", "-y")
    left = sorted(f for f in chroot.files() - before if "odt" in f and not f.startswith("/usr/local/"))
    check(not left, "left behind by the purge: " + ", ".join(left[:20]))
    print("packages: removed (data kept), purged (nothing left)")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--debs", required=True)
    parser.add_argument("--sim-board", required=True)
    parser.add_argument("--old")
    parser.add_argument("--base")
    options = parser.parse_args()
    if os.geteuid() != 0 or not (options.base or shutil.which("debootstrap")):
        print("SKIP package/install needs root and debootstrap")
        return 0
    try:
        with Chroot(options.base) as chroot:
            go(chroot, options)
    except BaseException:
        print("FAIL package/install")
        raise
    print("PASS package/install")
    return 0


if __name__ == "__main__":
    sys.exit(main())
