"""Apache Kafka's command-line tools: topics, configs, groups, console and performance clients, and the dump of log files."""

import os
import re

from .records import Difference
from .scenario import run

TOOLS = "org.apache.kafka.tools."


class Java:
    def __init__(self, libs, classes):
        self.path = f"{libs}/*:{classes}"

    def tool(self, name, *arguments, stdin=None, patience_s=120):
        return run(["java", "-Xmx512m", "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
                    "-cp", self.path, name, *arguments], stdin=stdin, patience_s=patience_s)


def require(holds, what, shown):
    if not holds:
        raise Difference(f"{what}: {shown.strip()[-800:]!r}")


def admin_tools(java, broker):
    """kafka-topics, kafka-configs, kafka-consumer-groups, kafka-get-offsets, kafka-delete-records, kafka-log-dirs and the console clients."""
    server = ("--bootstrap-server", broker.bootstrap)

    def topics(*arguments):
        return java.tool(TOOLS + "TopicCommand", *server, *arguments)

    def configs(*arguments):
        return java.tool("kafka.admin.ConfigCommand", *server, *arguments)

    def groups(*arguments):
        return java.tool(TOOLS + "consumer.group.ConsumerGroupCommand", *server, *arguments)

    versions = java.tool(TOOLS + "BrokerApiVersionsCommand", *server)
    require("Produce(0): " in versions and re.search(r"\(id: \d+ rack: null", versions), "kafka-broker-api-versions", versions)

    topics("--create", "--topic", "tools", "--partitions", "2", "--config", "retention.ms=86400000")
    require("tools" in topics("--list").split(), "kafka-topics --list shows the topic", topics("--list"))
    shown = topics("--describe", "--topic", "tools")
    require("PartitionCount: 2" in shown and "retention.ms=86400000" in shown, "kafka-topics --describe", shown)
    topics("--alter", "--topic", "tools", "--partitions", "4")
    shown = topics("--describe", "--topic", "tools")
    require("PartitionCount: 4" in shown and "Partition: 3" in shown, "kafka-topics --alter --partitions", shown)

    entity = ("--entity-type", "topics", "--entity-name", "tools")
    configs("--alter", *entity, "--add-config", "max.message.bytes=50000,cleanup.policy=[compact,delete]")
    shown = configs("--describe", *entity)
    require("max.message.bytes=50000" in shown and "cleanup.policy=compact,delete" in shown, "kafka-configs --alter", shown)
    configs("--alter", *entity, "--delete-config", "cleanup.policy,max.message.bytes")
    shown = configs("--describe", *entity)
    require("max.message.bytes" not in shown and "retention.ms=86400000" in shown, "kafka-configs --delete-config", shown)

    lines = [f"n:{i}\tkey-{i}\tvalue {i}" for i in range(500)]
    for codec in ("gzip", "zstd"):
        java.tool(TOOLS + "ConsoleProducer", *server, "--topic", "tools", "--compression-codec", codec, "--reader-property", "parse.key=true",
                  "--reader-property", "parse.headers=true", stdin="".join(line + "\n" for line in lines))
    read = java.tool(TOOLS + "consumer.ConsoleConsumer", *server, "--topic", "tools", "--group", "console", "--from-beginning",
                     "--max-messages", "1000", "--timeout-ms", "30000", "--formatter-property", "print.key=true",
                     "--formatter-property", "print.headers=true")
    if sorted(read.splitlines()) != sorted(lines * 2):
        raise Difference(f"the console consumer printed {len(read.splitlines())} lines that are not the 1000 produced: {read[:300]!r}")

    require("console" in groups("--list").split(), "kafka-consumer-groups --list", groups("--list"))
    shown = groups("--describe", "--group", "console")
    rows = [line.split() for line in shown.splitlines() if line.startswith("console")]
    require(len(rows) == 4 and sum(int(r[3]) for r in rows) == 1000 and all(r[5] == "0" for r in rows), "kafka-consumer-groups --describe", shown)
    state = groups("--describe", "--group", "console", "--state")
    require("Empty" in state, "kafka-consumer-groups --state", state)
    groups("--reset-offsets", "--group", "console", "--topic", "tools", "--to-earliest", "--execute")
    shown = groups("--describe", "--group", "console")
    rows = [line.split() for line in shown.splitlines() if line.startswith("console")]
    require(sum(int(r[3]) for r in rows) == 0 and sum(int(r[5]) for r in rows) == 1000, "kafka-consumer-groups --reset-offsets", shown)
    shown = groups("--delete-offsets", "--group", "console", "--topic", "tools:0")
    require("Successful" in shown, "kafka-consumer-groups --delete-offsets", shown)

    ends = java.tool(TOOLS + "GetOffsetShell", *server, "--topic", "tools", "--time", "latest")
    end = {int(p): int(o) for p, o in re.findall(r"^tools:(\d+):(\d+)$", ends, re.M)}
    require(len(end) == 4 and sum(end.values()) == 1000, "kafka-get-offsets", ends)
    partition = max(end, key=end.get)
    request = broker.directory / "delete-records.json"
    request.write_text('{"partitions": [{"topic": "tools", "partition": %d, "offset": 50}], "version": 1}' % partition)
    shown = java.tool(TOOLS + "DeleteRecordsCommand", *server, "--offset-json-file", request)
    require("low_watermark: 50" in shown, "kafka-delete-records", shown)
    shown = java.tool(TOOLS + "GetOffsetShell", *server, "--topic", "tools", "--time", "earliest")
    require(f"tools:{partition}:50" in shown.split(), "the log start after kafka-delete-records", shown)
    shown = java.tool(TOOLS + "LogDirsCommand", *server, "--describe", "--topic-list", "tools")
    require('"partition":"tools-3"' in shown and '"error":null' in shown, "kafka-log-dirs", shown)

    broker.stop()
    broker.start()
    shown = groups("--describe", "--group", "console")
    rows = [line.split() for line in shown.splitlines() if line.startswith("console")]
    require(len([r for r in rows if r[3] != "-"]) == 3, "the group's offsets after a restart", shown)
    shown = topics("--describe", "--topic", "tools")
    require("PartitionCount: 4" in shown and "retention.ms=86400000" in shown, "the topic after a restart", shown)
    shown = groups("--delete", "--group", "console")
    require("successful" in shown, "kafka-consumer-groups --delete", shown)
    topics("--delete", "--topic", "tools")
    require("tools" not in topics("--list").split(), "kafka-topics --delete", topics("--list"))
    return "topics, configs, groups, offsets, deleted records, log directories, console clients"


