//! What can be found. The names of kinds, consequences and repairs are what `doze verify --json` prints and documents: they
//! stay as they are.

use std::fmt;
use std::path::PathBuf;

macro_rules! named {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name {
            $($(#[$variant_doc])* $variant,)*
        }

        impl $name {
            /// All of them, in order.
            pub const ALL: &[$name] = &[$($name::$variant,)*];

            /// The name that stands in JSON.
            pub fn name(self) -> &'static str {
                match self {
                    $($name::$variant => $text,)*
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}

named! {
    /// What is not as it should be.
    Kind {
        /// Bytes of a log that are no batch: a length, a magic byte or another field of the header that cannot be.
        BadFrame = "bad-frame",
        /// A stretch of a log that is zeros.
        Zeros = "zeros",
        /// A batch whose bytes are not those that its checksum was made of.
        BadChecksum = "bad-checksum",
        /// A batch that is whole but whose offset is not one that it can have there.
        BadOffset = "bad-offset",
        /// A batch whose leader epoch is not the one that wrote its offset.
        BadEpoch = "bad-epoch",
        /// Deep: the records of a batch cannot be read through its codec, or are malformed.
        BadRecords = "bad-records",
        /// Deep: the records are not those that the header says: their count, offsets or timestamps.
        BadRecordFields = "bad-record-fields",
        /// Deep: a record without a key in a log that is compacted.
        MissingKey = "missing-key",
        /// The end of a log's last segment is no whole batch.
        TornTail = "torn-tail",
        /// Offsets that should be in the log and are in no segment: a file is missing, or a batch was taken out.
        MissingOffsets = "missing-offsets",
        /// An empty batch for offsets whose records were lost, as a recovery leaves it.
        Emptied = "emptied",
        /// Two segments hold the same offsets.
        Overlap = "overlap",
        /// A log file whose batches belong under another name.
        WrongFile = "wrong-file",
        /// An index that cannot be one: its length, or zeros at its end.
        TornIndex = "torn-index",
        /// An index with an entry that the log contradicts.
        BadIndex = "bad-index",
        /// An index that ends long before its log does, or is missing.
        StaleIndex = "stale-index",
        /// The index of aborted transactions is not what the log makes it.
        BadTxnIndex = "bad-txn-index",
        /// A producer snapshot that is not whole.
        BadSnapshot = "bad-snapshot",
        /// A producer snapshot that says other than the log.
        WrongSnapshot = "wrong-snapshot",
        /// A producer's sequence numbers repeat or leave some out.
        ProducerSequence = "producer-sequence",
        /// A producer's epoch goes back.
        ProducerEpoch = "producer-epoch",
        /// A record of a transaction or its marker that cannot be there.
        Transaction = "transaction",
        /// `leader-epoch-checkpoint` makes no sense, or says other than the log.
        EpochCheckpoint = "epoch-checkpoint",
        /// `partition.metadata` is missing or makes no sense.
        PartitionMetadata = "partition-metadata",
        /// A partition's folder is of another topic than the catalog says.
        TopicId = "topic-id",
        /// Where the log starts cannot be, or what is from there on is not all there.
        LogStart = "log-start",
        /// A checkpoint of the cleaner, or another of Apache Kafka's checkpoint files, makes no sense.
        Checkpoint = "checkpoint",
        /// A flush failed: the last segment may be other on the medium than it looks.
        FlushFailed = "flush-failed",
        /// The mark of a clean stop makes no sense.
        CleanMark = "clean-mark",
        /// There is no catalog.
        CatalogMissing = "catalog-missing",
        /// The catalog cannot be read, in whole or in part, or its pages are damaged.
        CatalogDamaged = "catalog-damaged",
        /// A partition that the catalog has, without a folder.
        MissingPartition = "missing-partition",
        /// A partition's folder that the catalog does not know.
        UnknownPartition = "unknown-partition",
        /// A partition's folder without a log.
        EmptyPartition = "empty-partition",
        /// A file or folder that an interrupted operation has left.
        Leftover = "leftover",
        /// An index that belongs to no log.
        Orphan = "orphan",
        /// A file or folder that is nobody's.
        Foreign = "foreign",
        /// A file or folder that could not be read.
        Unreadable = "unreadable",
    }
}

named! {
    /// What a finding means for the records.
    Consequence {
        /// Records are gone or cannot be read.
        Lost = "lost",
        /// The end of a log that never was whole: no record that was acknowledged with `acks=all` is in it.
        TornTail = "torn-tail",
        /// Something that is made from the log has to be made anew; no record is lost.
        Rebuild = "rebuild",
        /// Whole data that the broker does not serve: the catalog does not lead to it.
        Unserved = "unserved",
        /// Nothing is known to be lost, but what is there contradicts itself and cannot be relied on.
        Suspect = "suspect",
        /// It could not be looked at.
        Unknown = "unknown",
        /// Nothing: it is only in the way. This alone is no damage.
        Harmless = "harmless",
    }
}

named! {
    /// Who puts it right.
    Repair {
        /// The next start of the broker, by itself.
        Start = "start",
        /// `doze recover`.
        Recover = "recover",
        /// A person: it is for them to know what it is.
        Person = "person",
        /// Nothing has to be done.
        Nothing = "nothing",
    }
}

/// One thing that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// `None` where it is about the directory as a whole.
    pub topic: Option<String>,
    /// `None` where it is about the directory or a topic as a whole.
    pub partition: Option<i32>,
    /// The file or folder, from the data directory.
    pub file: PathBuf,
    /// Where in the file it starts, in bytes. `None` where it is about the file as a whole.
    pub position: Option<u64>,
    /// How many bytes of the file, from the position on; of an index the length of the entry.
    pub bytes: Option<u64>,
    /// The offsets that are or were in it: from, and the first after it. Where only part of the range can have been there (a
    /// log that was compacted) it is the whole range all the same.
    pub offsets: Option<(i64, i64)>,
    pub kind: Kind,
    pub consequence: Consequence,
    pub repair: Repair,
    /// The same for a person, in a sentence without a full stop.
    pub detail: String,
}

impl Finding {
    /// Whether it is damage: the commands end with exit code 1 for it.
    pub fn is_damage(&self) -> bool {
        self.consequence != Consequence::Harmless
    }
}
