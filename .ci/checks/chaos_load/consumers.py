"""Consumers: members of a group that commit what they have read, and readers of committed records who remember what they were shown."""

from confluent_kafka import Consumer, KafkaException, TopicPartition

from .worker import Broken, Worker, explained


class Committing(Worker):
    """A member of a group. `acknowledged`: the highest offset by partition whose commit was answered."""

    def __init__(self, load, name, topic, group, acknowledged):
        super().__init__(load, name)
        self.topic, self.group, self.acknowledged = topic, group, acknowledged

    def run(self):
        consumer = Consumer(self.client(group_id=self.group, enable_auto_commit=False, auto_offset_reset="earliest", session_timeout_ms=20_000,
                                        fetch_wait_max_ms=100))
        consumer.subscribe([self.topic])
        expected = {}
        while not self.load.over.is_set():
            messages = consumer.consume(100, 0.2)
            for message in messages:
                if message.error():
                    if not explained(message.error()):
                        raise Broken(f"reading: {message.error()}")
                    continue
                key = message.partition()
                # Another member may have read on in between; nobody may be sent back behind what was committed.
                if message.offset() < self.acknowledged.get(key, 0) and expected.get(key) != message.offset():
                    raise Broken(f"it is given offset {message.offset()} of partition {key}; {self.acknowledged[key]} was committed")
                expected[key] = message.offset() + 1
            if any(not message.error() for message in messages):
                self._commit(consumer)
        consumer.close()

    def _commit(self, consumer):
        try:
            for partition in consumer.commit(asynchronous=False):
                if partition.error is None:
                    before = self.acknowledged.get(partition.partition, 0)
                    self.acknowledged[partition.partition] = max(before, partition.offset)
                    self.progress += 1
        except KafkaException as e:
            if not explained(e.args[0]):
                raise


class Reading(Worker):
    """Reads committed records from the start of a topic on. Its connection comes and goes; its place does not."""

    def __init__(self, load, name, topic, partitions):
        super().__init__(load, name)
        self.topic, self.partitions = topic, partitions
        # By partition, what it was shown, as (offset, value).
        self.shown = {partition: [] for partition in range(partitions)}

    def run(self):
        consumer = Consumer(self.client(group_id=f"{self.name}-none", enable_auto_commit=False, isolation_level="read_committed",
                                        auto_offset_reset="error", fetch_wait_max_ms=100))
        consumer.assign([TopicPartition(self.topic, partition, 0) for partition in range(self.partitions)])
        while not self.load.over.is_set():
            for message in consumer.consume(200, 0.2):
                if message.error():
                    if not explained(message.error()):
                        raise Broken(f"reading: {message.error()}")
                    continue
                self.shown[message.partition()].append((message.offset(), message.value()))
                self.progress += 1
        consumer.close()


def read_all(bootstrap, topic, partitions, isolation, patience_s=60):
    """Everything that is there, by partition, as (offset, value)."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "none", "enable.auto.commit": False, "isolation.level": isolation,
                         "enable.partition.eof": True, "auto.offset.reset": "error", "check.crcs": True})
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(partitions)])
    found, open_partitions, quiet = {partition: [] for partition in range(partitions)}, set(range(partitions)), 0
    while open_partitions:
        messages = consumer.consume(1000, 1)
        quiet = 0 if messages else quiet + 1
        if quiet > patience_s:
            raise Broken(f"{topic} cannot be read to its end")
        for message in messages:
            if message.error() and message.error().code() == -191:  # the end of the partition
                open_partitions.discard(message.partition())
            elif message.error():
                raise Broken(f"reading {topic}: {message.error()}")
            else:
                found[message.partition()].append((message.offset(), message.value()))
    consumer.close()
    return found
