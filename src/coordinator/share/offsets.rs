//! Where a share group starts to read, changed by administrators, and state that nobody needs any more.

use std::collections::BTreeSet;

use super::state::ShareState;
use super::{ShareGroup, removals};
use crate::coordinator::api::{Change, ConsumerRefused, Reply, Token};
use crate::coordinator::context::Context;
use crate::protocol::Uuid;

impl ShareGroup {
    /// Whether nobody is in the group.
    pub fn check_empty(&self) -> Result<(), ConsumerRefused> {
        match self.may_delete() {
            Ok(()) => Ok(()),
            Err(error) => Err(ConsumerRefused { error, message: "The group is not empty.".into() }),
        }
    }

    /// Has partitions start at other offsets, and forgets all that became of their records.
    pub fn alter_offsets(&mut self, context: &mut Context, token: Token, starts: &[(Uuid, i32, i64)]) {
        if let Err(refused) = self.check_empty() {
            return context.reply(token, Reply::ShareOffsets(Err(refused)));
        }
        for (topic, partition, start) in starts {
            self.initialized.entry(*topic).or_default().insert(*partition);
            let value = ShareState::new(self.epoch, *start).to_bytes();
            self.changes.push(Change::PutSharePartition { topic: *topic, partition: *partition, value });
        }
        self.ledger.changed(context);
        self.answer(context, token, Reply::ShareOffsets(Ok(())));
        self.settle(context);
    }

    /// Forgets all that the group has of these topics.
    pub fn delete_offsets(&mut self, context: &mut Context, token: Token, topics: &BTreeSet<Uuid>) {
        if let Err(refused) = self.check_empty() {
            return context.reply(token, Reply::ShareOffsets(Err(refused)));
        }
        self.forget(context, |topic| topics.contains(topic));
        self.answer(context, token, Reply::ShareOffsets(Ok(())));
        self.settle(context);
    }

    /// Forgets what the group has of topics that are gone.
    pub fn forget_deleted_topics(&mut self, context: &mut Context) {
        if self.dead {
            return;
        }
        let topics = context.topics;
        self.forget(context, |topic| topics.name(*topic).is_none());
        self.settle(context);
    }

    fn forget(&mut self, context: &mut Context, which: impl Fn(&Uuid) -> bool) {
        let gone: Vec<Uuid> = self.initialized.keys().filter(|topic| which(topic)).copied().collect();
        for topic in &gone {
            let partitions = self.initialized.remove(topic).unwrap_or_default();
            self.changes.extend(removals(*topic, &partitions));
        }
        if !gone.is_empty() {
            self.ledger.changed(context);
        }
    }
}
