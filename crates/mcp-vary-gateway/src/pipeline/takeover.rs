//! What replicas that have ended left in the store: results, tasks that have ended, and streams whose clients have gone.
//!
//! Each of them is copied there when it is made. It is read only after the replica that its id names could not be asked.

use mcp_vary_http::replay::ReplayStreams;
use mcp_vary_results::result_store::ResultStore;
use mcp_vary_store::{SavedKind, Store};
use mcp_vary_wire::sse::EventId;

use super::runtime::Services;
use crate::tasks::{self, TaskKey};

impl Services {
    /// Takes over the result of a replica that has ended, if it is not known here.
    pub(crate) async fn take_over_result(&self, uri: &str) {
        if !self.result_store.has(uri)
            && let Some(store) = self.store_of_others(ResultStore::replica_of(uri))
            && let Ok(Some(copy)) = store.load(SavedKind::Result, ResultStore::id_of(uri)).await
        {
            self.result_store.insert_copy(uri, &copy);
        }
    }

    /// The last status of a task that was proxied by a replica that has ended.
    pub(crate) async fn status_of_ended_task(
        &self,
        key: &TaskKey,
        replica: Option<u32>,
    ) -> Option<String> {
        let store = self.store_of_others(replica)?;
        let id = tasks::id_of_copy(key);
        let copy = store.load(SavedKind::Task, &id).await.ok()??;
        String::from_utf8(copy).ok()
    }

    /// Takes over the stream of a replica that has ended, after a client received the event `last`.
    pub(crate) async fn take_over_stream(&self, last: &EventId) {
        let streams = &self.exchange.replay_streams;
        if let Some(request) = &last.request
            && !streams.has(last)
            && let Some(store) = self.store_of_others(Some(ReplayStreams::replica_of(last)))
            && let Ok(Some(copy)) = {
                let id = ReplayStreams::id_of_copy(last.stream);
                store.load(SavedKind::Stream, &id).await
            }
        {
            streams.insert_copy(last.stream, request, &copy);
        }
    }

    /// The store, if an id names another replica than this one.
    fn store_of_others(&self, replica: Option<u32>) -> Option<&Store> {
        let store = self.store.as_deref()?;
        (replica? != store.tag()).then_some(store)
    }
}
