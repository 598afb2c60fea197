//! Counts connections, in all and by address, and says which is one too many.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use parking_lot::Mutex;

/// Open connections, in all and by address.
#[derive(Debug, Default)]
struct Counts {
    all: usize,
    by_ip: HashMap<IpAddr, usize>,
}

/// The count. Shared between threads.
#[derive(Debug, Default)]
pub struct Quota {
    counts: Arc<Mutex<Counts>>,
}

impl Quota {
    /// Counts a connection from `ip` until what this hands back is dropped. `None` where that would be one too many.
    pub fn admit(&self, ip: IpAddr, max: usize, max_per_ip: usize) -> Option<Counted> {
        let ip = ip.to_canonical();
        let mut now = self.counts.lock();
        let of_ip = now.by_ip.get(&ip).copied().unwrap_or(0);
        if now.all >= max || of_ip >= max_per_ip {
            return None;
        }
        now.all += 1;
        now.by_ip.insert(ip, of_ip + 1);
        Some(Counted { counts: self.counts.clone(), ip })
    }
}

/// One connection, counted for as long as this lives.
#[derive(Debug)]
pub struct Counted {
    counts: Arc<Mutex<Counts>>,
    ip: IpAddr,
}

impl Drop for Counted {
    fn drop(&mut self) {
        let mut counts = self.counts.lock();
        counts.all -= 1;
        if let Some(n) = counts.by_ip.get_mut(&self.ip) {
            *n -= 1;
            if *n == 0 {
                counts.by_ip.remove(&self.ip);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_so_many_in_all_and_so_many_of_an_address() {
        let ip = |text: &str| -> IpAddr { text.parse().unwrap() };
        let quota = Quota::default();
        let held: Vec<_> = (0..3).filter_map(|_| quota.admit(ip("10.0.0.1"), 100, 2)).collect();
        assert_eq!(held.len(), 2);
        assert!(quota.admit(ip("::ffff:10.0.0.1"), 100, 2).is_none(), "the same address in another form");
        let other = quota.admit(ip("10.0.0.2"), 100, 2);
        assert!(other.is_some());
        drop(held);
        assert!(quota.admit(ip("10.0.0.1"), 2, 2).is_some());
        assert!(quota.admit(ip("10.0.0.1"), 1, 2).is_none(), "one is open");
    }
}
