//! Whom a quota is for, and what may be set of it.
//!
//! ```text
//! state "client-quota"
//! key      version 1, then user, client id, ip, each: 0 not part of it: i32 · 1 the default: i32 · 2: i32 and the name: string
//! value    version 1, how many quotas: i32, then each: its key: string, its value, an IEEE 754 double: i64
//! ```

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, ToSocketAddrs};

use crate::storage::catalog::{Decoder, Encoder, Malformed};

pub const PRODUCER_BYTE_RATE: &str = "producer_byte_rate";
pub const CONSUMER_BYTE_RATE: &str = "consumer_byte_rate";
pub const REQUEST_PERCENTAGE: &str = "request_percentage";
pub const CONTROLLER_MUTATION_RATE: &str = "controller_mutation_rate";
pub const CONNECTION_CREATION_RATE: &str = "connection_creation_rate";

pub const USER: &str = "user";
pub const CLIENT_ID: &str = "client-id";
pub const IP: &str = "ip";

/// The types of entities, in the order of their parts.
pub const TYPES: [&str; 3] = [USER, CLIENT_ID, IP];

const VERSION: u8 = 1;

/// One part of an entity.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// The entity is not about this.
    #[default]
    Absent,
    /// All that have no quota of their own.
    Default,
    Named(String),
}

impl Part {
    pub fn is_absent(&self) -> bool {
        *self == Part::Absent
    }
}

/// Whom a quota is for.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Entity {
    pub user: Part,
    pub client_id: Part,
    pub ip: Part,
}

/// The quotas of one entity, by their keys.
pub type Values = BTreeMap<String, f64>;

impl fmt::Display for Entity {
    /// As Kafka prints it: `{client-id=a, user=null}`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [(CLIENT_ID, &self.client_id), (IP, &self.ip), (USER, &self.user)];
        let shown = parts.into_iter().filter_map(|(kind, part)| match part {
            Part::Absent => None,
            Part::Default => Some(format!("{kind}=null")),
            Part::Named(name) => Some(format!("{kind}={name}")),
        });
        write!(f, "{{{}}}", shown.collect::<Vec<_>>().join(", "))
    }
}

impl Entity {
    /// From types and names, a name that is `None` being the default. Of two parts of one type the second counts. The
    /// error says what is wrong, in Kafka's words.
    pub fn new<'a>(parts: impl IntoIterator<Item = (&'a str, Option<&'a str>)>) -> Result<Entity, String> {
        let mut entity = Entity::default();
        for (kind, name) in parts {
            let part = entity.part_mut(kind).ok_or_else(|| format!("Unhandled client quota entity type: {kind}"))?;
            if name == Some("") {
                return Err(format!("Empty {kind} not supported"));
            }
            *part = name.map_or(Part::Default, |name| Part::Named(name.into()));
        }
        if entity == Entity::default() {
            return Err("Invalid empty client quota entity".into());
        }
        let of_client = !entity.user.is_absent() || !entity.client_id.is_absent();
        if of_client && !entity.ip.is_absent() {
            return Err(
                "Invalid quota entity combination, IP entity shouldnot be combined with User or ClientId".into()
            );
        }
        Ok(entity)
    }

    fn part_mut(&mut self, kind: &str) -> Option<&mut Part> {
        match kind {
            USER => Some(&mut self.user),
            CLIENT_ID => Some(&mut self.client_id),
            IP => Some(&mut self.ip),
            _ => None,
        }
    }

    pub fn part(&self, kind: &str) -> &Part {
        match kind {
            USER => &self.user,
            CLIENT_ID => &self.client_id,
            _ => &self.ip,
        }
    }

    /// The types and names that it is made of, as on the wire.
    pub fn parts(&self) -> impl Iterator<Item = (&'static str, Option<String>)> {
        TYPES.into_iter().filter_map(|kind| match self.part(kind) {
            Part::Absent => None,
            Part::Default => Some((kind, None)),
            Part::Named(name) => Some((kind, Some(name.clone()))),
        })
    }

    /// Whether a quota of this entity may have this key and value.
    pub fn check_value(&self, key: &str, value: f64) -> Result<(), String> {
        let integral_up_to = match (key, self.ip.is_absent()) {
            (PRODUCER_BYTE_RATE | CONSUMER_BYTE_RATE, true) => Some((i64::MAX as f64, "a LONG")),
            (CONNECTION_CREATION_RATE, false) => Some((f64::from(i32::MAX), "an INT")),
            (REQUEST_PERCENTAGE | CONTROLLER_MUTATION_RATE, true) => None,
            _ => return Err(format!("Invalid configuration key {key}")),
        };
        if value <= 0.0 {
            return Err(format!("Quota {key} must be greater than 0"));
        }
        match integral_up_to {
            Some((max, kind)) if value > max => Err(format!("Proposed value for {key} is too large for {kind}.")),
            Some(_) if (value % 1.0).abs() > 1e-6 => Err(format!("{key} cannot be a fractional value.")),
            _ => Ok(()),
        }
    }

    pub fn encode(&self) -> Vec<u8> {
        let encoder = TYPES.iter().fold(Encoder::new(VERSION), |encoder, kind| match self.part(kind) {
            Part::Absent => encoder.i32(0),
            Part::Default => encoder.i32(1),
            Part::Named(name) => encoder.i32(2).string(name),
        });
        encoder.finish()
    }

    pub fn decode(bytes: &[u8]) -> Result<Entity, Malformed> {
        let what = "the entity of a quota";
        let mut decoder = Decoder::new(what, bytes, VERSION)?;
        let mut entity = Entity::default();
        for part in [&mut entity.user, &mut entity.client_id, &mut entity.ip] {
            *part = match decoder.i32()? {
                0 => Part::Absent,
                1 => Part::Default,
                2 => Part::Named(decoder.string()?.to_owned()),
                _ => return Err(Malformed::Content { what }),
            };
        }
        decoder.finish()?;
        Ok(entity)
    }
}

