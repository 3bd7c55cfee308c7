//! The streamable HTTP transport: one POST for each message, answered with JSON or server-sent events.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, USER_AGENT};
use http::uri::Scheme;
use http::{Method, Request, Response, Uri};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_rustls::{ConfigBuilderExt as _, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, RootCertStore};
use tokio::time::timeout;

use crate::era::Era;
use crate::json::text_at;
use crate::target::Target;

use super::NO_RESPONSE;
use super::message::{Outgoing, Reply, response_to};
use super::sse::EventReader;

/// The most bytes of a response that are read.
const BODY_LIMIT: usize = 4 << 20;

pub(crate) const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");

/// What distinguishes one client over HTTP from another.
#[derive(Clone, Debug, Default)]
pub(crate) struct HttpClient {
    /// The session that the server opened for a legacy client.
    pub(crate) session: Option<HeaderValue>,
    /// Whether the client is of the other principal.
    pub(crate) is_other: bool,
}

/// A client of one endpoint.
pub(crate) struct Http {
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    uri: Uri,
    target: Target,
    limit: Duration,
}

impl Http {
    /// A client of `target`, which is at `uri`. `limit` is the longest that one request may take, with its response.
    ///
    /// # Errors
    ///
    /// If the machine's certificates cannot be read.
    pub(crate) fn new(uri: Uri, target: &Target, limit: Duration) -> Result<Self, String> {
        let https = connector(uri.scheme() == Some(&Scheme::HTTPS), target.authorities())?;
        Ok(Self {
            client: Client::builder(TokioExecutor::new()).build(https),
            uri,
            target: target.clone(),
            limit,
        })
    }

    /// Sends a message, and reads until its response is there.
    pub(crate) async fn send(
        &self,
        message: &Outgoing<'_>,
        client: &HttpClient,
    ) -> Result<Reply, String> {
        let mut request =
            self.request(Method::POST, headers(message), message.text.clone(), client);
        let accepted = HeaderValue::from_static("application/json, text/event-stream");
        request.headers_mut().insert(ACCEPT, accepted);
        let json = HeaderValue::from_static("application/json");
        request.headers_mut().insert(CONTENT_TYPE, json);
        let exchange = async {
            let response = self.client.request(request).await;
            read(response.map_err(|error| sentence(&error))?, message.id).await
        };
        timeout(self.limit, exchange)
            .await
            .map_err(|_| format!("{NO_RESPONSE} {} s", self.limit.as_secs_f32()))?
    }

    /// Whether another principal is known.
    pub(crate) fn has_other(&self) -> bool {
        self.target.has_other()
    }

    /// Ends the session of a client that has one, as a client should. Any response will do.
    pub(crate) async fn end_session(&self, client: &HttpClient) {
        if client.session.is_some() {
            let request = self.request(Method::DELETE, HeaderMap::new(), String::new(), client);
            _ = timeout(Duration::from_secs(1), self.client.request(request)).await;
        }
    }

    fn request(
        &self,
        method: Method,
        mut headers: HeaderMap,
        body: String,
        client: &HttpClient,
    ) -> Request<Full<Bytes>> {
        if let Some(session) = &client.session {
            headers.insert(SESSION, session.clone());
        }
        for (name, value) in self.target.headers(client.is_other) {
            headers.append(name, value.clone());
        }
        // Firewalls refuse requests without one.
        let name = HeaderValue::from_static(concat!("vary/", env!("CARGO_PKG_VERSION")));
        headers.entry(USER_AGENT).or_insert(name);
        let mut request = Request::new(Full::new(Bytes::from(body)));
        *request.method_mut() = method;
        *request.uri_mut() = self.uri.clone();
        *request.headers_mut() = headers;
        request
    }
}

impl fmt::Debug for Http {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Http").field(&self.target).finish()
    }
}

/// The headers of a message: the revision, and for modern requests what the body says.
fn headers(message: &Outgoing<'_>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    let mut insert = |name, value: &str| {
        if let Ok(value) = HeaderValue::from_str(value) {
            headers.insert(HeaderName::from_static(name), value);
        }
    };
    if message.method != "initialize" {
        insert("mcp-protocol-version", message.era.revision());
    }
    if let Some(variant) = message.variant_header {
        insert("mcp-server-variant", variant);
    }
    if message.era == Era::Modern {
        insert("mcp-method", message.method);
        let name = text_at(message.params, &["name"]);
        if let Some(name) = name.or_else(|| text_at(message.params, &["uri"])) {
            insert("mcp-name", name);
        }
    }
    headers
}

/// Connections with and without TLS. Only for `is_tls` the machine's certificates are read. `authorities` are trusted beside
/// them.
fn connector(
    is_tls: bool,
    authorities: &[CertificateDer<'static>],
) -> Result<HttpsConnector<HttpConnector>, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    let builder = if is_tls && !authorities.is_empty() {
        let mut roots = RootCertStore::empty();
        let native = rustls_native_certs::load_native_certs().certs;
        roots.add_parsable_certificates(native.into_iter().chain(authorities.iter().cloned()));
        builder.with_root_certificates(roots)
    } else if is_tls {
        builder.with_native_roots().map_err(|error| {
            format!(
                "the machine's root certificates cannot be read: {error}; name a file of them in SSL_CERT_FILE"
            )
        })?
    } else {
        builder.with_root_certificates(RootCertStore::empty())
    };
    let builder = HttpsConnectorBuilder::new().with_tls_config(builder.with_no_client_auth());
    Ok(builder.https_or_http().enable_http1().build())
}

async fn read(response: Response<Incoming>, id: Option<u64>) -> Result<Reply, String> {
    let (head, mut body) = response.into_parts();
    let content_type = head.headers.get(CONTENT_TYPE);
    let is_stream = content_type
        .and_then(|value| value.to_str().ok())
        .is_some_and(|value| value.starts_with("text/event-stream"));
    let mut events = EventReader::default();
    let mut bytes = Vec::new();
    let mut message = None;
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|error| sentence(&error))?.into_data() else {
            continue;
        };
        if bytes.len() + data.len() > BODY_LIMIT {
            return Err(format!("the response is larger than {BODY_LIMIT} bytes"));
        }
        bytes.extend_from_slice(&data);
        if is_stream {
            message = events
                .read(&data)
                .into_iter()
                .find_map(|event| response_to(&event, id));
            if message.is_some() {
                break;
            }
        }
    }
    if !is_stream {
        message = response_to(&bytes, id);
    }
    Ok(Reply {
        refusal: Some(head.status.as_u16()).filter(|status| (400..500).contains(status)),
        status: format!("HTTP {}", head.status.as_u16()),
        session: head.headers.get(SESSION).cloned(),
        message,
        body: String::from_utf8_lossy(&bytes).into_owned(),
    })
}

/// An error with its causes.
fn sentence(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
