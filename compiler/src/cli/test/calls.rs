//! Notes the calls of each test with their arguments, while a cassette answers them.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use ptc_compiler::serve::cassette::Player;
use ptc_runtime::schedule::ClientKey;
use ptc_runtime::upstream::UpstreamError;
use ptc_runtime::upstream::intercept::{CallAnswer, InterceptedCall, Interception, Interceptor, ProgramInterceptor};
use ptc_text::truncate_utf8;

use super::bench::Running;
use super::injection::Injection;

/// Maximum bytes of the arguments of a call in a report.
const MAX_ARGUMENTS: usize = 200;

/// A player whose calls are noted.
pub(super) struct CallLog {
    pub(super) player: Arc<Player>,
    pub(super) running: Arc<Running>,
}

/// The calls of one evaluation.
struct Calls {
    playback: Arc<dyn ProgramInterceptor>,
    running: Arc<Running>,
    test: u64,
    /// The changed answers.
    replay: Option<Arc<Injection>>,
}

impl fmt::Debug for CallLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.player.fmt(f)
    }
}

impl Interceptor for CallLog {
    fn is_offline(&self) -> bool {
        self.player.is_offline()
    }

    fn begin(&self, client_key: &ClientKey) -> Arc<dyn ProgramInterceptor> {
        let (playback, running) = (self.player.begin(client_key), Arc::clone(&self.running));
        let replay = running.replay(client_key.session);
        Arc::new(Calls { playback, running, test: client_key.session, replay })
    }
}

impl ProgramInterceptor for Calls {
    fn answer(&self, call: &InterceptedCall) -> Interception {
        let interception = self.playback.answer(call);
        if let Some(replay) = &self.replay {
            return replay.answer(call, interception);
        }
        let outcome = match &interception {
            Interception::Answer(Ok(_)) | Interception::AnswerAfter(_, Ok(_)) => "ok",
            Interception::Answer(Err(fault)) | Interception::AnswerAfter(_, Err(fault)) => fault.reason.name(),
            Interception::Refuse(_) | Interception::PassOn => "not recorded",
        };
        if let Interception::Refuse(fault) = &interception {
            self.running.refuse_call(self.test, fault.message.clone());
        }
        let arguments = String::from_utf8_lossy(&call.arguments);
        let (arguments, is_cut) = truncate_utf8(&arguments, MAX_ARGUMENTS);
        let mark = if is_cut { "…" } else { "" };
        self.running.add_call(self.test, format!("{}/{} {arguments}{mark}: {outcome}", call.upstream.name, call.tool.name));
        interception
    }

    fn observe(&self, call: &InterceptedCall, outcome: Result<&CallAnswer, &UpstreamError>, took: Duration) {
        self.playback.observe(call, outcome, took);
    }
}
