//! The endpoint of one server: sends HTTP requests to it, and turns what fails into errors.

use std::sync::Arc;

use bytes::Bytes;
use http::header::LOCATION;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, Uri};
use mcp_vary::json::edit;
use mcp_vary_base::caller_token::CallerToken;
use mcp_vary_http_client::body::{Incoming, ReadError};
use mcp_vary_http_client::failure::{root_cause, system_cause};
use mcp_vary_http_client::origin::origin;
use mcp_vary_http_client::proxy::Proxy;
use mcp_vary_http_client::resolver::Resolver;
use mcp_vary_http_client::tls::{self, TlsFiles};
use mcp_vary_http_client::tls_failure;
use mcp_vary_wire::revision::Revision;
use mcp_vary_wire::sanitize::excerpt;

use super::address::Address;
use super::collect::{BodyError, Collect, drain, is_web_page};
use super::credentials::Credentials;
use super::delivery::Delivery;
use super::diagnostics::{Diagnostics, EXCERPT_CHARS};
use super::headers::Header;
use super::outgoing_request::OutgoingRequest;
use super::pool::Pool;
use super::sending::{Authorizer, SendError, Sending};
use super::session::Session;
use crate::config::{Limits, UpstreamConfig};
use crate::connect_error::ConnectError;
use crate::error::{UpstreamError, means_other_era};
use crate::liveness::Liveness;
use crate::secrets::{Secrets, SentValues, without_user};

/// The endpoint of one server, and a pool of sockets to it.
pub(super) struct Endpoint {
    pub(super) server: Arc<str>,
    pub(super) limits: Limits,
    pub(super) liveness: Arc<Liveness>,
    pub(super) diagnostics: Diagnostics,
    address: Address,
    sent: Arc<SentValues>,
    credentials: Credentials,
    pool: Arc<Pool>,
    /// For a server with sources of credentials.
    authorizer: Option<Arc<Authorizer>>,
}

// Its address and headers may be secret.
mcp_vary_base::debug_by_name!(Endpoint);

impl Endpoint {
    /// The endpoint at `url`, where all requests have `headers`.
    ///
    /// # Errors
    ///
    /// When the address or the proxy on the way to it cannot be used.
    pub(super) fn new(
        config: &UpstreamConfig,
        url: &Uri,
        headers: &HeaderMap,
    ) -> Result<Self, ConnectError> {
        let server: Arc<str> = config.name.as_str().into();
        let unusable = |what| ConnectError::Settings {
            server: Arc::clone(&server),
            what,
        };
        let proxy = Proxy::find(url, config.variables).map_err(unusable)?;
        let files = TlsFiles {
            ca: config.ca.as_deref(),
            client: config.client_certificate.as_ref(),
        };
        let limit = config.limits.connect;
        let connector = tls::connector(url, limit, files, proxy.clone(), Resolver::default())
            .map_err(unusable)?;
        let (uri, headers) = without_user(url, headers);
        let pool = Arc::new(Pool::new(connector, &uri, proxy.as_ref()));
        let sent = Arc::<SentValues>::default();
        let secrets = Secrets::of(&config.target)
            .with_sent(Arc::clone(&sent))
            .with_sent(Arc::clone(&pool.cookies.values));
        let has_sources = !config.credentials.is_empty();
        let authorizer = has_sources.then(|| Authorizer {
            credentials: config.credentials.clone(),
            sent: Arc::clone(&sent),
            pool: Arc::clone(&pool),
        });
        Ok(Self {
            limits: config.limits.clone(),
            liveness: Liveness::new(),
            diagnostics: Diagnostics::new(Arc::clone(&server), secrets),
            credentials: Credentials::new(config, headers, proxy.as_ref()),
            pool,
            authorizer: authorizer.map(Arc::new),
            sent,
            address: Address {
                uri,
                unused_proxy: Proxy::why_unused(url, config.variables).filter(|_| proxy.is_none()),
                proxy: proxy.map(|proxy| proxy.describe()),
                ca: config.ca.clone(),
            },
            server,
        })
    }

    /// A session before the handshake has fixed one.
    pub(super) fn blank_session(&self, revision: Revision, is_agreed: bool) -> Session {
        Session::blank(&self.credentials.headers, revision, is_agreed)
    }

