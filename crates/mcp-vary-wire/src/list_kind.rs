//! The lists of MCP.

/// Which list changed.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Kind {
    /// `tools/list`
    Tools,
    /// `resources/list` and `resources/templates/list`
    Resources,
    /// `prompts/list`
    Prompts,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 3] = [Self::Tools, Self::Resources, Self::Prompts];

    /// The kind of list whose change the notification `method` announces.
    pub fn changed_by(method: &str) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|kind| kind.list_changed() == method)
    }

    /// The notification that it changed.
    pub const fn list_changed(self) -> &'static str {
        match self {
            Self::Tools => "notifications/tools/list_changed",
            Self::Resources => "notifications/resources/list_changed",
            Self::Prompts => "notifications/prompts/list_changed",
        }
    }

    /// Its capability.
    pub const fn capability(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Resources => "resources",
            Self::Prompts => "prompts",
        }
    }

    /// Its member of the filter of `subscriptions/listen`.
    pub const fn filter(self) -> &'static str {
        match self {
            Self::Tools => "toolsListChanged",
            Self::Resources => "resourcesListChanged",
            Self::Prompts => "promptsListChanged",
        }
    }
}
