//! Client quotas (KIP-13, KIP-124, KIP-546, KIP-599, KIP-612): what clients may use, and what is done when they use more.
//!
//! A client that used too much is answered at once and told how long it is held back; its connection is not read from for
//! that long. Rates are measured by client id or user as the quota says; everybody is the user ANONYMOUS. Where no quota
//! of a kind is set, all that is left of it is the look at one byte.

pub mod entity;
mod rate;
pub mod thread_time;

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use parking_lot::{Mutex, RwLock};

use super::config::BrokerConfig;
use super::topics::Refused;
use super::{ANONYMOUS, Broker};
use crate::protocol::ErrorCode;
use crate::storage::catalog::{Catalog, CatalogError, Mutation};
use crate::sys::Env;
use entity::{Entity, Part, Values, decode_values, encode_values, resolve};
use rate::{Rate, TokenBucket, Window};

/// The owner of the quotas in the catalog's state.
const SPACE: &str = "client-quota";

/// What is limited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
enum Kind {
    Produce = 1,
    Fetch = 2,
    Request = 4,
    Mutation = 8,
    Connection = 16,
}

const KINDS: [(Kind, &str); 5] = [
    (Kind::Produce, entity::PRODUCER_BYTE_RATE),
    (Kind::Fetch, entity::CONSUMER_BYTE_RATE),
    (Kind::Request, entity::REQUEST_PERCENTAGE),
    (Kind::Mutation, entity::CONTROLLER_MUTATION_RATE),
    (Kind::Connection, entity::CONNECTION_CREATION_RATE),
];

/// All quotas that are set.
type Table = BTreeMap<Entity, Values>;

/// Whose use is counted together.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Meter {
    kind: Kind,
    /// The quota names the user, so that other users would be counted on their own.
    user: bool,
    /// `None`: all of the user's clients together.
    client_id: Option<String>,
    ip: Option<IpAddr>,
}

#[derive(Debug)]
enum Use {
    Rate(Rate),
    Tokens(TokenBucket, f64),
}

/// The quotas in force. Shared between threads.
#[derive(Debug)]
pub struct Quotas {
    env: Env,
    /// One bit a kind of which a quota is set.
    kinds: AtomicU8,
    limits: RwLock<Limits>,
    table: RwLock<Arc<Table>>,
    used: Mutex<HashMap<Meter, Use>>,
    window: Window,
    mutation_window: Window,
}

/// The quotas as they are looked up.
#[derive(Debug, Default)]
struct Limits {
    of_clients: HashMap<(Kind, Part, Part), f64>,
    of_ips: HashMap<IpAddr, f64>,
    of_other_ips: Option<f64>,
}

impl Limits {
    fn new(table: &Table) -> Limits {
        let mut limits = Limits::default();
        for (entity, values) in table {
            for (kind, key) in KINDS {
                let Some(limit) = values.get(key) else { continue };
                match &entity.ip {
                    Part::Absent => {
                        limits.of_clients.insert((kind, entity.user.clone(), entity.client_id.clone()), *limit);
                    }
                    Part::Default => limits.of_other_ips = Some(*limit),
                    Part::Named(name) => match resolve(name) {
                        Some(ip) => drop(limits.of_ips.insert(ip, *limit)),
                        None => tracing::warn!(host = name, "a quota is not in force: the host has no address"),
                    },
                }
            }
        }
        limits
    }

    fn kinds(&self) -> u8 {
        let ips = !self.of_ips.is_empty() || self.of_other_ips.is_some();
        let connection = if ips { Kind::Connection as u8 } else { 0 };
        self.of_clients.keys().fold(connection, |kinds, (kind, _, _)| kinds | *kind as u8)
    }

    /// The quota that counts for a client, the closest one: of the user before that of the client id, of a name before
    /// the default.
    fn of_client(&self, kind: Kind, client_id: &str) -> Option<(Meter, f64)> {
        let named = |name: &str| Part::Named(name.into());
        let users = [named(ANONYMOUS), Part::Default, Part::Absent];
        for user in users {
            for client in [named(client_id), Part::Default, Part::Absent] {
                if client_id.is_empty() && !client.is_absent() {
                    continue;
                }
                let of_all_clients = client.is_absent();
                if let Some(limit) = self.of_clients.get(&(kind, user.clone(), client)) {
                    let client_id = (!of_all_clients).then(|| client_id.to_owned());
                    return Some((Meter { kind, user: !user.is_absent(), client_id, ip: None }, *limit));
                }
            }
        }
        None
    }

