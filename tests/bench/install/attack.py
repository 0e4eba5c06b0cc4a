"""10,000 connections that say nothing and 200 that say it slowly, on both ports of an odtd with boards at work."""
import resource
import socket
import statistics
import threading
import time

IDLE, LORIS = 10_000, 200


def rss_mb(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS:")) / 1024


def descriptors(pid):
    import os  # noqa: PLC0415
    return len(os.listdir(f"/proc/{pid}/fd"))


def p99(values):
    return sorted(values)[min(len(values) - 1, int(len(values) * 0.99))] if values else None


class Probe(threading.Thread):
    """Calls again and again, and notes how long each took, in ms."""

    def __init__(self, call, every=0.02):
        super().__init__(daemon=True)
        self.call, self.every, self.times, self.failed, self.over = call, every, [], 0, threading.Event()

    def run(self):
        while not self.over.is_set():
            start = time.monotonic()
            try:
                self.call()
                self.times.append((time.monotonic() - start) * 1000)
            except Exception:  # noqa: BLE001 - any fault of a call is a failed call
                self.failed += 1
            self.over.wait(self.every)

    def result(self):
        self.over.set()
        self.join(30)
        return {"calls": len(self.times), "failed": self.failed, "p50_ms": round(statistics.median(self.times), 2) if self.times else None,
                "p99_ms": round(p99(self.times), 2) if self.times else None}


class Crowd:
    """Connections to host:port pairs. Those that odtd closes are opened again."""

    def __init__(self, addresses, idle=IDLE, loris=LORIS):
        self.addresses, self.idle, self.loris = addresses, idle, loris
        self.open, self.opened, self.refused = [], 0, 0
        self.over = threading.Event()
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(limit[1], 40_000), limit[1]))

    def connect(self, address):
        try:
            self.opened += 1
            return socket.create_connection(address, timeout=2)
        except OSError:
            self.refused += 1
            return None

    def keep_idle(self):
        held = []
        while not self.over.is_set():
            while len(held) < self.idle and not self.over.is_set():
                one = self.connect(self.addresses[len(held) % len(self.addresses)])
                if one is None:
                    time.sleep(0.01)
                    continue
                one.setblocking(False)
                held.append(one)
            still = []
            for one in held:
                try:
                    gone = one.recv(1) == b""
                except BlockingIOError:
                    gone = False
                except OSError:
                    gone = True
                if gone:
                    one.close()
                else:
                    still.append(one)
            held = still
            self.over.wait(0.2)
        for one in held:
            one.close()

    def drip(self):
        """A header, a byte a second; begun anew where it is cut off."""
        held = []
        while not self.over.is_set():
            while len(held) < self.loris and not self.over.is_set():
                one = self.connect(self.addresses[0])
                if one is not None:
                    one.sendall(b"POST /odt.api.v1.FleetService/ListBoards HTTP/1.1\r\nHost: localhost\r\nX-Slow: ")
                    held.append(one)
            for one in list(held):
                try:
                    one.sendall(b"a")
                except OSError:
                    one.close()
                    held.remove(one)
            self.over.wait(1.0)
        for one in held:
            one.close()

    def __enter__(self):
        self.threads = [threading.Thread(target=work, daemon=True) for work in (self.keep_idle, self.drip)]
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        for thread in self.threads:
            thread.join(30)
