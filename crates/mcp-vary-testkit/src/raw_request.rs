//! HTTP as servers without a library read and write it.

use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;

/// A request as it arrived.
#[derive(Clone, Debug)]
pub struct RawRequest {
    /// The request line and the headers.
    pub head: String,
    /// The body.
    pub body: String,
}

impl RawRequest {
    /// The next request of a connection; none if that ends before.
    pub async fn read(socket: &mut TcpStream) -> Option<Self> {
        let mut bytes = Vec::new();
        loop {
            if let Some(end) = bytes.windows(4).position(|end| end == b"\r\n\r\n") {
                let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
                let lower = head.to_lowercase();
                let length = lower.split("content-length: ").nth(1);
                let length = length.map_or(0, |text| text.lines().next().unwrap().parse().unwrap());
                if bytes.len() >= end + 4 + length {
                    let body = String::from_utf8_lossy(&bytes[end + 4..]).into_owned();
                    return Some(Self { head, body });
                }
            }
            if socket.read_buf(&mut bytes).await.ok()? == 0 {
                return None;
            }
        }
    }

    /// Its target.
    pub fn target(&self) -> &str {
        self.head.split(' ').nth(1).unwrap_or_default()
    }
}

/// The last response of a connection: a status, after which further headers may follow, and a JSON body.
pub fn last_response(status: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )
}