    fn of_ip(&self, ip: IpAddr) -> Option<f64> {
        self.of_ips.get(&ip).copied().or(self.of_other_ips)
    }
}

/// From so many meters on, those that count no more are forgotten when another is added.
const TIDY_FROM: usize = 1024;

impl Quotas {
    /// Reads what is set.
    pub fn open(env: Env, catalog: &Catalog, config: &BrokerConfig) -> Result<Quotas, CatalogError> {
        let mut table = Table::new();
        for (key, value) in catalog.states(SPACE)? {
            match (Entity::decode(&key), decode_values(&value)) {
                (Ok(entity), Ok(values)) => drop(table.insert(entity, values)),
                (Err(error), _) | (_, Err(error)) => {
                    tracing::error!("a client quota in the catalog does not read, and is not in force: {error}");
                }
            }
        }
        let window = |samples, seconds| Window {
            samples: u32::try_from(config.int(samples)).unwrap_or(1).max(1),
            sample_ms: i64::from(config.int(seconds)).max(1) * 1000,
        };
        let limits = Limits::new(&table);
        Ok(Quotas {
            env,
            kinds: AtomicU8::new(limits.kinds()),
            limits: RwLock::new(limits),
            table: RwLock::new(Arc::new(table)),
            used: Mutex::default(),
            window: window("quota.window.num", "quota.window.size.seconds"),
            mutation_window: window("controller.quota.window.num", "controller.quota.window.size.seconds"),
        })
    }

    /// All quotas that are set.
    pub fn all(&self) -> Arc<Table> {
        self.table.read().clone()
    }

    fn put_in_force(&self, table: Arc<Table>, limits: Limits) {
        let kinds = limits.kinds();
        *self.limits.write() = limits;
        *self.table.write() = table;
        self.kinds.store(kinds, Ordering::Release);
    }

    fn is_limited(&self, kind: Kind) -> bool {
        self.kinds.load(Ordering::Acquire) & kind as u8 != 0
    }

    fn now_ms(&self) -> i64 {
        i64::try_from(self.env.clock.monotonic().as_millis()).unwrap_or(i64::MAX)
    }

    /// The meter of a client and its limit, where one is set for it.
    fn limit(&self, kind: Kind, client_id: Option<&str>) -> Option<(Meter, f64)> {
        if !self.is_limited(kind) {
            return None;
        }
        self.limits.read().of_client(kind, client_id.unwrap_or_default())
    }

    fn with_use<T>(&self, meter: Meter, now_ms: i64, new: impl FnOnce() -> Use, f: impl FnOnce(&mut Use) -> T) -> T {
        let mut used = self.used.lock();
        if used.len() >= TIDY_FROM && !used.contains_key(&meter) {
            used.retain(|_, used| match used {
                Use::Rate(rate) => !rate.is_over(self.window, now_ms),
                Use::Tokens(bucket, limit) => !bucket.is_over(self.mutation_window, now_ms, *limit),
            });
        }
        f(used.entry(meter).or_insert_with(new))
    }

    /// Counts `value` and answers for how many milliseconds the client is to be held back.
    fn record(&self, meter: Meter, limit: f64, value: f64) -> i64 {
        let now_ms = self.now_ms();
        self.with_use(
            meter,
            now_ms,
            || Use::Rate(Rate::default()),
            |used| match used {
                Use::Rate(rate) => {
                    rate.record(self.window, now_ms, value);
                    rate.throttle_ms(self.window, now_ms, limit)
                }
                Use::Tokens(..) => 0,
            },
        )
    }

    /// Counts the bytes of a produce request; answers for how many milliseconds its client is to be held back.
    pub fn produced(&self, client_id: Option<&str>, bytes: usize) -> i32 {
        let Some((meter, limit)) = self.limit(Kind::Produce, client_id) else { return 0 };
        clamp(self.record(meter, limit, bytes as f64))
    }

    /// The most that one fetch may return, so that a quota is not overdrawn for longer than its window.
    pub fn max_fetch_bytes(&self, client_id: Option<&str>) -> usize {
        let Some((_, limit)) = self.limit(Kind::Fetch, client_id) else { return usize::MAX };
        // Saturates, and takes what is not a number for 0, which cannot be set by who has a quota to enforce.
        let bytes = limit * f64::from(self.window.samples - 1) * self.window.sample_ms as f64 / 1000.0;
        if bytes.is_nan() { usize::MAX } else { bytes as usize }
    }

