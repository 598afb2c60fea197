"""What all clients of the load have in common: a thread of their own that ends when it is told to, and a first failure that ends all."""

import threading
import time
import traceback

from confluent_kafka import KafkaError


class Broken(Exception):
    """A promise was not kept, or a client met what no kill explains."""


class Load:
    """What the clients share."""

    def __init__(self, bootstrap):
        self.bootstrap = bootstrap
        self.over = threading.Event()
        self.failures = []
        self.workers = []
        self.endings = []

    def at_the_end(self, ending):
        """Has `ending` called when the load is to stop."""
        self.endings.append(ending)

    def start(self, workers):
        self.workers = workers
        for worker in workers:
            worker.thread.start()

    def check(self):
        if self.failures:
            raise Broken(self.failures[0])

    def stop(self, patience_s=120):
        """Every client brings what it has under way to its end."""
        self.over.set()
        for ending in self.endings:
            ending()
        end = time.monotonic() + patience_s
        for worker in self.workers:
            worker.thread.join(max(0.1, end - time.monotonic()))
            if worker.thread.is_alive():
                raise Broken(f"{worker.name} does not come to its end")
        self.check()


class Worker:
    """One client. `run` is its life; `progress` has to grow while the broker is there."""

    def __init__(self, load, name):
        self.load, self.name, self.progress = load, name, 0
        self.thread = threading.Thread(target=self._live, name=name, daemon=True)

    def _live(self):
        try:
            self.run()
        except Exception as e:  # noqa: BLE001
            self.load.failures.append(f"{self.name}: {e}\n{traceback.format_exc()}")

    def client(self, **more):
        """Settings of a client that finds the broker again soon, and gives up only when no kill can be the reason."""
        return {
            "bootstrap.servers": self.load.bootstrap, "client.id": self.name, "reconnect.backoff.ms": 20,
            "reconnect.backoff.max.ms": 100, "retry.backoff.ms": 20, "socket.connection.setup.timeout.ms": 5000,
            "log_level": 0, "error_cb": self._heard,
            # With rebootstrap librdkafka 2.16 keeps asking a coordinator that it has thrown away, and never sends a transaction's offsets.
            "metadata.recovery.strategy": "none",
            **{name.replace("_", "."): value for name, value in more.items()},
        }

    def _heard(self, error):
        if error.fatal():
            self.load.failures.append(f"{self.name}: {error}")


# What a client may say because the broker was killed.
KILLED = {
    KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN, KafkaError._TIMED_OUT, KafkaError._TIMED_OUT_QUEUE, KafkaError._RESOLVE,
    KafkaError._WAIT_COORD, KafkaError.NOT_COORDINATOR, KafkaError.COORDINATOR_NOT_AVAILABLE, KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.REQUEST_TIMED_OUT, KafkaError.REBALANCE_IN_PROGRESS, KafkaError._NO_OFFSET, KafkaError._STATE, KafkaError._IN_PROGRESS,
    KafkaError.ILLEGAL_GENERATION, KafkaError.UNKNOWN_MEMBER_ID, KafkaError._PARTITION_EOF,
}


def explained(error):
    """Whether a kill explains it."""
    return not error.fatal() and (error.code() in KILLED or error.retriable())
