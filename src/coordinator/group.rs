//! A group of whatever kind, as the parts that serve all kinds see it.
//!
//! Its stored form starts with the same two bytes for every kind:
//!
//! | bytes | what |
//! |---|---|
//! | 1 | format version, 1 |
//! | 1 | kind of group: 0 classic, 1 consumer, 2 share, 3 streams |

use std::sync::Arc;

use bytes::Bytes;

use super::api::{DescribedGroup, GroupType, ListedGroup};
use super::classic::ClassicGroup;
use super::consumer::ConsumerGroup;
use super::context::Context;
use super::error::Error;
use super::offsets::CommittedOffset;
use super::share::ShareGroup;
use super::stored::{BadBytes, Reader, Writer};
use super::streams::StreamsGroup;

const VERSION: u8 = 1;
pub(super) const CLASSIC: u8 = 0;
pub(super) const CONSUMER: u8 = 1;
pub(super) const SHARE: u8 = 2;
pub(super) const STREAMS: u8 = 3;

/// What may be shown of a group.
pub(super) enum Shown<'a> {
    /// The group in memory, all of which is durable.
    AsItIs,
    /// What is stored in its place, if anything is.
    Stored(Option<&'a Bytes>),
}

/// Starts the stored form of a group.
pub(super) fn begin(kind: u8) -> Writer {
    let mut writer = Writer::default();
    writer.u8(VERSION);
    writer.u8(kind);
    writer
}

#[derive(Debug)]
pub(super) enum Group {
    Classic(ClassicGroup),
    Consumer(ConsumerGroup),
    Share(ShareGroup),
    Streams(StreamsGroup),
}

impl Group {
    /// A group that holds offsets, and takes members when they come.
    pub fn simple(id: Arc<str>, now_ms: i64) -> Self {
        Group::Classic(ClassicGroup::new(id, now_ms))
    }

    /// Stands in for a group whose stored form cannot be read.
    pub fn unreadable(id: Arc<str>, now_ms: i64) -> Self {
        Group::Classic(ClassicGroup::unreadable(id, now_ms))
    }

    /// What a group goes back to when a write of it has failed, as after a restart: what is stored of it, or `blank` where nothing
    /// is. `dead`: its removal is on its way to the disk.
    pub fn gone_back(context: &mut Context, id: &Arc<str>, stored: Option<&Bytes>, blank: Group, dead: bool) -> Self {
        let before = stored.map_or(Ok(blank), |bytes| Group::from_bytes(id.clone(), bytes));
        let mut group = before.unwrap_or_else(|_| Group::unreadable(id.clone(), context.now.wall_ms));
        group.restored(context);
        if dead {
            group.die();
        }
        group
    }

    pub fn from_bytes(id: Arc<str>, bytes: &[u8]) -> Result<Self, BadBytes> {
        let mut reader = Reader::new(bytes);
        reader.version(VERSION)?;
        match reader.u8("the kind of group")? {
            CLASSIC => ClassicGroup::read(id, reader).map(Group::Classic),
            CONSUMER => ConsumerGroup::read(id, bytes, reader).map(Group::Consumer),
            SHARE => ShareGroup::read(id, bytes, reader).map(Group::Share),
            STREAMS => StreamsGroup::read(id, bytes, reader).map(Group::Streams),
            kind => Err(reader.unknown("the kind of group", kind)),
        }
    }

    pub fn group_type(&self) -> GroupType {
        match self {
            Group::Classic(_) => GroupType::Classic,
            Group::Consumer(_) => GroupType::Consumer,
            Group::Share(_) => GroupType::Share,
            Group::Streams(_) => GroupType::Streams,
        }
    }

