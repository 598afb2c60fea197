"""What the benchmarks share: the load driver and brokers in processes of their own."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / ".ci/clients"))
from checks.broker import Broker, BrokerError  # noqa: E402, F401

BROKERS = {"doze": str(ROOT / ".ci/brokers/doze"), "kafka": str(ROOT / ".ci/brokers/kafka")}


def build_driver(folder):
    driver = pathlib.Path(folder) / "driver"
    subprocess.run(["cc", "-O2", "-Wall", "-o", driver, ROOT / "benches/driver.c", "-lrdkafka"], check=True)
    return driver


class Driver:
    """Load on one broker, told as a dictionary."""

    def __init__(self, program, broker):
        self.program, self.broker = program, broker

    def __call__(self, mode, topic, *arguments):
        command = [str(a) for a in (self.program, mode, self.broker.bootstrap, topic, *arguments)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=1800, env={**os.environ, "BROKER_PID": str(self.broker.process.pid)})
        if done.returncode:
            raise SystemExit(f"{' '.join(command)} ended with {done.returncode}: {done.stderr[-1000:]}{done.stdout[-500:]}")
        return json.loads(done.stdout) if done.stdout.strip() else None


def memory_mb(pid):
    """Resident memory in MB: all of it, and the part that is not file pages."""
    fields = dict(line.split(":", 1) for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines())
    return {"resident_mb": round(int(fields["VmRSS"].split()[0]) / 1000, 1), "anonymous_mb": round(int(fields["RssAnon"].split()[0]) / 1000, 1)}


def work_folder(place):
    return pathlib.Path(tempfile.mkdtemp(prefix="doze-bench.", dir=place))


def table(rows):
    """Rows of text in columns, the first to the left and the others to the right."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join("  ".join(cell.ljust(w) if i == 0 else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths))) for row in rows)
