//! Programs of calls that write, drawn from a seed. Each call exists as PTC-Lisp and as a request of `reqwest`.

use reqwest::blocking::multipart::{Form, Part};
use reqwest::blocking::{Client, RequestBuilder};
use reqwest::header::{CONTENT_TYPE, ETAG, IF_MATCH};
use serde_json::{Map, Value, json};

/// A sequence of numbers (SplitMix64).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `end`.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    fn text(&mut self) -> String {
        const TEXTS: [&str; 8] =
            ["Ann", "a&b=c d", "\"quoted\" \\ back", "Zoë — 東京 🚀", "line\r\nbreak", "--ptc-", "+%2B", "  spaces  "];
        TEXTS[self.below(TEXTS.len() as u64) as usize].to_owned()
    }

    fn bytes(&mut self) -> Vec<u8> {
        let length = self.below(60);
        (0..length).map(|_| self.below(256) as u8).collect()
    }
}

/// The entity tag that a call sends.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Tag {
    /// That of the order, which is read first.
    Current,
    Stale,
    None,
}

/// One call of an operation.
#[derive(Debug, Clone)]
pub(crate) enum Call {
    Create { body: Value, key: Option<String> },
    Replace { order: u64, tag: Tag, body: Value },
    Change { order: u64, tag: Tag, body: Value },
    Delete { order: u64 },
    Pay { order: u64, members: Value },
    Attach { order: u64, caption: String, file: Vec<u8>, meta: Value },
    Note { order: u64, text: String },
    Close { order: u64 },
}

/// Draws a call. Orders have the numbers from 1 to `orders`; a few calls name one that does not exist.
pub(crate) fn draw(random: &mut Random, orders: u64) -> Call {
    let order = 1 + random.below(orders + 2);
    let tag = match random.below(6) {
        0 => Tag::Stale,
        1 => Tag::None,
        _ => Tag::Current,
    };
    match random.below(12) {
        0..=2 => {
            let number = random.below(60);
            let key = (number < 30).then(|| format!("given-{number}"));
            // Most requests with the same key are the same, as those of a client that repeats a request.
            let body = if key.is_some() && random.below(4) > 0 { body(&mut Random(number)) } else { body(random) };
            Call::Create { body, key }
        }
        3..=4 => Call::Replace { order, tag, body: body(random) },
        5..=6 => {
            let mut members = Map::new();
            members.insert("customer".into(), random.text().into());
            if random.below(2) == 0 {
                members.insert("note".into(), Value::Null);
            }
            Call::Change { order, tag, body: Value::Object(members) }
        }
        7 => Call::Delete { order },
        8 => {
            let tags: Vec<String> = (0..random.below(3)).map(|_| random.text()).collect();
            Call::Pay { order, members: json!({ "amount": random.below(900), "method": random.text(), "tags": tags }) }
        }
        9 => {
            let meta = json!({ "page": random.below(9), "title": random.text() });
            Call::Attach { order, caption: random.text(), file: random.bytes(), meta }
        }
        10 => Call::Note { order, text: random.text() },
        _ => Call::Close { order },
    }
}

fn body(random: &mut Random) -> Value {
    let lines: Vec<Value> = (0..random.below(3)).map(|_| json!({ "sku": random.text(), "count": 1 + random.below(5) })).collect();
    let mut body = json!({ "customer": random.text(), "reference": format!("r{}", random.below(400)), "lines": lines });
    match random.below(3) {
        0 => body["note"] = Value::Null,
        1 => body["note"] = random.text().into(),
        _ => {}
    }
    body
}

