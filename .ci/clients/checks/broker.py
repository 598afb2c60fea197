"""A broker in a process of its own, started, stopped and killed by the checks."""

import signal
import socket
import struct
import subprocess
import time


class BrokerError(Exception):
    """The broker did not start, or did not stop as it should."""


class Broker:
    """`COMMAND PORT DIR [key=value ...]` in the foreground; the port and the directory stay the same over restarts."""

    def __init__(self, command, directory, configs=()):
        self.command, self.directory, self.configs = command, directory, list(configs)
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.port = s.getsockname()[1]
        self.bootstrap = f"127.0.0.1:{self.port}"
        self.log = directory / "broker.log"
        self.process = None

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        if self.process:
            self.process.kill()
            self.process.wait()

    def start_and_forget(self):
        """Starts it and does not wait until it is ready."""
        with open(self.log, "ab") as log:
            log.write(b"--- start\n")
            log.flush()
            self.process = subprocess.Popen(
                [self.command, str(self.port), str(self.directory), *self.configs],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def start(self, patience_s=120):
        self.start_and_forget()
        end = time.monotonic() + patience_s
        while not self.answers():
            if self.process.poll() is not None:
                raise BrokerError(f"the broker ended with {self.process.returncode} while it started; {self.tail()}")
            if time.monotonic() > end:
                raise BrokerError(f"the broker was not ready within {patience_s} s; {self.tail()}")
            time.sleep(0.02)

    def answers(self):
        """Whether it answers an ApiVersions request."""
        request = struct.pack(">hhih", 18, 0, 1, -1)
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=2) as s:
                s.sendall(struct.pack(">i", len(request)) + request)
                return len(s.recv(8)) > 0
        except OSError:
            return False

    def stop(self, patience_s=60):
        """The orderly end. A JVM's exit code after SIGTERM is 143."""
        self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(patience_s)
        except subprocess.TimeoutExpired:
            raise BrokerError(f"the broker still runs {patience_s} s after SIGTERM; {self.tail()}") from None
        self.process = None
        if code not in (0, 143):
            raise BrokerError(f"the broker ended with {code} at SIGTERM; {self.tail()}")

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process = None

    def tail(self):
        lines = self.log.read_text(errors="replace").splitlines()[-8:]
        return "the end of its log:\n    " + "\n    ".join(lines)
