//! Makes one call: gets the connection, sends the request, and returns the payload.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
#[cfg(feature = "access-token")]
use ptc_catalog::{Auth, OAuth2};
use ptc_catalog::{Transport, Upstream};
use ptc_lisp::host::HttpHead;

use super::call_limiter::{CallLimiter, CallPermit};
use super::call_rules::CallRules;
#[cfg(feature = "access-token")]
use super::caller_sessions::CallerSessions;
#[cfg(feature = "http")]
use super::caller_token;
use super::children::ChildLease;
#[cfg(feature = "http")]
use super::drift::{self, Checked};
#[cfg(feature = "http")]
use super::fault::Reason;
use super::fault::UpstreamError;
use super::health::Health;
use super::lifecycle::{Lifecycle, Live};
use super::mcp::listing::{Keep, Query};
use super::mcp::outcome::{self, Payload};
use super::mcp::{Ask, Channel, Negotiated, Response, wire};
use super::pace::Pacer;
use super::query_tools::{self, Listing};
use super::settings::UpstreamSettings;
use super::stdio::client::StdioClient;
use super::time_limit::TimeLimit;
use ptc_schedule::ClientKey;
use ptc_secrets::Secrets;

#[cfg(feature = "http")]
use super::http::{connect, session::Session};
#[cfg(feature = "http")]
use super::openapi::{EncodedRequest, Service};

/// An upstream with its single connection.
pub(crate) struct UpstreamConnection {
    upstream: &'static Upstream,
    kind: Kind,
    limiter: Arc<CallLimiter>,
    pacer: Pacer,
    health: Arc<Health>,
    /// The connections of an MCP server that is called on behalf of callers.
    #[cfg(feature = "access-token")]
    of_callers: Option<CallerSessions<Checked<Session>>>,
}

/// The connection of an MCP server over HTTP.
#[cfg(feature = "http")]
type HttpLifecycle = Lifecycle<Checked<Session>>;

enum Kind {
    Stdio(StdioClient),
    #[cfg(feature = "http")]
    Http(Arc<HttpLifecycle>),
    #[cfg(feature = "http")]
    OpenApi(std::sync::OnceLock<Result<Box<Service>, UpstreamError>>),
    #[cfg(not(feature = "http"))]
    NoHttp,
}

/// An encoded call of an upstream.
pub(crate) enum EncodedCall {
    /// A `tools/call` request.
    Mcp {
        /// The name of the tool.
        tool: &'static str,
        /// JSON text of the arguments.
        arguments: Bytes,
    },
    /// The request of an operation.
    #[cfg(feature = "http")]
    Operation(Box<EncodedRequest>),
}

impl EncodedCall {
    /// Returns the bytes that the submitting thread has allocated for it.
    pub(crate) fn len(&self) -> usize {
        match self {
            EncodedCall::Mcp { arguments, .. } => arguments.len(),
            #[cfg(feature = "http")]
            EncodedCall::Operation(request) => request.len(),
        }
    }
}

/// The result of a successful call.
pub(crate) struct Answered {
    pub(crate) payload: Payload,
    pub(crate) http_status: Option<u16>,
    /// The head of the answer of an OpenAPI operation.
    pub(crate) head: Option<Box<HttpHead>>,
    /// The `Link` header of an OpenAPI answer.
    pub(crate) link_header: Option<String>,
}

impl UpstreamConnection {
    pub(crate) fn new(upstream: &'static Upstream, logs_health: bool) -> UpstreamConnection {
        let kind = match &upstream.transport {
            Transport::McpStdio(_) => Kind::Stdio(StdioClient::new()),
            #[cfg(feature = "http")]
            Transport::McpHttp(_) => Kind::Http(Lifecycle::new()),
            #[cfg(feature = "http")]
            Transport::OpenApi(_) => Kind::OpenApi(std::sync::OnceLock::new()),
            #[cfg(not(feature = "http"))]
            Transport::McpHttp(_) | Transport::OpenApi(_) => Kind::NoHttp,
        };
        let limiter = CallLimiter::new(upstream.transport.max_concurrent_calls());
        #[cfg(feature = "access-token")]
        let has_callers = upstream.transport.auth().iter().filter_map(Auth::oauth).any(OAuth2::is_on_behalf);
        #[cfg(not(feature = "access-token"))]
        let has_callers = false;
        UpstreamConnection {
            upstream,
            kind,
            limiter,
            pacer: Pacer::default(),
            health: Health::with_callers(upstream.name, logs_health, has_callers),
            #[cfg(feature = "access-token")]
            of_callers: has_callers.then(CallerSessions::default),
        }
    }

