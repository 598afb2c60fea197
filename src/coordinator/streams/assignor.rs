//! The sticky assignor: how tasks are shared out among the members of a group. All of it is deterministic: the same members
//! with the same tasks get the same tasks.
//!
//! - Every task is active with exactly one member, and as evenly as it can be. A task stays with the member that has it, or
//!   goes to one that has a copy of its state, if that member's share is not full.
//! - A task of a subtopology with state has as many standbys as are wanted, in processes that do not have the task yet; fewer
//!   where there are not enough processes. Who had the task, or a copy, comes first.
//! - What is left over goes to the process with the least load for its members, and there to the member with the fewest tasks.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::api::{TaskSet, Tasks};

/// A subtopology that has tasks.
pub(super) struct Work {
    pub subtopology: Arc<str>,
    pub tasks: i32,
    /// Whether it keeps state, so that a standby is of use.
    pub stateful: bool,
}

/// A member that takes part.
pub(super) struct Worker<'a> {
    pub id: &'a Arc<str>,
    pub process: &'a str,
    /// What it was to have so far.
    pub current: &'a Tasks,
}

type Task = (Arc<str>, i32);

/// Shares out the tasks, with this many standbys for each that has state.
pub(super) fn assign(workers: &[Worker<'_>], work: &[Work], standbys: usize) -> BTreeMap<Arc<str>, Tasks> {
    let mut shares = Shares::new(workers, work, standbys);
    if !workers.is_empty() {
        shares.give_active(work);
        shares.give_standbys(work);
    }
    workers.iter().zip(shares.given).map(|(worker, tasks)| (worker.id.clone(), tasks)).collect()
}

/// How many tasks each member is to have at most, so that all have equally many in the end. It is worked out anew whenever a
/// member has its share.
struct Quota {
    tasks: usize,
    members: usize,
    each: usize,
}

impl Quota {
    fn new(tasks: usize, members: usize) -> Self {
        Quota { tasks, members, each: if members == 0 { 0 } else { tasks.div_ceil(members) } }
    }

    fn given(&mut self, count: usize) {
        if count == self.each {
            *self = Quota::new(self.tasks.saturating_sub(count), self.members.saturating_sub(1));
        }
    }
}

/// Members are named by their places in the list, processes by their order.
struct Shares {
    given: Vec<Tasks>,
    /// How many tasks each member has been given.
    count: Vec<usize>,
    process_of: Vec<usize>,
    members: Vec<Vec<usize>>,
    /// How many tasks each process has been given.
    load: Vec<usize>,
    /// Tasks that each process has been given, as whatever.
    has: Vec<BTreeSet<Task>>,
    was_active: HashMap<Task, usize>,
    was_standby: HashMap<Task, Vec<usize>>,
    active: Quota,
    all: Quota,
    standbys: usize,
}

impl Shares {
    fn new(workers: &[Worker<'_>], work: &[Work], standbys: usize) -> Self {
        let count = |one: &Work| usize::try_from(one.tasks).unwrap_or(0);
        let active: usize = work.iter().map(count).sum();
        let stateful: usize = work.iter().filter(|one| one.stateful).map(count).sum();
        let mut processes: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (place, worker) in workers.iter().enumerate() {
            processes.entry(worker.process).or_default().push(place);
        }
        let members: Vec<Vec<usize>> = processes.into_values().collect();
        let mut process_of = vec![0; workers.len()];
        for (process, places) in members.iter().enumerate() {
            places.iter().for_each(|place| process_of[*place] = process);
        }
        let mut was_active = HashMap::new();
        let mut was_standby: HashMap<Task, Vec<usize>> = HashMap::new();
        for (place, worker) in workers.iter().enumerate() {
            was_active.extend(each(&worker.current.active).map(|task| (task, place)));
            for task in each(&worker.current.standby) {
                was_standby.entry(task).or_default().push(place);
            }
        }
        Shares {
            given: vec![Tasks::default(); workers.len()],
            count: vec![0; workers.len()],
            process_of,
            load: vec![0; members.len()],
            has: vec![BTreeSet::new(); members.len()],
            members,
            was_active,
            was_standby,
            active: Quota::new(active, workers.len()),
            all: Quota::new(active + stateful.saturating_mul(standbys), workers.len()),
            standbys,
        }
    }

    fn give_active(&mut self, work: &[Work]) {
        // The partitions of different subtopologies in turn, so that a member that loses some of its tasks keeps some of each.
        let mut open: Vec<Task> = tasks(work.iter());
        open.sort_by(|a, b| (a.1, &a.0).cmp(&(b.1, &b.0)));
        open.retain(|task| match self.was_active.get(task) {
            Some(&member) if self.count[member] < self.active.each => {
                self.give_one_active(member, task);
                false
            }
            _ => true,
        });
        open.retain(|task| {
            let had_copy = self.was_standby.get(task).map_or(&[][..], Vec::as_slice);
            match self.least_loaded(had_copy) {
                Some(member) if self.count[member] < self.active.each => {
                    self.give_one_active(member, task);
                    false
                }
                _ => true,
            }
        });
        open.sort();
        for task in &open {
            let process = self.lightest(|_| true).expect("there are members");
            let member = self.lightest_member(process);
            self.give_one_active(member, task);
        }
    }

    fn give_one_active(&mut self, member: usize, task: &Task) {
        self.take(member, task);
        insert(&mut self.given[member].active, task);
        self.active.given(self.count[member]);
        self.all.given(self.count[member]);
    }

    fn give_standbys(&mut self, work: &[Work]) {
        if self.standbys == 0 {
            return;
        }
        let mut stateful: Vec<Task> = tasks(work.iter().filter(|one| one.stateful));
        stateful.sort_by(|a, b| (b.1, &b.0).cmp(&(a.1, &a.0)));
        let mut left: Vec<(Task, usize)> = Vec::new();
        for task in stateful {
            let given = (0..self.standbys).take_while(|_| self.give_standby_back(&task)).count();
            if given < self.standbys {
                left.push((task, self.standbys - given));
            }
        }
        left.sort_by(|a, b| b.cmp(a));
        for (task, wanted) in left {
            for _ in 0..wanted {
                // Every process may have it already; then there are fewer standbys than are wanted.
                let Some(process) = self.lightest(|has| !has.contains(&task)) else { break };
                let member = self.lightest_member(process);
                self.give_one_standby(member, &task);
            }
        }
    }

    /// Gives a standby to somebody who knows the task, if there is such a member that may have it.
    fn give_standby_back(&mut self, task: &Task) -> bool {
        let may = |this: &Self, member: usize| {
            !this.has[this.process_of[member]].contains(task) && this.count[member] < this.all.each
        };
        let was_active = self.was_active.get(task).copied().filter(|member| may(self, *member));
        let member = was_active.or_else(|| {
            let copies = self.was_standby.get(task)?;
            let open: Vec<usize> =
                copies.iter().copied().filter(|member| !self.has[self.process_of[*member]].contains(task)).collect();
            self.least_loaded(&open).filter(|member| may(self, *member))
        });
        if let Some(member) = member {
            self.give_one_standby(member, task);
        }
        member.is_some()
    }

    fn give_one_standby(&mut self, member: usize, task: &Task) {
        self.take(member, task);
        insert(&mut self.given[member].standby, task);
        self.all.given(self.count[member]);
    }

    fn take(&mut self, member: usize, task: &Task) {
        let process = self.process_of[member];
        self.count[member] += 1;
        self.load[process] += 1;
        self.has[process].insert(task.clone());
    }

    /// Of these members, the one with the least to do.
    fn least_loaded(&self, members: &[usize]) -> Option<usize> {
        members.iter().copied().min_by(|&a, &b| {
            let by_process = self.compare_load(self.process_of[a], self.process_of[b]);
            by_process.then(self.count[a].cmp(&self.count[b]))
        })
    }

    /// The process with the fewest tasks for its members, of those whose tasks are so.
    fn lightest(&self, may: impl Fn(&BTreeSet<Task>) -> bool) -> Option<usize> {
        let open = (0..self.members.len()).filter(|process| may(&self.has[*process]));
        open.min_by(|a, b| self.compare_load(*a, *b))
    }

    fn lightest_member(&self, process: usize) -> usize {
        let members = self.members[process].iter().copied();
        members.min_by_key(|member| self.count[*member]).expect("no process is without members")
    }

    /// By tasks for each member, as fractions.
    fn compare_load(&self, a: usize, b: usize) -> std::cmp::Ordering {
        (self.load[a] * self.members[b].len()).cmp(&(self.load[b] * self.members[a].len()))
    }
}

fn tasks<'a>(work: impl Iterator<Item = &'a Work>) -> Vec<Task> {
    work.flat_map(|one| (0..one.tasks).map(|partition| (one.subtopology.clone(), partition))).collect()
}

fn each(tasks: &TaskSet) -> impl Iterator<Item = Task> {
    tasks.iter().flat_map(|(id, partitions)| partitions.iter().map(|partition| (id.clone(), *partition)))
}

fn insert(tasks: &mut TaskSet, task: &Task) {
    tasks.entry(task.0.clone()).or_default().insert(task.1);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn work(id: &str, tasks: i32, stateful: bool) -> Work {
        Work { subtopology: id.into(), tasks, stateful }
    }

    /// Members of processes; each has what it was given the last time.
    #[derive(Default)]
    struct Crowd {
        members: Vec<(Arc<str>, String)>,
        current: BTreeMap<Arc<str>, Tasks>,
    }

    impl Crowd {
        fn of(members: &[(&str, &str)]) -> Self {
            let members = members.iter().map(|(id, process)| ((*id).into(), (*process).to_owned())).collect();
            Crowd { members, current: BTreeMap::new() }
        }

        fn assign(&mut self, work: &[Work], standbys: usize) {
            let nothing = Tasks::default();
            let workers: Vec<Worker> = self
                .members
                .iter()
                .map(|(id, process)| Worker { id, process, current: self.current.get(id).unwrap_or(&nothing) })
                .collect();
            self.current = assign(&workers, work, standbys);
        }

        fn active(&self, id: &str) -> Vec<(String, i32)> {
            each(&self.current[id].active).map(|(id, partition)| (id.to_string(), partition)).collect()
        }

        fn standby(&self, id: &str) -> Vec<(String, i32)> {
            each(&self.current[id].standby).map(|(id, partition)| (id.to_string(), partition)).collect()
        }

        /// Every task is active once and has its standbys where there is a process for them, and nobody has too much.
        fn check(&self, work: &[Work], standbys: usize) {
            let mut active = BTreeMap::new();
            let mut processes: BTreeMap<Task, BTreeSet<&str>> = BTreeMap::new();
            for (id, process) in &self.members {
                for task in each(&self.current[id].active) {
                    assert_eq!(active.insert(task.clone(), id), None, "{task:?} is active twice");
                    assert!(processes.entry(task).or_default().insert(process));
                }
            }
            for (id, process) in &self.members {
                for task in each(&self.current[id].standby) {
                    assert!(
                        processes.entry(task.clone()).or_default().insert(process),
                        "{task:?} is twice in {process}"
                    );
                }
            }
            let all = tasks(work.iter());
            assert_eq!(active.len(), all.len());
            let most = self.members.iter().map(|(_, process)| process).collect::<BTreeSet<_>>().len();
            for task in all {
                let stateful = work.iter().any(|one| one.subtopology == task.0 && one.stateful);
                let wanted = if stateful { (1 + standbys).min(most) } else { 1 };
                assert_eq!(processes[&task].len(), wanted, "{task:?} with {standbys} standbys in {most} processes");
            }
        }
    }

    #[test]
    fn tasks_stay_and_move_only_to_even_out() {
        let all = [work("0", 4, false), work("1", 4, true)];
        let mut crowd = Crowd::of(&[("a", "p")]);
        crowd.assign(&all, 0);
        assert_eq!(crowd.active("a").len(), 8);
        crowd.members.push(("b".into(), "q".into()));
        crowd.assign(&all, 0);
        crowd.check(&all, 0);
        let kept = crowd.active("a");
        let named = |tasks: &[(&str, i32)]| tasks.iter().map(|(id, n)| ((*id).to_owned(), *n)).collect::<Vec<_>>();
        assert_eq!(kept, named(&[("0", 0), ("0", 1), ("1", 0), ("1", 1)]), "half of each subtopology");
        crowd.members.push(("c".into(), "r".into()));
        crowd.assign(&all, 0);
        crowd.check(&all, 0);
        assert!(crowd.active("a").iter().all(|task| kept.contains(task)), "{:?}", crowd.active("a"));
        let of_c = crowd.active("c");
        crowd.members.retain(|(id, _)| **id != *"b");
        crowd.assign(&all, 0);
        crowd.check(&all, 0);
        assert!(of_c.iter().all(|task| crowd.active("c").contains(task)), "{:?}", crowd.active("c"));
    }

    #[test]
    fn whoever_has_a_copy_takes_over() {
        let all = [work("0", 3, true)];
        let mut crowd = Crowd::of(&[("a", "p"), ("b", "q"), ("c", "r")]);
        crowd.assign(&all, 1);
        crowd.check(&all, 1);
        let lost = crowd.active("a");
        let heir = if crowd.standby("b").contains(&lost[0]) { "b" } else { "c" };
        assert!(crowd.standby(heir).contains(&lost[0]));
        crowd.members.retain(|(id, _)| **id != *"a");
        crowd.assign(&all, 1);
        crowd.check(&all, 1);
        assert!(crowd.active(heir).contains(&lost[0]), "{:?}", crowd.active(heir));
    }

    #[test]
    fn threads_of_a_process_share_its_part() {
        let all = [work("0", 6, true)];
        let mut crowd = Crowd::of(&[("a", "p"), ("b", "p"), ("c", "q")]);
        crowd.assign(&all, 1);
        crowd.check(&all, 1);
        let counts: Vec<usize> = ["a", "b", "c"].iter().map(|id| crowd.active(id).len()).collect();
        assert_eq!(counts, [2, 2, 2]);
        assert_eq!(crowd.standby("c").len(), 4, "q has a copy of all that p does");
    }

    #[test]
    fn whatever_members_come_and_go_every_task_is_somewhere() {
        let random = crate::coordinator::tests::SeededRandom::new(7);
        for _ in 0..300 {
            let all = [work("0", random.below(5) as i32, false), work("1", random.below(9) as i32, true)];
            let standbys = random.below(4);
            let mut crowd = Crowd::default();
            for round in 0..6 {
                for n in 0..random.below(4) {
                    let id = format!("m{round}{n}");
                    crowd.members.push((id.as_str().into(), format!("p{}", random.below(4))));
                }
                crowd.members.retain(|_| random.below(5) > 0);
                crowd.assign(&all, standbys);
                if !crowd.members.is_empty() {
                    crowd.check(&all, standbys);
                    let before = crowd.current.clone();
                    crowd.assign(&all, standbys);
                    crowd.check(&all, standbys);
                    let kept = |(id, tasks): (&Arc<str>, &Tasks)| {
                        each(&tasks.active)
                            .filter(|task| crowd.current[id].active.get(&task.0).is_some_and(|p| p.contains(&task.1)))
                            .count()
                    };
                    let all: usize = before.values().map(|tasks| each(&tasks.active).count()).sum();
                    let kept: usize = before.iter().map(kept).sum();
                    assert!(all - kept <= crowd.members.len(), "{kept} of {all} tasks stay when nothing changes");
                }
            }
        }
    }
}
