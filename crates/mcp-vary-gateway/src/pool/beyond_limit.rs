//! Classes beyond `limits.classes`: they share the lists and connections of another class.

use std::sync::{Arc, Weak};

use mcp_vary_wire::response::RpcError;
use mcp_vary_wire::revision::Era;

use super::{CapabilityClass, UpstreamPool};
use crate::pool::capabilities::is_part_of;
use crate::session::{BASE_CLASS, PoolKey};

impl UpstreamPool {
    /// A class beyond the limit, with the lists and connections of the nearest class of the same era: the class with the
    /// most of the clients' capabilities and no others.
    ///
    /// # Errors
    ///
    /// As for [`of`](Self::of).
    pub(super) async fn shared_beyond_limit(
        &self,
        key: &PoolKey,
    ) -> Result<Arc<CapabilityClass>, RpcError> {
        let known = self.beyond_limit.lock().get(key).and_then(Weak::upgrade);
        if let Some(class) = known {
            class.connections.note_use();
            return Ok(class);
        }
        let open = self.classes.shared_of_era(key.era).into_iter();
        let fitting = open.filter(|class| is_part_of(&class.capabilities, &key.capabilities));
        let nearest = fitting.max_by_key(|class| class.capabilities.len());
        let nearest = match nearest {
            Some(class) => class,
            None => self.without_capabilities(key.era).await,
        };
        nearest.connections.note_use();
        let class = nearest.share_with(&key.capabilities);
        let mut known = self.beyond_limit.lock();
        known.retain(|_, class| class.strong_count() > 0);
        known.insert(key.clone(), Arc::downgrade(&class));
        Ok(class)
    }

    /// The class of clients of `era` without special capabilities. It exists even beyond the limit, once for each era.
    async fn without_capabilities(&self, era: Era) -> Arc<CapabilityClass> {
        if self.era_of_base(era) == era {
            self.settle_base().await;
            return Arc::clone(&self.base);
        }
        let key = PoolKey {
            capabilities: BASE_CLASS.into(),
            session: None,
            principal: None,
            access: None,
            claims: None,
            era,
        };
        let place = self.classes.unlimited_entry(&key);
        self.open_in(&key, place, None).await
    }
}
