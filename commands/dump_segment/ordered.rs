//! Puts the text that several threads make of a file's stretches into the order of the file.
//!
//! A thread takes the next stretch before anybody knows what stands in the one before it: where it starts is a guess from the
//! headers. Its turn comes when all before it was written, and then it is known where that really ended. If that is not where
//! the stretch started, since there is damage, what was made of it is worth nothing, and the thread goes through it again from
//! the right place. So what is written is what one thread alone would write.
//!
//! Each thread keeps about [`HELD`] bytes of text for itself. What has more to say waits for its turn, and then writes as it goes.

use std::io::{self, Write};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use doze::storage::dump::{Dump, DumpError, Place};

use super::Counts;
use super::payload::Sink;

/// How many bytes of text a thread keeps before it waits for its turn.
const HELD: usize = 1 << 20;

/// A stretch of a file, for one thread.
#[derive(Debug)]
pub struct Stretch {
    /// Counted from 0.
    number: u64,
    from: Place,
    /// Where it ends, if the headers tell.
    until: Option<Place>,
}

/// What all threads share that write about a file.
pub struct Order<W> {
    ahead: Mutex<Ahead>,
    more: Condvar,
    turn: Mutex<Turn<W>>,
    turned: Condvar,
}

/// Which stretch is taken next.
struct Ahead {
    number: u64,
    next: Next,
}

enum Next {
    At(Place),
    /// Where the last one that was taken ends.
    Unknown,
    /// There is none.
    End,
}

/// Whose turn it is to write.
struct Turn<W> {
    number: u64,
    /// Where the stretches before it ended. `None`: nothing more is to be written.
    place: Option<Place>,
    out: W,
    counts: Counts,
    /// Why the file was not told of to its end.
    stop: Option<Stop>,
}

/// Why a file is not told of any further.
#[derive(Debug)]
pub enum Stop {
    Stdout(io::Error),
    Unreadable(DumpError),
    /// As much as was wanted is written.
    Limit,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<W: Write> Order<W> {
    /// `start`: where a file starts, if there is anything in it.
    pub fn new(out: W, start: Option<Place>) -> Order<W> {
        let next = start.map_or(Next::End, Next::At);
        let turn = Turn { number: 0, place: start, out, counts: Counts::default(), stop: None };
        Order {
            ahead: Mutex::new(Ahead { number: 0, next }),
            more: Condvar::new(),
            turn: Mutex::new(turn),
            turned: Condvar::new(),
        }
    }

    /// Has `dump` go to the next stretch. `None` if there is none.
    pub fn take(&self, dump: &mut Dump) -> Option<Stretch> {
        let mut ahead = locked(&self.ahead);
        let from = loop {
            match ahead.next {
                Next::At(place) => break place,
                Next::Unknown => ahead = self.more.wait(ahead).unwrap_or_else(PoisonError::into_inner),
                Next::End => return None,
            }
        };
        let number = ahead.number;
        let until = dump.go_to_stretch(&from);
        ahead.number += 1;
        ahead.next = until.map_or(Next::Unknown, Next::At);
        Some(Stretch { number, from, until })
    }

    /// Waits until all stretches before `number` were written.
    fn wait(&self, number: u64) -> MutexGuard<'_, Turn<W>> {
        let is_early = |turn: &mut Turn<W>| turn.number < number && turn.place.is_some();
        self.turned.wait_while(locked(&self.turn), is_early).unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives the turn to the next. `place`: where it has to start.
    fn pass(&self, mut turn: MutexGuard<'_, Turn<W>>, place: Option<Place>) {
        turn.number += 1;
        turn.place = place;
        let number = turn.number;
        drop(turn);
        self.turned.notify_all();
        let mut ahead = locked(&self.ahead);
        match (place, &ahead.next) {
            (None, _) => ahead.next = Next::End,
            (Some(place), Next::Unknown) if ahead.number == number => ahead.next = Next::At(place),
            _ => return,
        }
        self.more.notify_all();
    }

    /// What was written to, what is in the file, and why that is not all of it.
    pub fn end(self) -> (W, Counts, Option<Stop>) {
        let turn = self.turn.into_inner().unwrap_or_else(PoisonError::into_inner);
        (turn.out, turn.counts, turn.stop)
    }
}

/// The text about one stretch.
pub struct Lines<'a, W: Write> {
    order: &'a Order<W>,
    stretch: Stretch,
    text: Vec<u8>,
    standing: Standing,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Standing {
    /// The turn has not come yet.
    Early,
    /// It has, and what is written goes out.
    Turn,
    /// It has, and the stretch starts elsewhere: what is written is dropped.
    Wrong,
    /// It was passed on.
    Passed,
}

impl<'a, W: Write> Lines<'a, W> {
    pub fn new(order: &'a Order<W>, stretch: Stretch) -> Lines<'a, W> {
        Lines { order, stretch, text: Vec::new(), standing: Standing::Early }
    }

    /// Waits for the turn. Answers how much was counted in the stretches before, or `None` if this one has to be gone through
    /// from another place, see [`Lines::go_back`].
    pub fn wait(&mut self) -> Option<Counts> {
        let turn = self.order.wait(self.stretch.number);
        if self.standing == Standing::Early {
            let is_right = turn.place == Some(self.stretch.from);
            self.standing = if is_right { Standing::Turn } else { Standing::Wrong };
        }
        (self.standing == Standing::Turn).then_some(turn.counts)
    }

    /// Has `dump` go to where the stretch really starts, and answers how much was counted in those before. `None`: there is
    /// nothing more to be written.
    pub fn go_back(&mut self, dump: &mut Dump) -> Option<Counts> {
        let turn = self.order.wait(self.stretch.number);
        dump.go_to(&turn.place?, self.stretch.until.as_ref());
        self.text.clear();
        self.standing = Standing::Turn;
        Some(turn.counts)
    }

    /// Writes the rest and passes the turn, which has come, on. `told`: whether the stretch was told of to its end, which is at
    /// `place`.
    pub fn end(mut self, told: Result<(), Stop>, counts: &Counts, place: Option<Place>) {
        let told = self.send().map_err(Stop::Stdout).and(told);
        let mut turn = self.order.wait(self.stretch.number);
        turn.counts += *counts;
        turn.stop = told.err();
        let place = place.filter(|_| turn.stop.is_none());
        self.order.pass(turn, place);
        self.standing = Standing::Passed;
    }

    /// Sends the text out, unless it is wrong.
    fn send(&mut self) -> io::Result<()> {
        if self.wait().is_some() {
            locked(&self.order.turn).out.write_all(&self.text)?;
        }
        self.text.clear();
        Ok(())
    }
}

impl<W: Write> Sink for Lines<'_, W> {
    fn text(&mut self) -> io::Result<&mut Vec<u8>> {
        if self.text.len() >= HELD {
            self.send()?;
        }
        Ok(&mut self.text)
    }
}

/// Whoever gives up has nobody wait for it.
impl<W: Write> Drop for Lines<'_, W> {
    fn drop(&mut self) {
        if self.standing != Standing::Passed {
            self.order.pass(locked(&self.order.turn), None);
        }
    }
}