    /// One HTTP request of the gateway in `session`.
    pub(super) fn send(
        &self,
        method: Method,
        session: &Session,
        more: &[Header],
        body: Bytes,
    ) -> Sending {
        self.send_for(None, session, (method, more.into(), body))
    }

    /// One HTTP request in `session`, of the client with this token, if it belongs to a client. All requests to the server
    /// begin here.
    pub(super) fn send_for(
        &self,
        caller: Option<&CallerToken>,
        session: &Session,
        (method, more, body): (Method, Arc<[Header]>, Bytes),
    ) -> Sending {
        let stream = session.stream.as_ref();
        let uri = stream.map_or(&self.address.uri, |stream| &stream.uri);
        let outgoing = OutgoingRequest {
            method,
            uri: uri.clone(),
            session: Arc::clone(&session.headers),
            more,
            credentials: Vec::new(),
            body,
        };
        match &self.authorizer {
            None => Sending::Direct(Delivery::send(&self.pool, outgoing), None),
            Some(authorizer) => authorizer.send(outgoing, caller.cloned()),
        }
    }

    /// The configured address.
    pub(super) const fn uri(&self) -> &Uri {
        &self.address.uri
    }

    /// Hides the query of `uri` in what the server repeats: it has the id of a session.
    pub(super) fn hide_query(&self, uri: &Uri) {
        let pairs = uri.query().unwrap_or_default().split('&');
        let values = pairs.filter_map(|pair| HeaderValue::from_str(pair.split_once('=')?.1).ok());
        values.for_each(|value| self.sent.record(&value));
    }

    /// Sends a message that has no answer.
    pub(super) async fn deliver(
        &self,
        session: &Session,
        headers: &[Header],
        message: Bytes,
    ) -> Result<(), UpstreamError> {
        let delivery = async {
            let sending = self.send(Method::POST, session, headers, message);
            let response = sending.await.map_err(|error| self.unreachable(&error))?;
            if response.status().is_success() {
                drain(response.into_body()).await;
                return Ok(());
            }
            self.check_response(&response)?;
            let status = response.status();
            let mut body = Collect::new(response.into_body(), self.limits.body);
            Err(self.status_error(status, &body.run().await.unwrap_or_default()))
        };
        let delivered = tokio::time::timeout(self.limits.handshake, delivery).await;
        delivered.unwrap_or_else(|_| Err(self.timeout()))
    }

    /// Checks that the connection has not ended.
    pub(super) fn check_open(&self) -> Result<(), UpstreamError> {
        self.liveness
            .end_reason()
            .map_or(Ok(()), |error| Err(error.clone()))
    }

    /// Logs a failed call, and checks the server's health if the failure suggests that it is gone.
    pub(super) fn on_failure(&self, error: &UpstreamError) {
        match error {
            UpstreamError::Unreachable { .. }
            | UpstreamError::Unanswered { .. }
            | UpstreamError::BrokeOff { .. } => {
                self.pool.renew();
                self.liveness.suspect();
            }
            UpstreamError::Status { status, .. } if means_other_era(*status) => {
                self.liveness.suspect();
            }
            _ => {}
        }
        self.diagnostics.call_failed(error);
    }

    /// Reads the head of a response.
    ///
    /// # Errors
    ///
    /// When it is a redirect that is not followed.
    pub(super) fn check_response(
        &self,
        response: &Response<Incoming>,
    ) -> Result<(), UpstreamError> {
        let status = response.status();
        if !status.is_redirection() {
            self.credentials.record_challenge(response);
            return Ok(());
        }
        let location = response.headers().get(LOCATION).map(HeaderValue::as_bytes);
        let location = String::from_utf8_lossy(location.unwrap_or_default());
        let location = self.address.describe_redirect(&location);
        Err(UpstreamError::Redirect {
            server: Arc::clone(&self.server),
            status,
            location: excerpt(location.as_bytes(), EXCERPT_CHARS),
        })
    }

