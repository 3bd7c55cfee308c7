//! The redirect with which an authorization server answers: where it arrives, and whether it is genuine.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::form::parameter;
use crate::secret::Secret;
use crate::token::OAuthError;

/// What the answer to an authorization request must have.
#[derive(Clone, Debug)]
pub(crate) struct ExpectedRedirect {
    pub(crate) state: Secret,
    /// The issuer of the validated metadata, recorded before the request.
    pub(crate) issuer: String,
    /// Whether the metadata promises `iss`.
    pub(crate) has_iss: bool,
}

/// Why a redirect gives no code. It contains nothing secret.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RedirectError {
    /// Its `state` is not the one of the request.
    #[error("the address does not belong to this login: its `state` is another one")]
    State,
    /// Its `iss` is missing or another issuer.
    #[error(
        "the answer does not come from the authorization server that was asked: its `iss` is missing or another issuer"
    )]
    Issuer,
    /// The authorization server refused.
    #[error("the authorization server answered: {0}")]
    Refused(OAuthError),
    /// It has neither a code nor an error.
    #[error("the address has no `code`; paste the whole address that the browser shows at the end")]
    NoCode,
}

impl ExpectedRedirect {
    /// The code in the query of a redirect.
    ///
    /// The issuer is compared before anything else is used: "on mismatch the client MUST NOT act on or display `error`,
    /// `error_description`, or `error_uri`".
    pub(crate) fn code(&self, query: &str) -> Result<Secret, RedirectError> {
        if parameter(query, "state").as_deref() != Some(self.state.expose()) {
            return Err(RedirectError::State);
        }
        let is_present = query
            .split('&')
            .any(|pair| pair.split('=').next() == Some("iss"));
        if (is_present || self.has_iss)
            && parameter(query, "iss").as_deref() != Some(self.issuer.as_str())
        {
            return Err(RedirectError::Issuer);
        }
        if let Some(error) = parameter(query, "error") {
            let description = parameter(query, "error_description");
            let error = OAuthError::new(&error, description.as_deref());
            return Err(RedirectError::Refused(error));
        }
        let code = parameter(query, "code").filter(|code| !code.is_empty());
        code.map(Secret::new).ok_or(RedirectError::NoCode)
    }

    /// The code in an address that a person pasted.
    pub(crate) fn pasted_code(&self, text: &str) -> Result<Secret, RedirectError> {
        let (_, query) = text.trim().split_once('?').ok_or(RedirectError::NoCode)?;
        self.code(query.split('#').next().unwrap_or_default())
    }
}

/// Listens on a loopback address for the redirect (RFC 8252, section 7.3).
#[derive(Debug)]
pub(crate) struct RedirectListener {
    listener: TcpListener,
    port: u16,
}

impl RedirectListener {
    /// Listens on `port`, or on any port if there is none.
    pub(crate) async fn bind(port: Option<u16>) -> std::io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port.unwrap_or(0))).await?;
        let port = listener.local_addr()?.port();
        Ok(Self { listener, port })
    }

    /// The redirect URI.
    pub(crate) fn uri(&self) -> String {
        format!("http://127.0.0.1:{}{PATH}", self.port)
    }

    /// Waits for a request with the expected `state`. Others get an error page: any page can send one.
    pub(crate) async fn code(&self, expected: &ExpectedRedirect) -> Result<Secret, RedirectError> {
        let expected = Arc::new(expected.clone());
        // Browsers open connections that they may never use.
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                accepted = self.listener.accept() => {
                    let Ok((stream, _)) = accepted else { continue };
                    if connections.len() >= MAX_CONNECTIONS {
                        connections.abort_all();
                    }
                    let answering = answer(stream, Arc::clone(&expected));
                    connections.spawn(tokio::time::timeout(TIMEOUT, answering));
                }
                Some(answered) = connections.join_next() => {
                    if let Ok(Ok(Some(code))) = answered {
                        return code;
                    }
                }
            }
        }
    }
}

/// Answers one request; `None` if it is not the redirect.
async fn answer(
    mut stream: TcpStream,
    expected: Arc<ExpectedRedirect>,
) -> Option<Result<Secret, RedirectError>> {
    let mut head = Vec::with_capacity(1024);
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        let limit = MAX_HEAD.saturating_sub(head.len()) as u64;
        let read = (&mut stream).take(limit).read_buf(&mut head).await;
        if !read.is_ok_and(|length| length > 0) {
            return None;
        }
    }
    let target = head
        .strip_prefix(b"GET ")?
        .split(|byte| *byte == b' ')
        .next()?;
    let target = std::str::from_utf8(target).ok()?;
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let outcome = (path == PATH).then(|| expected.code(query));
    let (status, text) = match &outcome {
        Some(Ok(_)) => (
            "200 OK",
            "Vary has received the answer. You can close this page.",
        ),
        None => ("404 Not Found", "Not found."),
        Some(Err(RedirectError::State)) => {
            ("400 Bad Request", "This does not belong to the login.")
        }
        Some(Err(_)) => (
            "400 Bad Request",
            "The login failed. The terminal says why.",
        ),
    };
    let page = format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/plain\r\ncontent-length: {}\r\ncache-control: no-store\r\n\
         referrer-policy: no-referrer\r\nconnection: close\r\n\r\n{text}",
        text.len()
    );
    // A browser that is gone has still delivered the code.
    let _ = stream.write_all(page.as_bytes()).await;
    let _ = stream.shutdown().await;
    outcome.filter(|outcome| *outcome != Err(RedirectError::State))
}

