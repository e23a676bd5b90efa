//! The endpoints of the viewer.
//!
//! | path | what |
//! |---|---|
//! | `/viewer/` and the files beside it | the page, which contains no data of calls |
//! | `/viewer/api/calls?limit=N` | `{"total": N, "calls": [row…]}`, newest first, 500 by default, at most 5,000; for rows see [`row`](super::row). It has an `ETag`: with `If-None-Match` the answer is 304 until something changes |
//! | `/viewer/api/calls/ID` | `{"id": ID, "lines": [object…], "unreadable": N, "cut": bool}`, the lines of one trace file |
//!
//! The endpoints exist only on loopback listeners, and `Host` must name the listener. This prevents DNS rebinding: a page from
//! another origin cannot read the answers under its own host name. The JSON requires the bearer token, if there is one.
//! On a listener with several owners, it contains the calls of the token's owner only.

use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;

use hyper::header::{
    CONTENT_SECURITY_POLICY, ETAG, HeaderMap, HeaderName, IF_NONE_MATCH, LOCATION, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
    X_FRAME_OPTIONS,
};
use hyper::http::request::Parts;
use hyper::http::uri::Authority;
use hyper::{Method, StatusCode};
use ptc_runtime::server::http::Pages;
use ptc_runtime::server::http::auth::{Authenticator, Peer};
use ptc_runtime::server::http::guard::{self, text};
use ptc_runtime::server::http::reply::Reply;
use ptc_runtime::server::identity::Owner;
use ptc_runtime::settings::HttpSettings;
use serde_json::json;

use crate::folder::Folder;

/// The path of the page, on every listener.
pub const PATH: &str = "/viewer";

const DEFAULT_LIMIT: usize = 500;
const MAX_LIMIT: usize = 5000;

/// The files of the page: path, media type, text.
static FILES: &[(&str, &str, &str)] = &[
    ("/", "text/html; charset=utf-8", include_str!("page/index.html")),
    ("/viewer.css", "text/css; charset=utf-8", include_str!("page/viewer.css")),
    ("/viewer.js", SCRIPT, include_str!("page/viewer.js")),
    ("/detail.js", SCRIPT, include_str!("page/detail.js")),
    ("/format.js", SCRIPT, include_str!("page/format.js")),
    ("/lisp.js", SCRIPT, include_str!("page/lisp.js")),
    ("/plots.js", SCRIPT, include_str!("page/plots.js")),
    ("/timeline.js", SCRIPT, include_str!("page/timeline.js")),
];
const SCRIPT: &str = "text/javascript; charset=utf-8";

/// A route below [`PATH`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Route {
    /// The page and its files.
    Files,
    /// The list of calls.
    Calls,
    /// One call.
    Call,
}

impl Route {
    /// All routes.
    pub const ALL: [Route; 3] = [Route::Files, Route::Calls, Route::Call];

    /// Returns the route of a path, without a query.
    pub fn from_path(path: &str) -> Option<Route> {
        let rest = path.strip_prefix(PATH)?;
        Route::ALL.into_iter().find(|route| match route {
            Route::Files => rest.is_empty() || FILES.iter().any(|(file, ..)| *file == rest),
            Route::Calls => rest == CALLS,
            Route::Call => rest.strip_prefix(CALLS).is_some_and(|rest| rest.starts_with('/')),
        })
    }
}

const CALLS: &str = "/api/calls";

