//! What an access class sees of the lists: access rules are a part of every variant's view.

use std::collections::BTreeSet;
use std::sync::Arc;

use mcp_vary_access::{
    AccessClass, AccessPolicy, Decision, HiddenBy, Item as AccessItem, Server, ServerAccess,
};
use mcp_vary_results::skill_uris::is_skill_uri;

use crate::item::Item;
use crate::listing::ListKind;

/// What one access class sees. All principals of the class share one, and so the lists that are built with it.
#[derive(Clone, Debug)]
pub struct AccessView {
    /// The policy.
    pub policy: Arc<AccessPolicy>,
    /// The access class.
    pub class: Arc<AccessClass>,
    /// The servers whose annotations can allow something.
    pub trusted: Arc<BTreeSet<String>>,
}

impl AccessView {
    /// The item of `server` as access rules see it.
    pub fn item<'a>(&self, kind: ListKind, item: &'a Item, server: &'a str) -> AccessItem<'a> {
        access_item(kind, item, server, self.trusted.contains(server))
    }

    /// Whether the item exists for the class.
    pub fn shows(&self, kind: ListKind, item: &Item, server: &str) -> bool {
        let uri = &*item.item_ref.upstream_name;
        let is_hidden_file = kind == ListKind::Resources && self.denies_file(uri, server);
        !is_hidden_file && self.decide(&self.item(kind, item, server)).is_visible()
    }

    /// Whether a rule denies the skill of a resource, if its scheme says that it is a file of one.
    fn denies_file(&self, upstream_uri: &str, server: &str) -> bool {
        is_skill_uri(upstream_uri) && self.denies(&AccessItem::skill(upstream_uri, server))
    }

    fn denies(&self, item: &AccessItem<'_>) -> bool {
        matches!(self.decide(item), Decision::Hidden(HiddenBy::Rule(_)))
    }

    /// Whether a resource that no server lists exists for the class, by its URI on the server.
    pub fn shows_unlisted(&self, upstream_uri: &str, server: &str) -> bool {
        let item = AccessItem::unlisted_resource(upstream_uri, server);
        self.decide(&item).is_visible() && !self.denies_file(upstream_uri, server)
    }

    /// Whether a skill, or a file or directory of one, exists for the class, by its URI on the server. A rule that denies
    /// the resource hides it, too.
    pub fn shows_skill(&self, upstream_uri: &str, server: &str) -> bool {
        let resource = AccessItem::unlisted_resource(upstream_uri, server);
        let skill = AccessItem::skill(upstream_uri, server);
        !self.denies(&resource) && self.decide(&skill).is_visible()
    }

    /// What the class may be allowed of a server, whatever it lists. `prefix` is that of the names of its tools and
    /// prompts.
    pub fn server_access(&self, name: &str, prefix: &str) -> ServerAccess {
        let trusts_annotations = self.trusted.contains(name);
        let server = Server {
            name,
            prefix,
            trusts_annotations,
        };
        self.policy.server_access(&self.class, server)
    }

    /// What the class may do with an item.
    pub fn decide(&self, item: &AccessItem<'_>) -> Decision {
        self.policy.decide(&self.class, item)
    }
}

/// The item of `server` as access rules see it: by its name in `standard`, before overrides.
pub fn access_item<'a>(
    kind: ListKind,
    item: &'a Item,
    server: &'a str,
    trusts_annotations: bool,
) -> AccessItem<'a> {
    let id = &*item.id;
    let upstream = &*item.item_ref.upstream_name;
    match kind {
        ListKind::Tools => {
            let hints = item.tool.as_ref().map(|tool| tool.hints);
            let known = hints.unwrap_or_default();
            AccessItem::tool(id, upstream, server, known, trusts_annotations)
        }
        ListKind::Prompts => AccessItem::prompt(id, upstream, server),
        ListKind::Resources => AccessItem::resource(id, upstream, server),
        ListKind::Templates => AccessItem::template(id, upstream, server),
    }
}