impl Call {
    /// Writes the call as PTC-Lisp. Its value is the status of the response.
    pub(crate) fn lisp(&self) -> String {
        let plain = |tool: &str, args: &Value| format!("(status {tool:?} {} {{}})", lisp(args));
        let tagged = |tool: &str, order: u64, tag: Tag, body: &Value| {
            let mut args = body.clone();
            args["order"] = order.into();
            let args = lisp(&args);
            match tag {
                Tag::None => format!("(status {tool:?} {args} {{}})"),
                Tag::Stale => format!(r#"(status {tool:?} (assoc {args} "If-Match" "\"v0\"") {{}})"#),
                Tag::Current => format!(r#"(status {tool:?} (assoc {args} "If-Match" (entity-tag {order})) {{}})"#),
            }
        };
        match self {
            Call::Create { body, key: None } => plain("create-order", body),
            Call::Create { body, key: Some(key) } => {
                format!(r#"(status "create-order" {} {{:idempotency_key {key:?}}})"#, lisp(body))
            }
            Call::Replace { order, tag, body } => tagged("replace-order", *order, *tag, body),
            Call::Change { order, tag, body } => tagged("change-order", *order, *tag, body),
            Call::Delete { order } => plain("delete-order", &json!({ "order": order })),
            Call::Pay { order, members } => {
                let mut args = members.clone();
                args["order"] = json!(order);
                plain("pay", &args)
            }
            Call::Attach { order, caption, file, meta } => {
                use base64::Engine;
                let file = base64::engine::general_purpose::STANDARD.encode(file);
                plain("attach", &json!({ "order": order, "caption": caption, "file": file, "meta": meta }))
            }
            Call::Note { order, text } => plain("set-note", &json!({ "order": order, "body": text })),
            Call::Close { order } => plain("close", &json!({ "order": order })),
        }
    }

    /// Makes the call with `reqwest`. Returns the status of the response.
    pub(crate) fn send(&self, client: &Client, base: &str) -> u16 {
        let at = |order: &u64, rest: &str| format!("{base}/orders/{order}{rest}");
        let tagged = |request: RequestBuilder, order: &u64, tag: Tag| match tag {
            Tag::None => request,
            Tag::Stale => request.header(IF_MATCH, "\"v0\""),
            Tag::Current => {
                let read = client.get(at(order, "")).send().expect("an answer");
                match read.headers().get(ETAG) {
                    Some(tag) => request.header(IF_MATCH, tag),
                    None => request,
                }
            }
        };
        let request = match self {
            Call::Create { body, key } => {
                let request = client.post(format!("{base}/orders")).json(body);
                let fresh = || format!("fresh-{}", std::time::UNIX_EPOCH.elapsed().expect("a time").as_nanos());
                request.header("Idempotency-Key", key.clone().unwrap_or_else(fresh))
            }
            Call::Replace { order, tag, body } => tagged(client.put(at(order, "")), order, *tag).json(body),
            Call::Change { order, tag, body } => tagged(client.patch(at(order, "")), order, *tag)
                .header(CONTENT_TYPE, "application/merge-patch+json")
                .body(body.to_string()),
            Call::Delete { order } => client.delete(at(order, "")),
            Call::Pay { order, members } => client.post(at(order, "/payments")).form(&pairs(members)),
            Call::Attach { order, caption, file, meta } => {
                let file = Part::bytes(file.clone()).file_name("file").mime_str("application/octet-stream").expect("a type");
                let meta = Part::text(meta.to_string()).mime_str("application/json").expect("a type");
                let form = Form::new().text("caption", caption.clone()).part("file", file).part("meta", meta);
                client.post(at(order, "/files")).multipart(form)
            }
            Call::Note { order, text } => client.put(at(order, "/note")).header(CONTENT_TYPE, "text/plain").body(text.clone()),
            Call::Close { order } => client.post(at(order, "/close")),
        };
        request.send().expect("an answer").status().as_u16()
    }
}

/// Returns the pairs of a form. A list has a pair for each item.
fn pairs(members: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let mut pairs = Vec::new();
    for (name, value) in members.as_object().into_iter().flatten() {
        match value {
            Value::Array(items) => pairs.extend(items.iter().map(|item| (name.clone(), text(item)))),
            _ => pairs.push((name.clone(), text(value))),
        }
    }
    pairs
}

/// Writes JSON as PTC-Lisp: commas are spaces, a colon after a name is not needed.
fn lisp(value: &Value) -> String {
    match value {
        Value::Null => "nil".to_owned(),
        Value::Array(items) => format!("[{}]", items.iter().map(lisp).collect::<Vec<_>>().join(" ")),
        Value::Object(members) => {
            let member = |(name, value): (&String, &Value)| format!("{} {}", json!(name), lisp(value));
            format!("{{{}}}", members.iter().map(member).collect::<Vec<_>>().join(" "))
        }
        scalar => scalar.to_string(),
    }
}
