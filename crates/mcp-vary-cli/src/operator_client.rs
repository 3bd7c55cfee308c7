//! Requests to the operator's listener of a running gateway.

use std::fmt;

use http::header::AUTHORIZATION;
use http::{Method, Request, StatusCode, Uri};
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::body::Bytes;
use hyper_util::rt::TokioIo;
use mcp_vary_base::io_error;
use tokio::net::TcpStream;

use crate::failure::Failure;

/// Where a running gateway answers its operator: `HOST:PORT`.
#[derive(Clone, Debug)]
pub(crate) struct GatewayAddress(String);

impl GatewayAddress {
    /// The `--admin` address that was typed: `HOST:PORT`, a port, or the URL.
    pub(crate) fn parse(typed: &str) -> Result<Self, Failure> {
        if typed.parse::<u16>().is_ok() {
            return Ok(Self(format!("127.0.0.1:{typed}")));
        }
        let uri = typed.parse::<Uri>().ok();
        let authority = uri.as_ref().and_then(Uri::authority);
        match authority {
            Some(authority) if authority.port_u16().is_some() => Ok(Self(authority.to_string())),
            _ => Err(Failure::command(format!(
                "`{typed}` is not an address; write HOST:PORT, such as 127.0.0.1:8801, or a port"
            ))),
        }
    }

    /// `HOST:PORT`.
    pub(crate) fn authority(&self) -> &str {
        &self.0
    }

    /// Sends a request without a body, and returns the answer.
    pub(crate) async fn request(
        &self,
        method: Method,
        path: &str,
        token: Option<&str>,
    ) -> Result<(StatusCode, Bytes), String> {
        let authority = self.authority();
        let socket = TcpStream::connect(authority).await.map_err(|error| {
            let why = io_error::describe(&error);
            format!(
                "{why}; start Vary with `--admin {authority}`, or name the address that its line `status: vary status ...` has"
            )
        })?;
        let no_http = |error: hyper::Error| format!("it does not speak HTTP: {error}");
        let handshake = hyper::client::conn::http1::handshake(TokioIo::new(socket)).await;
        let (mut client, connection) = handshake.map_err(no_http)?;
        // The task ends when the client is dropped. The body arrives through it, too.
        tokio::spawn(connection);
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", authority);
        if let Some(token) = token {
            request = request.header(AUTHORIZATION, format!("Bearer {token}"));
        }
        let request = request.body(Empty::<Bytes>::new());
        let request = request.map_err(|error| format!("the token cannot be sent: {error}"))?;
        let response = client.send_request(request).await.map_err(no_http)?;
        let status = response.status();
        let body = Limited::new(response.into_body(), MAX_BYTES)
            .collect()
            .await;
        let body = body.map_err(|error| format!("its answer cannot be read: {error}"))?;
        Ok((status, body.to_bytes()))
    }
}

impl fmt::Display for GatewayAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Why an answer is not that of an operator's listener to `vary COMMAND`.
pub(crate) fn not_the_operators(status: StatusCode, command: &str) -> String {
    format!(
        "it answers {status}, so it is not the address of a status; clients connect to another one: start Vary with `--admin \
         8801` or `admin: 8801` in the configuration, and write `vary {command} 8801`"
    )
}

/// The maximum size of an answer in bytes.
const MAX_BYTES: usize = 4 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_what_a_person_writes() {
        for (typed, expected) in [
            ("8801", Some("127.0.0.1:8801")),
            ("localhost:1", Some("localhost:1")),
            ("http://127.0.0.1:8801/status", Some("127.0.0.1:8801")),
            ("[::1]:80", Some("[::1]:80")),
            ("localhost", None),
            ("", None),
            ("99999", None),
        ] {
            let address = GatewayAddress::parse(typed).ok().map(|it| it.to_string());
            assert_eq!(address.as_deref(), expected, "{typed}");
        }
    }
}
