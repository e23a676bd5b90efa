//! CSV as described by RFC 4180. `csv-core` parses and writes. This file converts between rows and values and charges the work.

use csv_core::{ReadRecordResult, ReaderBuilder, WriteResult, WriterBuilder};

use super::output::write_str;
use super::row::rows;
use crate::args::{ITEM, at, describe, fault, seq, steps, text};
use crate::collection::{Map, Vector};
use crate::machine::{Machine, Raised};
use crate::metered;
use crate::print::{excerpt, preview_line};
use crate::{ErrorKind, Value};

rows! { "csv":
    "parse-string" ["[s & options]"] parse_csv, "The rows of a CSV text, as vectors of strings. With :header true the first row names the columns and the others are maps with string keys. :separator is a character other than the comma." { "(csv/parse-string \"id,name\\n1,\\\"Ann, B.\\\"\\n\")" => "[[\"id\" \"name\"] [\"1\" \"Ann, B.\"]]", "(csv/parse-string \"id;name\\n1;Ann\" :header true :separator \";\")" => "[{\"id\" \"1\" \"name\" \"Ann\"}]", "(map :name (csv/parse-string \"id,name\\n1,Ann\" {:header true}))" => "[\"Ann\"]" };
    "generate-string" ["[rows & options]"] generate_csv, "Rows as CSV text, a line each. Rows are vectors of cells, or maps: then the first line names the columns. :header is a vector of column names, or false for no such line, :separator a character other than the comma." { "(csv/generate-string [[\"id\" \"name\"] [1 \"Ann, B.\"]])" => "\"id,name\\n1,\\\"Ann, B.\\\"\\n\"", "(csv/generate-string [{:id 1 :name nil}])" => "\"id,name\\n1,\\n\"", "(csv/generate-string [{:id 1 :name \"Ann\"}] :header [:name :id])" => "\"name,id\\nAnn,1\\n\"" };
}

const PARSE: &str = "csv/parse-string";
const GENERATE: &str = "csv/generate-string";

/// The options of the CSV functions.
struct Options {
    header: Value,
    separator: u8,
}

/// Parses the options after the first argument, given as pairs or as one map.
fn options(m: &mut Machine, name: &str, args: &mut [Value]) -> Result<Options, Raised> {
    let mut options = Options { header: Value::Nil, separator: b',' };
    let pairs: Vec<(Value, Value)> = match args.get(1..).unwrap_or_default() {
        [] | [Value::Nil] => Vec::new(),
        [Value::Map(map)] => map.iter().map(|(key, value)| (key.clone(), value.clone())).collect(),
        [.., last] if args.len().is_multiple_of(2) => {
            let what = format!("options are pairs such as :header true, or one map; found {} without a value", describe(last));
            return Err(fault(m, ErrorKind::TypeError, name, &what));
        }
        pairs => pairs.chunks(2).map(|pair| (at(pair, 0).clone(), at(pair, 1).clone())).collect(),
    };
    for (key, value) in pairs {
        match key.as_name() {
            Some("header") => options.header = value,
            Some("separator") => options.separator = separator(m, name, &value)?,
            _ => {
                let what = format!("unknown option {}; the options are :header and :separator", preview_line(&key, 60));
                return Err(fault(m, ErrorKind::TypeError, name, &what));
            }
        }
    }
    Ok(options)
}

fn separator(m: &mut Machine, name: &str, value: &Value) -> Result<u8, Raised> {
    match value.as_str().map(str::as_bytes) {
        Some([byte]) if byte.is_ascii() && !matches!(byte, b'"' | b'\n' | b'\r') => Ok(*byte),
        _ => {
            let what = format!("expected one ASCII character such as \";\" as :separator, found {}", describe(value));
            Err(fault(m, ErrorKind::TypeError, name, &what))
        }
    }
}

/// One row of a CSV text: its concatenated fields, and the end of each.
struct Record<'b> {
    bytes: &'b [u8],
    ends: &'b [usize],
}

impl Record<'_> {
    fn fields(&self) -> impl Iterator<Item = &str> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        // Separators, quotes and line ends are ASCII, so that fields are split at character boundaries.
        starts.zip(self.ends).map(|(start, end)| {
            let field = self.bytes.get(start..*end).unwrap_or_default();
            std::str::from_utf8(field).unwrap_or_default()
        })
    }
}

