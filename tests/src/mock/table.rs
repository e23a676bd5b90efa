//! Computes rows from descriptions of columns.
//!
//! A table is `{"rows": 40, "columns": {name: column}}`. A column is one of:
//!
//! | column | value |
//! |---|---|
//! | `"CUS-{n:4}"` | the text with the number of the row, here with four digits |
//! | `{"number": 100}` | the number of the row plus 100 |
//! | `{"pick": [a, b]}` | one of the items |
//! | `{"int": [1, 9]}`, `{"cents": [100, 999]}` | an integer; a hundredth of one |
//! | `{"ref": 40, "as": "CUS-{n:4}"}` | the text, or without `as` the number, of one of 40 rows |
//! | `{"date": 2026}`, `{"time": 2026}` | a date in the year; an instant |
//! | `{"absent": 3, "of": column}`, `{"null": 3, "of": column}` | missing, or null, in about one of three rows |
//! | `{"list": column, "max": 3}` | one to three values |
//! | `{"object": {name: column}}` | an object |
//! | `{"const": v}` | always `v` |

use serde_json::{Map, Value, json};

use super::{entries, member};

/// Returns all rows of a table.
pub(super) fn rows(table: &Value) -> Vec<Value> {
    let count = member(table, "rows").as_u64().unwrap_or(0);
    (1..=count).map(|n| object(member(table, "columns"), n, 0)).collect()
}

fn object(columns: &Value, n: u64, salt: u64) -> Value {
    let mut row = Map::new();
    for (name, column) in entries(columns) {
        let salt = name.bytes().fold(salt, |salt, byte| salt.wrapping_mul(31).wrapping_add(u64::from(byte)));
        if let Some(value) = value(column, n, salt) {
            row.insert(name.clone(), value);
        }
    }
    Value::Object(row)
}

fn value(column: &Value, n: u64, salt: u64) -> Option<Value> {
    if let Some(text) = column.as_str() {
        return Some(json!(numbered(text, n)));
    }
    let random = random(n, salt);
    let (kind, given) =
        entries(column).find(|(name, _)| !matches!(name.as_str(), "as" | "max" | "of")).expect("a column has a kind");
    let of = |salt| column.get("of").and_then(|column| value(column, n, salt));
    let number = given.as_u64().unwrap_or(1).max(1);
    Some(match kind.as_str() {
        "number" => json!(given.as_u64().unwrap_or(0) + n),
        "pick" => given.as_array().and_then(|items| items.get(usize::try_from(random).ok()? % items.len())).cloned()?,
        "int" => json!(between(given, random)),
        #[expect(clippy::cast_precision_loss, reason = "prices are small")]
        "cents" => json!(between(given, random) as f64 / 100.0),
        "ref" => {
            let n = 1 + random % number;
            column.get("as").and_then(Value::as_str).map_or_else(|| json!(n), |text| json!(numbered(text, n)))
        }
        "date" => json!(date(number, random)),
        "time" => json!(format!("{}T{:02}:{:02}:00Z", date(number, random), random / 7 % 24, random / 11 % 60)),
        "absent" if random.is_multiple_of(number) => return None,
        "null" if random.is_multiple_of(number) => Value::Null,
        "absent" | "null" => of(salt + 1)?,
        "list" => {
            let most = column.get("max").and_then(Value::as_u64).unwrap_or(3);
            (0..=random % most).filter_map(|at| value(given, n, salt + 2 + at)).collect()
        }
        "object" => object(given, n, salt),
        "const" => given.clone(),
        other => panic!("unknown kind of column {other:?}"),
    })
}

/// Returns the text with `n` in place of `{n}` or `{n:WIDTH}`.
pub(super) fn numbered(text: &str, n: u64) -> String {
    let Some((before, rest)) = text.split_once("{n") else { return text.to_owned() };
    let (width, after) = rest.split_once('}').expect("a closing brace");
    let width = width.trim_start_matches(':').parse().unwrap_or(1);
    format!("{before}{n:0width$}{after}")
}

fn date(year: u64, random: u64) -> String {
    format!("{year}-{:02}-{:02}", 1 + random % 12, 1 + random / 13 % 28)
}

fn between(bounds: &Value, random: u64) -> u64 {
    let bound = |at: usize| bounds.get(at).and_then(Value::as_u64).unwrap_or(1);
    bound(0) + random % (bound(1) - bound(0) + 1)
}

/// Returns a pseudo-random number (the finalizer of SplitMix64) that is small enough for arithmetic without overflow.
fn random(n: u64, salt: u64) -> u64 {
    let mut z = n.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(salt.wrapping_mul(0x2545_f491_4f6c_dd1d));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (z ^ (z >> 31)) >> 33
}
