//! Choosing: offers × what the client is about to do → one variant, and why.
//!
//! Source: the server variants extension, "Rule-Based Client Refinement".

use std::fmt;

use mcp_vary::variant::{ServerVariant, Status, VariantId};

use super::offers::Offers;

/// What the client is about to do.
///
/// # Examples
///
/// ```
/// use mcp_vary_rmcp::client::TaskContext;
///
/// let context = TaskContext::new().with_phase("planning").with_remaining_tokens(40_000);
/// assert_eq!(context.phase.as_deref(), Some("planning"));
/// ```
#[derive(Clone, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[non_exhaustive]
pub struct TaskContext {
    /// The phase or mode, in the words of the hint `useCase`: `planning`, `execution`, `debugging`.
    pub phase: Option<String>,
    /// How many tokens of the model's context are left.
    pub remaining_tokens: Option<u64>,
    /// The variant that the user asked for.
    pub wish: Option<VariantId>,
    /// The task in words. Only a [model](super::Model) reads it.
    pub description: Option<String>,
    /// The model that will use the variant. Only a [model](super::Model) reads it.
    pub model: Option<String>,
}

impl TaskContext {
    /// Nothing known.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the phase.
    #[must_use]
    pub fn with_phase(mut self, phase: impl Into<String>) -> Self {
        self.phase = Some(phase.into());
        self
    }

    /// Sets how many tokens are left.
    #[must_use]
    pub fn with_remaining_tokens(mut self, tokens: u64) -> Self {
        self.remaining_tokens = Some(tokens);
        self
    }

    /// Sets what the user asked for.
    #[must_use]
    pub fn with_wish(mut self, wish: VariantId) -> Self {
        self.wish = Some(wish);
        self
    }

    /// Sets the task in words.
    #[must_use]
    pub fn with_description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }

    /// Sets the model that will use the variant.
    #[must_use]
    pub fn with_model(mut self, model: impl Into<String>) -> Self {
        self.model = Some(model.into());
        self
    }
}

/// One rule: it names a variant, or leaves the choice to the next rule.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Rule {
    /// The variant of the user's wish, whatever its status.
    Wish,
    /// With fewer than `below` tokens left: the first variant whose hint `contextSize` is `size`.
    Budget {
        /// Tokens.
        below: u64,
        /// The value of the hint.
        size: String,
    },
    /// The first variant whose hint `useCase` is the phase.
    Phase,
}

/// Rules, the first that names a variant decides; when none does, the server's default.
///
/// # Properties
///
/// The same offers and context give the same choice. Whatever the rules, the choice is one of the
/// offers. Without the user's wish no rule takes a deprecated variant, nor an experimental one
/// unless [allowed](Self::with_experimental).
///
/// The extension's sketch asks for the user's wish last and calls it an override. Where an earlier
/// rule decides it would override nothing, so ours comes first.
///
/// # Examples
///
/// ```
/// use mcp_vary_rmcp::client::{Offers, Rules, TaskContext};
/// use serde_json::json;
///
/// let (offers, _) = Offers::read(&json!({"extensions": {"io.modelcontextprotocol/server-variants":
///     {"availableVariants": [
///         {"id": "standard", "description": ""},
///         {"id": "compact", "description": "", "hints": {"contextSize": "compact"}},
///         {"id": "debug", "description": "", "hints": {"useCase": "debugging"}},
///     ]},
/// }}));
/// let choose = |context| Rules::default().choose(&offers, &context).to_string();
/// assert_eq!(choose(TaskContext::new()), "`standard`: the server's default");
/// assert_eq!(
///     choose(TaskContext::new().with_phase("debugging")),
///     "`debug`: made for the phase debugging",
/// );
/// assert_eq!(
///     choose(TaskContext::new().with_phase("debugging").with_remaining_tokens(8_000)),
///     "`compact`: 8000 tokens are left, fewer than 10000",
/// );
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Rules {
    /// In the order in which they are asked.
    pub rules: Vec<Rule>,
    /// Whether rules may take experimental variants.
    pub experimental: bool,
}

impl Default for Rules {
    /// The user's wish, then `contextSize=compact` below 10,000 tokens, then the phase.
    fn default() -> Self {
        Self::new([
            Rule::Wish,
            Rule::Budget {
                below: TIGHT,
                size: "compact".to_owned(),
            },
            Rule::Phase,
        ])
    }
}

impl Rules {
    /// These rules, in this order.
    #[must_use]
    pub fn new(rules: impl IntoIterator<Item = Rule>) -> Self {
        Self {
            rules: rules.into_iter().collect(),
            experimental: false,
        }
    }

