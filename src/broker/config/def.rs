//! What is known of one config key, and the notation in which the tables are written.

use super::error::ConfigError;
use super::rule::Rule;
use super::value::{Kind, Value};

/// How much an operator should care. Kafka's own grading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Importance {
    High,
    Medium,
    Low,
}

/// Whether a broker config can change while the broker runs, and for whom. Topic, group and subscription configs
/// always can.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Update {
    /// Only at the start.
    ReadOnly,
    /// On one broker, not as a default for all of them.
    PerBroker,
    /// On one broker or as the default for all of them.
    ClusterWide,
}

/// What doze does with a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It does what Kafka does with it.
    Works,
    /// It is accepted, shown and otherwise without effect. The text says why, as the second half of a sentence.
    Idle(&'static str),
}

/// Where doze's default is not Kafka's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Differs {
    /// Kafka's default; `None` where Kafka has none.
    pub kafka: Option<&'static str>,
    /// Why doze's is another.
    pub because: &'static str,
}

/// One config key. All of it is constant; see the `table` modules.
#[derive(Clone, Copy, Debug)]
pub struct Def {
    pub name: &'static str,
    pub kind: Kind,
    /// As text; `None` is null.
    pub default: Option<&'static str>,
    pub rule: Rule,
    pub importance: Importance,
    pub update: Update,
    /// Kafka's internal keys are shown only where they have been set.
    pub internal: bool,
    pub effect: Effect,
    pub differs: Option<Differs>,
    /// The broker config whose value this key has where it is not set itself (topic and group configs).
    pub broker: Option<&'static str>,
    /// The keys that stand in for this one, itself among them, the first that is set counting (broker configs).
    pub chain: &'static [&'static str],
    /// One or two sentences; empty where the broker config of the same meaning has them.
    pub doc: &'static str,
}

impl Def {
    /// Passwords are never shown.
    pub fn is_sensitive(&self) -> bool {
        self.kind == Kind::Password
    }

    /// Reads and checks a value.
    pub fn parse(&self, text: &str) -> Result<Value, ConfigError> {
        let value = Value::parse(self.name, self.kind, text)?;
        // doze loads no classes; what stands for one can only be what Kafka has built in.
        if self.kind == Kind::Class && self.default_value().as_ref() != Some(&value) {
            return Err(ConfigError::NoSuchClass { name: self.name.to_owned(), value: value.to_string() });
        }
        self.rule.check(self, &value)?;
        Ok(value)
    }

    /// The value where nothing is set. Every default in the tables passes its own rule; a test holds that.
    pub fn default_value(&self) -> Option<Value> {
        let text = self.default?;
        Some(Value::parse(self.name, self.kind, text).expect("a default in the table is a value of its own kind"))
    }
}

const fn def(name: &'static str, kind: Kind) -> Def {
    Def {
        name,
        kind,
        default: None,
        rule: Rule::Any,
        importance: Importance::Medium,
        update: Update::ReadOnly,
        internal: false,
        effect: Effect::Works,
        differs: None,
        broker: None,
        chain: &[],
        doc: "",
    }
}

