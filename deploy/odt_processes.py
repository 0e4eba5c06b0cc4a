"""Starts and ends odtd, boards and odtctl calls, for the demo and the system tests.

Every process dies with this one (PR_SET_PDEATHSIG) and is ended by Processes.stop(). Standard library only.
"""
import ctypes
import json
import pathlib
import signal
import socket
import subprocess
import time

_LIBC = ctypes.CDLL(None, use_errno=True)
_PR_SET_PDEATHSIG = 1


def _die_with_parent():
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class CtlError(RuntimeError):
    """odtctl failed: code and what it said."""

    def __init__(self, args, code, text):
        super().__init__(f"odtctl {' '.join(args)}: exit {code}: {text.strip()}")
        self.code, self.text = code, text


class Processes:
    """One odtd with its boards under one folder. Not thread-safe except ctl()."""

    def __init__(self, bin_dir, state_dir):
        self.bin = pathlib.Path(bin_dir)
        self.state = pathlib.Path(state_dir)
        self.state.mkdir(parents=True, exist_ok=True)
        self.data = self.state / "data"
        self.running = {}  # name -> Popen
        self.endpoints = {}

    # -- processes

    def start(self, name, command, **kwargs):
        log = open(self.state / f"{name}.log", "ab")
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                                   preexec_fn=_die_with_parent, **kwargs)
        log.close()
        self.running[name] = process
        return process

    def end(self, name, sig=signal.SIGTERM, timeout=10):
        """Ends one process; returns its exit code (negative: signal)."""
        process = self.running.pop(name, None)
        if process is None:
            return None
        if process.poll() is None:
            process.send_signal(sig)
            try:
                process.wait(timeout)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        return process.returncode

    def stop(self):
        for name in sorted(self.running, key=lambda n: n == "odtd"):  # boards first
            self.end(name)

    def log_tail(self, name, lines=15):
        path = self.state / f"{name}.log"
        return "\n".join(path.read_text(errors="replace").splitlines()[-lines:]) if path.exists() else ""

    # -- odtd

    @property
    def socket_path(self):
        return self.state / "odtd.sock"

    def start_odtd(self, http_port=0, listen_port=0, web=None, extra=(), env=None):
        endpoints = self.data / "endpoints.json"
        endpoints.unlink(missing_ok=True)
        command = [self.bin / "odtd", "--data-dir", self.data, "--http", f"127.0.0.1:{http_port}",
                   "--grpc", "127.0.0.1:0", "--socket", self.socket_path,
                   "--listen", f"127.0.0.1:{listen_port}", *extra]
        if web:
            command += ["--web", web]
        process = self.start("odtd", [str(c) for c in command], env=env)
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            if process.poll() is not None:
                raise RuntimeError(f"odtd ended with exit {process.returncode}:\n{self.log_tail('odtd')}")
            if endpoints.exists():
                try:
                    self.endpoints = json.loads(endpoints.read_text())
                    return process
                except ValueError:
                    pass
            time.sleep(0.05)
        raise RuntimeError(f"odtd is not ready after 20 s:\n{self.log_tail('odtd')}")

    def address_of(self, name):
        """host:port of an odtd endpoint: http, grpc, listen (the first)."""
        value = self.endpoints[name]
        value = value[0] if isinstance(value, list) else value
        return value.replace("http://", "").rstrip("/")

    # -- boards

    def sim_board(self, name, uid, extra=()):
        return self.start(name, [str(self.bin / "odt-sim-board"), "--uid", uid,
                                 "--connect", self.address_of("listen"), *map(str, extra)])

    def qemu_board(self, name, board, uid, where=None, keep=False, extra=()):
        """A QEMU board that dials odtd; where "host:port": it listens there instead. keep: started again when QEMU
        ends by itself."""
        script = pathlib.Path(__file__).resolve().parent / "qemu-board.sh"
        mode = ["--listen", where] if where else ["--connect", self.address_of("listen")]
        return self.start(name, [str(script), "--image", str(self.bin / "firmware" / f"{board}.elf"), *mode,
                                 *(["--keep"] if keep else []), *map(str, extra), board, uid])

    # -- odtctl

    def ctl_raw(self, *args, timeout=120):
        return subprocess.run([str(self.bin / "odtctl"), "--address", f"unix:{self.socket_path}", *map(str, args)],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout,
                              preexec_fn=_die_with_parent)

    def ctl(self, *args, timeout=120):
        """Runs odtctl --json; returns what it printed, parsed. Raises CtlError."""
        done = self.ctl_raw("--json", *args, timeout=timeout)
        if done.returncode != 0:
            raise CtlError(list(map(str, args)), done.returncode, done.stderr or done.stdout)
        lines = [line for line in done.stdout.splitlines() if line.strip()]
        if not lines:
            return None
        try:
            return json.loads(done.stdout)
        except ValueError:
            return json.loads(lines[-1])  # verbs that stream print one object a line

    def wait_for(self, what, probe, timeout, every=0.25):
        """Polls until probe() is true; returns its value."""
        deadline = time.monotonic() + timeout
        while True:
            value = probe()
            if value:
                return value
            if time.monotonic() > deadline:
                raise TimeoutError(f"{what}: not within {timeout} s")
            time.sleep(every)
