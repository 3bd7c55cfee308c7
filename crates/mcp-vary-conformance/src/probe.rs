//! What a check works with: the connections of its clients, and what the survey found.

use serde_json::{Value, json};

use crate::client::Client;
use crate::connections::Connections;
use crate::era::Era;
use crate::extension::{NEGOTIATION, VARIANTS};
use crate::list_kind::ListKind;
use crate::objection::{Objection, not_applicable, violation};
use crate::survey::Survey;
use crate::transport::Transport;

/// One check at work on one server in one era.
#[derive(Debug)]
pub(crate) struct Probe<'a> {
    pub(crate) connections: Connections<'a>,
    survey: &'a Survey,
}

impl<'a> Probe<'a> {
    pub(crate) fn new(transport: &'a Transport, era: Era, survey: &'a Survey) -> Self {
        Self {
            connections: Connections::new(transport, era, &survey.limit),
            survey,
        }
    }

    pub(crate) fn era(&self) -> Era {
        self.connections.era()
    }

    pub(crate) fn survey(&self) -> &'a Survey {
        self.survey
    }

    /// A client that declares these extensions and nothing else.
    pub(crate) async fn connect(&self, extensions: Value) -> Result<Client<'_>, Objection> {
        Client::connect(&self.connections, self.survey.declaring(&extensions)).await
    }

    /// A client that declares these extensions and of which `is_right` holds, or the last of several: a server may offer
    /// another session something else.
    pub(crate) async fn connect_until(
        &self,
        extensions: &Value,
        is_right: impl Fn(&Client<'_>) -> bool,
    ) -> Result<Client<'_>, Objection> {
        let mut client = self.connect(extensions.clone()).await?;
        for _ in 1..MAX_SESSIONS {
            if is_right(&client) {
                break;
            }
            client = self.connect(extensions.clone()).await?;
        }
        Ok(client)
    }

    /// A client of the other principal.
    pub(crate) async fn connect_other(&self, extensions: Value) -> Result<Client<'_>, Objection> {
        let Some(connection) = self.connections.open_other() else {
            return not_applicable(
                "no second principal is known; `--other-header` has its credentials",
            );
        };
        let capabilities = self.survey.declaring(&extensions);
        let client = Client::connect_over(&self.connections, connection, capabilities).await?;
        client.or_else(|error| {
            let described = error.describe();
            violation(format!("the other principal was refused with {described}"))
        })
    }

    /// A client that declares server variants, without hints.
    pub(crate) async fn connect_with_variants(&self) -> Result<Client<'_>, Objection> {
        self.connect(json!({ VARIANTS: {} })).await
    }

    /// A client that declares server variants, if the server declares what `kind` needs.
    pub(crate) async fn connect_with_list(&self, kind: &ListKind) -> Result<Client<'_>, Objection> {
        self.connect_with_variants().await?.with_list(kind)
    }

    /// A client that declares content negotiation with these tags.
    pub(crate) async fn connect_with_features(
        &self,
        features: Value,
    ) -> Result<Client<'_>, Objection> {
        self.connect(json!({ NEGOTIATION: {"version": "1.0", "features": features} }))
            .await
    }

    /// A client that declares server variants with these hints.
    pub(crate) async fn connect_with_hints(&self, hints: Value) -> Result<Client<'_>, Objection> {
        self.connect(json!({ VARIANTS: {"variantHints": {"hints": hints}} }))
            .await
    }
}

/// Of two orders that a server draws for each session, so many have both in all but one of 128 runs.
const MAX_SESSIONS: usize = 8;
