//! Shares of the exchanges, so that no client takes those of all others.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use http::Method;
use http::header::AUTHORIZATION;

use super::message::RequestHead;
use super::{Exchanges, MAX_EXCHANGES};

/// Of which share of all exchanges a request takes one.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Share {
    /// Whoever sends it, by a digest of the credential; `None` where nobody is known.
    pub(super) sender: Option<u64>,
    pub(super) is_stream: bool,
}

impl RequestHead {
    pub(crate) fn share(&self) -> Share {
        let sender = self.headers.get(AUTHORIZATION).map(|credential| {
            let mut hasher = DefaultHasher::new();
            credential.hash(&mut hasher);
            hasher.finish()
        });
        let is_stream = self.method == Method::GET;
        Share { sender, is_stream }
    }
}

impl Exchanges {
    pub(super) fn have_room(&self, share: Share) -> bool {
        let shares = || self.open.values().filter_map(|exchange| exchange.share());
        let has_room =
            |most: usize, takes: &dyn Fn(&Share) -> bool| shares().filter(takes).count() < most;
        (share.sender.is_none() || has_room(MAX_OF_ONE, &|other| other.sender == share.sender))
            && (!share.is_stream || has_room(MAX_STREAMS, &|other| other.is_stream))
    }
}

/// The most exchanges for the requests of one credential, and for streams, so that calls always have some.
pub const MAX_OF_ONE: usize = MAX_EXCHANGES / 4;
const MAX_STREAMS: usize = MAX_EXCHANGES / 4 * 3;
