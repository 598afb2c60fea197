//! What a group needs of its surroundings while it handles one event.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::api::{Action, Actions, Change, LeaveOutcome, Now, Reply, Token};
use super::config::{Config, GroupSettings};
use super::timers::{Timer, Timers};
use super::topics::Topics;
use super::writes::{Purpose, Writes};
use crate::sys::Random;

pub(super) struct Context<'a> {
    pub now: Now,
    pub config: &'a Config,
    /// Of groups that have settings of their own.
    pub group_settings: &'a BTreeMap<Arc<str>, GroupSettings>,
    pub topics: &'a Topics,
    /// Another one whenever the topics have changed.
    pub topics_version: u64,
    pub timers: &'a mut Timers,
    pub writes: &'a mut Writes,
    pub random: &'a dyn Random,
    pub actions: &'a mut Actions,
    /// A LeaveGroup that is being handled: its answer waits for the write of the empty group if it comes to one.
    pub leaving: Option<(Token, Vec<LeaveOutcome>)>,
}

impl Context<'_> {
    pub fn reply(&mut self, token: Token, reply: Reply) {
        self.actions.push(Action::Reply { token, reply });
    }

    pub fn persist(&mut self, group: &Arc<str>, changes: Vec<Change>, purpose: Purpose) {
        self.actions.extend(self.writes.issue(group, changes, purpose).map(Action::Persist));
    }

    /// Sets a deadline in milliseconds from now; a negative timeout is due at once.
    pub fn set_timer(&mut self, timer: Timer, after_ms: i32) {
        let after = Duration::from_millis(u64::try_from(after_ms).unwrap_or(0));
        self.timers.set(timer, self.now.monotonic + after);
    }

    /// `<prefix>-<random uuid>`.
    pub fn new_member_id(&self, prefix: &str) -> Arc<str> {
        let mut bytes = [0; 16];
        self.random.fill(&mut bytes);
        // Version 4, variant 1, as everybody's random UUIDs.
        bytes[6] = bytes[6] & 0x0f | 0x40;
        bytes[8] = bytes[8] & 0x3f | 0x80;
        let hex = format!("{:032x}", u128::from_be_bytes(bytes));
        format!("{prefix}-{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]).into()
    }
}