/// Calls `row` with each record of `text` and its line number, counted from 1.
fn each_record(
    m: &mut Machine,
    text: &str,
    separator: u8,
    mut row: impl FnMut(&mut Machine, &Record<'_>, u64) -> Result<(), Raised>,
) -> Result<(), Raised> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    // Quotes of a well-formed text are even in number. With an unclosed quote csv-core would take the rest of the text for one
    // field.
    m.tick(steps(text.len() / 64))?;
    if text.bytes().filter(|byte| *byte == b'"').count() % 2 == 1 {
        let what = "a quote is not closed; a field that holds a quote is itself quoted and doubles it: \"5\"\" pipe\"";
        return Err(fault(m, ErrorKind::TypeError, PARSE, what));
    }
    let mut reader = ReaderBuilder::new().delimiter(separator).build();
    let mut input = text.as_bytes();
    // The buffers grow to the longest record and are not cleared: that would cost the maximal length for every short record.
    let (mut bytes, mut ends) = (vec![0; 1024], vec![0; 64]);
    loop {
        let line = reader.line();
        let (mut written, mut fields) = (0, 0);
        loop {
            let (free, free_ends) = (bytes.get_mut(written..).unwrap_or_default(), ends.get_mut(fields..).unwrap_or_default());
            let (result, read, wrote, ended) = reader.read_record(input, free, free_ends);
            m.tick(steps(read / 16) + steps(ended))?;
            input = input.get(read..).unwrap_or_default();
            written += wrote;
            fields += ended;
            match result {
                // The next call gets empty input and ends the last record.
                ReadRecordResult::InputEmpty => {}
                ReadRecordResult::OutputFull => {
                    m.charge(bytes.len() * 2)?;
                    bytes.resize(bytes.len() * 2, 0);
                }
                ReadRecordResult::OutputEndsFull => {
                    m.charge(ends.len() * 2 * size_of::<usize>())?;
                    ends.resize(ends.len() * 2, 0);
                }
                ReadRecordResult::Record => break,
                ReadRecordResult::End => return Ok(()),
            }
        }
        m.charge(written + fields * ITEM)?;
        let record = Record { bytes: bytes.get(..written).unwrap_or_default(), ends: ends.get(..fields).unwrap_or_default() };
        row(m, &record, line)?;
    }
}

fn parse_csv(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let options = options(m, PARSE, args)?;
    let named = match options.header {
        Value::Nil | Value::False => false,
        Value::True => true,
        other => {
            let what = format!("expected true or false as :header, found {}", describe(&other));
            return Err(fault(m, ErrorKind::TypeError, PARSE, &what));
        }
    };
    let text = text(m, PARSE, args, 0)?.clone();
    let (mut out, mut columns): (Vec<Value>, Option<Vec<Value>>) = (Vec::new(), None);
    each_record(m, text.as_str(), options.separator, |m, record, line| {
        let row = match &columns {
            None if named => {
                columns = Some(header(m, record)?);
                return Ok(());
            }
            None => Value::vector(record.fields().map(Value::from).collect()),
            Some(columns) => {
                if record.ends.len() > columns.len() {
                    let (found, named) = (record.ends.len(), columns.len());
                    let what = format!("line {line} has {found} fields, but the header names {named} columns");
                    return Err(fault(m, ErrorKind::TypeError, PARSE, &what));
                }
                let entries = columns.iter().cloned().zip(record.fields().map(Value::from)).collect();
                Value::Map(metered::map(m, entries)?)
            }
        };
        metered::push(m, &mut out, row)
    })?;
    Ok(Value::vector(out))
}

/// Returns the names of the columns. Duplicate names are rejected, since one column would hide the other.
fn header(m: &mut Machine, record: &Record<'_>) -> Result<Vec<Value>, Raised> {
    let columns: Vec<Value> = record.fields().map(Value::from).collect();
    let unique = metered::set(m, columns.clone())?;
    if unique.len() < columns.len() {
        let mut sorted: Vec<&str> = record.fields().collect();
        sorted.sort_unstable();
        let double = sorted.windows(2).find_map(|pair| if let [a, b] = pair { (a == b).then_some(*a) } else { None });
        let name = excerpt(double.unwrap_or_default());
        let what = format!("the header names the column {name:?} twice; parse without :header and take the fields by position");
        return Err(fault(m, ErrorKind::TypeError, PARSE, &what));
    }
    Ok(columns)
}