/// The address that a quota names, which may be the name of a host. May ask the network.
pub fn resolve(name: &str) -> Option<IpAddr> {
    if let Ok(ip) = name.parse::<IpAddr>() {
        return Some(ip.to_canonical());
    }
    Some((name, 0).to_socket_addrs().ok()?.next()?.ip().to_canonical())
}

pub fn encode_values(values: &Values) -> Vec<u8> {
    let count = i32::try_from(values.len()).expect("an entity has no more than five quotas");
    let encoder = Encoder::new(VERSION).i32(count);
    values.iter().fold(encoder, |encoder, (key, value)| encoder.string(key).i64(value.to_bits() as i64)).finish()
}

pub fn decode_values(bytes: &[u8]) -> Result<Values, Malformed> {
    let mut decoder = Decoder::new("the quotas of an entity", bytes, VERSION)?;
    let mut values = Values::new();
    for _ in 0..decoder.i32()? {
        let key = decoder.string()?.to_owned();
        values.insert(key, f64::from_bits(decoder.i64()? as u64));
    }
    decoder.finish()?;
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entity(parts: &[(&str, Option<&str>)]) -> Result<Entity, String> {
        Entity::new(parts.iter().copied())
    }

    /// What Apache Kafka 4.3.1 answers to AlterClientQuotas.
    #[test]
    fn entities_are_refused_in_kafkas_words() {
        let why = |parts: &[(&str, Option<&str>)]| entity(parts).unwrap_err();
        assert_eq!(why(&[]), "Invalid empty client quota entity");
        assert_eq!(why(&[("x", Some("a"))]), "Unhandled client quota entity type: x");
        assert_eq!(why(&[("user", Some(""))]), "Empty user not supported");
        assert_eq!(
            why(&[("user", Some("a")), ("ip", Some("1.2.3.4"))]),
            "Invalid quota entity combination, IP entity shouldnot be combined with User or ClientId"
        );
        assert_eq!(entity(&[("user", Some("a")), ("user", Some("b"))]), entity(&[("user", Some("b"))]));
        assert_eq!(
            entity(&[("user", None), ("client-id", Some("c"))]).unwrap().to_string(),
            "{client-id=c, user=null}"
        );
    }

    #[test]
    fn values_are_refused_in_kafkas_words() {
        let user = entity(&[("user", Some("a"))]).unwrap();
        let ip = entity(&[("ip", None)]).unwrap();
        let why = |entity: &Entity, key: &str, value| entity.check_value(key, value).err().unwrap_or_default();
        for key in [PRODUCER_BYTE_RATE, CONSUMER_BYTE_RATE] {
            assert_eq!(why(&user, key, 1.5), format!("{key} cannot be a fractional value."));
            for huge in [1e19, f64::INFINITY] {
                assert_eq!(why(&user, key, huge), format!("Proposed value for {key} is too large for a LONG."));
            }
            for fine in [1.0, 1e12, f64::NAN] {
                assert_eq!(why(&user, key, fine), "");
            }
            assert_eq!(why(&ip, key, 1.0), format!("Invalid configuration key {key}"));
        }
        for key in [REQUEST_PERCENTAGE, CONTROLLER_MUTATION_RATE] {
            for fine in [1.0, 1.5, 1e19, f64::INFINITY, f64::NAN] {
                assert_eq!(why(&user, key, fine), "");
            }
        }
        for key in [PRODUCER_BYTE_RATE, CONSUMER_BYTE_RATE, REQUEST_PERCENTAGE, CONTROLLER_MUTATION_RATE] {
            for low in [0.0, -1.0] {
                assert_eq!(why(&user, key, low), format!("Quota {key} must be greater than 0"));
            }
        }
        let key = CONNECTION_CREATION_RATE;
        assert_eq!(why(&user, key, 1.0), format!("Invalid configuration key {key}"));
        assert_eq!(why(&user, "nope", 0.0), "Invalid configuration key nope");
        assert_eq!(why(&ip, key, 1.5), format!("{key} cannot be a fractional value."));
        assert_eq!(why(&ip, key, 0.0), format!("Quota {key} must be greater than 0"));
        assert_eq!(why(&ip, key, 1e12), format!("Proposed value for {key} is too large for an INT."));
        assert_eq!(why(&ip, key, 5.0), "");
    }

    #[test]
    fn what_is_stored_reads_as_it_was() {
        for parts in [
            &[("user", Some("ü 1")), ("client-id", None)][..],
            &[("client-id", Some("c"))],
            &[("ip", Some("::1"))],
            &[("user", None)],
        ] {
            let entity = entity(parts).unwrap();
            assert_eq!(Entity::decode(&entity.encode()).unwrap(), entity);
        }
        let values = Values::from([("a".into(), 0.25), ("b".into(), 1e18)]);
        assert_eq!(decode_values(&encode_values(&values)).unwrap(), values);
        assert!(Entity::decode(&[1, 0, 0, 0, 9]).is_err());
        assert!(decode_values(&[1, 127, 0, 0, 0]).is_err());
    }
}
