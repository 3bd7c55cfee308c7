//! Who sends a request, and what it asks for.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

/// The client of a request, as far as limits distinguish clients. `P` identifies a principal.
#[derive(Clone, Copy, Debug)]
pub struct Caller<'a, P> {
    /// The authenticated principal; `None` for anonymous clients.
    pub principal: Option<P>,
    /// The name of the API key that authenticated the request, if one did.
    pub key: Option<&'a str>,
    /// The client's address; `None` on stdio.
    pub address: Option<IpAddr>,
}

/// What a request asks for. Only these are limited.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Operation<'a> {
    /// A call of a tool.
    ///
    /// `tool` is the name of a tool that the client may use: names that clients invent would each get a place in the
    /// table of a limit per tool.
    CallTool {
        /// The key of the server that has the tool.
        server: &'a str,
        /// The tool's name.
        tool: &'a str,
    },
    /// A resource or prompt that is read.
    Read {
        /// The key of the server that has it.
        server: &'a str,
    },
    /// The client selects another variant than before.
    SwitchVariant,
    /// A credential was refused.
    AuthFailure,
}

/// The addresses that count as one anonymous client: an IPv4 address, or the /64 of an IPv6 address.
///
/// A /64 is one network (RFC 4291, section 2.5.4), and its owner can use any of its 2⁶⁴ addresses.
///
/// # Examples
///
/// ```
/// use mcp_vary_rates::AddressGroup;
///
/// let group = |address: &str| AddressGroup::of(address.parse().unwrap());
/// assert_eq!(group("2001:db8::1"), group("2001:db8::ffff:1"));
/// assert_ne!(group("192.0.2.1"), group("192.0.2.2"));
///
/// // An IPv4 address that a dual-stack socket reports as IPv6 is still that address.
/// assert_eq!(group("::ffff:192.0.2.1"), group("192.0.2.1"));
/// ```
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct AddressGroup(Group);

#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
enum Group {
    V4(Ipv4Addr),
    V6(u64),
}

impl AddressGroup {
    /// The group of `address`.
    pub fn of(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => Self(Group::V4(address)),
            IpAddr::V6(address) => Self(Group::V6(network(address))),
        }
    }
}

/// The same text in each process, and another one for each group.
impl fmt::Display for AddressGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Group::V4(address) => write!(f, "address {address}"),
            Group::V6(network) => write!(f, "network {network:x}"),
        }
    }
}

/// The first 64 bits.
fn network(address: Ipv6Addr) -> u64 {
    u64::try_from(address.to_bits() >> 64).unwrap_or_default()
}

/// What one bucket of a limit counts for.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(crate) enum Bucket<P> {
    Principal(P),
    Address(AddressGroup),
    /// A client without a principal or address: the one on stdio.
    Local,
    /// A key, tool or server by its name.
    Name(Arc<str>),
}

/// The same text in each process, and another one for each bucket of a limit.
impl<P: fmt::Display> fmt::Display for Bucket<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Principal(principal) => write!(f, "principal {principal}"),
            Self::Address(address) => address.fmt(f),
            Self::Local => f.write_str("local"),
            Self::Name(name) => write!(f, "name {name}"),
        }
    }
}

impl<P: Clone> Caller<'_, P> {
    /// The bucket of the client: by its principal if there is one, else by its address.
    pub(crate) fn client(&self) -> Bucket<P> {
        match &self.principal {
            Some(principal) => Bucket::Principal(principal.clone()),
            None => self.host(),
        }
    }

    /// The bucket of the client's address.
    pub(crate) fn host(&self) -> Bucket<P> {
        self.address.map_or(Bucket::Local, |address| {
            Bucket::Address(AddressGroup::of(address))
        })
    }
}

/// The bucket of a name. Longer names share a bucket if they begin alike.
pub(crate) fn named<P>(name: &str) -> Bucket<P> {
    let end = name.floor_char_boundary(MAX_NAME);
    Bucket::Name(name.get(..end).unwrap_or_default().into())
}

const MAX_NAME: usize = 256;
