//! Decides whether a request may be sent again, because no part of a response was received.

use std::io::ErrorKind;

use hyper::http::Extensions;
use hyper_util::client::legacy;

use super::client::causes;
use super::connector::Heard;

/// Whether the connection was lost before any byte of the response.
pub(super) fn is_unheard(why: &legacy::Error) -> bool {
    let Some(line) = why.connect_info() else { return false };
    if line.is_negotiated_h2() {
        // The state of a shared connection does not show whether a request was processed. Only a message of the server does.
        return causes(why).find_map(|cause| cause.downcast_ref::<h2::Error>()).is_some_and(is_not_begun);
    }
    let mut known = Extensions::new();
    line.get_extras(&mut known);
    known.get::<Heard>().is_some_and(|heard| !heard.anything()) && causes(why).any(is_lost)
}

fn is_lost(cause: &(dyn std::error::Error + 'static)) -> bool {
    // A TLS connection that is closed without `close_notify` reports an unexpected end of file.
    let lost = [
        ErrorKind::ConnectionReset,
        ErrorKind::ConnectionAborted,
        ErrorKind::BrokenPipe,
        ErrorKind::NotConnected,
        ErrorKind::UnexpectedEof,
    ];
    let ended = |why: &hyper::Error| why.is_incomplete_message() || why.is_canceled() || why.is_closed();
    cause.downcast_ref().is_some_and(ended)
        || cause.downcast_ref::<std::io::Error>().is_some_and(|why| lost.contains(&why.kind()))
}

/// Whether the server declares that it has not processed a request (RFC 9113, 8.7).
fn is_not_begun(why: &h2::Error) -> bool {
    let refused = why.is_reset() && why.reason() == Some(h2::Reason::REFUSED_STREAM);
    let leaving = why.is_go_away() && why.reason() == Some(h2::Reason::NO_ERROR);
    why.is_remote() && (refused || leaving)
}