    pub(super) fn status_error(&self, status: StatusCode, body: &[u8]) -> UpstreamError {
        let authorizer = self.authorizer.as_ref();
        let has_added = authorizer.is_some_and(|authorizer| !authorizer.sent.is_empty());
        let refused = UpstreamError::Status {
            server: Arc::clone(&self.server),
            endpoint: self.address.shown(),
            status,
            excerpt: self.status_excerpt(status, body),
            advice: match status {
                StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                    self.credentials.advice(has_added)
                }
                _ => self.address.proxy_advice(status),
            },
        };
        // The server has detected that requests loop through this gateway.
        if status == StatusCode::LOOP_DETECTED {
            self.liveness.end(refused.clone());
        }
        refused
    }

    /// What a server says of its status.
    fn status_excerpt(&self, status: StatusCode, body: &[u8]) -> String {
        let excerpt = self.diagnostics.excerpt(body);
        let is_unauthorized = status == StatusCode::UNAUTHORIZED;
        let message = || oauth_message(&excerpt).or_else(|| self.credentials.refusal());
        match is_unauthorized.then(message).flatten() {
            Some(message) => self.diagnostics.excerpt(message.as_bytes()),
            None if is_web_page(body) => WEB_PAGE.to_owned(),
            None => excerpt,
        }
    }

    /// The error for a request without a response. It shows whether the request may have arrived.
    pub(super) fn delivery_error(&self, error: &SendError) -> UpstreamError {
        match error {
            SendError::Transport(error) if !error.is_connect() => UpstreamError::Unanswered {
                server: Arc::clone(&self.server),
                reason: self.address.describe_loss(error),
            },
            error => self.unreachable(error),
        }
    }

    pub(super) fn unreachable(&self, error: &SendError) -> UpstreamError {
        let server = Arc::clone(&self.server);
        match error {
            SendError::Transport(error) => UpstreamError::Unreachable {
                server,
                cause: system_cause(error).or_else(|| tls_failure::cause(error)),
                reason: self.address.describe_failure(error),
            },
            SendError::Credentials(error) => UpstreamError::Credentials {
                server,
                status: None,
                error: error.clone(),
            },
            SendError::Refused(status, error) => UpstreamError::Credentials {
                server,
                status: Some(*status),
                error: error.clone(),
            },
        }
    }

    pub(super) fn body_error(&self, error: &BodyError) -> UpstreamError {
        match error {
            BodyError::TooLarge => self.too_large("a reply", self.limits.body),
            BodyError::NoRoom => self.no_room(),
            BodyError::Broken(ReadError::Transport(error)) => self.broke_off(root_cause(error)),
            BodyError::Broken(error) => {
                self.misbehaved(format!("its reply cannot be read: {error}"))
            }
        }
    }

    pub(super) fn no_room(&self) -> UpstreamError {
        UpstreamError::NoRoom {
            server: Arc::clone(&self.server),
        }
    }

    pub(super) fn too_large(&self, what: &'static str, limit: usize) -> UpstreamError {
        UpstreamError::TooLarge {
            server: Arc::clone(&self.server),
            what,
            limit,
        }
    }

    pub(super) fn broke_off(&self, reason: String) -> UpstreamError {
        UpstreamError::BrokeOff {
            server: Arc::clone(&self.server),
            reason,
        }
    }

    /// Its address, for messages.
    pub(super) fn shown(&self) -> String {
        self.address.shown()
    }

    pub(super) fn misbehaved(&self, what: String) -> UpstreamError {
        UpstreamError::Misbehaved {
            server: Arc::clone(&self.server),
            what,
        }
    }

    pub(super) fn timeout(&self) -> UpstreamError {
        UpstreamError::Timeout {
            server: Arc::clone(&self.server),
            limit: self.limits.idle,
        }
    }

    /// What a server is that answers with a web page, and where its endpoint may be.
    pub(super) fn describe_web_page(&self, status: StatusCode) -> String {
        format!(
            "`{}` answered with a web page (HTTP {status}); {}",
            self.address.shown(),
            self.path_advice()
        )
    }

    fn path_advice(&self) -> String {
        let origin = origin(&self.address.uri);
        let path = self.address.uri.path();
        let check = if path == "/mcp" {
            "host and path"
        } else {
            "the path"
        };
        let usual =
            ["/mcp", "/sse"].map(|usual| (usual != path).then(|| format!("`{origin}{usual}`")));
        let addresses: Vec<_> = usual.into_iter().flatten().collect();
        let sse = if path == "/sse" {
            ""
        } else {
            " (`/sse` is for the transport of 2024-11-05)"
        };
        format!(
            "check {check} of its address, which is often {}{sse}",
            addresses.join(" or ")
        )
    }

    /// Says where the stream of the transport of 2024-11-05 often is, if there is none.
    pub(super) fn explain_stream(&self, error: UpstreamError) -> UpstreamError {
        match error {
            UpstreamError::Status {
                status, excerpt, ..
            } if matches!(status.as_u16(), 404 | 405) && self.address.uri.path() != "/sse" => {
                let excerpt = match excerpt.as_str() {
                    "" => String::new(),
                    excerpt => format!(" ({excerpt})"),
                };
                UpstreamError::Misbehaved {
                    server: Arc::clone(&self.server),
                    what: format!(
                        "`{}` answered HTTP {status}{excerpt}; check the path of its address, which is often `{}/sse`",
                        self.address.shown(),
                        origin(&self.address.uri)
                    ),
                }
            }
            error => error,
        }
    }

    /// Names the usual reason why a connection without TLS is closed before any answer, and why a web server does not know
    /// the method.
    pub(super) fn explain_failure(&self, error: ConnectError) -> ConnectError {
        match error {
            ConnectError::Failed(UpstreamError::Unanswered { server, reason })
                if self.address.is_plain() =>
            {
                let url = self.address.shown();
                let reason =
                    format!("{url}: {reason}; if it expects TLS, its address begins with https://");
                UpstreamError::Unanswered { server, reason }.into()
            }
            ConnectError::Failed(UpstreamError::Misbehaved { server, what }) => {
                ConnectError::unusable(&server, what)
            }
            ConnectError::Failed(UpstreamError::Status {
                server,
                status,
                excerpt,
                ..
            }) if status == StatusCode::NOT_IMPLEMENTED && excerpt == WEB_PAGE => {
                ConnectError::unusable(&server, self.describe_web_page(status))
            }
            error => error,
        }
    }

    /// Names the usual reason for a refusal of `initialize`; `on_stream` is what went wrong on the stream of the transport
    /// of 2024-11-05, if there is one.
    pub(super) fn explain_refusal(
        &self,
        error: UpstreamError,
        on_stream: Option<&str>,
    ) -> ConnectError {
        match &error {
            UpstreamError::Status {
                status, excerpt, ..
            } if matches!(status.as_u16(), 400 | 404 | 405) => {
                let scheme = self.credentials.scheme_advice();
                let advice = scheme.unwrap_or_else(|| self.path_advice());
                let url = self.address.shown();
                // What an escape of JSON stood for is a peer's text again.
                let message = rpc_message(excerpt).or_else(|| oauth_message(excerpt));
                let reason = message.map(|message| self.diagnostics.excerpt(message.as_bytes()));
                let what = match reason {
                    Some(reason) => format!(
                        "`{url}` answered `initialize` with HTTP {status}: {reason}; {advice}"
                    ),
                    None if excerpt == WEB_PAGE => self.describe_web_page(*status),
                    None => {
                        let excerpt = match excerpt.as_str() {
                            "" => String::new(),
                            excerpt => format!(" ({excerpt})"),
                        };
                        let stream = match on_stream {
                            Some(why) => format!(
                                "was not ready on its event stream (the transport of 2024-11-05, SSE): {why}; look at the \
                                 log of the server"
                            ),
                            None => format!(
                                "has no stream of the transport of 2024-11-05 (SSE) either; {advice}"
                            ),
                        };
                        format!(
                            "`{url}` answered `initialize` with HTTP {status}{excerpt}, and {stream}"
                        )
                    }
                };
                ConnectError::unusable(&self.server, what)
            }
            _ => error.into(),
        }
    }
}

/// In place of the beginning of a web page.
const WEB_PAGE: &str = "it sent a web page";

/// The message of a JSON-RPC error, if the text is one.
fn rpc_message(text: &str) -> Option<String> {
    let message = edit::get(edit::get(text, "error")?, "message")?;
    serde_json::from_str(message).ok()
}

/// The message of an error of OAuth (RFC 6749, 5.2).
fn oauth_message(text: &str) -> Option<String> {
    serde_json::from_str(edit::get(text, "error_description")?).ok()
}
