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
pub(crate) struct TokenFile(PathBuf);

impl TokenFile {
    /// Writes the token of the gateway that answers its operator at `address`.
    pub(crate) fn write(address: SocketAddr, token: &AdminToken) -> io::Result<Self> {
        let tokens = directory().ok_or_else(|| {
            io::Error::other(
                "there is no state directory; set HOME, or XDG_STATE_HOME to an absolute path",
            )
        })?;
        private_files::create_directory(&tokens)?;
        let path = tokens.join(file_name(address));
        // The gateway that wrote it is gone, since this one has its address.
        let mut file = private_files::replace(&path)?;
        file.write_all(token.expose().as_bytes())?;
        Ok(Self(path))
    }
}

impl Drop for TokenFile {
    fn drop(&mut self) {
        // The token is worth nothing without its gateway.
        let _ = fs::remove_file(&self.0);
    }
}

/// The token that the gateway at `address` wrote.
pub(crate) fn read(address: SocketAddr) -> Option<String> {
    let mut token = String::new();
    let path = directory()?.join(file_name(address));
    private_files::check_regular(&path).ok()?;
    let file = fs::File::open(path).ok()?;
    file.take(MAX_TOKEN).read_to_string(&mut token).ok()?;
    Some(token)
}

/// The addresses of the running gateways of this user that wrote a token. A file can be left of one that was killed.
pub(crate) fn running() -> Vec<SocketAddr> {
    let files = directory().and_then(|directory| fs::read_dir(directory).ok());
    let names = files
        .into_iter()
        .flatten()
        .filter_map(|file| file.ok()?.file_name().into_string().ok());
    let addresses = names.filter_map(|name| address_of(&name));
    let is_open = |address: &SocketAddr| TcpStream::connect_timeout(address, PROBE).is_ok();
    addresses.filter(is_open).collect()
}

/// Where running gateways of this user are found.
pub(crate) fn directory() -> Option<PathBuf> {
    Some(
        state_directory(&path_variable)?
            .join("vary")
            .join("gateways"),
    )
}

/// An address without the characters that a name of a file cannot have everywhere.
fn file_name(address: SocketAddr) -> String {
    address.to_string().replace([':', '[', ']', '%'], "_") + ".token"
}

/// The address whose token is in the file `name`.
fn address_of(name: &str) -> Option<SocketAddr> {
    let (host, port) = name.strip_suffix(".token")?.rsplit_once('_')?;
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
/// The most bytes of a token.
const MAX_TOKEN: u64 = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_address_has_a_file() {
        let name = |address: &str| file_name(address.parse().unwrap());
        assert_eq!(name("127.0.0.1:8801"), "127.0.0.1_8801.token");
        assert_eq!(name("[::1]:8801"), "___1__8801.token");
        for address in ["127.0.0.1:8801", "[::1]:8801", "[fe80::1:2]:1"] {
            let address = address.parse().unwrap();
            assert_eq!(address_of(&file_name(address)), Some(address));
        }
        assert_eq!(address_of("7.sock"), None);
    }
}