fn generate_csv(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let options = options(m, GENERATE, args)?;
    let rows = seq(m, GENERATE, args, 0)?;
    let has_maps = rows.iter().any(|row| matches!(row, Value::Map(_)));
    let (mut columns, with_header) = match options.header {
        Value::Nil | Value::True => (None, has_maps),
        Value::False => (None, false),
        given => (Some(seq(m, GENERATE, &mut [given], 0)?), true),
    };
    if columns.is_none() && has_maps {
        columns = Some(keys(m, &rows)?);
    }
    let mut writer = Writer::new(options.separator);
    let names = columns.unwrap_or_default();
    if with_header {
        let cells: Vec<Value> = names.iter().cloned().collect();
        writer.row(m, &cells)?;
    }
    for (index, row) in rows.iter().enumerate() {
        let cells: Vec<Value> = match row {
            Value::Map(map) => names.iter().map(|name| map.lookup(name).cloned().unwrap_or_default()).collect(),
            Value::Vector(cells) => cells.iter().cloned().collect(),
            other => {
                let what = format!("expected vectors or maps as rows, found {} as row {}", describe(other), index + 1);
                return Err(fault(m, ErrorKind::TypeError, GENERATE, &what));
            }
        };
        m.charge(cells.len() * ITEM)?;
        writer.row(m, &cells)?;
    }
    Ok(Value::from(String::from_utf8(writer.out).unwrap_or_default()))
}

/// Returns the keys of all maps among `rows`, in order.
fn keys(m: &mut Machine, rows: &Vector) -> Result<Vector, Raised> {
    let mut all = Vec::new();
    for row in rows {
        if let Value::Map(map) = row {
            m.tick(steps(map.len()))?;
            for (key, _) in map {
                metered::push(m, &mut all, key.clone())?;
            }
        }
    }
    let unique = metered::set(m, all)?;
    // A keyword and a string with the same text are one column.
    let mut columns = Map::default();
    for key in metered::members(m, unique)? {
        m.step()?;
        columns.put(key, Value::Nil);
    }
    Ok(columns.iter().map(|(key, _)| key.clone()).collect())
}

/// A CSV text that is written cell by cell.
struct Writer {
    csv: csv_core::Writer,
    out: Vec<u8>,
}

impl Writer {
    fn new(separator: u8) -> Self {
        Writer { csv: WriterBuilder::new().delimiter(separator).build(), out: Vec::new() }
    }

    fn row(&mut self, m: &mut Machine, cells: &[Value]) -> Result<(), Raised> {
        for (index, cell) in cells.iter().enumerate() {
            let mut text = String::new();
            match cell {
                Value::Keyword(_) => text.push_str(cell.as_name().unwrap_or_default()),
                Value::Vector(_) | Value::Map(_) | Value::Set(_) => {
                    let what = format!("expected a text, number or boolean as a cell, found {}", describe(cell));
                    let raised = fault(m, ErrorKind::TypeError, GENERATE, &what);
                    if let Some(fault) = &mut m.fault {
                        fault.hint = Some(
                            "make a text of it first: (json/generate-string x) or (clojure.string/join \", \" xs)".to_owned(),
                        );
                    }
                    return Err(raised);
                }
                _ => write_str(m, cell, &mut text)?,
            }
            if index > 0 {
                self.put(|csv, out| {
                    let (result, wrote) = csv.delimiter(out);
                    (result, 0, wrote)
                });
            }
            m.tick(1 + steps(text.len() / 16))?;
            m.charge(text.len() * 4)?;
            let mut input = text.as_bytes();
            self.put(|csv, out| {
                let (result, read, wrote) = csv.field(input, out);
                input = input.get(read..).unwrap_or_default();
                (result, read, wrote)
            });
        }
        self.put(|csv, out| {
            let (result, wrote) = csv.terminator(out);
            (result, 0, wrote)
        });
        Ok(())
    }

    /// Repeats one step of the writer until its output fits into the buffer.
    fn put(&mut self, mut step: impl FnMut(&mut csv_core::Writer, &mut [u8]) -> (WriteResult, usize, usize)) {
        let mut buffer = [0; 256];
        loop {
            let (result, _, wrote) = step(&mut self.csv, &mut buffer);
            self.out.extend_from_slice(buffer.get(..wrote).unwrap_or_default());
            if matches!(result, WriteResult::InputEmpty) {
                return;
            }
        }
    }
}