    /// Lets rules take experimental variants.
    #[must_use]
    pub fn with_experimental(mut self) -> Self {
        self.experimental = true;
        self
    }

    /// The variant for `context`.
    #[must_use]
    pub fn choose(&self, offers: &Offers, context: &TaskContext) -> Choice {
        let Some(default) = offers.first() else {
            return Choice::new(None, Reason::NoVariants);
        };
        self.rules
            .iter()
            .find_map(|rule| self.apply(rule, offers, context))
            .unwrap_or_else(|| Choice::new(Some(&default.id), Reason::Default))
    }

    /// Whether a rule, or a model, may take `variant`.
    pub(super) fn may_take(&self, variant: &ServerVariant) -> bool {
        match variant.status {
            Status::Stable => true,
            Status::Experimental => self.experimental,
            Status::Deprecated => false,
        }
    }

    fn apply(&self, rule: &Rule, offers: &Offers, context: &TaskContext) -> Option<Choice> {
        let hinted = |key: &str, value: &str| {
            let is = |variant: &&ServerVariant| {
                variant.hints.get(key).is_some_and(|held| held == value) && self.may_take(variant)
            };
            offers.iter().find(is).map(|variant| &variant.id)
        };
        match rule {
            Rule::Wish => {
                let wish = context.wish.as_ref().filter(|wish| offers.admit(wish))?;
                Some(Choice::new(Some(wish), Reason::Wish))
            }
            Rule::Budget { below, size } => {
                let remaining = context.remaining_tokens.filter(|left| left < below)?;
                let id = hinted("contextSize", size)?;
                let below = *below;
                Some(Choice::new(Some(id), Reason::Budget { remaining, below }))
            }
            Rule::Phase => {
                let phase = context.phase.as_deref()?;
                let id = hinted("useCase", phase)?;
                Some(Choice::new(Some(id), Reason::Phase(phase.to_owned())))
            }
        }
    }
}

/// A variant, and why it was chosen.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Choice {
    /// The variant to select; none when no selector is sent.
    pub variant: Option<VariantId>,
    /// Why.
    pub reason: Reason,
}

impl Choice {
    pub(super) fn new(variant: Option<&VariantId>, reason: Reason) -> Self {
        Self {
            variant: variant.cloned(),
            reason,
        }
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.variant {
            Some(id) => write!(f, "`{id}`: {}", self.reason),
            None => write!(f, "no selector: {}", self.reason),
        }
    }
}

/// Why a variant was chosen.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Reason {
    /// The server offers no variants.
    #[error("the server offers no variants")]
    NoVariants,
    /// Nothing spoke for another.
    #[error("the server's default")]
    Default,
    /// [`Rule::Wish`]
    #[error("the user's wish")]
    Wish,
    /// The application named it itself.
    #[error("named by the application")]
    Named,
    /// [`Rule::Budget`]
    #[error("{remaining} tokens are left, fewer than {below}")]
    Budget {
        /// Tokens left.
        remaining: u64,
        /// The rule's limit.
        below: u64,
    },
    /// [`Rule::Phase`]
    #[error("made for the phase {}", .0.escape_debug())]
    Phase(String),
    /// A model chose, and said this: cut, and no instruction to anybody.
    #[error("chosen by the model: {}", .0.escape_debug())]
    Model(String),
    /// A model was asked and its answer was of no use, so the rules decided.
    #[error("{rules}; the model was asked first: {failure}")]
    ModelFailed {
        /// What was wrong with the answer.
        failure: ModelFailure,
        /// Why the rules chose as they did.
        rules: Box<Self>,
    },
    /// The limit on switching holds the client where it is.
    #[error("kept, because of {switches} switches within {seconds} s; wanted `{wanted}`")]
    Limited {
        /// How many switches there were.
        switches: usize,
        /// The time that the limit looks back.
        seconds: u64,
        /// What would have been chosen.
        wanted: VariantId,
    },
}

/// Why a model's answer was of no use.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ModelFailure {
    /// The model, or the way to it, failed.
    #[error("it failed: {}", .0.escape_debug())]
    Failed(String),
    /// There was no answer in time.
    #[error("it did not answer in time")]
    TimedOut,
    /// The answer holds no object with a `selected` string.
    #[error("its answer names no variant")]
    Unreadable,
    /// The answer names a variant that is not offered.
    #[error("it named `{}`, which is not offered", .0.escape_debug())]
    Unknown(String),
    /// The answer names a variant that the rules may not take.
    #[error("it named `{0}`, which is not stable")]
    NotStable(VariantId),
}

/// Below so many tokens the extension's sketch looks for a compact variant.
const TIGHT: u64 = 10_000;
