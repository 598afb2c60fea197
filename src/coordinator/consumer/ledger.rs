//! What of a group is on the disk, what is on its way there, and who waits for it.
//!
//! A consumer group changes in memory at once and is then written whole; whatever changes while a write is under way goes
//! into the next one. An answer is given when the state that it was made from is durable. When a write fails, everybody
//! who waits is refused, and the group goes back to what is durable, as after a restart: nobody has been told of
//! anything else.

use std::collections::VecDeque;

use bytes::Bytes;

use crate::coordinator::api::{Reply, Token};
use crate::coordinator::context::Context;

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

    pub fn shown(&self) -> Option<&Bytes> {
        self.shown.as_ref()
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

    /// A write of the group as it is now is under way. Answers its version.
    pub fn begin(&mut self, bytes: Bytes) -> u64 {
        self.writing = Some((self.version, bytes));
        self.version
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

    /// Those who wait, with what they were to be told.
    pub fn take_waiting(&mut self) -> Vec<(Token, Reply)> {
        self.waiting.drain(..).map(|(_, token, reply)| (token, reply)).collect()
    }
}