    /// Counts the bytes of a fetch response, unless they are too many: then they are not to be sent, and the answer is for
    /// how many milliseconds the client is to be held back.
    pub fn fetched(&self, client_id: Option<&str>, bytes: usize) -> i32 {
        let Some((meter, limit)) = self.limit(Kind::Fetch, client_id) else { return 0 };
        let throttle_ms = self.record(meter.clone(), limit, bytes as f64);
        if throttle_ms > 0 {
            self.record(meter, limit, -(bytes as f64));
        }
        clamp(throttle_ms)
    }

    /// Whether the time that requests take is to be measured.
    fn measures_time(&self) -> bool {
        self.is_limited(Kind::Request)
    }

    /// Counts time that a request took; answers for how many milliseconds its client is to be held back, one sample's
    /// length at the most.
    fn spent(&self, client_id: Option<&str>, time: Duration) -> i32 {
        let Some((meter, limit)) = self.limit(Kind::Request, client_id) else { return 0 };
        let percent = time.as_secs_f64() * 100.0;
        clamp(self.record(meter, limit, percent).min(self.window.sample_ms))
    }

    /// Admits a connection; else it is to be closed after the time that is answered.
    pub fn connecting(&self, ip: IpAddr) -> Option<Duration> {
        if !self.is_limited(Kind::Connection) {
            return None;
        }
        let ip = ip.to_canonical();
        let limit = self.limits.read().of_ip(ip)?;
        let meter = Meter { kind: Kind::Connection, user: false, client_id: None, ip: Some(ip) };
        let throttle_ms = self.record(meter.clone(), limit, 1.0).min(self.window.sample_ms);
        if throttle_ms <= 0 {
            return None;
        }
        // It is not let in, so it does not count.
        self.record(meter, limit, -1.0);
        Some(Duration::from_millis(throttle_ms.unsigned_abs()))
    }

    /// Counts a connection; answers for how long no other is to be taken in, so that there are at most `per_second`.
    pub fn pause_after_connection(&self, per_second: i32) -> Duration {
        if per_second == i32::MAX {
            return Duration::ZERO;
        }
        let meter = Meter { kind: Kind::Connection, user: false, client_id: None, ip: None };
        let pause_ms = self.record(meter, per_second.into(), 1.0).min(self.window.sample_ms);
        Duration::from_millis(pause_ms.max(0).unsigned_abs())
    }

    /// The changes of topics that one request makes. A `strict` one is refused what is too much; any other is held back
    /// afterwards.
    pub fn mutations(&self, client_id: Option<&str>, strict: bool) -> Mutations<'_> {
        Mutations { quotas: self, limit: self.limit(Kind::Mutation, client_id), strict, throttle_ms: 0 }
    }
}

fn clamp(ms: i64) -> i32 {
    i32::try_from(ms).unwrap_or(i32::MAX)
}

/// What a request may still change of topics.
#[derive(Debug)]
pub struct Mutations<'a> {
    quotas: &'a Quotas,
    limit: Option<(Meter, f64)>,
    strict: bool,
    throttle_ms: i64,
}

impl Mutations<'_> {
    /// Takes `partitions` partitions that are to be made or deleted.
    pub fn take(&mut self, partitions: i32) -> Result<(), Refused> {
        let Some((meter, limit)) = self.limit.clone() else { return Ok(()) };
        let (window, now_ms) = (self.quotas.mutation_window, self.quotas.now_ms());
        let new = || Use::Tokens(TokenBucket::full(window, now_ms, limit), limit);
        let (strict, tokens) = (self.strict, f64::from(partitions));
        let throttle_ms = self.quotas.with_use(meter, now_ms, new, |used| match used {
            Use::Tokens(bucket, at) => {
                *at = limit;
                if strict {
                    let throttle_ms = bucket.throttle_ms(window, now_ms, limit);
                    if throttle_ms == 0 {
                        bucket.take(window, now_ms, limit, tokens);
                    }
                    throttle_ms
                } else {
                    bucket.take(window, now_ms, limit, tokens);
                    bucket.throttle_ms(window, now_ms, limit)
                }
            }
            Use::Rate(_) => 0,
        });
        if throttle_ms == 0 {
            return Ok(());
        }
        self.throttle_ms = throttle_ms;
        match strict {
            // The code says it all; Kafka has no message either.
            true => Err(Refused::new(ErrorCode::ThrottlingQuotaExceeded, "")),
            false => Ok(()),
        }
    }

    /// For how many milliseconds the client is to be held back.
    pub fn throttle_ms(&self) -> i32 {
        clamp(self.throttle_ms)
    }
}

