//! Values of the line protocol, and those of the database.

use serde_json::{json, Value};
use std::error::Error;
use tokio_postgres::types::private::BytesMut;
use tokio_postgres::types::{to_sql_checked, Format, FromSql, IsNull, ToSql, Type};
use tokio_postgres::Row;

pub fn text<'a>(object: &'a Value, name: &str) -> Option<&'a str> {
    object[name].as_str()
}

pub fn bytes(value: &Value) -> Option<Vec<u8>> {
    let digits = value["bytes"].as_str()?;
    Some((0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap()).collect())
}

pub fn encoded(bytes: &[u8]) -> Value {
    json!({ "bytes": bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>() })
}

/// An argument of whatever type the function has for it.
#[derive(Debug)]
pub enum Argument {
    Null,
    Bytes(Vec<u8>),
    Text(String),
}

pub fn argument(value: &Value) -> Argument {
    match value {
        Value::Null => Argument::Null,
        Value::Object(_) => Argument::Bytes(bytes(value).unwrap()),
        Value::Array(texts) => {
            Argument::Text(format!("{{{}}}", texts.iter().map(quoted).collect::<Vec<_>>().join(",")))
        }
        Value::String(text) => Argument::Text(text.clone()),
        other => Argument::Text(other.to_string()),
    }
}

fn quoted(text: &Value) -> String {
    format!("\"{}\"", text.as_str().unwrap().replace('\\', "\\\\").replace('"', "\\\""))
}

impl ToSql for Argument {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match self {
            Argument::Null => return Ok(IsNull::Yes),
            Argument::Bytes(bytes) => out.extend_from_slice(bytes),
            Argument::Text(text) => out.extend_from_slice(text.as_bytes()),
        }
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    fn encode_format(&self, _: &Type) -> Format {
        match self {
            Argument::Text(_) => Format::Text,
            _ => Format::Binary,
        }
    }

    to_sql_checked!();
}

/// A value as the server sends it.
struct Raw(Vec<u8>);

impl<'a> FromSql<'a> for Raw {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Raw(raw.to_vec()))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

pub fn row(row: &Row) -> Value {
    let columns = row.columns().iter().enumerate();
    columns.map(|(at, column)| (column.name().to_owned(), value(row, at, column.type_()))).collect()
}

fn value(row: &Row, at: usize, kind: &Type) -> Value {
    let raw = match row.get::<_, Option<Raw>>(at) {
        Some(Raw(raw)) => raw,
        None => return Value::Null,
    };
    let number = |from: usize| i64::from_be_bytes(raw[from..from + 8].try_into().unwrap());
    match *kind {
        Type::BOOL => json!(row.get::<_, bool>(at)),
        Type::INT4 => json!(row.get::<_, i32>(at)),
        Type::INT8 => json!(row.get::<_, i64>(at)),
        Type::BYTEA => encoded(&raw),
        Type::UUID => json!(row.get::<_, uuid::Uuid>(at).to_string()),
        Type::TEXT_ARRAY => json!(row.get::<_, Vec<String>>(at)),
        Type::JSONB => json!(std::str::from_utf8(&raw[1..]).unwrap()), // after its version
        Type::TIMESTAMPTZ => json!(timestamp(number(0))),
        Type::INTERVAL => {
            let days = i32::from_be_bytes(raw[8..12].try_into().unwrap());
            json!(number(0) as f64 / 1e6 + f64::from(days) * 86_400.0)
        }
        _ => json!(std::str::from_utf8(&raw).unwrap()),
    }
}

/// Spells what is counted in microseconds from the year 2000 on.
fn timestamp(micros: i64) -> String {
    let (seconds, fraction) = (micros.div_euclid(1_000_000), micros.rem_euclid(1_000_000));
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    // the Gregorian calendar repeats every 146,097 days; years begin in March, so that a leap day is the last
    let day = days + 730_425;
    let era = day.div_euclid(146_097);
    let of_era = day.rem_euclid(146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let march = (5 * of_year + 2) / 153;
    let (month, january) = if march < 10 { (march + 3, 0) } else { (march - 9, 1) };
    let date = format!("{:04}-{month:02}-{:02}", era * 400 + year + january, of_year - (153 * march + 2) / 5 + 1);
    format!("{date}T{:02}:{:02}:{:02}.{fraction:06}Z", second / 3_600, second / 60 % 60, second % 60)
}