def performance_tools(java, broker):
    """kafka-producer-perf-test and kafka-consumer-perf-test, with a restart and a kill between them."""
    count = 100_000
    java.tool(TOOLS + "TopicCommand", "--bootstrap-server", broker.bootstrap, "--create", "--topic", "perf", "--partitions", "3")

    def produce(*properties):
        shown = java.tool(TOOLS + "ProducerPerformance", "--bootstrap-server", broker.bootstrap, "--topic", "perf", "--num-records", str(count),
                          "--record-size", "500", "--throughput", "-1", "--command-property", *properties)
        require(re.search(rf"^{count} records sent", shown, re.M), "kafka-producer-perf-test", shown)

    def consume(total):
        shown = java.tool(TOOLS + "ConsumerPerformance", "--bootstrap-server", broker.bootstrap, "--topic", "perf", "--num-records", str(total),
                          "--timeout", "30000", "--hide-header")
        row = shown.strip().splitlines()[-1].split(",")
        require(len(row) > 5 and int(row[4].strip()) == total, f"kafka-consumer-perf-test reads {total} records", shown)

    produce("acks=all", "linger.ms=5")
    consume(count)
    broker.stop()
    broker.start()
    produce("acks=1", "compression.type=lz4", "linger.ms=5")
    broker.kill()
    broker.start()
    consume(2 * count)
    return f"{2 * count} records"


def share_tools(java, broker):
    """kafka-share-groups, kafka-console-share-consumer and kafka-share-consumer-perf-test, with a restart between them."""
    server = ("--bootstrap-server", broker.bootstrap)

    def groups(*arguments):
        return java.tool(TOOLS + "consumer.group.ShareGroupCommand", *server, *arguments)

    def offsets(group, verbose=False):
        """Start offset and lag by partition, as --describe tells them; None for a dash."""
        shown = groups("--describe", "--group", group, *(["--verbose"] if verbose else []))
        rows = [line.split() for line in shown.splitlines() if line.startswith(group)]
        return shown, {int(row[2]): tuple(None if cell == "-" else int(cell) for cell in row[-2:]) for row in rows}

    def from_the_beginning(group):
        java.tool("kafka.admin.ConfigCommand", *server, "--alter", "--entity-type", "groups", "--entity-name", group, "--add-config",
                  "share.auto.offset.reset=earliest")

    java.tool(TOOLS + "TopicCommand", *server, "--create", "--topic", "shares", "--partitions", "1")
    lines = [f"value {i}" for i in range(1000)]
    java.tool(TOOLS + "ConsoleProducer", *server, "--topic", "shares", stdin="".join(line + "\n" for line in lines))
    from_the_beginning("console")

    def consume(count, *more):
        return java.tool(TOOLS + "consumer.ConsoleShareConsumer", *server, "--topic", "shares", "--group", "console", "--max-messages", str(count),
                         "--timeout-ms", "30000", *more).splitlines()

    # Rejected records do not come again, those given back do.
    seen = consume(100, "--reject") + consume(100)
    consume(50, "--release")
    broker.stop()
    broker.start()
    seen += consume(800)
    if sorted(seen) != sorted(lines):
        raise Difference(f"the console share consumer printed {len(seen)} lines that are not the 1000 produced: {seen[:3]}")

    require("console" in groups("--list").split(), "kafka-share-groups --list", groups("--list"))
    shown = groups("--list", "--state")
    require(re.search(r"console\s+Empty", shown), "kafka-share-groups --list --state", shown)
    shown = groups("--describe", "--group", "console", "--state")
    require("Empty" in shown, "kafka-share-groups --describe --state", shown)
    shown, found = offsets("console", verbose=True)
    # Where it starts may lag behind what is done with.
    require(set(found) == {0} and found[0][1] == 0, "kafka-share-groups --describe --verbose", shown)
    plan = groups("--reset-offsets", "--group", "console", "--topic", "shares", "--to-earliest", "--dry-run")
    require(re.search(r"^console\s+shares\s+0\s+0$", plan, re.M), "kafka-share-groups --reset-offsets --dry-run", plan)
    require(offsets("console")[1] == found, "a dry run of kafka-share-groups changes nothing", shown)
    groups("--reset-offsets", "--group", "console", "--topic", "shares", "--to-earliest", "--execute")
    shown, found = offsets("console")
    require(found == {0: (0, 1000)}, "kafka-share-groups --reset-offsets --execute", shown)
    if sorted(consume(1000)) != sorted(lines):
        raise Difference("after its offsets were reset a group does not get every record again")
    shown = groups("--delete-offsets", "--group", "console", "--topic", "shares")
    require("Successful" in shown, "kafka-share-groups --delete-offsets", shown)
    shown, found = offsets("console")
    require(not found, "the offsets after kafka-share-groups --delete-offsets", shown)
    shown = groups("--delete", "--group", "console")
    require("successful" in shown, "kafka-share-groups --delete", shown)
    require("console" not in groups("--list").split(), "kafka-share-groups --delete", groups("--list"))

    from_the_beginning("measured")
    shown = java.tool(TOOLS + "ShareConsumerPerformance", *server, "--topic", "shares", "--group", "measured", "--num-records", "1000", "--threads", "2",
                      "--timeout", "30000", "--hide-header")
    row = shown.strip().splitlines()[-1].split(",")
    require(len(row) > 5 and int(row[5]) == 1000, "kafka-share-consumer-perf-test", shown)
    return "share groups, their offsets, console and performance consumers"