/// A change of one quota.
#[derive(Clone, Debug)]
pub struct Op {
    pub key: String,
    /// `None` removes it.
    pub value: Option<f64>,
}

impl Broker {
    pub(super) fn quotas(&self) -> &Arc<Quotas> {
        &self.quotas
    }

    /// Changes quotas, durably: of each entity all that is asked, or nothing where something of it is refused. The answer
    /// has what each came to, in order. The entities are different ones.
    pub(super) async fn alter_quotas(
        &self,
        changes: Vec<(Entity, Vec<Op>)>,
        validate_only: bool,
    ) -> Result<Vec<Result<(), Refused>>, Refused> {
        let _one_at_a_time = self.altering.lock().await;
        let mut table = Table::clone(&self.quotas.all());
        let (mut results, mut mutations) = (vec![], vec![]);
        for (entity, ops) in changes {
            let before = table.get(&entity).cloned().unwrap_or_default();
            let after = match self.change(&entity, &before, ops).await {
                Ok(after) => after,
                Err(why) => {
                    results.push(Err(Refused::new(ErrorCode::InvalidRequest, why)));
                    continue;
                }
            };
            results.push(Ok(()));
            if before == after {
                continue;
            }
            let value = (!after.is_empty()).then(|| encode_values(&after));
            mutations.push(Mutation::SetState { space: SPACE, key: entity.encode(), value });
            match after.is_empty() {
                true => drop(table.remove(&entity)),
                false => drop(table.insert(entity, after)),
            }
        }
        if validate_only || mutations.is_empty() {
            return Ok(results);
        }
        self.commit(mutations).await?;
        let table = Arc::new(table);
        let for_limits = table.clone();
        // Names of hosts are looked up.
        let limits = self.blocking(move || Limits::new(&for_limits)).await;
        let limits = limits.map_err(|code| Refused::new(code, "the quotas are stored, but not in force"))?;
        self.quotas.put_in_force(table, limits);
        Ok(results)
    }

    async fn change(&self, entity: &Entity, before: &Values, ops: Vec<Op>) -> Result<Values, String> {
        if let Part::Named(host) = &entity.ip {
            let name = host.clone();
            let found = self.blocking(move || resolve(&name)).await.unwrap_or_default();
            found.ok_or_else(|| format!("{host} is not a valid IP or resolvable host."))?;
        }
        let mut after = before.clone();
        for op in ops {
            match op.value {
                None => drop(after.remove(&op.key)),
                Some(value) => {
                    entity.check_value(&op.key, value)?;
                    after.insert(op.key, value);
                }
            }
        }
        Ok(after)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Parts<'a> = &'a [(&'a str, Option<&'a str>)];

    fn limits(quotas: &[(Parts<'_>, f64)]) -> Limits {
        let values = |value: f64| Values::from([(entity::PRODUCER_BYTE_RATE.to_owned(), value)]);
        Limits::new(&quotas.iter().map(|(e, v)| (Entity::new(e.iter().copied()).unwrap(), values(*v))).collect())
    }

    /// The order that Apache Kafka's documentation gives.
    #[test]
    fn the_closest_quota_counts() {
        let mut all: Vec<(Parts<'_>, f64)> = vec![
            (&[("user", Some("ANONYMOUS")), ("client-id", Some("c"))], 1.0),
            (&[("user", Some("ANONYMOUS")), ("client-id", None)], 2.0),
            (&[("user", Some("ANONYMOUS"))], 3.0),
            (&[("user", None), ("client-id", Some("c"))], 4.0),
            (&[("user", None), ("client-id", None)], 5.0),
            (&[("user", None)], 6.0),
            (&[("client-id", Some("c"))], 7.0),
            (&[("client-id", None)], 8.0),
        ];
        while !all.is_empty() {
            let (meter, limit) = limits(&all).of_client(Kind::Produce, "c").unwrap();
            let (parts, expected) = all.remove(0);
            assert_eq!(limit, expected);
            assert_eq!(meter.client_id.is_some(), parts.iter().any(|(kind, _)| *kind == "client-id"));
            assert_eq!(meter.user, parts.iter().any(|(kind, _)| *kind == "user"));
        }
        let others = limits(&[(&[("user", Some("b"))], 1.0), (&[("client-id", Some("d"))], 1.0)]);
        assert_eq!(others.of_client(Kind::Produce, "c"), None);
        assert_eq!(others.of_client(Kind::Fetch, "d"), None);
        assert_eq!(limits(&[(&[("client-id", None)], 1.0)]).of_client(Kind::Produce, ""), None);
    }
}
