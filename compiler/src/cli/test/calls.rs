//! Notes the calls of each test with their arguments, while a cassette answers them.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use ptc_lisp::ErrorKind;
use ptc_lisp::host::Fault;
use ptc_runtime::schedule::ClientKey;
use ptc_runtime::upstream::UpstreamError;
use ptc_runtime::upstream::intercept::{CallAnswer, InterceptedCall, Interception, Interceptor, ProgramInterceptor};
use ptc_text::truncate_utf8;

use super::injection::Injection;
use super::running::{RunAnswers, Running};

/// Maximum bytes of the arguments of a call in a report.
const MAX_ARGUMENTS: usize = 200;

/// Answers the calls of each evaluation from the cassette of its test, and adds them to the log of the test.
pub(super) struct CallLog(pub(super) Arc<Running>);

/// The calls of one evaluation.
struct Calls {
    /// The recorded answers. `None` if the evaluation has ended.
    playback: Option<Arc<dyn ProgramInterceptor>>,
    running: Arc<Running>,
    test: u64,
    /// Changes the answers.
    injection: Option<Arc<Injection>>,
}

impl fmt::Debug for CallLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CallLog")
    }
}

impl Interceptor for CallLog {
    fn is_offline(&self) -> bool {
        true
    }

    fn begin(&self, client_key: &ClientKey) -> Arc<dyn ProgramInterceptor> {
        let running = Arc::clone(&self.0);
        let (playback, injection) = match running.answers(client_key.session) {
            Some(RunAnswers { player, injection }) => (Some(player.begin(client_key)), injection),
            None => (None, None),
        };
        Arc::new(Calls { playback, running, test: client_key.session, injection })
    }
}

impl ProgramInterceptor for Calls {
    fn answer(&self, call: &InterceptedCall) -> Interception {
        let Some(playback) = &self.playback else {
            return Interception::Refuse(Fault::new(ErrorKind::ToolError, "the test has ended".to_owned()));
        };
        let interception = playback.answer(call);
        if let Some(injection) = &self.injection {
            return injection.answer(call, interception);
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
        if let Some(playback) = &self.playback {
            playback.observe(call, outcome, took);
        }
    }
}