/// Headers that restrict the browser: only scripts of the binary run, and text never becomes markup.
static PROTECTION: [(HeaderName, &str); 6] = [
    (
        CONTENT_SECURITY_POLICY,
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; \
         frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
    ),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (X_FRAME_OPTIONS, "DENY"),
    (REFERRER_POLICY, "no-referrer"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
];

/// The viewer of a trace folder.
#[derive(Debug)]
pub struct Viewer {
    folder: Arc<Folder>,
}

impl Viewer {
    /// Shows the traces of a folder.
    pub fn new(folder: &Path) -> Arc<Viewer> {
        Arc::new(Viewer { folder: Arc::new(Folder::new(folder)) })
    }

    async fn answer(
        &self,
        settings: &HttpSettings,
        authenticator: &Authenticator,
        peer: &Peer,
        request: &Parts,
    ) -> (Reply, Option<Owner>) {
        let authority = request.uri.authority().map(Authority::as_str);
        if let Err(refused) = guard::check_host_and_origin(settings, authority, &request.headers) {
            return (Reply::text(StatusCode::FORBIDDEN, refused.sentence()), None);
        }
        if !matches!(request.method, Method::GET | Method::HEAD) {
            return (Reply::not_allowed("GET, HEAD"), None);
        }
        let path = request.uri.path();
        let (Some(route), Some(rest)) = (Route::from_path(path), path.strip_prefix(PATH)) else { return (not_found(), None) };
        if route == Route::Files {
            let file = FILES.iter().find(|(path, ..)| *path == rest);
            let redirect = || Reply::empty(StatusCode::PERMANENT_REDIRECT).with(LOCATION, "/viewer/");
            return (file.map_or_else(redirect, |(_, kind, text)| Reply::new(StatusCode::OK, kind, *text)), None);
        }
        let owner = match authenticator.authenticate(peer, &request.headers).await {
            Ok(identity) => identity.owner.clone(),
            Err(refusal) => return (refusal, None),
        };
        // A single owner sees all traces of the folder, also those of other processes.
        let only = authenticator.has_owners().then(|| Arc::clone(&owner.hash));
        let id = rest.strip_prefix(CALLS).and_then(|rest| rest.strip_prefix('/'));
        let reply = match id {
            Some(id) => self.one(id.to_owned(), only).await,
            None => self.list(request.uri.query(), &request.headers, only).await,
        };
        (reply, Some(owner))
    }

    async fn list(&self, query: Option<&str>, headers: &HeaderMap, only: Option<Arc<str>>) -> Reply {
        let limit = query.unwrap_or_default().split('&').find_map(|pair| pair.strip_prefix("limit="));
        let limit = match limit.map(str::parse::<usize>) {
            None => DEFAULT_LIMIT,
            Some(Ok(limit)) => limit.clamp(1, MAX_LIMIT),
            Some(Err(_)) => return Reply::json(StatusCode::BAD_REQUEST, r#"{"error":"limit: expected an integer"}"#),
        };
        let folder = Arc::clone(&self.folder);
        let listing = match blocking(move || folder.newest(limit, only.as_deref())).await {
            Some(Ok(listing)) => listing,
            Some(Err(fault)) => {
                let error = json!({ "error": format!("the folder of traces cannot be read: {fault}") });
                return Reply::json(StatusCode::OK, error.to_string());
            }
            None => return Reply::empty(StatusCode::INTERNAL_SERVER_ERROR),
        };
        let tag = format!("\"{}\"", listing.tag);
        if text(headers, &IF_NONE_MATCH) == Some(&tag) {
            return Reply::empty(StatusCode::NOT_MODIFIED).with(ETAG, &tag);
        }
        let body = format!("{{\"total\":{},\"calls\":[{}]}}", listing.total, listing.rows.join(","));
        Reply::json(StatusCode::OK, body).with(ETAG, &tag)
    }

    async fn one(&self, id: String, only: Option<Arc<str>>) -> Reply {
        let folder = Arc::clone(&self.folder);
        let found = blocking(move || {
            let trace = folder.one(&id, only.as_deref())?;
            Some(json!({ "id": id, "lines": trace.lines, "unreadable": trace.unreadable, "cut": trace.cut }).to_string())
        });
        match found.await.flatten() {
            Some(body) => Reply::json(StatusCode::OK, body),
            None => Reply::json(StatusCode::NOT_FOUND, r#"{"error":"no such call"}"#),
        }
    }
}

impl Pages for Viewer {
    fn handles(&self, path: &str) -> bool {
        path.strip_prefix(PATH).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    fn respond<'a>(
        &'a self,
        settings: &'a HttpSettings,
        authenticator: &'a Authenticator,
        peer: &'a Peer,
        request: &'a Parts,
    ) -> Pin<Box<dyn Future<Output = (Reply, Option<Owner>)> + Send + 'a>> {
        Box::pin(async move {
            let (reply, owner) = self.answer(settings, authenticator, peer, request).await;
            (PROTECTION.iter().fold(reply, |reply, (name, value)| reply.with(name.clone(), value)), owner)
        })
    }
}

/// Runs `work` on a blocking thread, since this one also drives every upstream.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    tokio::task::spawn_blocking(work).await.ok()
}

fn not_found() -> Reply {
    Reply::text(StatusCode::NOT_FOUND, "not found")
}
