//! Generates values and programs from arbitrary bytes, for property tests and for fuzzing.

use arbitrary::{Result, Unstructured};
use ptc_lisp::builtins::Builtin;
use ptc_lisp::{Value, builtins, host_functions, json};

/// Texts that exercise special cases.
const TEXTS: &[&str] = &[
    "",
    " ",
    "a",
    "abc",
    "a,b;c",
    "A Z",
    "é",
    "e\u{301}",
    "🏳️‍🌈 flag",
    "日本",
    "\r\n",
    "\"quoted\" \\ back",
    "\u{0}\u{1f}",
    "12",
    "-3.5",
    "1e400",
    "2024-02-30",
    "2024-02-29",
    "PT1H",
    "[1, {\"a\": null}]",
    "(a+)+$",
    "[",
    "%5d|%s",
    "$1 \\1",
    "null",
    "%",
];

/// Integers at the limits of ranges.
const INTEGERS: &[i64] = &[
    0,
    1,
    -1,
    2,
    3,
    7,
    10,
    63,
    64,
    65,
    100,
    1000,
    i64::MAX,
    i64::MIN,
    i64::MAX - 1,
    i32::MAX as i64,
    1 << 53,
    (1 << 53) + 1,
    -(1 << 53) - 1,
];

const DOUBLES: &[f64] = &[
    0.0,
    -0.0,
    0.5,
    -1.5,
    1.0,
    1e300,
    1e-300,
    5e-324,
    9_007_199_254_740_993.0,
    9.3e18,
    f64::MAX,
    f64::INFINITY,
    f64::NEG_INFINITY,
    f64::NAN,
];

/// Generates a value that can be read back, with containers down to `depth`.
pub(crate) fn value(u: &mut Unstructured<'_>, depth: usize) -> Result<Value> {
    let kinds = if depth == 0 { 7 } else { 10 };
    Ok(match u.int_in_range(0..=kinds - 1)? {
        0 => Value::nil(),
        1 => Value::bool(u.arbitrary()?),
        2 => Value::int(integer(u)?),
        3 => Value::double(if u.ratio(1, 4)? { u.arbitrary()? } else { *u.choose(DOUBLES)? }),
        4 => json::decode(digits(u)?.as_bytes()).unwrap_or_default(),
        5 => Value::string(text(u)?),
        6 => Value::keyword(keyword_name(u)?.as_str()),
        7 => Value::vector(values(u, depth)?),
        8 => Value::set(values(u, depth)?),
        _ => {
            let (keys, held) = (values(u, depth)?, values(u, depth)?);
            Value::map(keys.into_iter().zip(held))
        }
    })
}

/// Generates the name of a keyword: one of a few, so that some are equal, or any of the allowed characters.
fn keyword_name(u: &mut Unstructured<'_>) -> Result<String> {
    if u.arbitrary()? {
        return Ok(
            (*u.choose(&["a", "b", "key", "long-name", "x?", "id_2", "+", "->x", "1", "true", "nil", "<=", "*a*"])?).to_owned()
        );
    }
    let length = u.int_in_range(1..=8)?;
    (0..length)
        .map(|_| {
            if u.ratio(1, 4)? {
                Ok(u.arbitrary::<char>()?).map(|c| if c.is_alphanumeric() { c } else { 'é' })
            } else {
                u.choose(&['a', 'Z', '0', '9', '+', '-', '*', '<', '>', '=', '?', '!', '_']).copied()
            }
        })
        .collect()
}

fn values(u: &mut Unstructured<'_>, depth: usize) -> Result<Vec<Value>> {
    let count = u.int_in_range(0..=4)?;
    (0..count).map(|_| value(u, depth - 1)).collect()
}

fn integer(u: &mut Unstructured<'_>) -> Result<i64> {
    if u.ratio(1, 4)? { u.arbitrary() } else { u.choose(INTEGERS).copied() }
}

fn digits(u: &mut Unstructured<'_>) -> Result<String> {
    let count = u.int_in_range(20..=60)?;
    let sign = if u.arbitrary()? { "-" } else { "" };
    Ok(format!("{sign}9{}", "1234567890".repeat(6).get(..count).unwrap_or_default()))
}

fn text(u: &mut Unstructured<'_>) -> Result<String> {
    if u.ratio(1, 4)? { Ok(u.arbitrary::<&str>()?.chars().take(20).collect()) } else { Ok((*u.choose(TEXTS)?).to_owned()) }
}

