//! Watches the resources that a client is subscribed to in a variant, and detects when they are
//! removed.
//!
//! "If a subscribed resource is no longer available in the bound variant", the subscriber receives
//! one list change and then nothing more about it. The handler reports the change; updates of the
//! resource are held back until the list has been read again.

use std::collections::BTreeMap;

use mcp_vary_base::lock::Lock;
use rmcp::RoleServer;
use rmcp::model::{ListResourceTemplatesResult, ListResourcesResult};
use rmcp::service::{Peer, RequestContext};

use super::pages::visible_items;
use super::rules::{Context, McpResult};
use super::variant_handler::VariantHandler;

/// The subscribed resources of one client in one variant.
pub(super) struct ResourceWatch {
    handler: VariantHandler,
    state: Lock<WatchState>,
}

#[derive(Default)]
struct WatchState {
    /// The context of the latest subscription, with which the lists are read.
    context: Option<Context>,
    resources: BTreeMap<String, ResourceStatus>,
    /// How often the list has changed.
    changes: u64,
}

/// The status of a resource that was listed at the time of its subscription. Only the handler knows
/// resources that were never listed, so they are not watched.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum ResourceStatus {
    Listed,
    /// The list has changed and is being read again. An update meanwhile is sent afterwards.
    Rechecking {
        updated: bool,
    },
    Removed,
}

/// A list change that requires reading the list again.
#[derive(Clone, Copy, Debug)]
pub(super) struct ListChange(u64);

impl ResourceWatch {
    pub(super) fn new(handler: VariantHandler) -> Self {
        Self {
            handler,
            state: Lock::default(),
        }
    }

    /// Whether the view shows the resource.
    pub(super) fn is_visible(&self, uri: &str) -> bool {
        let view = self.handler.view.as_ref();
        view.is_none_or(|view| view.is_uri_visible(uri))
    }

    /// Watches those of `uris` that are listed now. Nothing is sent to `client`.
    pub(super) async fn add(&self, uris: &[String], client: &Peer<RoleServer>, context: &Context) {
        // The same request, without its cancellation token.
        let mut listing_context = RequestContext::new(context.id.clone(), client.clone());
        listing_context.meta = context.meta.clone();
        listing_context.extensions = context.extensions.clone();
        let listed = self.list_resources(&listing_context).await.ok();
        let mut watched = self.state.lock();
        for uri in uris {
            if listed.as_ref().is_some_and(|listed| listed.contains(uri)) {
                watched
                    .resources
                    .insert(uri.clone(), ResourceStatus::Listed)
            } else {
                watched.resources.remove(uri)
            };
        }
        watched.context = Some(listing_context);
    }

    pub(super) fn remove(&self, uri: &str) {
        self.state.lock().resources.remove(uri);
    }

    pub(super) fn is_removed(&self, uri: &str) -> bool {
        self.state.lock().resources.get(uri) == Some(&ResourceStatus::Removed)
    }

    /// Whether an update of `uri` may be sent now. During a recheck it is stored and sent
    /// afterwards.
    pub(super) fn allow_update(&self, uri: &str) -> bool {
        match self.state.lock().resources.get_mut(uri) {
            None | Some(ResourceStatus::Listed) => true,
            Some(ResourceStatus::Removed) => false,
            Some(ResourceStatus::Rechecking { updated }) => {
                *updated = true;
                false
            }
        }
    }

    /// Records that the list has changed; `None` if no watched resource is affected.
    pub(super) fn begin_recheck(&self) -> Option<ListChange> {
        let mut watched = self.state.lock();
        let mut concerns = false;
        for seen in watched.resources.values_mut() {
            if *seen == ResourceStatus::Listed {
                *seen = ResourceStatus::Rechecking { updated: false };
            }
            concerns |= matches!(seen, ResourceStatus::Rechecking { .. });
        }
        watched.changes += 1;
        concerns.then_some(ListChange(watched.changes))
    }

