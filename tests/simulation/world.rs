//! What all parts of a history share.

use std::cell::{Cell, RefCell};
use std::fmt::Display;
use std::future::pending;
use std::sync::Arc;

use doze::broker::Broker;
use doze::sys::sim::SimFileSystem;

use crate::history::History;
use crate::model::Model;
use crate::outside::VirtualClock;
use crate::register::Moment;

/// A mistake that is put into a broker, or under it, so that it has to be found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Canary {
    None,
    /// Flushes of logs do nothing and say that they did.
    NoFlush,
    /// `acks=all` is answered like `acks=1`.
    EarlyAck,
    /// Flushes of directories do nothing and say that they did: names and renames get lost.
    LostRename,
    /// Requests that are sent one after the other are answered the other way round.
    AnswersSwapped,
    /// Records that a member of the share group accepts are taken for released.
    AcceptAsRelease,
    /// Records that it releases are taken for accepted.
    ReleaseAsAccept,
    /// Locks of the share group run out before their time.
    ShortLocks,
    /// The share group gets records of transactions that are not committed.
    ShownTooEarly,
    /// Members of the streams group are taken for dead before their time.
    ShortSessions,
    /// Flushes of the catalog do nothing and say that they did.
    NoCatalogFlush,
}

pub struct World {
    pub seed: u64,
    pub canary: Canary,
    pub clock: Arc<VirtualClock>,
    pub model: RefCell<Model>,
    pub history: RefCell<History>,
    pub broker: RefCell<Option<Arc<Broker>>>,
    fs: RefCell<SimFileSystem>,
    /// How many faults the disk had injected when the process started.
    injected_before: Cell<u64>,
    /// How many requests the clients still make in this life.
    pub budget: Cell<u32>,
    /// Whether connections are taken.
    pub accepting: Cell<bool>,
    pub in_flight: Cell<u32>,
    moment: Cell<Moment>,
    violation: RefCell<Option<String>>,
    /// Whether events are printed as they happen.
    is_told: bool,
}

impl World {
    pub fn new(seed: u64, canary: Canary) -> Self {
        let clock = Arc::new(VirtualClock::default());
        World {
            seed,
            canary,
            fs: RefCell::new(SimFileSystem::new(clock.clone())),
            clock,
            model: RefCell::default(),
            history: RefCell::default(),
            broker: RefCell::default(),
            injected_before: Cell::new(0),
            budget: Cell::new(0),
            accepting: Cell::new(false),
            in_flight: Cell::new(0),
            moment: Cell::new(1),
            violation: RefCell::default(),
            is_told: std::env::var_os("DOZE_TELL").is_some(),
        }
    }

    /// The disk, as the process sees it that runs now.
    pub fn fs(&self) -> SimFileSystem {
        self.fs.borrow().clone()
    }

    pub fn set_fs(&self, fs: SimFileSystem) {
        self.injected_before.set(fs.total_injected());
        *self.fs.borrow_mut() = fs;
    }

    /// Whether something has gone wrong in this life that a process cannot help: then errors are to be expected.
    pub fn is_troubled(&self) -> bool {
        let fs = self.fs.borrow();
        fs.has_stopped() || fs.total_injected() > self.injected_before.get()
    }

    /// Counts on: no two answers are alike.
    pub fn now(&self) -> Moment {
        let now = self.moment.get();
        self.moment.set(now + 1);
        now
    }

    pub fn note(&self, who: &str, what: impl Display) {
        let at = self.clock.elapsed_ms();
        let event = format!("{at:>6} ms  {who}: {what}");
        if self.is_told {
            eprintln!("{event}");
        }
        self.history.borrow_mut().note(event);
    }

    pub fn count(&self, what: &str) {
        self.history.borrow_mut().counts.add(what, 1);
    }

    /// A promise was broken. The history ends here.
    pub fn violate(&self, what: impl Display) {
        self.note("VIOLATION", &what);
        self.violation.borrow_mut().get_or_insert_with(|| what.to_string());
    }

    pub fn check(&self, result: Result<(), String>) {
        if let Err(what) = result {
            self.violate(what);
        }
    }

    pub fn violation(&self) -> Option<String> {
        self.violation.borrow().clone()
    }

    /// For a client: returns once it may make another request, if it may.
    pub async fn admitted(&self) {
        match self.budget.get() {
            0 => pending().await,
            left => self.budget.set(left - 1),
        }
    }
}
