//! What was sent and received during a check, bounded.

use std::sync::{Mutex, PoisonError};

use crate::json;

/// The most exchanges that are recorded of one check. The last ones matter: a check ends where it finds a violation.
const EXCHANGES: usize = 8;

/// The most characters that are recorded of one message.
const MESSAGE: usize = 4_000;

/// A message to the server, and what it answered. Headers are not recorded: they may have credentials.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Exchange {
    /// The JSON text that was sent, cut at 4,000 characters.
    pub sent: String,
    /// The HTTP status and the body that was received, or why there is none; cut at 4,000 characters.
    pub received: String,
}

impl Exchange {
    pub(crate) fn new(sent: &str, received: &str) -> Self {
        Self {
            sent: json::cut(sent, MESSAGE),
            received: json::cut(received, MESSAGE),
        }
    }
}

/// A recorder of exchanges; of too many the last ones are there.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    exchanges: Mutex<Vec<Exchange>>,
}

impl Traffic {
    pub(crate) fn record(&self, sent: &str, received: &str) {
        let mut exchanges = self
            .exchanges
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if exchanges.len() == EXCHANGES {
            exchanges.remove(0);
        }
        exchanges.push(Exchange::new(sent, received));
    }

    pub(crate) fn into_exchanges(self) -> Vec<Exchange> {
        self.exchanges
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_exchanges_are_recorded_and_each_is_cut() {
        let traffic = Traffic::default();
        for number in 0..20 {
            traffic.record(&number.to_string(), &"ä".repeat(10_000));
        }
        let exchanges = traffic.into_exchanges();
        assert_eq!(exchanges.len(), EXCHANGES);
        assert_eq!(exchanges.last().unwrap().sent, "19");
        let found = exchanges.last().unwrap().received.chars().count();
        assert_eq!(found, MESSAGE + 1);
    }
}
