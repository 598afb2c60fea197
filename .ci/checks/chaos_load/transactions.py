"""Transactions: franz-go reads one topic and copies it to two others in transactions that commit the offsets as well.

A transaction that the client aborts, or whose client has to give way to another, is copied again by one that follows. So in the end each record
that was read is in both outputs once, and of each transaction all is visible or nothing. librdkafka is not used for this: its 2.16 takes sequence
numbers again for other records after an abort that met a kill, and has then no way to go on.
"""

import collections
import json
import os
import subprocess

from .worker import Broken, Worker

SOURCE, OUTPUTS, GROUP = "in", ("out-a", "out-b"), "copier"

COMMITTED, ABORTED, OPEN = "committed", "aborted", "open"


class Copying(Worker):
    """`transactions`: by number, how it ended as far as the client was told, and how many records it has for each output."""

    def __init__(self, load, name, program, partitions, seed, log):
        super().__init__(load, name)
        self.env = {**os.environ, "COPIER_LOG": str(log)}
        self.command = [str(program), load.bootstrap, str(seed), str(partitions)]
        self.transactions = {}
        # By partition, the offset that the last transaction whose commit was answered has committed.
        self.committed_offsets = {}
        self.said = ""

    def run(self):
        with subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=self.env) as process:
            try:
                self.load.at_the_end(process.stdin.close)
                for line in process.stdout:
                    self._heard_of(json.loads(line))
                self.said = process.stderr.read()
                if process.wait(60):
                    raise Broken(f"it ended with {process.returncode}: {self.said[-500:]}")
            finally:
                process.kill()

    def _heard_of(self, transaction):
        number, end = transaction["number"], transaction["end"]
        self.transactions[number] = (end, transaction["size"])
        if end == COMMITTED:
            for partition, offset in transaction["offsets"].items():
                self.committed_offsets[int(partition)] = offset
            self.progress += 1

    def counts(self):
        return collections.Counter(end for end, _ in self.transactions.values())
