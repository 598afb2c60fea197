"""What every client goes through: all codecs and acks, a group with commits, a restart, a kill, and all is still there."""

import subprocess

from .records import Consumed, Difference, headers

PARTITIONS = 3
PER_ROUND = 400
ROUNDS = [  # codec, acks, idempotent
    ("none", "all", "true"), ("gzip", "all", "false"), ("snappy", "1", "false"), ("lz4", "all", "true"), ("zstd", "all", "true"),
    ("none", "0", "false"),
]


class ClientError(Exception):
    """A client ended with an error, or did not end."""


def run(command, stdin=None, patience_s=120, env=None):
    """Standard output of a program that has to end with 0."""
    try:
        done = subprocess.run([str(c) for c in command], input=stdin, capture_output=True, text=True, timeout=patience_s, env=env)
    except subprocess.TimeoutExpired as e:
        errors = (e.stderr or b"").decode(errors="replace")[-1500:]
        raise ClientError(f"{' '.join(map(str, command))} still ran after {patience_s} s: {errors}") from None
    if done.returncode:
        raise ClientError(f"{' '.join(map(str, command))} ended with {done.returncode}: {(done.stderr or done.stdout)[-1500:]}")
    return done.stdout


class Program:
    """A client program as README.md describes it."""

    headers = staticmethod(headers)

    def __init__(self, *command):
        self.command = command

    def create(self, bootstrap, topic):
        run([*self.command, "create", bootstrap, topic, PARTITIONS])

    def produce(self, bootstrap, topic, first, codec, acks, idempotent):
        run([*self.command, "produce", bootstrap, topic, first, PER_ROUND, codec, acks, idempotent])

    def consume(self, bootstrap, topic, group, count, idle_ms):
        return run([*self.command, "consume", bootstrap, topic, group, count, idle_ms])


class KafkaJs(Program):
    """It cannot send a header that is null."""

    @staticmethod
    def headers(i):
        return headers(i).replace("none=NULL,", "")


class Kcat:
    """kcat as such a program. It creates its topic by asking for it, and one run's records all have the same headers."""

    @staticmethod
    def headers(_):
        return "a=same,a=again"

    def create(self, bootstrap, topic):
        run(["kcat", "-L", "-b", bootstrap, "-t", topic, "-X", "allow.auto.create.topics=true"])

    def produce(self, bootstrap, topic, first, codec, acks, idempotent):
        from .records import key, value
        rows = [(key(i), value(i)) for i in range(first, first + PER_ROUND)]
        lines = "".join("\t".join("" if column == "NULL" else column for column in row) + "\n" for row in rows)
        run(["kcat", "-P", "-b", bootstrap, "-t", topic, "-K", "\t", "-Z", "-z", codec, "-X", f"acks={acks}",
             "-X", f"enable.idempotence={idempotent}", "-H", "a=same", "-H", "a=again"], stdin=lines)

    def consume(self, bootstrap, topic, group, count, _idle_ms):
        return run(["kcat", "-b", bootstrap, "-q", "-Z", "-X", "auto.offset.reset=earliest", "-c", str(count), "-e",
                    "-f", "%p\\t%o\\t%k\\t%s\\t%h\\n", "-G", group, topic])


def scenario(client, broker, topic):
    """Raises on the first thing that is not as it should be."""

    def consume(group, count, idle_ms=20_000):
        return Consumed(client.consume(broker.bootstrap, topic, group, count, idle_ms).splitlines())

    produced = 0

    def produce(codec, acks, idempotent):
        nonlocal produced
        client.produce(broker.bootstrap, topic, produced, codec, acks, idempotent)
        produced += PER_ROUND

    client.create(broker.bootstrap, topic)
    for codec, acks, idempotent in ROUNDS:
        produce(codec, acks, idempotent)

    first = consume("group", produced // 2)
    if not produced // 2 <= len(first) < produced:
        raise Difference(f"a consumer that wanted {produced // 2} of {produced} records printed {len(first)}")
    first.add(consume("group", produced - len(first)))
    first.check_records(range(produced), client.headers)
    first.check_offsets()

    broker.stop()
    broker.start()
    again = consume("group", 1, idle_ms=3000)
    if len(again):
        raise Difference(f"{len(again)} committed records came again after a restart")
    produce("lz4", "all", "true")
    after_restart = consume("group", PER_ROUND)
    after_restart.check_records(range(produced - PER_ROUND, produced), client.headers)
    first.add(after_restart)

    produce("zstd", "all", "false")
    broker.kill()
    broker.start()
    after_kill = consume("group", PER_ROUND)
    after_kill.check_records(range(produced - PER_ROUND, produced), client.headers)
    first.add(after_kill)

    everything = consume("another group", produced)
    everything.check_records(range(produced), client.headers)
    everything.check_offsets()
    everything.check_same(first)
    return f"{produced} records, every one where it was after a restart and a kill"