COMPLAINT = re.compile(r"mismatch|corrupt|non-consecutive|invalid|isvalid: false|exception|error|not valid|out of order|Could not|unexpected", re.I)


def dump_log(java, broker, client):
    """kafka-dump-log reads every segment, index, time index and producer snapshot that the broker wrote."""
    java.tool(TOOLS + "TopicCommand", "--bootstrap-server", broker.bootstrap, "--create", "--topic", "dumped", "--partitions", "3",
              "--config", "segment.ms=500", "--config", "index.interval.bytes=1024")
    produced = 0
    for codec, idempotent in [("none", "true"), ("gzip", "true"), ("snappy", "false"), ("lz4", "true"), ("zstd", "true")]:
        client.produce(broker.bootstrap, "dumped", produced, codec, "all", idempotent)
        produced += 400
    broker.kill()
    broker.start()
    client.produce(broker.bootstrap, "dumped", produced, "none", "all", "true")
    produced += 400
    broker.stop()
    files = sorted(f for p in range(3) for f in (broker.directory / "data" / f"dumped-{p}").iterdir())
    by_kind = {kind: [f for f in files if f.suffix == kind] for kind in (".log", ".index", ".timeindex", ".snapshot")}
    if len(by_kind[".log"]) < 6 or not all(by_kind.values()):
        raise Difference(f"too few files to look at: {[f.name for f in files]}")

    def dump(kind, *arguments):
        # Without its files' names, in which a directory could hold any word.
        names = ",".join(map(str, by_kind[kind]))
        shown = java.tool(TOOLS + "DumpLogSegments", *arguments, "--files", names).replace(str(broker.directory), "")
        complaints = [line for line in shown.splitlines() if COMPLAINT.search(line.replace("isvalid: true", ""))]
        if complaints:
            raise Difference(f"kafka-dump-log about the {kind} files: {complaints[:3]}")
        return shown

    shown = dump(".log", "--deep-iteration")
    records = len(re.findall(r"^\| offset: ", shown, re.M))
    if records != produced:
        raise Difference(f"kafka-dump-log reads {records} records in the .log files, {produced} were produced")
    for f in by_kind[".log"]:
        if f"Log starting offset: {int(f.stem)}" not in shown:
            raise Difference(f"kafka-dump-log did not read {f.name}")
    entries = {}
    for kind in (".index", ".timeindex"):
        entries[kind] = len(re.findall(r"offset: \d+", dump(kind)))
    dump(".index", "--index-sanity-check")
    dump(".timeindex", "--index-sanity-check")
    snapshots = dump(".snapshot")
    if "producerId:" not in snapshots:
        raise Difference(f"kafka-dump-log finds no producer in the snapshots: {snapshots[:300]!r}")
    if not entries[".index"] or not entries[".timeindex"]:
        raise Difference(f"the indexes are empty: {entries}")
    sizes = sum(os.path.getsize(f) for f in by_kind[".log"])
    return f"{len(by_kind['.log'])} segments, {sizes} bytes, {records} records, {entries['.index']} index and {entries['.timeindex']} time index entries"
