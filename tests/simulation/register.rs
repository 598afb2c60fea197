//! A value that is written and read, where the outcome of a write may be unknown and writes may overlap.

use std::fmt::Debug;

/// A moment of a history: the number of its event.
pub type Moment = u64;

/// What the value may be. A read has to see a write that no later one is known to have replaced.
#[derive(Clone, Debug)]
pub struct Register<T> {
    writes: Vec<Write<T>>,
    next: u64,
}

#[derive(Clone, Debug)]
struct Write<T> {
    number: u64,
    value: T,
    begun: Moment,
    /// From when on it is certain that it was made, or never will be. `None` while that is open.
    decided: Option<Moment>,
    acknowledged: bool,
}

/// Names a write that has begun.
#[derive(Clone, Copy, Debug)]
pub struct WriteId(u64);

impl<T: Clone + Debug + PartialEq> Register<T> {
    pub fn new(value: T) -> Self {
        let write = Write { number: 0, value, begun: 0, decided: Some(0), acknowledged: true };
        Register { writes: vec![write], next: 1 }
    }

    pub fn begin(&mut self, value: T, now: Moment) -> WriteId {
        let number = self.next;
        self.next += 1;
        self.writes.push(Write { number, value, begun: now, decided: None, acknowledged: false });
        WriteId(number)
    }

    pub fn acknowledged(&mut self, id: WriteId, now: Moment) {
        if let Some(write) = self.writes.iter_mut().find(|write| write.number == id.0) {
            (write.decided, write.acknowledged) = (Some(now), true);
            let (begun, number) = (write.begun, write.number);
            // What was decided before it began is over.
            self.writes.retain(|other| other.number == number || other.decided.is_none_or(|at| at >= begun));
        }
    }

    /// It was not made and never will be.
    pub fn refused(&mut self, id: WriteId) {
        self.writes.retain(|write| write.number != id.0);
    }

    /// Whether it was made is not known, and will not change any more.
    pub fn unknown(&mut self, id: WriteId, now: Moment) {
        if let Some(write) = self.writes.iter_mut().find(|write| write.number == id.0) {
            write.decided = Some(now);
        }
    }

    /// The process has ended: whatever was under way is decided.
    pub fn process_ended(&mut self, now: Moment) {
        for write in &mut self.writes {
            write.decided.get_or_insert(now);
        }
    }

    /// A read that began at `begun` has seen `value`.
    pub fn read(&mut self, value: &T, begun: Moment, now: Moment) -> Result<(), String> {
        let over = self.writes.iter().filter(|write| write.acknowledged && write.decided.is_some_and(|at| at < begun));
        let floor = over.map(|write| write.begun).max().unwrap_or(0);
        let possible = |write: &&Write<T>| write.decided.is_none_or(|at| at >= floor);
        if !self.writes.iter().filter(possible).any(|write| write.value == *value) {
            let possible: Vec<&T> = self.writes.iter().filter(possible).map(|write| &write.value).collect();
            return Err(format!("{value:?} was found where only {possible:?} can be"));
        }
        if self.writes.iter().all(|write| write.decided.is_some_and(|at| at < begun)) {
            // Nothing is under way: that is what it is, and what was once shown must not go again.
            let number = self.next;
            self.next += 1;
            let value = value.clone();
            self.writes = vec![Write { number, value, begun, decided: Some(now), acknowledged: true }];
        }
        Ok(())
    }

    /// The value, if it cannot be another.
    pub fn known(&self) -> Option<&T> {
        match &self.writes[..] {
            [one] => Some(&one.value),
            _ => None,
        }
    }
}

#[test]
fn reads_see_what_may_be_there_and_nothing_else() {
    let mut register = Register::new(0);
    let one = register.begin(1, 10);
    assert!(register.read(&0, 11, 12).is_ok() && register.read(&1, 11, 12).is_ok());
    register.acknowledged(one, 15);
    assert!(register.read(&0, 14, 16).is_err() || register.read(&0, 16, 17).is_err());
    assert!(register.read(&1, 16, 17).is_ok());
    let two = register.begin(2, 20);
    register.unknown(two, 25);
    assert!(register.clone().read(&1, 30, 31).is_ok() && register.clone().read(&2, 30, 31).is_ok());
    register.read(&2, 30, 31).unwrap();
    assert!(register.read(&1, 32, 33).is_err(), "what was shown does not go again");
    let (three, four) = (register.begin(3, 40), register.begin(4, 41));
    register.acknowledged(four, 45);
    register.acknowledged(three, 46);
    assert!(register.clone().read(&3, 50, 51).is_ok() && register.clone().read(&4, 50, 51).is_ok(), "they overlapped");
    let five = register.begin(5, 60);
    register.refused(five);
    assert!(register.read(&5, 61, 62).is_err());
}
