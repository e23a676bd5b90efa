//! Serves the JSON API: `GET /pets` and `GET /pets/{petId}`.

use serde_json::json;
use tiny_http::Method;

use super::data;
use crate::http_server::{HttpReply, HttpRequest};

pub(super) fn answer(request: &HttpRequest) -> HttpReply {
    let (path, query) = request.url.split_once('?').unwrap_or((&request.url, ""));
    if request.method != Method::Get {
        return problem(405, "only GET is served");
    }
    match path.split('/').collect::<Vec<_>>().as_slice() {
        ["", "pets"] => list(query),
        ["", "pets", id] => match id.parse().ok().and_then(data::pet) {
            Some(pet) => HttpReply::json(200, pet.to_string()),
            None => problem(404, &format!("no pet with id {id}")),
        },
        _ => problem(404, &format!("no resource at {path}")),
    }
}

fn list(query: &str) -> HttpReply {
    let mut species = None;
    let mut limit = usize::MAX;
    for (name, value) in query.split('&').filter_map(|pair| pair.split_once('=')) {
        match name {
            "species" => species = Some(value),
            "limit" => match value.parse() {
                Ok(number) => limit = number,
                Err(_) => return problem(400, &format!("limit must be a whole number, not {value:?}")),
            },
            _ => {}
        }
    }
    let wanted = |pet: &serde_json::Value| species.is_none_or(|s| pet.get("species").is_some_and(|v| v == s));
    let pets: Vec<_> = data::pets().filter(wanted).take(limit).collect();
    HttpReply::json(200, json!(pets).to_string())
}

fn problem(status: u16, detail: &str) -> HttpReply {
    HttpReply::json(status, json!({ "status": status, "detail": detail }).to_string())
}
