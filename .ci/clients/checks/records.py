"""The records that every client produces, as a consumer prints them, and how what was consumed is held against them."""

from collections import Counter


class Difference(Exception):
    """What was read is not what was written."""


def key(i):
    return "NULL" if i % 50 == 49 else f"key-{i % 101}"


def value(i):
    return "NULL" if i % 77 == 76 else f"{i}:" + "abcdefghijklmnop" * (i % 40)


def headers(i):
    return [f"a={i},a=again", "", "empty=,none=NULL,z=zürich"][i % 3]


class Consumed:
    """Lines of a consumer: `partition offset key value headers` between tabs."""

    def __init__(self, lines):
        self.at = {}
        for line in lines:
            fields = line.split("\t")
            if len(fields) != 5:
                raise Difference(f"a consumer printed {line!r}, which is not five columns")
            place = int(fields[0]), int(fields[1])
            if place in self.at:
                raise Difference(f"partition {place[0]} offset {place[1]} was consumed twice")
            self.at[place] = tuple(fields[2:])

    def __len__(self):
        return len(self.at)

    def add(self, later):
        """The records of the same group's next consumer: nothing that was committed comes again."""
        again = self.at.keys() & later.at.keys()
        if again:
            raise Difference(f"{len(again)} records came again after they were committed, first {min(again)}")
        self.at.update(later.at)

    def check_records(self, numbers, headers_of=headers):
        """Exactly the records with these numbers, each once, and each partition in the order of producing."""
        wanted = Counter((key(i), value(i), headers_of(i)) for i in numbers)
        got = Counter(self.at.values())
        missing, extra = wanted - got, got - wanted
        if missing or extra:
            raise Difference(
                f"{sum(missing.values())} of {sum(wanted.values())} records are missing (such as {shorten(missing)}), "
                f"{sum(extra.values())} were not produced (such as {shorten(extra)})")
        newest = {}
        for (partition, offset), (_, text, _) in sorted(self.at.items()):
            if text != "NULL":
                number = int(text.split(":")[0])
                if number < newest.get(partition, -1):
                    raise Difference(f"partition {partition}: record {number} at offset {offset} comes after record {newest[partition]}")
                newest[partition] = number

    def check_offsets(self):
        """Offsets from 0 without a gap in each partition."""
        for partition in {p for p, _ in self.at}:
            offsets = sorted(o for p, o in self.at if p == partition)
            if offsets != list(range(len(offsets))):
                raise Difference(f"partition {partition} has {len(offsets)} records at offsets {offsets[0]} to {offsets[-1]}")

    def check_same(self, earlier):
        """Every record where it was, byte for byte."""
        for place in sorted(self.at.keys() | earlier.at.keys()):
            if self.at.get(place) != earlier.at.get(place):
                raise Difference(f"partition {place[0]} offset {place[1]} was {shorten(earlier.at.get(place))} and is {shorten(self.at.get(place))}")


def shorten(thing):
    text = repr(next(iter(thing), None) if isinstance(thing, Counter) else thing)
    return text if len(text) < 160 else text[:160] + "…"
