//! How a member stands with its group: what it was told by heartbeats holds until its session may have run out.

use doze::protocol::ErrorCode;
use doze::sys::Clock;

use super::is_of_the_moment;
use crate::net::Connection;

#[derive(Clone, Debug, Default)]
pub struct Standing {
    /// 0 is one that is to join, or to join anew.
    pub epoch: i32,
    /// When the last heartbeat was sent that was answered, in milliseconds of this process.
    heard_ms: u64,
    /// The last heartbeat was answered, so that the member knows its epoch.
    is_sure: bool,
}

/// Milliseconds since the process started, whatever the wall clock does.
pub fn now_ms(connection: &Connection) -> u64 {
    connection.world.clock.monotonic().as_millis() as u64
}

/// What was so when a heartbeat was sent.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    /// When that was, in milliseconds of this process.
    pub ms: u64,
    joins: bool,
    /// The heartbeat before was answered.
    was_sure: bool,
    /// The highest epoch of the group that anybody knew of.
    group_epoch: i32,
}

impl Standing {
    /// A heartbeat is about to be sent.
    pub fn asks(&mut self, connection: &Connection, group: &'static str) -> Asked {
        let group_epoch = connection.world.model.borrow().group_epochs.get(group).copied().unwrap_or(0);
        let was_sure = std::mem::replace(&mut self.is_sure, false);
        Asked { ms: now_ms(connection), joins: !self.is_in(), was_sure, group_epoch }
    }

    pub fn is_in(&self) -> bool {
        self.epoch > 0
    }

    /// The process has started anew, and with it every session.
    pub fn restarted(&mut self) {
        self.heard_ms = 0;
    }

    /// It is out of the group, whoever says so.
    pub fn let_go(&mut self) {
        *self = Standing::default();
    }

    /// Whether nobody may have taken the member for dead by `now_ms`, with sessions of `session_ms`.
    pub fn is_alive(&self, now_ms: u64, session_ms: u64) -> bool {
        self.is_in() && now_ms < self.heard_ms + session_ms
    }

    /// Whether the member may expect to be let in: it is alive, and what it says of itself is so.
    pub fn is_good(&self, now_ms: u64, session_ms: u64) -> bool {
        self.is_sure && self.is_alive(now_ms, session_ms)
    }

    /// A heartbeat was answered with an epoch. Neither the member's nor, for one that joins, the group's goes back.
    pub fn heard(&mut self, connection: &Connection, group: &'static str, epoch: i32, asked: Asked) {
        let floor = if asked.joins { asked.group_epoch.max(1) } else { self.epoch };
        if epoch < floor {
            connection.world.violate(format!("{}: epoch {epoch} after {floor}, in group {group}", connection.name));
        }
        let mut model = connection.world.model.borrow_mut();
        let known = model.group_epochs.entry(group).or_default();
        *known = epoch.max(*known);
        *self = Standing { epoch, heard_ms: asked.ms, is_sure: true };
    }

    /// A heartbeat is refused to the member, whose session lasts `session_ms`. Answers whether it is out of the group.
    pub fn refused(&mut self, connection: &Connection, error: ErrorCode, asked: Asked, session_ms: u64) -> bool {
        let was_good = asked.was_sure && self.is_alive(now_ms(connection), session_ms);
        match error {
            ErrorCode::UnknownMemberId | ErrorCode::FencedMemberEpoch => {
                if was_good {
                    let epoch = self.epoch;
                    connection.world.violate(format!(
                        "{}: {error:?} to a member in good standing, in epoch {epoch}",
                        connection.name
                    ));
                }
                connection.world.count("members fenced that were told so");
                self.let_go();
                true
            }
            error if is_of_the_moment(error) => false,
            error => {
                connection.world.violate(format!("{}: a heartbeat is refused: {error:?}", connection.name));
                false
            }
        }
    }
}
