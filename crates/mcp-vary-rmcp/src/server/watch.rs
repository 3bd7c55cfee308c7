//! The resources that a client is subscribed to in a variant, and whether they are still there.
//!
//! "If a subscribed resource is no longer available in the bound variant", its subscriber hears of a
//! changed list once, and then nothing more. The change is the handler's to tell; whatever it says
//! of the resource afterwards waits until the list has been read again.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::model::{ListResourceTemplatesResult, ListResourcesResult};
use rmcp::service::{Peer, RequestContext};
use rmcp::{ErrorData, RoleServer};

use super::face::Face;
use super::list::shown;
use super::offers::Permits;

/// What one client is subscribed to in one variant.
pub(super) struct Watch {
    face: Face,
    permits: Option<Permits>,
    watched: Mutex<Watched>,
}

#[derive(Default)]
struct Watched {
    /// By which the lists are read: that of the latest subscription.
    context: Option<RequestContext<RoleServer>>,
    uris: BTreeMap<String, Seen>,
    /// How often the list has changed.
    changes: u64,
}

/// A resource that was listed when it was subscribed to. What never was listed is the handler's
/// alone to know, and is not here.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Seen {
    Listed,
    /// The list has changed since, and is being read. Whether there is something to say afterwards.
    Doubtful {
        updated: bool,
    },
    Gone,
}

/// A change of the list, for which it has to be read again.
#[derive(Clone, Copy, Debug)]
pub(super) struct Change(u64);

impl Watch {
    pub(super) fn new(face: Face, permits: Option<Permits>) -> Self {
        Self {
            face,
            permits,
            watched: Mutex::default(),
        }
    }

    /// Whether the variant shows the resource at all.
    pub(super) fn shows(&self, uri: &str) -> bool {
        let view = self.face.view.as_ref();
        view.is_none_or(|view| view.shows_resource(uri))
    }

    /// Watches those of `uris` that are listed now. `client` is asked nothing.
    pub(super) async fn add(
        &self,
        uris: &[String],
        client: &Peer<RoleServer>,
        context: &RequestContext<RoleServer>,
    ) {
        // Of the request, but for its end.
        let mut own = RequestContext::new(context.id.clone(), client.clone());
        own.meta = context.meta.clone();
        own.extensions = context.extensions.clone();
        let there = self.there(&own).await.ok();
        let mut watched = self.lock();
        for uri in uris {
            match there.as_ref().is_some_and(|there| there.has(uri)) {
                true => watched.uris.insert(uri.clone(), Seen::Listed),
                false => watched.uris.remove(uri),
            };
        }
        watched.context = Some(own);
    }

    pub(super) fn remove(&self, uri: &str) {
        self.lock().uris.remove(uri);
    }

    pub(super) fn is_gone(&self, uri: &str) -> bool {
        self.lock().uris.get(uri) == Some(&Seen::Gone)
    }

    /// Whether an update of `uri` is to be told now; otherwise later, or never.
    pub(super) fn lets_pass(&self, uri: &str) -> bool {
        match self.lock().uris.get_mut(uri) {
            None | Some(Seen::Listed) => true,
            Some(Seen::Gone) => false,
            Some(Seen::Doubtful { updated }) => {
                *updated = true;
                false
            }
        }
    }

    /// Notes that the list has changed; none when that concerns nobody here.
    pub(super) fn change(&self) -> Option<Change> {
        let mut watched = self.lock();
        let mut concerns = false;
        for seen in watched.uris.values_mut() {
            if *seen == Seen::Listed {
                *seen = Seen::Doubtful { updated: false };
            }
            concerns |= matches!(seen, Seen::Doubtful { .. });
        }
        watched.changes += 1;
        concerns.then_some(Change(watched.changes))
    }

    /// Reads the list after `change`. Returns the resources that are still there and were updated
    /// meanwhile.
    pub(super) async fn check(&self, change: Change) -> Vec<String> {
        let context = self.lock().context.clone();
        let there = match context {
            Some(context) => self.there(&context).await.ok(),
            None => None,
        };
        let mut watched = self.lock();
        // It has changed again, and is read again.
        if watched.changes != change.0 {
            return Vec::new();
        }
        let mut updates = Vec::new();
        for (uri, seen) in &mut watched.uris {
            let Seen::Doubtful { updated } = *seen else {
                continue;
            };
            // What cannot be listed is not therefore gone.
            let is_there = there.as_ref().is_none_or(|there| there.has(uri));
            *seen = if is_there { Seen::Listed } else { Seen::Gone };
            if is_there && updated {
                updates.push(uri.clone());
            }
        }
        updates
    }

    async fn there(&self, context: &RequestContext<RoleServer>) -> Result<There, ErrorData> {
        let permits = self.permits.as_ref();
        let resources = shown::<ListResourcesResult>(&self.face, permits, context).await?;
        // Many servers have no templates, and some of these say so with an error.
        let templates = shown::<ListResourceTemplatesResult>(&self.face, permits, context).await;
        let templates = templates.unwrap_or_default();
        Ok(There {
            uris: resources.into_iter().map(|one| one.uri).collect(),
            templates: templates.into_iter().map(|one| one.uri_template).collect(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Watched> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Watch").field(&self.lock().uris).finish()
    }
}

/// Shared by a session, which adds and removes, and the peer that tells.
pub(super) type Watching = Arc<Watch>;

/// What is listed.
struct There {
    uris: Vec<String>,
    templates: Vec<String>,
}

impl There {
    fn has(&self, uri: &str) -> bool {
        self.uris.iter().any(|known| known == uri)
            || self
                .templates
                .iter()
                .any(|template| may_match(template, uri))
    }
}

/// Whether `template` may stand for `uri`: each expression in braces for any text, even none.
///
/// More than RFC 6570 would expand to: of what is in doubt, the subscriber hears rather than not.
fn may_match(template: &str, uri: &str) -> bool {
    let mut literals = template.split('{').enumerate().map(|(at, part)| match at {
        0 => part,
        _ => part.split_once('}').map_or(part, |(_, literal)| literal),
    });
    let first = literals.next().unwrap_or_default();
    let Some(mut rest) = uri.strip_prefix(first) else {
        return false;
    };
    let mut literals = literals.peekable();
    if literals.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(literal) = literals.next() {
        if literals.peek().is_none() {
            return rest.ends_with(literal);
        }
        match rest.split_once(literal) {
            Some((_, after)) => rest = after,
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
            assert!(may_match(template, uri), "{uri}");
        }
        for uri in others {
            assert!(!may_match(template, uri), "{uri}");
        }
    }

    /// SV-14: a listed template stands for every URI that it could be expanded to.
    #[test]
    fn a_template_stands_for_its_uris() {
        matches("a:b", &["a:b"], &["a:", "a:bc", "", "b"]);
        matches("a:{b}", &["a:", "a:x", "a:x/y"], &["b:x", ""]);
        matches("a:{b}/c", &["a:x/c", "a:/c"], &["a:x/d", "a:c"]);
        matches(
            "a:{b}/{c}/d{?e}",
            &["a:x/y/d", "a:x/y/d?e=1"],
            &["a:x/d", "a:x/y"],
        );
        matches("{+a}", &["", "x:y"], &[]);
        // No template, but nothing to stumble over either.
        matches("a:{b", &["a:b", "a:xb"], &["b"]);
    }
}