/// The notation: a kind and a name, then what is out of the ordinary. Without more a key is of medium importance,
/// null by default, takes any value of its kind, can be set only at the start and works.
macro_rules! kinds {
    ($($function:ident $kind:ident),* $(,)?) => {
        $(pub(super) const fn $function(name: &'static str) -> Def { def(name, Kind::$kind) })*
    };
}

kinds! {
    boolean Boolean, string String, int Int, short Short, long Long, double Double, list List, class Class,
    password Password,
}

impl Def {
    pub(super) const fn is(mut self, default: &'static str) -> Def {
        self.default = Some(default);
        self
    }

    pub(super) const fn rule(mut self, rule: Rule) -> Def {
        self.rule = rule;
        self
    }

    pub(super) const fn at_least(self, least: i64) -> Def {
        self.rule(Rule::AtLeast(least))
    }

    pub(super) const fn between(self, least: i64, most: i64) -> Def {
        self.rule(Rule::Between(least, most))
    }

    pub(super) const fn one_of(self, words: &'static [&'static str]) -> Def {
        self.rule(Rule::OneOf(words))
    }

    /// A list of any number of these words; of any words where none are given.
    pub(super) const fn any_of(self, words: &'static [&'static str]) -> Def {
        self.rule(Rule::Each { words, may_be_empty: true })
    }

    /// As `any_of`, but at least one.
    pub(super) const fn some_of(self, words: &'static [&'static str]) -> Def {
        self.rule(Rule::Each { words, may_be_empty: false })
    }

    pub(super) const fn high(mut self) -> Def {
        self.importance = Importance::High;
        self
    }

    pub(super) const fn low(mut self) -> Def {
        self.importance = Importance::Low;
        self
    }

    pub(super) const fn per_broker(mut self) -> Def {
        self.update = Update::PerBroker;
        self
    }

    pub(super) const fn cluster_wide(mut self) -> Def {
        self.update = Update::ClusterWide;
        self
    }

    pub(super) const fn internal(mut self) -> Def {
        self.internal = true;
        self
    }

    pub(super) const fn idle(mut self, why: &'static str) -> Def {
        self.effect = Effect::Idle(why);
        self
    }

    pub(super) const fn kafka(mut self, kafka: Option<&'static str>, because: &'static str) -> Def {
        self.differs = Some(Differs { kafka, because });
        self
    }

    pub(super) const fn broker(mut self, name: &'static str) -> Def {
        self.broker = Some(name);
        self
    }

    pub(super) const fn chain(mut self, names: &'static [&'static str]) -> Def {
        self.chain = names;
        self
    }

    pub(super) const fn says(mut self, doc: &'static str) -> Def {
        self.doc = doc;
        self
    }
}

/// Why a key has no effect, each the end of a sentence that begins with the key.
pub(super) mod idle {
    pub const ONE_NODE: &str = "there is one node";
    pub const ONE_REPLICA: &str = "each partition has one replica";
    pub const ONE_DIR: &str = "there is one data directory";
    pub const KRAFT: &str = "there is no metadata quorum; metadata is kept in the catalog";
    pub const CATALOG: &str = "this state is kept in the catalog, not in a topic";
    pub const REMOTE: &str = "doze keeps all segments on the local disk";
    pub const NO_TLS: &str = "doze's listeners speak plain TCP";
    pub const NO_SASL: &str = "doze does not authenticate clients";
    pub const NO_AUTH: &str = "doze does not authorize clients";
    pub const ONE_LEVEL: &str = "doze's lz4 has one level";
    pub const NO_TELEMETRY: &str = "doze takes no metrics from clients";
    pub const PLUGIN: &str = "doze loads no Java classes";
    pub const THREADS: &str = "doze sizes its threads by the machine";
    pub const SWEEP: &str = "doze looks about once a second";
    pub const CHECKPOINT: &str = "doze needs no such notes";
    pub const DELETE: &str = "doze removes files as soon as nobody reads them";
    pub const LAZY: &str = "doze loads a log when it is first used";
    pub const SOCKETS: &str = "doze leaves this to the operating system";
    pub const ADMISSION: &str = "doze bounds the bytes of each connection instead";
    pub const PURGATORY: &str = "doze forgets a waiting request as soon as it is answered";
    pub const METRICS: &str = "doze has no metrics of this kind";
    pub const LISTENERS: &str = "doze has one listener, in plain text";
    pub const START: &str = "doze is ready in milliseconds";
    pub const UNSTABLE: &str = "doze offers what Apache Kafka 4.3 offers and nothing unfinished";
}

/// Why a default is not Kafka's.
pub(super) mod differs {
    pub const SHORT_RECOVERY: &str = "what must be read again after a crash stays small";
    pub const KEEP: &str = "nothing is deleted unless it is asked for";
    pub const KEEP_OFFSETS: &str = "committed offsets are not dropped unless it is asked for";
    pub const CLEAN_AT_ONCE: &str = "a segment is compacted as soon as it has rolled";
    pub const SMALL: &str = "it holds four million keys, and Kafka's five, in less than half of the memory";
    pub const NO_WAIT: &str = "the first consumer of a group starts at once";
    pub const ONE_COPY: &str = "one node can hold one replica";
    pub const LOOPBACK: &str = "the network sees nothing unless it is asked for";
    pub const HERE: &str = "the data stays in the working directory unless it is asked for";
    pub const NO_DEFAULT: &str = "nothing has to be set up";
}
