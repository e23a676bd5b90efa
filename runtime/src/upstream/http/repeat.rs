//! Whether a request may be sent once more: nothing of an answer has come.

use std::io::ErrorKind;

use hyper::http::Extensions;
use hyper_util::client::legacy;

use super::client::causes;
use super::connector::Heard;

/// Whether the connection was lost before a byte came that answers the request.
pub(super) fn is_unheard(why: &legacy::Error) -> bool {
    let Some(line) = why.connect_info() else { return false };
    if line.is_negotiated_h2() {
        // A connection that others share says nothing of one request; only the server's word does.
        return causes(why).find_map(|cause| cause.downcast_ref::<h2::Error>()).is_some_and(is_not_begun);
    }
    let mut known = Extensions::new();
    line.get_extras(&mut known);
    known.get::<Heard>().is_some_and(|heard| !heard.anything()) && causes(why).any(is_lost)
}

fn is_lost(cause: &(dyn std::error::Error + 'static)) -> bool {
    // TLS that ends without a word is an unexpected end.
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

/// Whether a server says that it has not looked at a request: RFC 9113, 8.7.
fn is_not_begun(why: &h2::Error) -> bool {
    let refused = why.is_reset() && why.reason() == Some(h2::Reason::REFUSED_STREAM);
    let leaving = why.is_go_away() && why.reason() == Some(h2::Reason::NO_ERROR);
    why.is_remote() && (refused || leaving)
}
