//! Follows the announcements of one server, and reads its lists again.

use std::collections::BTreeSet;

use mcp_vary_catalog::listing::ListKind;
use mcp_vary_upstream::Event;
use tokio::sync::broadcast;

use super::changes::{Changes, PendingChanges};
use super::pace::ReadingPace;
use super::source::ServerSource;

/// Follows the connection of `source` and the server's announcements until it is closed. `changed` gets the lists and
/// resources that changed.
///
/// A changed list is read at once. After a few of them, the next change is read after a pause, together with all that
/// arrived meanwhile, so that a server that announces without end costs little. Resource updates that arrive after a
/// list change are reported after it.
pub(super) async fn follow<F>(source: &ServerSource, changed: impl FnMut(Changes) -> F)
where
    F: Future<Output = ()>,
{
    let events = source.connection.events();
    // A connection that other classes share may be open already.
    let current = source.connection.current();
    let next = current.map(|_| PendingChanges::of(&Event::Connected));
    follow_after(source, next, events, changed).await;
}

/// Follows the connection of `source`, whose lists are read on another one, until it is closed. `changed` gets the
/// resources that changed.
pub(super) async fn follow_resources<F>(
    source: &ServerSource,
    mut changed: impl FnMut(Changes) -> F,
) where
    F: Future<Output = ()>,
{
    let mut events = source.connection.events();
    while let Some(pending) = PendingChanges::receive(&mut events).await {
        if !pending.updates.is_empty() {
            changed(Changes::of(pending.updates)).await;
        }
    }
}

/// As [`follow`], with the `next` changes and the events after them. A source whose lists have been
/// [read](ServerSource::read_now) has none yet.
pub(super) async fn follow_after<F>(
    source: &ServerSource,
    mut next: Option<PendingChanges>,
    mut events: broadcast::Receiver<Event>,
    mut changed: impl FnMut(Changes) -> F,
) where
    F: Future<Output = ()>,
{
    let progress = &source.progress;
    let mut pace = ReadingPace::new();
    loop {
        let pending = match next.take() {
            Some(pending) => Some(pending),
            None => tokio::select! {
                biased;
                pending = PendingChanges::receive(&mut events) => pending,
                () = source.revalidation.notified() => {
                    let changes = revalidate(source).await;
                    if !changes.is_none() {
                        changed(changes).await;
                    }
                    pace.note_reading();
                    continue;
                }
            },
        };
        let Some(mut pending) = pending else {
            return progress.set_pending(false);
        };
        if pending.kinds.is_empty() && !pending.reconnected {
            progress.set_pending(false);
            if !pending.updates.is_empty() {
                changed(Changes::of(pending.updates)).await;
            }
            continue;
        }
        progress.set_pending(true);
        pace.wait().await;
        pending.add_received(&mut events);
        let lists = read_again(source, &pending).await;
        let known = source.lists().take_known(&pending.announced);
        let mut changes = Changes::found(lists, pending);
        changes.announced.retain(|kind| !known.contains(kind));
        if !changes.is_none() {
            changed(changes).await;
        }
        pace.note_reading();
        progress.note_reading(!events.is_empty());
    }
}

/// Reads the lists that may have changed. Returns those that did.
async fn read_again(source: &ServerSource, pending: &PendingChanges) -> BTreeSet<ListKind> {
    let Some(upstream) = source.connection.current() else {
        return BTreeSet::new();
    };
    if !pending.reconnected {
        return source.reader.read_all(&upstream, &pending.kinds).await;
    }
    let mut changed = source.note_connected(&upstream);
    let all = BTreeSet::from(ListKind::ALL);
    changed.extend(source.reader.read_all(&upstream, &all).await);
    changed
}

/// Reads the expired lists again, while requests use the known ones. Returns what changed.
async fn revalidate(source: &ServerSource) -> Changes {
    let kinds = source.revalidation.stale();
    let mut lists = match source.connection.current() {
        Some(upstream) => source.reader.read_all(&upstream, &kinds).await,
        None => BTreeSet::new(),
    };
    lists.extend(source.revalidation.take_found());
    source.revalidation.remove_stale(&kinds);
    Changes {
        lists,
        ..Changes::default()
    }
}
