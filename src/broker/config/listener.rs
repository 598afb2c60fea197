//! Addresses, as Kafka writes them: `NAME://HOST:PORT`.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::str::FromStr;

use super::broker::BrokerConfig;
use super::error::ConfigError;
use super::value::Value;

/// A host name or address and a port. An empty host is every address of the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPort {
    /// Without brackets, where it is an IPv6 address.
    pub host: String,
    pub port: u16,
}

impl FromStr for HostPort {
    type Err = String;

    /// `HOST:PORT`, `[IPV6]:PORT` or `:PORT`.
    fn from_str(text: &str) -> Result<HostPort, String> {
        let expected = || format!("{text:?} is not an address: HOST:PORT is expected, as 127.0.0.1:9092 or [::1]:9092");
        let (host, port) = text.rsplit_once(':').ok_or_else(expected)?;
        let host = match host.strip_prefix('[') {
            Some(rest) => rest.strip_suffix(']').filter(|host| host.parse::<std::net::Ipv6Addr>().is_ok()),
            None if host.contains([':', ']', '/', ' ']) => None,
            None => Some(host),
        };
        let port = port.parse().map_err(|_| expected())?;
        Ok(HostPort { host: host.ok_or_else(expected)?.to_owned(), port })
    }
}

impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

/// Splits `NAME://HOST:PORT`. The error is the second half of a sentence.
pub fn parse_listener(text: &str) -> Result<(&str, HostPort), String> {
    let (name, address) =
        text.split_once("://").ok_or_else(|| format!("Unable to parse {text} to a broker endpoint"))?;
    Ok((name, address.parse()?))
}

/// One of `max.connections.per.ip.overrides`. Its host is an address or localhost: a name might take long to look up, and
/// mean another address tomorrow.
pub(super) fn connections_of_address(pair: &str) -> Option<(IpAddr, usize)> {
    let (host, count) = pair.trim().rsplit_once(':')?;
    let address = match host {
        "localhost" => IpAddr::V4(Ipv4Addr::LOCALHOST),
        _ => host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host).parse().ok()?,
    };
    Some((address.to_canonical(), count.trim().parse::<u32>().ok()?.try_into().ok()?))
}

impl BrokerConfig {
    /// Where to listen: the one entry of `listeners` that is for clients. Listeners of controllers, which a settings
    /// file written for Apache Kafka has, are passed over.
    pub fn listen(&self) -> Result<HostPort, ConfigError> {
        Ok(self.client_listener("listeners")?.expect("the key has a default and cannot be empty"))
    }

    /// What clients are told to connect to; `None` tells each the address that it connected to.
    pub fn advertised(&self) -> Result<Option<HostPort>, ConfigError> {
        let advertised = self.client_listener("advertised.listeners")?;
        if let Some(address) =
            advertised.as_ref().filter(|a| a.host.is_empty() || a.host == "0.0.0.0" || a.host == "::")
        {
            return Err(ConfigError::Refused {
                name: "advertised.listeners".into(),
                value: address.to_string(),
                why: "clients cannot connect to it; name a host or an address that they can reach".into(),
            });
        }
        if let Some(address) = advertised.as_ref().filter(|a| a.port == 0) {
            return Err(ConfigError::Refused {
                name: "advertised.listeners".into(),
                value: address.to_string(),
                why: "clients cannot connect to port 0".into(),
            });
        }
        Ok(advertised)
    }

    /// The broker's configs with the address that it really got, for one that asked for port 0.
    pub fn listening_on(&self, address: &HostPort) -> Result<BrokerConfig, ConfigError> {
        let mut at_start = self.set_at(super::describe::Source::Static).clone();
        let listener = self.list("listeners").iter().find(|entry| self.is_for_clients(entry));
        let name = listener.and_then(|entry| entry.split_once("://")).map_or("PLAINTEXT", |(name, _)| name);
        at_start.insert("listeners".into(), format!("{name}://{address}"));
        BrokerConfig::at_start(at_start)?.with_changes(
            self.set_at(super::describe::Source::Cluster).clone(),
            self.set_at(super::describe::Source::Node).clone(),
        )
    }

    /// How many connections may come from `ip`: `max.connections.per.ip`, or what `max.connections.per.ip.overrides` says
    /// of it.
    pub fn max_connections_of(&self, ip: IpAddr) -> usize {
        let ip = ip.to_canonical();
        let mut exceptions =
            self.text("max.connections.per.ip.overrides").split(',').filter_map(connections_of_address);
        let own = exceptions.rfind(|(address, _)| *address == ip).map(|(_, count)| count);
        own.unwrap_or_else(|| usize::try_from(self.int("max.connections.per.ip")).unwrap_or(0))
    }

    fn is_for_clients(&self, entry: &str) -> bool {
        let controllers = match self.get("controller.listener.names") {
            Some(Value::List(names)) => names.as_slice(),
            _ => &[],
        };
        entry.split_once("://").is_none_or(|(name, _)| !controllers.iter().any(|c| c == name))
    }

