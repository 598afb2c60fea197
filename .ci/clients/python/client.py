"""confluent-kafka as a client under check; what it has to do is told in ../README.md."""

import sys
import time

from confluent_kafka import Consumer, KafkaError, Producer
from confluent_kafka.admin import AdminClient, NewTopic


def key(i):
    return None if i % 50 == 49 else f"key-{i % 101}"


def value(i):
    return None if i % 77 == 76 else f"{i}:" + "abcdefghijklmnop" * (i % 40)


def headers(i):
    return [[("a", str(i)), ("a", "again")], [], [("empty", b""), ("none", None), ("z", "zürich")]][i % 3]


def create(bootstrap, topic, partitions):
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for future in admin.create_topics([NewTopic(topic, int(partitions), 1)]).values():
        future.result(30)


def produce(bootstrap, topic, first, count, codec, acks, idempotent):
    failed = []
    producer = Producer({
        "bootstrap.servers": bootstrap, "compression.type": codec, "acks": acks, "linger.ms": 5,
        "enable.idempotence": idempotent == "true",
    })
    for i in range(int(first), int(first) + int(count)):
        producer.produce(topic, key=key(i), value=value(i), headers=headers(i),
                         on_delivery=lambda error, _: error and failed.append(error))
        producer.poll(0)
    left = producer.flush(60)
    if failed or left:
        sys.exit(f"{len(failed)} records failed ({failed[:1]}), {left} were not answered")


def text(data):
    return "NULL" if data is None else data.decode()


def consume(bootstrap, topic, group, wanted, idle_ms):
    consumer = Consumer({
        "bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": False, "auto.offset.reset": "earliest",
    })
    consumer.subscribe([topic])
    got, until = 0, time.monotonic() + int(idle_ms) / 1000
    while got < int(wanted) and time.monotonic() < until:
        messages = consumer.consume(100, 0.2)
        for message in messages:
            if message.error():
                if message.error().code() == KafkaError._PARTITION_EOF:
                    continue
                sys.exit(str(message.error()))
            tags = ",".join(f"{name}={text(data)}" for name, data in message.headers() or [])
            print(message.partition(), message.offset(), text(message.key()), text(message.value()), tags, sep="\t")
            got += 1
        if messages:
            consumer.commit(asynchronous=False)
            until = time.monotonic() + int(idle_ms) / 1000
    consumer.close()


{"create": create, "produce": produce, "consume": consume}[sys.argv[1]](*sys.argv[2:])