    /// Creates an upstream's connection that takes over an earlier one.
    pub(crate) fn taking_over(
        upstream: &'static Upstream,
        earlier: &UpstreamConnection,
        logs_health: bool,
    ) -> UpstreamConnection {
        let kind = match (&upstream.transport, &earlier.kind) {
            (Transport::McpStdio(_), Kind::Stdio(client)) => Kind::Stdio(client.clone()),
            #[cfg(feature = "http")]
            (Transport::McpHttp(_), Kind::Http(lifecycle)) => Kind::Http(Arc::clone(lifecycle)),
            _ => return UpstreamConnection::new(upstream, logs_health),
        };
        let health = Arc::clone(&earlier.health);
        UpstreamConnection { kind, health, ..UpstreamConnection::new(upstream, logs_health) }
    }

    /// Returns the health of the upstream.
    pub(crate) fn health(&self) -> &Arc<Health> {
        &self.health
    }

    /// Returns the limiter of its calls.
    pub(super) fn limiter(&self) -> &Arc<CallLimiter> {
        &self.limiter
    }

    pub(crate) fn upstream(&self) -> &'static Upstream {
        self.upstream
    }

    /// Connects, if the transport has connections. Also fails if a tool has changed and the policy denies that.
    pub(crate) async fn connect(&self, secrets: &Arc<Secrets>, settings: &UpstreamSettings) -> Result<(), UpstreamError> {
        #[cfg(feature = "interception")]
        crate::intercept::check_online(settings)?;
        match &self.kind {
            Kind::Stdio(client) => {
                let mut limit = TimeLimit::connecting(settings);
                self.stdio(client, self.upstream, secrets, settings, &mut limit).await?.drift.check_all_allowed()
            }
            // There is no connection without a caller.
            #[cfg(feature = "access-token")]
            Kind::Http(_) if self.of_callers.is_some() => Ok(()),
            #[cfg(feature = "http")]
            Kind::Http(lifecycle) => self.http(lifecycle, self.upstream, secrets, settings).await?.drift.check_all_allowed(),
            #[cfg(feature = "http")]
            Kind::OpenApi(_) => Ok(()),
            #[cfg(not(feature = "http"))]
            Kind::NoHttp => Err(no_http()),
        }
    }

    /// Connects to an MCP upstream and lists its tools. `keep` selects the definitions to keep.
    pub(crate) async fn list(
        &self,
        keep: Keep,
        secrets: &Arc<Secrets>,
        settings: &UpstreamSettings,
    ) -> Result<Listing, UpstreamError> {
        #[cfg(feature = "interception")]
        crate::intercept::check_online(settings)?;
        let query = |limits| Query { upstream: self.upstream.name, limits, keep };
        match (&self.kind, &self.upstream.transport) {
            (Kind::Stdio(client), Transport::McpStdio(spec)) => {
                let checked = self.stdio(client, self.upstream, secrets, settings, &mut TimeLimit::connecting(settings)).await?;
                let connected = &checked.connection;
                query_tools::list(connected.channel(), &connected.negotiated, &query(spec.listing), spec.handshake_timeout_ms)
                    .await
            }
            #[cfg(feature = "http")]
            (Kind::Http(lifecycle), Transport::McpHttp(spec)) => {
                let mut renewed = false;
                let query = query(spec.listing);
                loop {
                    let checked = self.http(lifecycle, self.upstream, secrets, settings).await?;
                    let session = &checked.connection;
                    match query_tools::list(session.channel(), &session.negotiated, &query, spec.handshake_timeout_ms).await {
                        Err(fault) if fault.session_over && !renewed => {
                            lifecycle.renew(&checked);
                            renewed = true;
                        }
                        outcome => return outcome,
                    }
                }
            }
            #[cfg(not(feature = "http"))]
            (Kind::NoHttp, _) => Err(no_http()),
            _ => Err(mismatch()),
        }
    }

    /// Returns the pacer, which spreads the steps of calls that end at the same time.
    pub(super) fn pacer(&self) -> &Pacer {
        &self.pacer
    }

    /// Makes the call. Connecting has a time limit of its own, and the call's deadline starts once there is a connection. `known`
    /// is the upstream in the current catalog, with which a new connection is compared.
    pub(crate) async fn call(
        &self,
        known: &'static Upstream,
        call: &EncodedCall,
        rules: CallRules,
        client_key: &ClientKey,
        secrets: &Arc<Secrets>,
        settings: &UpstreamSettings,
    ) -> Result<Answered, UpstreamError> {
        #[cfg(feature = "interception")]
        crate::intercept::check_online(settings)?;
        match (&self.kind, call) {
            (Kind::Stdio(client), EncodedCall::Mcp { tool, arguments }) => {
                let mut limit = TimeLimit::for_call(settings, rules, None);
                let checked = self.stdio(client, known, secrets, settings, &mut limit).await?;
                checked.drift.check_allowed(tool)?;
                let (_permit, deadline) = self.acquire_permit(client_key, &limit).await?;
                let connected = &checked.connection;
                let response =
                    request(connected.channel(), &connected.negotiated, tool, arguments, rules.is_repeatable, deadline).await;
                let response = response.map_err(|fault| self.failed(&limit, fault))?;
                self.answered(client.lifecycle());
                Ok(Answered { payload: outcome::unwrap(response)?, http_status: None, head: None, link_header: None })
            }
            #[cfg(feature = "http")]
            (Kind::Http(lifecycle), EncodedCall::Mcp { tool, arguments }) => {
                let Transport::McpHttp(spec) = &self.upstream.transport else { return Err(mismatch()) };
                #[cfg(feature = "access-token")]
                let lifecycle = &self.lifecycle_for_caller(lifecycle)?;
                let limit = TimeLimit::for_call(settings, rules, Some(spec.request_timeout_ms));
                let mut renewed = false;
                let mut permit = None;
                loop {
                    let checked = self.http(lifecycle, known, secrets, settings).await?;
                    checked.drift.check_allowed(tool)?;
                    let deadline = if permit.is_some() {
                        limit.deadline()
                    } else {
                        let (acquired, deadline) = self.acquire_permit(client_key, &limit).await?;
                        permit = Some(acquired);
                        deadline
                    };
                    let session = &checked.connection;
                    match request(session.channel(), &session.negotiated, tool, arguments, rules.is_repeatable, deadline).await {
                        // The server dropped our session before executing the request. Retry once with a new session; a second
                        // rejection is final.
                        Err(fault) if fault.session_over && !renewed => {
                            lifecycle.renew(&checked);
                            renewed = true;
                        }
                        Err(fault) => return Err(self.failed(&limit, fault)),
                        Ok(response) => {
                            self.answered(lifecycle);
                            if matches!(&response, Response::Error(error) if error.code == wire::UNSUPPORTED_REVISION) {
                                // The server was replaced. The next call negotiates again.
                                lifecycle.renew(&checked);
                            }
                            let payload = outcome::unwrap(response).map_err(|fault| match fault.reason {
                                Reason::ToolError => fault.with_status(200),
                                // A JSON-RPC error may arrive with any status.
                                _ => fault,
                            })?;
                            return Ok(Answered { payload, http_status: Some(200), head: None, link_header: None });
                        }
                    }
                }
            }
            #[cfg(feature = "http")]
            (Kind::OpenApi(service), EncodedCall::Operation(request)) => {
                let Transport::OpenApi(spec) = &self.upstream.transport else { return Err(mismatch()) };
                self.check_secrets(secrets)?;
                let service = service.get_or_init(|| Service::new(self.upstream.name, spec, secrets, settings).map(Box::new));
                let service = service.as_ref().map_err(Clone::clone)?;
                let limit = TimeLimit::for_call(settings, rules, Some(spec.request_timeout_ms));
                let (_permit, deadline) = self.acquire_permit(client_key, &limit).await?;
                let answer = service.call(request, deadline).await;
                let answer = answer.map_err(|fault| self.failed(&limit, fault))?;
                self.health.answered();
                let (http_status, head) = (Some(answer.head.status), Some(Box::new(answer.head)));
                Ok(Answered { payload: answer.payload, http_status, head, link_header: answer.link_header })
            }
            #[cfg(not(feature = "http"))]
            (Kind::NoHttp, _) => Err(no_http()),
            #[cfg(feature = "http")]
            _ => Err(mismatch()),
        }
    }

    /// Returns the connection for the current caller. A server binds a session to the user of its first request, so that callers share none.
    #[cfg(feature = "access-token")]
    fn lifecycle_for_caller(&self, shared: &Arc<HttpLifecycle>) -> Result<Arc<HttpLifecycle>, UpstreamError> {
        let Some(of_callers) = &self.of_callers else { return Ok(Arc::clone(shared)) };
        let caller = caller_token::current().ok_or_else(|| caller_token::missing(self.upstream.name))?;
        of_callers.get(caller.digest())
    }

    /// Waits for a permit within the time of the call. Returns the permit and the call's deadline.
    async fn acquire_permit(&self, client_key: &ClientKey, limit: &TimeLimit) -> Result<(CallPermit, Instant), UpstreamError> {
        let deadline = limit.deadline();
        self.pacer.turn().await;
        let permit =
            self.limiter.acquire(client_key, deadline).await.map_err(|fault| limit.explain(self.upstream.name, fault))?;
        Ok((permit, deadline))
    }

    /// Records a failed call, and explains a timeout.
    fn failed(&self, limit: &TimeLimit, fault: UpstreamError) -> UpstreamError {
        let fault = limit.explain(self.upstream.name, fault);
        self.health.failed(&fault);
        fault
    }

    fn answered<C: Live>(&self, lifecycle: &Lifecycle<C>) {
        lifecycle.answered();
        self.health.answered();
    }

    /// Returns an error if a secret of the upstream is missing.
    fn check_secrets(&self, secrets: &Secrets) -> Result<(), UpstreamError> {
        let missing: Vec<String> = secrets.missing_for(self.upstream.name).map(ToString::to_string).collect();
        if missing.is_empty() { Ok(()) } else { Err(UpstreamError::unavailable(missing.join("; "))) }
    }

    /// Returns the child. If there is none, it is started. The time until it may start is deducted from `limit`.
    async fn stdio(
        &self,
        client: &StdioClient,
        known: &'static Upstream,
        secrets: &Arc<Secrets>,
        settings: &UpstreamSettings,
        limit: &mut TimeLimit,
    ) -> Result<ChildLease, UpstreamError> {
        let Transport::McpStdio(spec) = &self.upstream.transport else { return Err(mismatch()) };
        self.check_secrets(secrets)?;
        client.child(spec, known, &self.health, secrets, settings, limit).await
    }

    #[cfg(feature = "http")]
    async fn http(
        &self,
        lifecycle: &Arc<HttpLifecycle>,
        known: &'static Upstream,
        secrets: &Arc<Secrets>,
        settings: &UpstreamSettings,
    ) -> Result<Arc<Checked<Session>>, UpstreamError> {
        let upstream = self.upstream;
        let Transport::McpHttp(spec) = &upstream.transport else { return Err(mismatch()) };
        self.check_secrets(secrets)?;
        lifecycle
            .get(|| {
                let (secrets, settings, health) = (Arc::clone(secrets), settings.clone(), Arc::clone(&self.health));
                // The attempt is a task of its own.
                let caller = caller_token::current();
                super::health::recorded(
                    Arc::clone(&self.health),
                    caller_token::scope(caller, async move {
                        let _starting = settings.start_limits.connection().await;
                        // The handshake and the list of tools share a deadline, since both are needed to connect.
                        let deadline = Instant::now() + Duration::from_millis(spec.handshake_timeout_ms);
                        let connection = connect::connect(upstream.name, spec, &secrets, &settings).await?;
                        let drift = drift::detect(
                            connection.channel(),
                            &connection.negotiated,
                            known,
                            &health,
                            spec.listing,
                            settings.on_drift,
                            deadline,
                        )
                        .await?;
                        Ok(Checked { connection, drift })
                    }),
                )
            })
            .await
    }

    /// Closes the connection permanently.
    pub(crate) async fn shutdown(&self, grace: Duration) {
        match &self.kind {
            Kind::Stdio(client) => client.shutdown(grace).await,
            #[cfg(feature = "http")]
            Kind::Http(lifecycle) => {
                #[cfg(feature = "access-token")]
                self.of_callers.iter().for_each(CallerSessions::close);
                if let Some(session) = lifecycle.close() {
                    let _ = tokio::time::timeout(grace, session.connection.end()).await;
                }
            }
            #[cfg(feature = "http")]
            Kind::OpenApi(_) => {}
            #[cfg(not(feature = "http"))]
            Kind::NoHttp => {}
        }
    }
}

/// Sends a `tools/call` request.
async fn request(
    channel: &impl Channel,
    negotiated: &Negotiated,
    tool: &'static str,
    arguments: &Bytes,
    repeatable: bool,
    deadline: Instant,
) -> Result<Response, UpstreamError> {
    let params = format!(r#"{{"name":{}}}"#, wire::quoted(tool));
    let negotiated = Some((negotiated.era, negotiated.revision));
    let ask = Ask { name: Some(tool), arguments: Some(arguments), negotiated, repeatable, ..Ask::new("tools/call", &params) };
    channel.request(ask, deadline).await
}

#[cfg(feature = "http")]
fn mismatch() -> UpstreamError {
    UpstreamError::unavailable("the call does not fit the transport of the upstream")
}

#[cfg(not(feature = "http"))]
fn mismatch() -> UpstreamError {
    no_http()
}

#[cfg(not(feature = "http"))]
fn no_http() -> UpstreamError {
    UpstreamError::unavailable("this binary was built without an HTTP client (feature `http` of ptc-runtime)")
}
