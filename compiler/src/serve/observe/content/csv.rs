//! Headings of CSV.
//!
//! Headings are kept and other cells are not, so that a first row with data must not be taken for headings.

use csv_core::{ReadRecordResult, Reader, ReaderBuilder};

use super::{MAX_COLUMNS, named};
use crate::serve::observe::names;

/// The last words of usual headings, beside those of [`names::names_a_category`].
const HEADINGS: [&str; 40] = [
    "address",
    "amount",
    "author",
    "city",
    "code",
    "company",
    "count",
    "country",
    "currency",
    "date",
    "department",
    "description",
    "email",
    "id",
    "key",
    "label",
    "language",
    "location",
    "message",
    "name",
    "note",
    "notes",
    "number",
    "owner",
    "path",
    "phone",
    "price",
    "region",
    "size",
    "street",
    "subject",
    "summary",
    "tags",
    "time",
    "title",
    "total",
    "url",
    "user",
    "value",
    "version",
];

/// Returns the headings of CSV (RFC 4180, also with tabs or semicolons), if it has them.
pub(super) fn headings(text: &str) -> Option<Vec<String>> {
    [b',', b'\t', b';'].into_iter().find_map(|delimiter| {
        let rows = rows(text, delimiter)?;
        let (headings, rows) = rows.split_first()?;
        let headings = named(headings.clone())?;
        (has_column_of_numbers(&headings, rows) || has_usual_headings(&headings, rows)).then_some(headings)
    })
}

/// Whether in a column all rows have a digit and the heading has none, as the Sniffer of Python decides.
fn has_column_of_numbers(headings: &[String], rows: &[Vec<String>]) -> bool {
    let has_digit = |cell: &str| cell.contains(|c: char| c.is_ascii_digit());
    let is_of_numbers = |(at, heading): (usize, &String)| {
        !has_digit(heading) && !rows.is_empty() && column(rows, at).all(|cell| cell.is_some_and(has_digit))
    };
    headings.iter().enumerate().any(is_of_numbers)
}

/// Whether the first row has usual headings. All of them begin in the same case, and no other row has a usual heading.
///
/// One usual heading is not enough, because it may be data, as in `user,ada`. Either most of them are usual, or there is a column of
/// which all cells look different from the heading. Without other rows, all of them are usual.
fn has_usual_headings(headings: &[String], rows: &[Vec<String>]) -> bool {
    let usual = headings.iter().filter(|heading| is_usual(heading)).count();
    let is_enough = usual * 2 > headings.len() && !rows.is_empty()
        || usual > 0 && headings.iter().enumerate().any(|(at, heading)| looks_different(heading, rows, at))
        || usual == headings.len();
    let first_is_lower = headings.first().is_some_and(|heading| is_lower(heading));
    let is_consistent = headings.iter().all(|heading| is_lower(heading) == first_is_lower);
    is_enough && is_consistent && !rows.iter().flatten().any(|cell| is_usual(cell))
}

fn is_usual(heading: &str) -> bool {
    names::names_a_category(heading) || names::ends_with_word(heading, &HEADINGS)
}

fn is_lower(text: &str) -> bool {
    text.starts_with(char::is_lowercase)
}

/// Whether no cell of a column is a name that begins in the case of the heading. Empty cells do not count.
fn looks_different(heading: &str, rows: &[Vec<String>], at: usize) -> bool {
    let mut cells = column(rows, at).flatten().filter(|cell| !cell.is_empty()).peekable();
    cells.peek().is_some() && cells.all(|cell| !names::is_name(cell) || is_lower(cell) != is_lower(heading))
}

fn column(rows: &[Vec<String>], at: usize) -> impl Iterator<Item = Option<&str>> {
    rows.iter().map(move |row| row.get(at).map(String::as_str))
}

/// Returns the rows of a text. `None` if their numbers of cells differ, or if there is only one column.
fn rows(text: &str, delimiter: u8) -> Option<Vec<Vec<String>>> {
    let first = text.lines().next()?;
    // Most texts are not CSV, which this finds sooner.
    if !first.as_bytes().contains(&delimiter) {
        return None;
    }
    let mut reader: Reader = ReaderBuilder::new().delimiter(delimiter).build();
    // No cell is longer than the text, and the reader writes nothing else.
    let mut cells = vec![0; text.len()];
    let mut ends = [0; MAX_COLUMNS];
    let mut rows: Vec<Vec<String>> = Vec::new();
    let (mut input, mut written, mut ended) = (text.as_bytes(), 0, 0);
    loop {
        let (result, read, wrote, count) = reader.read_record(input, cells.get_mut(written..)?, ends.get_mut(ended..)?);
        (input, written, ended) = (input.get(read..)?, written + wrote, ended + count);
        match result {
            // An empty input ends the last record.
            ReadRecordResult::InputEmpty => {}
            ReadRecordResult::Record => {
                let mut start = 0;
                let row = ends.get(..ended)?.iter().map(|end| {
                    let cell = cells.get(start..*end).map(String::from_utf8_lossy);
                    start = *end;
                    cell.unwrap_or_default().into_owned()
                });
                let row: Vec<String> = row.collect();
                if row.len() < 2 || rows.first().is_some_and(|first| first.len() != row.len()) {
                    return None;
                }
                rows.push(row);
                (written, ended) = (0, 0);
            }
            ReadRecordResult::OutputFull | ReadRecordResult::OutputEndsFull => return None,
            ReadRecordResult::End => return Some(rows),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::headings;

    #[test]
    fn headings_of_columns_of_text_are_recognised() {
        for (text, expected) in [
            ("name,species\nRex,Dog\nTom,Cat\n", "name species"),
            ("first_name,lastName,town\nada,lovelace,london\n", "first_name lastName town"),
            ("Title;Author\r\nEmma;Austen\r\n", "Title Author"),
            ("id\tstatus\na\topen\nb\tshut\n", "id status"),
            ("species,contact_email\ndog,ada@example.com\ncat,\n", "species contact_email"),
            ("host,owner\n\"a, b\",ada\n", "host owner"),
            // No row was found.
            ("id,name,created_date\n", "id name created_date"),
        ] {
            assert_eq!(headings(text).map(|found| found.join(" ")).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn data_and_prose_have_no_headings() {
        for text in [
            "ada,lovelace\nalan,turing\n",
            "Ada,Lovelace\nAlan,Turing\n",
            // Data that is also a usual heading.
            "user,ada\nadmin,ken\n",
            "user,Ada\nadmin,Ken\n",
            "name,Ada\ncity,Paris\n",
            "name,ada\ncity,paris\n",
            "species,habitat\n",
            // Prose.
            "Hello, name\nand, city\n",
            "First,\nthe name\n",
            "The name, the title\nand the date, all of them\n",
            "Note,\n",
            "Dear Ada,\nthank you, and regards\n",
            "One title,one name\nmore text,and more\n",
        ] {
            assert_eq!(headings(text), None, "{text}");
        }
    }
}
