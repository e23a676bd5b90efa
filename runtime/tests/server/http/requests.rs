//! Sends each request of `requests.txt` and compares its answer.

use std::fmt::Write;

use super::site::{Site, TOKEN};
use crate::Test;

pub(super) const TESTS: &[Test] = &[("http::requests_give_the_recorded_responses", requests_give_the_recorded_responses)];

const REQUESTS: &str = include_str!("requests.txt");

fn requests_give_the_recorded_responses() {
    // A flag that is on by default is turned off with `=false`.
    let arguments = ["--http-auth-token", TOKEN, "--http-auth-rate-limit=false", "--http-instance-label", "test"];
    let site = Site::start(&arguments);
    let mut session = site.client();
    session.token = Some(TOKEN);
    session.initialize();
    let session = session.session.expect("initialize opens one");
    let mut wrong = String::new();
    let mut count = 0;
    for entry in REQUESTS.split("\n\n") {
        let lines: Vec<&str> = entry.lines().filter(|line| !line.starts_with('#')).collect();
        let Some((first, rest)) = lines.split_first() else { continue };
        count += 1;
        let (method, path) = first.split_once(' ').expect("method and path");
        let (mut headers, mut body, mut expected) = (Vec::new(), "", "");
        for line in rest {
            if let Some(text) = line.strip_prefix("> ") {
                body = text;
            } else if let Some(text) = line.strip_prefix("=> ") {
                expected = text;
            } else {
                let (name, value) = line.split_once(':').unwrap_or_else(|| panic!("no header: {line}"));
                headers.push((name, value.trim().replace("$SESSION", &session)));
            }
        }
        let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let mut client = site.client();
        client.token = Some(TOKEN);
        let answer = client.ask(method, path, &headers, body);
        let mut parts = expected.splitn(3, '|').map(str::trim);
        let status = parts.next().unwrap_or_default();
        let header = parts.next().and_then(|part| part.split_once(": "));
        let part = parts.next().unwrap_or_default();
        let has_header = header.is_none_or(|(name, value)| answer.header(name).is_some_and(|found| found.starts_with(value)));
        if answer.status.to_string() != status || !has_header || !answer.body.contains(part) {
            let _ = writeln!(wrong, "{entry}\nfound {answer:?}\n");
        }
        assert!(answer.header("x-request-id").is_some_and(|id| !id.is_empty()), "{answer:?}");
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(count > 35, "{count}");
}
