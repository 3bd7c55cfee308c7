//! Lines as syslog messages.

use std::fmt;
use std::io::{self, Write as _};
use std::net::{SocketAddr, TcpStream, UdpSocket};
#[cfg(unix)]
use std::os::unix::net::UnixDatagram;
#[cfg(unix)]
use std::path::PathBuf;
use std::time::Duration;

use crate::line::{Line, MAX_LINE};

use super::{Sink, Written};

/// The longest message, in bytes: what daemons take by default.
pub const MAX_SYSLOG_MESSAGE: usize = MAX_LINE + MAX_HEADER;

/// The longest header: priority, version, time, names, process id and message id take fewer than 400 bytes.
const MAX_HEADER: usize = 512;

/// How long the daemon may take to accept a connection or a message.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Sends each line as a syslog message (RFC 5424), to the machine's daemon or to another one.
///
/// # Properties
///
/// The message is the line; the header has its time and severity. Arguments that would make the message longer than
/// [`MAX_SYSLOG_MESSAGE`] are cut. The connection is opened when it is needed, and again after a failure.
#[derive(Debug)]
pub struct SyslogSink {
    address: SyslogAddress,
    header: SyslogHeader,
    connection: Option<Connection>,
}

/// Where the daemon listens.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum SyslogAddress {
    /// A datagram socket of this machine, `/dev/log` as a rule.
    #[cfg(unix)]
    Socket(PathBuf),
    /// UDP (RFC 5426): messages can be lost without notice.
    Udp(SocketAddr),
    /// TCP with the length before each message (RFC 6587, section 3.4.1). Not encrypted.
    Tcp(SocketAddr),
}

/// Security and authorization messages (RFC 5424, section 6.2.1), which systems store where only administrators read.
const FACILITY: u8 = 10;

/// What every message says of its sender.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SyslogHeader {
    /// `HOSTNAME APP-NAME PROCID`.
    sender: String,
}

/// The hostname or the program's name is empty, too long, or has other characters than visible ASCII.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("the {what} must have 1 to {max} visible ASCII characters without spaces")]
pub struct SyslogHeaderError {
    what: &'static str,
    max: usize,
}

impl SyslogHeader {
    /// The header of messages from the program `app_name` with this process id.
    ///
    /// # Errors
    ///
    /// If a name is empty, too long, or not visible ASCII (RFC 5424, section 6).
    ///
    /// # Examples
    ///
    /// ```
    /// use mcp_vary_audit::SyslogHeader;
    ///
    /// assert!(SyslogHeader::new(Some("host.example.com"), "vary", 4711).is_ok());
    /// assert!(SyslogHeader::new(Some("my host"), "vary", 4711).is_err());
    /// ```
    pub fn new(
        hostname: Option<&str>,
        app_name: &str,
        process_id: u32,
    ) -> Result<Self, SyslogHeaderError> {
        let hostname = match hostname {
            Some(hostname) => visible(hostname, "hostname", 255)?,
            None => "-",
        };
        let app_name = visible(app_name, "program's name", 48)?;
        Ok(Self {
            sender: format!("{hostname} {app_name} {process_id}"),
        })
    }
}

fn visible<'a>(
    text: &'a str,
    what: &'static str,
    max: usize,
) -> Result<&'a str, SyslogHeaderError> {
    let is_valid =
        (1..=max).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
    if is_valid {
        Ok(text)
    } else {
        Err(SyslogHeaderError { what, max })
    }
}

impl SyslogSink {
    /// Sends to the daemon at `address`. Nothing is sent yet.
    pub const fn new(address: SyslogAddress, header: SyslogHeader) -> Self {
        Self {
            address,
            header,
            connection: None,
        }
    }

    /// Sends a message; again on a new connection if the daemon closed the one that was open.
    fn send(&mut self, line: &Line) -> io::Result<()> {
        let message = self.message(line);
        if let Some(mut open) = self.connection.take()
            && open.send(&message).is_ok()
        {
            self.connection = Some(open);
            return Ok(());
        }
        // A connection that failed is not used again: a TCP stream may end inside a message.
        let mut connection = Connection::open(&self.address)?;
        connection.send(&message)?;
        self.connection = Some(connection);
        Ok(())
    }

    /// `<PRI>1 TIME HOSTNAME APP-NAME PROCID MSGID - MSG`, without the byte order mark that nobody needs for JSON.
    fn message(&self, line: &Line) -> Vec<u8> {
        let priority = FACILITY * 8 + line.severity.code();
        let time = &line.time;
        let sender = &self.header.sender;
        let mut message = format!("<{priority}>1 {time} {sender} audit - ").into_bytes();
        message.extend_from_slice(&line.text);
        message
    }
}

impl Sink for SyslogSink {
    fn name(&self) -> String {
        format!("syslog at {}", self.address)
    }

    fn max_line(&self) -> usize {
        MAX_LINE
    }

    fn write(&mut self, lines: &[Line]) -> Written {
        for (sent, line) in lines.iter().enumerate() {
            if let Err(error) = self.send(line) {
                return Written::failed(sent, error);
            }
        }
        Written::all(lines)
    }

    fn reopen(&mut self) -> io::Result<()> {
        self.connection = None;
        Ok(())
    }
}

impl fmt::Display for SyslogAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            #[cfg(unix)]
            Self::Socket(path) => write!(f, "{}", path.display()),
            Self::Udp(address) => write!(f, "udp {address}"),
            Self::Tcp(address) => write!(f, "tcp {address}"),
        }
    }
}

#[derive(Debug)]
enum Connection {
    #[cfg(unix)]
    Socket(UnixDatagram),
    Udp(UdpSocket),
    Tcp(TcpStream),
}

impl Connection {
    fn open(address: &SyslogAddress) -> io::Result<Self> {
        match address {
            #[cfg(unix)]
            SyslogAddress::Socket(path) => {
                let socket = UnixDatagram::unbound()?;
                socket.connect(path)?;
                socket.set_write_timeout(Some(TIMEOUT))?;
                Ok(Self::Socket(socket))
            }
            SyslogAddress::Udp(address) => {
                let any: SocketAddr = match address {
                    SocketAddr::V4(_) => ([0; 4], 0).into(),
                    SocketAddr::V6(_) => ([0_u16; 8], 0).into(),
                };
                let socket = UdpSocket::bind(any)?;
                socket.connect(address)?;
                socket.set_write_timeout(Some(TIMEOUT))?;
                Ok(Self::Udp(socket))
            }
            SyslogAddress::Tcp(address) => {
                let stream = TcpStream::connect_timeout(address, TIMEOUT)?;
                stream.set_write_timeout(Some(TIMEOUT))?;
                Ok(Self::Tcp(stream))
            }
        }
    }

    fn send(&mut self, message: &[u8]) -> io::Result<()> {
        match self {
            #[cfg(unix)]
            Self::Socket(socket) => socket.send(message).map(drop),
            Self::Udp(socket) => socket.send(message).map(drop),
            Self::Tcp(stream) => {
                let mut framed = format!("{} ", message.len()).into_bytes();
                framed.extend_from_slice(message);
                stream.write_all(&framed)
            }
        }
    }
}