    /// Reads the list after `change`. Returns the resources that still exist and were updated
    /// during the recheck.
    pub(super) async fn finish_recheck(&self, change: ListChange) -> Vec<String> {
        let context = self.state.lock().context.clone();
        let listed = match context {
            Some(context) => self.list_resources(&context).await.ok(),
            None => None,
        };
        let mut watched = self.state.lock();
        // The list has changed again; the later recheck decides.
        if watched.changes != change.0 {
            return Vec::new();
        }
        let mut updates = Vec::new();
        for (uri, seen) in &mut watched.resources {
            let ResourceStatus::Rechecking { updated } = *seen else {
                continue;
            };
            // If the list cannot be read, assume that the resource still exists.
            let is_there = listed.as_ref().is_none_or(|listed| listed.contains(uri));
            *seen = if is_there {
                ResourceStatus::Listed
            } else {
                ResourceStatus::Removed
            };
            if is_there && updated {
                updates.push(uri.clone());
            }
        }
        updates
    }

    async fn list_resources(&self, context: &Context) -> McpResult<ListedResources> {
        let resources = visible_items::<ListResourcesResult>(&self.handler, context).await?;
        // Many servers have no templates, and some of them return an error for the list.
        let listed = visible_items::<ListResourceTemplatesResult>(&self.handler, context).await;
        let templates = listed.unwrap_or_default();
        Ok(ListedResources {
            uris: resources.into_iter().map(|one| one.uri).collect(),
            templates: templates.into_iter().map(|one| one.uri_template).collect(),
        })
    }
}

mcp_vary_base::debug_by_name!(ResourceWatch);

/// The URIs and templates that are listed.
struct ListedResources {
    uris: Vec<String>,
    templates: Vec<String>,
}

impl ListedResources {
    fn contains(&self, uri: &str) -> bool {
        self.uris.iter().any(|known| known == uri)
            || self
                .templates
                .iter()
                .any(|template| template_may_match(template, uri))
    }
}

/// Whether `template` can expand to `uri`; each expression in braces matches any text, even none.
///
/// This matches more than RFC 6570 would expand to: in doubt, the client receives the update.
fn template_may_match(template: &str, uri: &str) -> bool {
    let mut parts = template.split('{').enumerate().map(|(at, part)| match at {
        0 => part,
        _ => part.split_once('}').map_or(part, |(_, literal)| literal),
    });
    let first = parts.next().unwrap_or_default();
    let Some(mut remaining) = uri.strip_prefix(first) else {
        return false;
    };
    let mut literals = parts.peekable();
    if literals.peek().is_none() {
        return remaining.is_empty();
    }
    while let Some(literal) = literals.next() {
        if literals.peek().is_none() {
            return remaining.ends_with(literal);
        }
        match remaining.split_once(literal) {
            Some((_, after)) => remaining = after,
            None => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn matches(template: &str, uris: &[&str], others: &[&str]) {
        for uri in uris {
            assert!(template_may_match(template, uri), "{uri}");
        }
        for uri in others {
            assert!(!template_may_match(template, uri), "{uri}");
        }
    }

    /// SV-14: a listed template matches every URI that it can expand to.
    #[test]
    fn a_template_stands_for_its_uris() {
        matches("a:b", &["a:b"], &["a:", "a:bc", "", "b"]);
        matches("a:{b}", &["a:", "a:x", "a:x/y"], &["b:x", ""]);
        matches("a:{b}/c", &["a:x/c", "a:/c"], &["a:x/d", "a:c"]);
        let template = "a:{b}/{c}/d{?e}";
        matches(template, &["a:x/y/d", "a:x/y/d?e=1"], &["a:x/d", "a:x/y"]);
        matches("{+a}", &["", "x:y"], &[]);
        // Invalid templates must not panic.
        matches("a:{b", &["a:b", "a:xb"], &["b"]);
    }
}
