//! Values: reading them from text as Kafka does, and writing them as Kafka shows them.

use super::error::ConfigError;

/// The kinds of values, with the numbers by which DescribeConfigs names them (0 is a key that nobody knows).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Boolean = 1,
    String = 2,
    Int = 3,
    Short = 4,
    Long = 5,
    Double = 6,
    List = 7,
    Class = 8,
    Password = 9,
}

impl Kind {
    /// As Kafka's errors name it.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Boolean => "BOOLEAN",
            Kind::String => "STRING",
            Kind::Int => "INT",
            Kind::Short => "SHORT",
            Kind::Long => "LONG",
            Kind::Double => "DOUBLE",
            Kind::List => "LIST",
            Kind::Class => "CLASS",
            Kind::Password => "PASSWORD",
        }
    }
}

/// A value that has been read. Names of classes and passwords are text.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Boolean(bool),
    Int(i32),
    Short(i16),
    Long(i64),
    Double(f64),
    Text(String),
    List(Vec<String>),
}

impl Value {
    /// Reads `text` as a value of `kind`. White space around it does not count, nor around the items of a list; an
    /// item that repeats an earlier one is dropped. `name` is for the error alone.
    pub fn parse(name: &str, kind: Kind, text: &str) -> Result<Value, ConfigError> {
        let trimmed = trim(text);
        let not_a_number = || ConfigError::NotANumber { name: name.to_owned(), value: text.to_owned(), kind };
        Ok(match kind {
            Kind::Boolean if trimmed.eq_ignore_ascii_case("true") => Value::Boolean(true),
            Kind::Boolean if trimmed.eq_ignore_ascii_case("false") => Value::Boolean(false),
            Kind::Boolean => {
                return Err(ConfigError::NotABoolean { name: name.to_owned(), value: text.to_owned() });
            }
            Kind::Int => Value::Int(trimmed.parse().map_err(|_| not_a_number())?),
            Kind::Short => Value::Short(trimmed.parse().map_err(|_| not_a_number())?),
            Kind::Long => Value::Long(trimmed.parse().map_err(|_| not_a_number())?),
            Kind::Double => Value::Double(parse_double(trimmed).ok_or_else(not_a_number)?),
            Kind::String | Kind::Class | Kind::Password => Value::Text(trimmed.to_owned()),
            Kind::List if trimmed.is_empty() => Value::List(Vec::new()),
            Kind::List => {
                let mut items: Vec<String> = Vec::new();
                for item in trimmed.split(',').map(trim) {
                    if !items.iter().any(|seen| seen == item) {
                        items.push(item.to_owned());
                    }
                }
                Value::List(items)
            }
        })
    }

    /// The number that it is; `None` for what is none.
    pub fn as_number(&self) -> Option<f64> {
        match self {
            Value::Int(n) => Some(f64::from(*n)),
            Value::Short(n) => Some(f64::from(*n)),
            // Kafka compares longs by way of doubles too.
            #[allow(clippy::cast_precision_loss)]
            Value::Long(n) => Some(*n as f64),
            Value::Double(n) => Some(*n),
            Value::Boolean(_) | Value::Text(_) | Value::List(_) => None,
        }
    }
}

/// As DescribeConfigs shows it.
impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Value::Boolean(b) => write!(f, "{b}"),
            Value::Int(n) => write!(f, "{n}"),
            Value::Short(n) => write!(f, "{n}"),
            Value::Long(n) => write!(f, "{n}"),
            Value::Double(n) => f.write_str(&double_text(*n)),
            Value::Text(text) => f.write_str(text),
            Value::List(items) => f.write_str(&items.join(",")),
        }
    }
}

/// White space, as Kafka trims it: everything up to and including the space character, control characters too.
pub(super) fn trim(text: &str) -> &str {
    text.trim_matches(|c| c <= ' ')
}

/// Doubles as Java reads them, without hexadecimal ones: `NaN` and `Infinity` in exactly this case, and a trailing `d`
/// or `f` allowed.
fn parse_double(text: &str) -> Option<f64> {
    match text.trim_start_matches(['+', '-']) {
        "NaN" | "Infinity" => text.parse().ok(),
        digits
            if digits
                .contains(|c: char| c.is_ascii_alphabetic() && !matches!(c, 'e' | 'E' | 'd' | 'D' | 'f' | 'F')) =>
        {
            None
        }
        _ => text.strip_suffix(['d', 'D', 'f', 'F']).unwrap_or(text).parse().ok(),
    }
}

/// A double as Java writes it: plain between a thousandth and ten million, scientific outside, always with a fraction.
fn double_text(n: f64) -> String {
    if !n.is_finite() {
        return if n.is_nan() { "NaN".into() } else { format!("{}Infinity", if n < 0.0 { "-" } else { "" }) };
    }
    let size = n.abs();
    if size == 0.0 || (1e-3..1e7).contains(&size) {
        return format!("{n:?}");
    }
    let text = format!("{n:e}");
    let (digits, exponent) = text.split_once('e').expect("the scientific form has an exponent");
    let fraction = if digits.contains('.') { "" } else { ".0" };
    format!("{digits}{fraction}E{exponent}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(kind: Kind, text: &str) -> Result<String, String> {
        Value::parse("a.key", kind, text).map(|v| v.to_string()).map_err(|e| e.to_string())
    }

    #[test]
    fn numbers_are_read_and_shown_as_java_does() {
        for (text, shown) in [
            ("1e400", "Infinity"),
            ("-0", "-0.0"),
            ("1.", "1.0"),
            ("1d", "1.0"),
            ("0.5f", "0.5"),
            ("1e5", "100000.0"),
            ("100000000", "1.0E8"),
            ("0.00001", "1.0E-5"),
            ("12345678.9", "1.23456789E7"),
            ("9999999", "9999999.0"),
            ("1e-4", "1.0E-4"),
            ("0.001", "0.001"),
            (" NaN ", "NaN"),
            ("1.7976931348623157E308", "1.7976931348623157E308"),
        ] {
            assert_eq!(read(Kind::Double, text).as_deref(), Ok(shown), "{text}");
        }
        for text in ["", "x", "nan", "inf", "infinity", "1_0", "1e", "0.5ff"] {
            assert!(read(Kind::Double, text).is_err(), "{text}");
        }
        assert_eq!(read(Kind::Long, " +5\t").as_deref(), Ok("5"));
        assert_eq!(read(Kind::Long, "-0").as_deref(), Ok("0"));
        for text in ["", "5L", "0x5", "+-5", "1_000", "1.5"] {
            assert_eq!(
                read(Kind::Long, text),
                Err(format!("Invalid value {text} for configuration a.key: Not a number of type LONG"))
            );
        }
        assert_eq!(
            read(Kind::Int, "99999999999"),
            Err("Invalid value 99999999999 for configuration a.key: Not a number of type INT".into())
        );
        assert!(read(Kind::Short, "32768").is_err());
    }

    #[test]
    fn booleans_ignore_case_and_lists_ignore_space_and_repetition() {
        assert_eq!(read(Kind::Boolean, " TRUE ").as_deref(), Ok("true"));
        assert_eq!(
            read(Kind::Boolean, "maybe"),
            Err("Invalid value maybe for configuration a.key: Expected value to be either true or false".into())
        );
        assert_eq!(read(Kind::List, " x , y ").as_deref(), Ok("x,y"));
        assert_eq!(read(Kind::List, "x,x").as_deref(), Ok("x"));
        assert_eq!(read(Kind::List, "  ").as_deref(), Ok(""));
        assert_eq!(Value::parse("k", Kind::List, ","), Ok(Value::List(vec![String::new()])));
    }
}
