//! Access classes: which rules apply to a principal, and what its clients see.

use std::fmt;
use std::sync::Arc;

use mcp_vary_access::{AccessClass, Principal};
use mcp_vary_catalog::access::AccessView;
use quick_cache::sync::Cache;

use crate::session::AccessKey;
use crate::settings::access::AccessSettings;

/// The most principals whose access class is remembered.
const REMEMBERED_PRINCIPALS: usize = 4096;

/// Applies the access rules of one configuration.
pub(crate) struct AccessControl {
    settings: AccessSettings,
    /// By the address of the principal, which the value keeps alive: credentials that were verified once share it.
    classes: Cache<usize, (Arc<Principal>, Arc<AccessClass>)>,
    anonymous: Arc<AccessClass>,
}

impl fmt::Debug for AccessControl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AccessControl")
            .field("rules", &self.settings.policy.rules().len())
            .finish_non_exhaustive()
    }
}

impl AccessControl {
    pub(crate) fn new(settings: AccessSettings) -> Self {
        Self {
            anonymous: settings.policy.class_of(&Principal::anonymous()),
            settings,
            classes: Cache::new(REMEMBERED_PRINCIPALS),
        }
    }

    /// The class of a principal. A client that is not authenticated has that of anonymous ones.
    pub(crate) fn class_of(&self, principal: Option<&Arc<Principal>>) -> Arc<AccessClass> {
        let Some(principal) = principal else {
            return Arc::clone(&self.anonymous);
        };
        let address = Arc::as_ptr(principal) as usize;
        if let Some((_, class)) = self.classes.get(&address) {
            return class;
        }
        let class = self.settings.policy.class_of(principal);
        let remembered = (Arc::clone(principal), Arc::clone(&class));
        self.classes.insert(address, remembered);
        class
    }

    /// What the clients of a class see.
    pub(crate) fn view_of(&self, AccessKey(class): &AccessKey) -> Arc<AccessView> {
        let policy = Arc::clone(&self.settings.policy);
        let trusted = Arc::clone(&self.settings.trusted_annotations);
        Arc::new(AccessView::new(policy, Arc::clone(class), trusted))
    }
}
