//! Whether a gateway is ready for clients.

/// How many servers must be up for a gateway to be ready.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum Readiness {
    /// At least one.
    #[default]
    Any,
    /// Each of them.
    All,
    /// The gateway is ready without them.
    None,
}

/// What decides whether a gateway is ready.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "the gateway builds it")]
pub struct GatewayState {
    /// Whether clients are answered already.
    pub is_serving: bool,
    /// Whether it ends soon.
    pub is_stopping: bool,
    /// The servers that are up, of all.
    pub servers: (usize, usize),
    /// The issuers of tokens whose keys were never loaded, of all.
    pub missing_keys: (usize, usize),
    /// Whether what other replicas wrote to the store was read, as far as there is a store.
    pub is_store_read: bool,
}

impl Readiness {
    /// Why a gateway in this state is not ready, a line for each reason. It is ready without one.
    #[must_use]
    pub fn reasons(self, state: GatewayState) -> Vec<String> {
        let (up, servers) = state.servers;
        let is_enough = match self {
            Self::Any => up > 0,
            Self::All => up == servers,
            Self::None => true,
        };
        let (missing, issuers) = state.missing_keys;
        let starting = "starting: the servers are being connected to";
        let stopping = "stopping: new clients must connect elsewhere";
        let unread = "store: what other replicas wrote is being read";
        let reasons = [
            (!state.is_serving).then(|| starting.to_owned()),
            state.is_stopping.then(|| stopping.to_owned()),
            (!is_enough).then(|| format!("servers: {up} of {servers} up")),
            (missing > 0).then(|| {
                format!("keys: those of {missing} of {issuers} issuers were never loaded")
            }),
            (!state.is_store_read).then(|| unread.to_owned()),
        ];
        reasons.into_iter().flatten().collect()
    }
}
