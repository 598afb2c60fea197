"""Producers: idempotent, plain with acks=all, plain with acks=1. Each remembers what was acknowledged, and where it was said to be."""

import time

from confluent_kafka import Producer

from .worker import Broken, Worker

# How many records may be under way.
WINDOW = 400


class Producing(Worker):
    """Every value is sent once by the program, and never made again."""

    def __init__(self, load, name, topic, partitions, rng, per_second, **settings):
        super().__init__(load, name)
        self.topic, self.partitions, self.rng, self.pause, self.settings = topic, partitions, rng, 1 / per_second, settings
        # (partition, value) to its offset, or None where the answer did not tell it.
        self.acknowledged = {}
        self.sent = 0
        self.under_way = 0

    def run(self):
        producer = Producer(self.client(message_timeout_ms=600_000, linger_ms=2, socket_timeout_ms=10_000, **self.settings))
        while not self.load.over.is_set():
            producer.poll(0)
            if self.under_way >= WINDOW:
                producer.poll(0.05)
                continue
            # Bursts, so that a kill meets full batches as well as small ones.
            for _ in range(self.rng.choice((1, 5, 20, 60))):
                value = f"{self.name}:{self.sent}:" + "x" * self.rng.choice((0, 10, 100, 700))
                partition = self.sent % self.partitions
                self.sent += 1
                self.under_way += 1
                producer.produce(self.topic, value=value.encode(), key=f"{self.sent % 50}".encode(), partition=partition,
                                 on_delivery=self._answered)
                time.sleep(self.pause)
        left = producer.flush(90)
        if left:
            raise Broken(f"{left} records were never answered")

    def _answered(self, error, message):
        self.under_way -= 1
        if error:
            # A record that is refused is none that was lost; but nothing here gives a reason to refuse one.
            self.load.failures.append(f"{self.name}: {message.value()[:40]} was refused: {error}")
            return
        offset = message.offset()
        self.acknowledged[(message.partition(), message.value())] = offset if offset is not None and offset >= 0 else None
        self.progress += 1
