"""What kafka-dump-log prints of segment files, as rows with the fields that `doze dump-segment --json` has, and the comparison."""

import json
import re
import subprocess
import sys

TOOL = "org.apache.kafka.tools.DumpLogSegments"
CONTROL = {"LeaderChange": "LEADER_CHANGE", "SnapshotHeader": "SNAPSHOT_HEADER", "SnapshotFooter": "SNAPSHOT_FOOTER",
           "KRaftVersion": "KRAFT_VERSION", "KRaftVoters": "KRAFT_VOTERS"}
BATCH = re.compile(
    r"baseOffset: (?P<base_offset>\d+) lastOffset: (?P<last_offset>\d+) count: (?P<records>\d+) baseSequence: (?P<base_sequence>-?\d+) "
    r"lastSequence: (?P<last_sequence>-?\d+) producerId: (?P<producer_id>-?\d+) producerEpoch: (?P<producer_epoch>-?\d+) "
    r"partitionLeaderEpoch: (?P<leader_epoch>-?\d+) isTransactional: (?P<transactional>\w+) isControl: (?P<control>\w+) "
    r"deleteHorizonMs: (?P<delete_horizon_ms>\S+) position: (?P<position>\d+) (?P<timestamp_type>\w+): (?P<max_timestamp_ms>-?\d+) "
    r"size: (?P<size>\d+) magic: (?P<magic>\d) compresscodec: (?P<codec>\w+) crc: (?P<crc>\d+) isvalid: (?P<valid>\w+)$")
MESSAGE = re.compile(
    r"offset: (?P<last_offset>\d+) position: (?P<position>\d+) (?P<timestamp_type>\w+): (?P<max_timestamp_ms>-?\d+) size: (?P<size>\d+) "
    r"magic: (?P<magic>\d) compresscodec: (?P<codec>\w+) crc: (?P<crc>\d+) isvalid: (?P<valid>\w+)$")
RECORD = re.compile(
    r"\| offset: (?P<offset>\d+) \w+: (?P<timestamp_ms>-?\d+) keySize: (?P<key_length>-?\d+) valueSize: (?P<value_length>-?\d+)"
    r"(?: isValid: true crc: \d+)?(?: sequence: (?P<sequence>-?\d+) headerKeys: \[(?P<headers>.*?)\])?(?P<rest>.*)$")
ENTRIES = [
    ("offset_index", re.compile(r"offset: (?P<offset>\d+) position: (?P<log_position>\d+)$")),
    ("time_index", re.compile(r"timestamp: (?P<timestamp_ms>-?\d+) offset: (?P<offset>\d+)$")),
    ("aborted_transaction", re.compile(
        r"version: (?P<version>\d+) producerId: (?P<producer_id>\d+) firstOffset: (?P<first_offset>\d+) lastOffset: (?P<last_offset>\d+) "
        r"lastStableOffset: (?P<last_stable_offset>\d+)$")),
    ("producer", re.compile(
        r"producerId: (?P<producer_id>\d+) producerEpoch: (?P<producer_epoch>-?\d+) coordinatorEpoch: (?P<coordinator_epoch>-?\d+) "
        r"currentTxnFirstOffset: (?P<transaction_first_offset>\S+) lastTimestamp: (?P<timestamp_ms>-?\d+)"
        r"(?: ?firstSequence: -?\d+ lastSequence: (?P<last_sequence>-?\d+) lastOffset: (?P<last_offset>-?\d+) "
        r"offsetDelta: (?P<offset_delta>-?\d+) timestamp: -?\d+)?")),
]
# Their -1 stands for none.
NULLABLE = {"base_sequence", "last_sequence", "producer_id", "producer_epoch", "leader_epoch", "max_timestamp_ms", "timestamp_ms", "sequence",
            "key_length", "value_length", "coordinator_epoch", "last_offset"}


def value(name, text):
    if text is None or text == "OptionalLong.empty":
        return None
    optional = re.fullmatch(r"OptionalLong\[(\d+)\]", text)
    if optional:
        return int(optional[1])
    if text in ("true", "false"):
        return text == "true"
    if re.fullmatch(r"-?\d+", text):
        return None if text == "-1" and name in NULLABLE else int(text)
    return text


def fields(match):
    return {name: value(name, text) for name, text in match.groupdict().items()}


def row(line):
    """A line as a row; None for one that says nothing of an entry."""
    if match := BATCH.match(line):
        return {"type": "batch", **fields(match)}
    if match := MESSAGE.match(line):
        found = fields(match)
        if found["timestamp_type"] == "NoTimestampType":
            found["timestamp_type"] = None
        return {"type": "batch", **found}
    if match := RECORD.match(line):
        found = fields(match)
        rest, names = found.pop("rest") or "", match["headers"]
        found["headers"] = names.split(",") if names else []
        found["control"] = None
        if marker := re.match(r" endTxnMarker: (\w+) coordinatorEpoch: (-?\d+)", rest):
            found["control"], found["coordinator_epoch"] = marker[1], int(marker[2])
        elif control := re.match(r" (\w+): \{", rest):
            found["control"] = CONTROL.get(control[1], control[1])
        elif payload := re.match(r"(?: key: (?P<key>.*?))?(?: payload: (?P<value>.*))?$", rest):
            if found["key_length"] is None or payload["key"] is not None:
                found["key"] = payload["key"]
            if found["value_length"] is None or payload["value"] is not None:
                found["value"] = payload["value"]
        return {"type": "record", **found}
    for kind, pattern in ENTRIES:
        if match := pattern.match(line):
            found = fields(match)
            if kind == "producer" and match["last_sequence"] is None:
                found.update(last_sequence=None, last_offset=None)
                found.pop("offset_delta")
            return {"type": kind, **found}
    if line and not line.startswith(("Dumping ", "Log starting offset: ", "Snapshot end offset: ")) and not line.endswith(" is empty."):
        raise ValueError(f"kafka-dump-log printed {line!r}")
    return None


def of_kafka(text):
    """Rows by file, of what kafka-dump-log printed."""
    files, rows = {}, None
    for line in text.splitlines():
        if line.startswith("Dumping "):
            rows = files.setdefault(line[len("Dumping "):], [])
        elif found := row(line):
            rows.append(found)
    return files


def of_doze(text):
    """Objects by file, of what dump-segment --json printed."""
    files, rows = {}, None
    for line in text.splitlines():
        found = json.loads(line)
        if found["type"] == "file":
            rows = files.setdefault(found["path"], [])
        elif found["type"] not in ("end", "snapshot", "unused"):
            if found["type"] == "record":
                found["headers"] = [header["name"] for header in found["headers"]]
            rows.append(found)
    return files


def difference(theirs, ours):
    """The first difference between the rows of a file, in what Apache Kafka tells of each; None if there is none."""
    for number, (their, our) in enumerate(zip(theirs, ours)):
        shared = {name: our.get(name) for name in their}
        if shared != their:
            return f"entry {number}: Apache Kafka has {their}, doze {shared} (of {our})"
    if len(theirs) != len(ours):
        more = (theirs if len(theirs) > len(ours) else ours)[min(len(theirs), len(ours))]
        return f"Apache Kafka has {len(theirs)} entries and doze {len(ours)}; the first that one of them lacks is {more}"
    return None


if __name__ == "__main__":
    # Rows of the text on stdin, one JSON object a line: what the tests compare with.
    for path, rows in of_kafka(sys.stdin.read()).items():
        for found in rows:
            print(json.dumps({"file": path, **found}))