/// The path of the redirect URI.
const PATH: &str = "/callback";
/// The most bytes of a request's head.
const MAX_HEAD: usize = 16 << 10;
/// The time for a request, and the most connections at once.
const TIMEOUT: Duration = Duration::from_secs(30);
const MAX_CONNECTIONS: usize = 32;

#[cfg(test)]
mod tests {
    use mcp_vary_testkit::wait::soon;

    use super::*;

    fn expected(has_iss: bool) -> ExpectedRedirect {
        ExpectedRedirect {
            state: Secret::new("s"),
            issuer: "https://idp.example".to_owned(),
            has_iss,
        }
    }

    #[track_caller]
    fn gives(has_iss: bool, query: &str, code: Result<&str, RedirectError>) {
        let found = expected(has_iss).code(query);
        assert_eq!(found, code.map(Secret::new), "{has_iss} {query}");
    }

    #[test]
    fn an_answer_is_used_if_its_state_and_issuer_are_right() {
        let issuer = "iss=https%3A%2F%2Fidp.example";
        gives(false, "code=c&state=s", Ok("c"));
        gives(false, &format!("code=c&state=s&{issuer}"), Ok("c"));
        gives(true, &format!("code=c&state=s&{issuer}"), Ok("c"));
        for query in ["code=c", "code=c&state=x", "state=s&code=c&state=s", ""] {
            gives(false, query, Err(RedirectError::State));
        }
        gives(true, "code=c&state=s", Err(RedirectError::Issuer));
        for issuer in [
            "iss=https%3A%2F%2Fevil.example",
            "iss=https%3A%2F%2Fidp.example%2F",
            "iss=HTTPS%3A%2F%2Fidp.example",
            "iss=https%3A%2F%2Fidp.example:443",
            "iss=",
            "iss",
            "iss=https%3A%2F%2Fidp.example&iss=x",
        ] {
            for has_iss in [true, false] {
                gives(
                    has_iss,
                    &format!("code=c&state=s&{issuer}"),
                    Err(RedirectError::Issuer),
                );
                let error = format!("error=access_denied&state=s&{issuer}");
                gives(has_iss, &error, Err(RedirectError::Issuer));
            }
        }
        gives(false, "state=s", Err(RedirectError::NoCode));
        gives(false, "state=s&code=", Err(RedirectError::NoCode));
        let refused = OAuthError::new("access_denied", Some("not today"));
        let query = "state=s&error=access_denied&error_description=not+today&code=c";
        gives(false, query, Err(RedirectError::Refused(refused)));
    }

    #[test]
    fn a_pasted_address_is_checked_like_a_redirect() {
        let pasted = |text: &str| expected(false).pasted_code(text);
        assert_eq!(
            pasted(" http://127.0.0.1:1/callback?code=c&state=s#x \n"),
            Ok(Secret::new("c"))
        );
        assert_eq!(
            pasted("http://127.0.0.1:1/callback?code=c"),
            Err(RedirectError::State)
        );
        assert_eq!(pasted("c"), Err(RedirectError::NoCode));
    }

    async fn send(port: u16, bytes: &[u8]) -> String {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))
            .await
            .unwrap();
        stream.write_all(bytes).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap_or_default();
        answer
    }

    #[tokio::test]
    async fn requests_that_are_not_the_redirect_do_not_end_the_login() {
        let listener = RedirectListener::bind(None).await.unwrap();
        let port = listener.port;
        let expected = expected(false);
        let sending = async {
            let silent = TcpStream::connect((Ipv4Addr::LOCALHOST, port))
                .await
                .unwrap();
            for (bytes, status) in [
                ("GET /favicon.ico HTTP/1.1\r\n\r\n", "HTTP/1.1 404"),
                (
                    "GET /callback?code=evil&state=x HTTP/1.1\r\n\r\n",
                    "HTTP/1.1 400",
                ),
                ("POST /callback?code=evil&state=s HTTP/1.1\r\n\r\n", ""),
                ("\u{0}\r\n\r\n", ""),
            ] {
                let answer = send(port, bytes.as_bytes()).await;
                assert!(answer.starts_with(status), "{bytes}: {answer}");
            }
            send(port, "x".repeat(MAX_HEAD + 1).as_bytes()).await;
            let answer = send(port, b"GET /callback?code=c&state=s HTTP/1.1\r\n\r\n").await;
            assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
            drop(silent);
        };
        let (code, ()) = soon(async { tokio::join!(listener.code(&expected), sending) }).await;
        assert_eq!(code, Ok(Secret::new("c")));
    }
}
