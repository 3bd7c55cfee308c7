//! The tokens that gateways make for their operator, each in a file that only its user can read.

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::path::PathBuf;
use std::time::Duration;

use mcp_vary_base::private_files;
use mcp_vary_operator::AdminToken;

use crate::environment::{path_variable, state_directory};

/// A file with the token of a running gateway, until this is dropped.
#[derive(Debug)]
pub(crate) struct TokenFile {
    path: PathBuf,
    token: AdminToken,
}

impl TokenFile {
    /// Writes the token of the gateway that answers its operator at `address`.
    pub(crate) fn write(address: SocketAddr, token: &AdminToken) -> io::Result<Self> {
        // The gateway that wrote it is gone, since this one has its address.
        let path = write_private(&file_name(address, TOKEN), token.expose())?;
        let token = token.clone();
        Ok(Self { path, token })
    }
}

impl Drop for TokenFile {
    fn drop(&mut self) {
        // Nobody is to send the token to what has the address next. A gateway that has it already wrote its own.
        let written = fs::read_to_string(&self.path);
        if written.is_ok_and(|written| written == self.token.expose()) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// What a gateway finds again when it is started again: the token of its operator, and the port at which that connects. So an
/// open page goes on.
#[derive(Clone, Debug)]
pub(crate) struct OperatorRecord {
    pub(crate) token: AdminToken,
    pub(crate) port: u16,
}

impl OperatorRecord {
    /// The record of the last gateway that served clients at this address.
    pub(crate) fn read(clients: SocketAddr) -> Option<Self> {
        let text = read_private(&file_name(clients, RECORD))?;
        let (port, token) = text.split_once(' ')?;
        Some(Self {
            token: token.parse().ok()?,
            port: port.parse().ok()?,
        })
    }

    /// Writes the record for the next gateway that serves clients at this address.
    pub(crate) fn write(&self, clients: SocketAddr) -> io::Result<()> {
        let text = format!("{} {}", self.port, self.token.expose());
        write_private(&file_name(clients, RECORD), &text).map(drop)
    }
}

/// The token that the gateway at `address` wrote.
pub(crate) fn read(address: SocketAddr) -> Option<String> {
    read_private(&file_name(address, TOKEN))
}

/// Removes the token that a gateway at `address` left which was killed, unless another one has the address now.
#[cfg(unix)]
pub(crate) fn remove(address: SocketAddr) {
    if !is_open(&address)
        && let Some(directory) = directory()
    {
        let _ = fs::remove_file(directory.join(file_name(address, TOKEN)));
    }
}

/// Writes a file of this name, and returns its path.
pub(super) fn write_private(name: &str, text: &str) -> io::Result<PathBuf> {
    let path = created_directory()?.join(name);
    private_files::replace(&path)?.write_all(text.as_bytes())?;
    Ok(path)
}

/// The text of the file of this name.
pub(super) fn read_private(name: &str) -> Option<String> {
    let mut text = String::new();
    let path = directory()?.join(name);
    private_files::check_regular(&path).ok()?;
    let file = fs::File::open(path).ok()?;
    file.take(MAX_LENGTH).read_to_string(&mut text).ok()?;
    Some(text)
}

/// The addresses of the running gateways of this user that wrote a token. A file can be left of one that was killed.
pub(crate) fn running() -> Vec<SocketAddr> {
    let files = directory().and_then(|directory| fs::read_dir(directory).ok());
    let names = files
        .into_iter()
        .flatten()
        .filter_map(|file| file.ok()?.file_name().into_string().ok());
    let addresses = names.filter_map(|name| address_of(&name));
    addresses.filter(is_open).collect()
}

fn is_open(address: &SocketAddr) -> bool {
    TcpStream::connect_timeout(address, PROBE).is_ok()
}

/// Where running gateways of this user are found.
pub(crate) fn directory() -> Option<PathBuf> {
    let state = state_directory(&path_variable)?;
    Some(state.join("vary").join("gateways"))
}

/// The [`directory`], which is created if it does not exist.
pub(super) fn created_directory() -> io::Result<PathBuf> {
    let why = "neither `HOME` nor `XDG_STATE_HOME` is set to an absolute path";
    let directory = directory().ok_or_else(|| io::Error::other(why))?;
    private_files::create_directory(&directory)?;
    Ok(directory)
}

/// An address without the characters that a name of a file cannot have everywhere.
pub(super) fn file_name(address: SocketAddr, end: &str) -> String {
    address.to_string().replace([':', '[', ']', '%'], "_") + end
}

/// The address whose token is in the file `name`.
fn address_of(name: &str) -> Option<SocketAddr> {
    let (host, port) = name.strip_suffix(TOKEN)?.rsplit_once('_')?;
    let host = match host
        .strip_prefix('_')
        .and_then(|host| host.strip_suffix('_'))
    {
        Some(host) => host.replace('_', ":").parse::<Ipv6Addr>().ok()?.into(),
        None => host.parse::<Ipv4Addr>().ok()?.into(),
    };
    Some(SocketAddr::new(host, port.parse().ok()?))
}

/// How long a gateway of this machine may take to accept a connection.
const PROBE: Duration = Duration::from_millis(500);
/// The end of the names of files with the token of a running gateway.
const TOKEN: &str = ".token";
/// The end of the names of files that stay for the next gateway.
const RECORD: &str = ".operator";
/// The most bytes of a file: a token with a port before it, or thirty days.
const MAX_LENGTH: u64 = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_address_has_a_file() {
        let name = |address: &str| file_name(address.parse().unwrap(), TOKEN);
        assert_eq!(name("127.0.0.1:8801"), "127.0.0.1_8801.token");
        assert_eq!(name("[::1]:8801"), "___1__8801.token");
        for address in ["127.0.0.1:8801", "[::1]:8801", "[fe80::1:2]:1"] {
            let address = address.parse().unwrap();
            assert_eq!(address_of(&file_name(address, TOKEN)), Some(address));
        }
        assert_eq!(address_of("7.sock"), None);
        assert_eq!(address_of("127.0.0.1_8800.operator"), None);
    }
}