    fn client_listener(&self, key: &str) -> Result<Option<HostPort>, ConfigError> {
        let Some(Value::List(entries)) = self.get(key) else { return Ok(None) };
        let refuse = |why: String| ConfigError::refused(key, &Value::List(entries.clone()), why);
        let mut clients = entries.iter().filter(|entry| self.is_for_clients(entry));
        let entry = clients.next().ok_or_else(|| refuse("None of these is for clients".into()))?;
        if clients.next().is_some() {
            return Err(refuse("doze has one listener".into()));
        }
        let (name, address) = parse_listener(entry).map_err(refuse)?;
        match self.protocol_of(name) {
            Some("PLAINTEXT") => Ok(Some(address)),
            Some(protocol) => Err(refuse(format!("{protocol} asks for more than doze has: it speaks plain TCP only"))),
            None => Err(refuse(format!("No security protocol defined for listener {name}"))),
        }
    }

    fn protocol_of(&self, name: &str) -> Option<&str> {
        self.text("listener.security.protocol.map")
            .split(',')
            .filter_map(|pair| pair.split_once(':'))
            .find(|(listener, _)| listener.trim() == name)
            .map(|(_, protocol)| protocol.trim())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::broker::config::Overrides;

    fn broker(pairs: &[(&str, &str)]) -> Result<BrokerConfig, ConfigError> {
        BrokerConfig::at_start(pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect::<Overrides>())
    }

    #[test]
    fn addresses() {
        for (text, host, port) in
            [("127.0.0.1:0", "127.0.0.1", 0), ("[::1]:9092", "::1", 9092), (":9092", "", 9092), ("a.b:1", "a.b", 1)]
        {
            let address: HostPort = text.parse().unwrap();
            assert_eq!((address.host.as_str(), address.port), (host, port));
            assert_eq!(address.to_string(), text);
        }
        for text in
            ["", "9092", "localhost", "h:", "h:65536", "h:-1", "::1:9092", "[::1]", "[x]:1", "a/b:1", "PLAINTEXT://:1"]
        {
            assert!(text.parse::<HostPort>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_settings_file_for_apache_kafka_names_controllers_too() {
        let kafka = [
            ("process.roles", "broker,controller"),
            ("listeners", "EXTERNAL://:9192,CONTROLLER://:9093"),
            ("advertised.listeners", "EXTERNAL://example.org:9192,CONTROLLER://localhost:9093"),
            ("controller.listener.names", "CONTROLLER"),
            ("listener.security.protocol.map", "CONTROLLER:PLAINTEXT,EXTERNAL:PLAINTEXT"),
        ];
        let config = broker(&kafka).unwrap();
        assert_eq!(config.listen().unwrap().to_string(), ":9192");
        assert_eq!(config.advertised().unwrap().unwrap().to_string(), "example.org:9192");
    }

    #[test]
    fn listeners_that_doze_cannot_be() {
        for (pairs, why) in [
            (&[("listeners", "SSL://:9092")][..], "SSL asks for more than doze has"),
            (&[("listeners", "PLAINTEXT://:1,SSL://:2")], "one listener"),
            (&[("listeners", "FOO://:1")], "No security protocol defined for listener FOO"),
            (&[("listeners", "xx")], "Unable to parse xx"),
            (&[("listeners", "PLAINTEXT://:99999")], "is not an address"),
            (&[("listeners", "")], "must not be empty"),
            (&[("advertised.listeners", "PLAINTEXT://0.0.0.0:9092")], "can reach"),
            (&[("advertised.listeners", "PLAINTEXT://h:0")], "port 0"),
        ] {
            let error = broker(pairs).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn exceptions_from_the_connections_of_an_address() {
        let overrides = "localhost:1,127.0.0.1:7,[::1]:8, 10.0.0.1:9";
        let config =
            broker(&[("max.connections.per.ip", "2"), ("max.connections.per.ip.overrides", overrides)]).unwrap();
        for (ip, count) in [("127.0.0.1", 7), ("::ffff:127.0.0.1", 7), ("::1", 8), ("10.0.0.1", 9), ("10.0.0.2", 2)] {
            assert_eq!(config.max_connections_of(ip.parse().unwrap()), count, "{ip}");
        }
    }

    #[test]
    fn the_port_that_was_picked_is_the_one_that_is_shown() {
        let config = broker(&[("listeners", "PLAINTEXT://127.0.0.1:0"), ("num.partitions", "3")]).unwrap();
        let config = config.listening_on(&"127.0.0.1:4711".parse().unwrap()).unwrap();
        assert_eq!(config.list("listeners"), ["PLAINTEXT://127.0.0.1:4711"]);
        assert_eq!(config.int("num.partitions"), 3);
    }
}
