"""What a process takes, from /proc: CPU by thread, resident memory over time."""
import os
import pathlib
import threading
import time

TICK = os.sysconf("SC_CLK_TCK")


def _stat(path):
    name, fields = pathlib.Path(path).read_text().split("(", 1)[1].rsplit(")", 1)
    fields = fields.split()
    return name, (int(fields[11]) + int(fields[12])) / TICK


def cpu_s(pid):
    """User and system seconds of the process so far."""
    return _stat(f"/proc/{pid}/stat")[1]


def threads_s(pid):
    """The same by name of the threads that live."""
    out = {}
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        try:
            name, seconds = _stat(task / "stat")
        except (FileNotFoundError, ProcessLookupError):
            continue
        out[name] = out.get(name, 0) + seconds
    return out


def rss_mb(pid):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    return 0


def slope(points):
    """Least squares: y by x of (x, y)."""
    n = len(points)
    if n < 3:
        return 0.0
    mx = sum(x for x, _ in points) / n
    my = sum(y for _, y in points) / n
    below = sum((x - mx) ** 2 for x, _ in points)
    return sum((x - mx) * (y - my) for x, y in points) / below if below else 0.0


class Memory(threading.Thread):
    """Resident memory of a process every 2 s; (seconds since the start, MB) in `points`."""

    def __init__(self, pid):
        super().__init__(daemon=True)
        self.pid, self.points, self.ended = pid, [], threading.Event()
        self.begun = time.monotonic()

    def run(self):
        while not self.ended.wait(2):
            try:
                self.points.append((time.monotonic() - self.begun, rss_mb(self.pid)))
            except (FileNotFoundError, ProcessLookupError):
                return

    def end(self):
        self.ended.set()
        self.join()
        return self.points
