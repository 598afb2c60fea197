//! The stored form of a share group, after the two bytes that every group starts with. Numbers are big-endian; strings,
//! optional things and partitions by topic are as `stored` has them.
//!
//! | bytes | what |
//! |---|---|
//! | 4 | epoch |
//! | 4 | epoch of the target assignment |
//! | 8 | fingerprint of the topics that the group subscribes to |
//! | partitions | those that are initialized |
//! | 4 | how many members |
//!
//! and for each member:
//!
//! | bytes | what |
//! |---|---|
//! | string | member id |
//! | optional string | rack |
//! | string | client id |
//! | string | client host |
//! | 4, each string | topics that it subscribes to |
//! | 4 | epoch |
//! | 4 | the epoch before |
//! | partitions | assigned |
//! | partitions | target |

use std::sync::Arc;

use bytes::Bytes;

use super::{Member, ShareGroup};
use crate::coordinator::group;
use crate::coordinator::stored::{BadBytes, Reader, Writer};
use crate::coordinator::topics::Partitions;

impl ShareGroup {
    pub(super) fn to_bytes(&self) -> Bytes {
        let mut writer = group::begin(group::SHARE);
        writer.i32(self.epoch);
        writer.i32(self.assignment_epoch);
        writer.i64(self.fingerprint as i64);
        writer.partitions(&self.initialized);
        writer.length(self.members.len());
        let nothing = Partitions::new();
        for (id, member) in &self.members {
            writer.string(id);
            writer.option(member.rack_id.as_deref(), Writer::string);
            writer.string(&member.client_id);
            writer.string(&member.client_host);
            writer.length(member.topic_names.len());
            member.topic_names.iter().for_each(|name| writer.string(name));
            writer.i32(member.epoch);
            writer.i32(member.previous_epoch);
            writer.partitions(&member.assigned);
            writer.partitions(self.target.get(id).unwrap_or(&nothing));
        }
        writer.finish()
    }

    /// Reads what comes after the first two bytes of the stored form, all of which is `whole`.
    pub fn read(id: Arc<str>, whole: &[u8], mut reader: Reader<'_>) -> Result<Self, BadBytes> {
        let mut group = ShareGroup::new(id, Some(Bytes::copy_from_slice(whole)));
        group.epoch = reader.i32("the epoch")?;
        group.assignment_epoch = reader.i32("the epoch of the target")?;
        group.fingerprint = reader.i64("the fingerprint of the topics")? as u64;
        group.initialized = reader.partitions()?;
        for _ in 0..reader.length("the number of members")? {
            let id: Arc<str> = reader.string("a member id")?.into();
            let mut member = Member {
                rack_id: reader.option("a rack", Reader::string)?,
                client_id: reader.string("a client id")?,
                client_host: reader.string("a client host")?,
                ..Member::default()
            };
            for _ in 0..reader.length("the number of topics")? {
                member.topic_names.insert(reader.string("a topic")?);
            }
            member.epoch = reader.i32("a member's epoch")?;
            member.previous_epoch = reader.i32("a member's epoch before")?;
            member.assigned = reader.partitions()?;
            if member.epoch > group.epoch {
                return Err(contradiction(format!("member {id} is ahead of its group")));
            }
            group.target.insert(id.clone(), reader.partitions()?);
            if group.members.insert(id.clone(), member).is_some() {
                return Err(contradiction(format!("member {id} is there twice")));
            }
        }
        reader.end()?;
        if group.assignment_epoch > group.epoch {
            return Err(contradiction("the target is ahead of the group".to_owned()));
        }
        Ok(group)
    }
}

fn contradiction(what: String) -> BadBytes {
    BadBytes::Contradiction { what }
}