    pub fn state_name(&self) -> &'static str {
        match self {
            Group::Classic(group) => group.state_name(),
            Group::Consumer(group) => group.state_name(),
            Group::Share(group) => group.state_name(),
            Group::Streams(group) => group.state_name(),
        }
    }

    pub fn list(&self, id: &str) -> ListedGroup {
        let protocol_type = match self {
            Group::Classic(group) => group.protocol_type(),
            Group::Consumer(_) => "consumer",
            Group::Share(_) => "share",
            Group::Streams(_) => "streams",
        };
        ListedGroup {
            group_id: id.to_owned(),
            protocol_type: protocol_type.to_owned(),
            state: self.state_name(),
            group_type: self.group_type(),
        }
    }

    /// As a classic group. `None`: it is of another kind.
    pub fn describe(&self) -> Option<DescribedGroup> {
        match self {
            Group::Classic(group) => Some(group.describe()),
            Group::Consumer(_) | Group::Share(_) | Group::Streams(_) => None,
        }
    }

    /// Looks at what may be shown of the group. `None`: nothing may.
    pub fn look<T>(&self, id: &Arc<str>, look: impl FnOnce(&Group) -> T) -> Option<T> {
        let shown = match self {
            Group::Classic(_) => Shown::AsItIs,
            Group::Consumer(group) => group.shown(),
            Group::Share(group) => group.shown(),
            Group::Streams(group) => group.shown(),
        };
        match shown {
            Shown::AsItIs => Some(look(self)),
            Shown::Stored(bytes) => Group::from_bytes(id.clone(), bytes?).ok().map(|group| look(&group)),
        }
    }

    pub fn restored(&mut self, context: &mut Context) {
        match self {
            Group::Classic(group) => group.restored(context),
            Group::Consumer(group) => group.restored(context),
            Group::Share(group) => group.restored(context),
            Group::Streams(group) => group.restored(context),
        }
    }

    pub fn is_blank(&self) -> bool {
        match self {
            Group::Classic(group) => group.is_blank(),
            Group::Consumer(group) => group.is_blank(),
            Group::Share(group) => group.is_blank(),
            Group::Streams(group) => group.is_blank(),
        }
    }

    pub fn is_abandoned(&self) -> bool {
        match self {
            Group::Classic(group) => group.is_abandoned(),
            Group::Consumer(group) => group.is_empty(),
            // What it has acknowledged is kept until somebody deletes it, as Kafka does.
            Group::Share(_) => false,
            Group::Streams(group) => group.is_empty(),
        }
    }

    pub fn is_subscribed_to(&self, topic: &str) -> bool {
        match self {
            Group::Classic(group) => group.is_subscribed_to(topic),
            Group::Consumer(group) => group.is_subscribed_to(topic),
            Group::Share(group) => group.is_subscribed_to(topic),
            Group::Streams(group) => group.is_subscribed_to(topic),
        }
    }

    pub fn expiry_base_ms(&self, offset: &CommittedOffset) -> Option<i64> {
        match self {
            Group::Classic(group) => group.expiry_base_ms(offset),
            Group::Consumer(_) | Group::Streams(_) => Some(offset.commit_timestamp_ms),
            Group::Share(_) => None,
        }
    }

    pub fn may_delete(&self) -> Result<(), Error> {
        match self {
            Group::Classic(group) => group.may_delete(),
            Group::Consumer(group) => group.may_delete(),
            Group::Share(group) => group.may_delete(),
            Group::Streams(group) => group.may_delete(),
        }
    }

    pub fn may_delete_offsets(&self) -> Result<(), Error> {
        match self {
            Group::Classic(group) => group.may_delete_offsets(),
            Group::Consumer(group) => group.may_delete_offsets(),
            // Not those that consumers commit.
            Group::Share(_) => Err(Error::GroupIdNotFound),
            Group::Streams(group) => group.may_delete_offsets(),
        }
    }

    /// The group's removal is on its way to the disk, and nothing else may happen to it.
    pub fn die(&mut self) {
        match self {
            Group::Classic(group) => group.die(),
            Group::Consumer(group) => group.die(),
            Group::Share(group) => group.die(),
            Group::Streams(group) => group.die(),
        }
    }

    /// The removal failed.
    pub fn revive(&mut self) {
        match self {
            Group::Classic(group) => group.revive(),
            Group::Consumer(group) => group.revive(),
            Group::Share(group) => group.revive(),
            Group::Streams(group) => group.revive(),
        }
    }

    pub fn is_dead(&self) -> bool {
        match self {
            Group::Classic(group) => group.is_dead(),
            Group::Consumer(group) => group.is_dead(),
            Group::Share(group) => group.is_dead(),
            Group::Streams(group) => group.is_dead(),
        }
    }

    pub fn cancel_timers(&self, context: &mut Context) {
        match self {
            Group::Classic(group) => group.cancel_timers(context),
            Group::Consumer(group) => group.cancel_timers(context),
            Group::Share(group) => group.cancel_timers(context),
            Group::Streams(group) => group.cancel_timers(context),
        }
    }

    /// Refuses every request that waits.
    pub fn refuse_waiting(&mut self, context: &mut Context, error: Error) {
        match self {
            Group::Classic(group) => group.refuse_waiting(context, error),
            Group::Consumer(group) => group.refuse_waiting(context, error),
            Group::Share(group) => group.refuse_waiting(context, error),
            Group::Streams(group) => group.refuse_waiting(context, error),
        }
    }
}