/// Generates a well-formed program: calls of all functions of the table, nested in special forms.
pub(crate) fn program(u: &mut Unstructured<'_>) -> Result<String> {
    let rows: Vec<&'static Builtin> = builtins::all().chain(host_functions::all()).collect();
    let mut writer = Writer { rows, locals: vec!["data/items".into()], out: String::new() };
    for _ in 0..u.int_in_range(1..=3)? {
        writer.form(u, 4)?;
        writer.out.push('\n');
    }
    Ok(writer.out)
}

struct Writer {
    rows: Vec<&'static Builtin>,
    /// Names in scope.
    locals: Vec<String>,
    out: String,
}

impl Writer {
    fn form(&mut self, u: &mut Unstructured<'_>, depth: usize) -> Result<()> {
        if depth == 0 || u.is_empty() {
            return self.atom(u);
        }
        match u.int_in_range(0..=19)? {
            0..=2 => self.atom(u),
            3..=11 => self.call(u, depth),
            12 => self.bound(u, depth, "(let [", "] ", ")"),
            13 => self.bound(u, depth, "(for [", " :when true] ", ")"),
            14 => self.function(u, depth),
            15 => self.parts(u, depth, "(if ", 3, ")"),
            16 => self.parts(u, depth, "(-> ", 1, " (vector 1) count str)"),
            17 => self.bound(u, depth, "(loop [i 0 ", "] (if (< i 3) (recur (inc i) i) ", "))"),
            18 => self.parts(u, depth, "[", 3, "]"),
            _ => self.parts(u, depth, "{:a ", 1, " \"b\" nil}"),
        }
    }

    fn atom(&mut self, u: &mut Unstructured<'_>) -> Result<()> {
        match u.int_in_range(0..=5)? {
            0 => {
                let name = u.choose(&self.locals)?.clone();
                self.out.push_str(&name);
            }
            1 => self.out.push_str(u.choose(&[
                "inc",
                "str",
                "identity",
                "+",
                "<",
                "vector",
                ":a",
                "#(str %)",
                "(fn [& xs] (count xs))",
                "{:a 1}",
                "#{1}",
            ])?),
            2 => self.out.push_str(u.choose(&[
                "(range 5)",
                "(iterate inc 1)",
                "(repeat 2)",
                "(cycle [1 2])",
                "(range 2000)",
                "#\"(\\w+)\"",
                "#'inc",
                "'x",
            ])?),
            _ => {
                let value = value(u, 2)?;
                self.out.push_str(&ptc_lisp::print::readable(&value));
            }
        }
        self.out.push(' ');
        Ok(())
    }

    fn call(&mut self, u: &mut Unstructured<'_>, depth: usize) -> Result<()> {
        let row = *u.choose(&self.rows)?;
        let (least, most) = (usize::from(row.min), usize::from(row.max.unwrap_or(row.min.saturating_add(3))));
        let count = u.int_in_range(least..=most.min(least + 3))?;
        self.out.push('(');
        self.out.push_str(&row.full_name());
        self.out.push(' ');
        for index in 0..count {
            // Most higher-order functions take the function first.
            if index == 0 && u.ratio(1, 3)? {
                self.function(u, depth - 1)?;
            } else {
                self.form(u, depth - 1)?;
            }
        }
        self.out.push(')');
        Ok(())
    }

    fn function(&mut self, u: &mut Unstructured<'_>, depth: usize) -> Result<()> {
        let name = format!("p{}", self.locals.len());
        self.out.push_str("(fn ");
        if u.ratio(1, 4)? {
            self.out.extend(["[& ", &name, "] "]);
            self.locals.push(name);
            self.form(u, depth.saturating_sub(1))?;
            self.locals.pop();
            self.out.push_str(") ");
        } else {
            self.out.extend(["([", &name, "] ", &name, ") ([a ", &name, "] ", &name, ")) "]);
        }
        Ok(())
    }

    /// Writes `opening name value middle body closing`.
    fn bound(&mut self, u: &mut Unstructured<'_>, depth: usize, opening: &str, middle: &str, closing: &str) -> Result<()> {
        let name = format!("v{}", self.locals.len());
        self.out.push_str(opening);
        self.out.push_str(&name);
        self.out.push(' ');
        self.form(u, depth - 1)?;
        self.out.push_str(middle);
        self.locals.push(name);
        self.form(u, depth - 1)?;
        self.locals.pop();
        self.out.push_str(closing);
        Ok(())
    }

    fn parts(&mut self, u: &mut Unstructured<'_>, depth: usize, opening: &str, count: usize, closing: &str) -> Result<()> {
        self.out.push_str(opening);
        for _ in 0..count {
            self.form(u, depth - 1)?;
        }
        self.out.push_str(closing);
        Ok(())
    }
}
