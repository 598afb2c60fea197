//! What of a group is on the disk, what is on its way there, and who waits for it.
//!
//! A group that the coordinator assigns partitions in changes in memory at once and is then written whole; whatever changes while a write is under way goes
//! into the next one. An answer is given when the state that it was made from is durable. When a write fails, everybody
//! who waits is refused, and the group goes back to what is durable, as after a restart: nobody has been told of
//! anything else.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;

use super::api::{Change, Reply, Token};
use super::context::Context;
use super::error::Error;
use super::group::Shown;
use super::writes::Purpose;

#[derive(Debug)]
pub(super) struct Ledger {
    /// Of what is in memory; no two states of any groups have the same one, and later ones are higher.
    version: u64,
    durable: u64,
    writing: Option<(u64, Bytes)>,
    /// The stored form that is durable, of whatever kind of group it is. `None`: nothing is stored.
    shown: Option<Bytes>,
    waiting: VecDeque<(u64, Token, Reply)>,
}

impl Ledger {
    /// Of a group of which `shown` is stored.
    pub fn new(shown: Option<Bytes>) -> Self {
        Ledger { version: 0, durable: 0, writing: None, shown, waiting: VecDeque::new() }
    }

    /// The group has changed.
    pub fn changed(&mut self, context: &mut Context) {
        self.version = context.writes.next_version();
    }

    pub fn is_durable(&self) -> bool {
        self.version == self.durable
    }

    /// Whether a write is under way, or something is stored.
    pub fn has_stored(&self) -> bool {
        self.shown.is_some() || self.writing.is_some()
    }

    /// Whether the group may be deleted; `dead`: its removal is under way already.
    pub fn may_delete(&self, dead: bool, is_empty: bool) -> Result<(), Error> {
        match (dead, is_empty) {
            (true, _) => Err(Error::GroupIdNotFound),
            // One whose last member is about to leave has not lost it yet.
            (false, true) if self.is_durable() => Ok(()),
            (false, _) => Err(Error::NonEmptyGroup),
        }
    }

    pub fn shown(&self) -> Option<&Bytes> {
        self.shown.as_ref()
    }

    /// The group as it is, or what is stored of it while it is being written.
    pub fn what_may_be_shown(&self) -> Shown<'_> {
        if self.is_durable() { Shown::AsItIs } else { Shown::Stored(self.shown()) }
    }

    /// Answers as soon as the group as it is now is durable.
    pub fn answer(&mut self, context: &mut Context, token: Token, reply: Reply) {
        if self.is_durable() {
            context.reply(token, reply);
        } else {
            self.waiting.push_back((self.version, token, reply));
        }
    }

    /// Whether there is something to write, and no write is under way that it has to wait for.
    pub fn is_due(&self) -> bool {
        !self.is_durable() && self.writing.is_none()
    }

    /// Writes the group as it is now, `bytes`, together with `changes` of what is its own; [`is_due`](Self::is_due) says when.
    pub fn write(&mut self, context: &mut Context, group: &Arc<str>, mut changes: Vec<Change>, bytes: Bytes) {
        self.writing = Some((self.version, bytes.clone()));
        changes.push(Change::PutGroup(bytes));
        context.persist(group, changes, Purpose::Whole { version: self.version });
    }

    /// Another kind of group takes the place of this one, which is `bytes` now. Answers whether something is stored of it.
    pub fn retire(&mut self, context: &mut Context, group: &Arc<str>, bytes: Bytes) -> bool {
        if !self.is_durable() {
            let answers = self.take_waiting();
            context.persist(group, vec![Change::PutGroup(bytes)], Purpose::Answer { answers });
            return true;
        }
        self.has_stored()
    }

    /// A write has ended. Answers those who wait for it, or everybody if it has failed. Answers whether it was this
    /// group's at all.
    pub fn ended(&mut self, context: &mut Context, version: u64, stored: bool) -> bool {
        let Some((_, bytes)) = self.writing.take_if(|(writing, _)| *writing == version) else { return false };
        if stored {
            self.durable = version;
            self.shown = Some(bytes);
        }
        let covered = self.waiting.iter().take_while(|(wanted, _, _)| !stored || *wanted <= version).count();
        for (_, token, reply) in self.waiting.drain(..covered) {
            context.reply(token, if stored { reply } else { reply.not_stored() });
        }
        true
    }

    /// Refuses everybody who waits.
    pub fn refuse_waiting(&mut self, context: &mut Context, error: Error) {
        for (token, reply) in self.take_waiting() {
            context.reply(token, reply.refused(error));
        }
    }

    /// Those who wait, with what they were to be told.
    pub fn take_waiting(&mut self) -> Vec<(Token, Reply)> {
        self.waiting.drain(..).map(|(_, token, reply)| (token, reply)).collect()
    }
}
