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

/// The four lists of MCP.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum ListKind {
    /// `tools/list`.
    Tools,
    /// `resources/list`.
    Resources,
    /// `resources/templates/list`.
    Templates,
    /// `prompts/list`.
    Prompts,
}

impl ListKind {
    /// All kinds, in the order in which they are read.
    pub const ALL: [Self; 4] = [Self::Tools, Self::Resources, Self::Templates, Self::Prompts];

    /// The lists that may have changed when a server notifies about `kind`.
    pub const fn affected_by(kind: Kind) -> &'static [Self] {
        match kind {
            Kind::Tools => &[Self::Tools],
            Kind::Resources => &[Self::Resources, Self::Templates],
            Kind::Prompts => &[Self::Prompts],
        }
    }

    /// The kind of change notification for the list.
    pub const fn kind(self) -> Kind {
        match self {
            Self::Tools => Kind::Tools,
            Self::Resources | Self::Templates => Kind::Resources,
            Self::Prompts => Kind::Prompts,
        }
    }

    /// The method that reads the list.
    pub const fn method(self) -> &'static str {
        match self {
            Self::Tools => "tools/list",
            Self::Resources => "resources/list",
            Self::Templates => "resources/templates/list",
            Self::Prompts => "prompts/list",
        }
    }

    /// The member of the result that holds the items.
    pub const fn items_key(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Resources => "resources",
            Self::Templates => "resourceTemplates",
            Self::Prompts => "prompts",
        }
    }

    /// What an item of it is called.
    pub const fn noun(self) -> &'static str {
        match self {
            Self::Tools => "tool",
            Self::Resources => "resource",
            Self::Templates => "resource template",
            Self::Prompts => "prompt",
        }
    }

    /// The capability without which a server has no such list.
    pub const fn capability(self) -> &'static str {
        self.kind().capability()
    }

    /// The member that identifies an item.
    pub const fn id_key(self) -> &'static str {
        match self {
            Self::Tools | Self::Prompts => "name",
            Self::Resources => "uri",
            Self::Templates => "uriTemplate",
        }
    }
}
