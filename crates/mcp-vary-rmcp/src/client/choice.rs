//! Choice by rules: the advertised variants and the client's task give one variant and the reason.
//!
//! Source: the server variants extension, "Rule-Based Client Refinement".

use std::fmt;

use mcp_vary::variant::{ServerVariant, Status, VariantId};
use mcp_vary_base::setters;

use super::offers::Offers;

/// The client's task, from which the rules choose a variant.
///
/// # Examples
///
/// ```
/// use mcp_vary_rmcp::client::TaskContext;
///
/// let context = TaskContext::new().with_phase("planning").with_remaining_tokens(40_000);
/// assert_eq!(context.phase.as_deref(), Some("planning"));
/// ```
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct TaskContext {
    /// The phase or mode, as a value of the hint `useCase`: `planning`, `execution`, `debugging`.
    pub phase: Option<String>,
    /// The remaining tokens of the model's context.
    pub remaining_tokens: Option<u64>,
    /// The variant that the user requested.
    pub requested_variant: Option<VariantId>,
}

impl TaskContext {
    /// An empty context.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    setters! {
        /// Sets the phase.
        with_phase(phase: impl Into<String>): phase = Some(phase.into());
        /// Sets the remaining tokens.
        with_remaining_tokens(tokens: u64): remaining_tokens = Some(tokens);
        /// Sets the variant that the user requested.
        with_requested_variant(preference: VariantId): requested_variant = Some(preference);
    }
}

/// One rule: it chooses a variant, or leaves the choice to the next rule.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum ChoiceRule {
    /// Chooses the variant that the user requested, whatever its status.
    RequestedVariant,
    /// With fewer than `below` tokens left, chooses the first variant whose hint `contextSize` is
    /// `context_size`.
    TokenBudget {
        /// The limit, in tokens.
        below: u64,
        /// The value of the hint.
        context_size: String,
    },
    /// Chooses the first variant whose hint `useCase` is the phase.
    Phase,
}

/// An ordered list of rules. The first rule that chooses a variant decides; if none does, the
/// server's default is used.
///
/// # Properties
///
/// The same offers and context give the same choice. The choice is always one of the offers. Only
/// [`ChoiceRule::RequestedVariant`] chooses deprecated variants, and experimental ones unless they
/// are [allowed](Self::with_experimental).
///
/// The extension's sketch checks the user's request last and calls it an override. There it would
/// override nothing if an earlier rule decides, so here it comes first.
///
/// # Examples
///
/// ```
/// use mcp_vary_rmcp::client::{ChoiceRules, Offers, TaskContext};
/// use serde_json::json;
///
/// let (offers, _) = Offers::read(&json!({"extensions": {"io.modelcontextprotocol/server-variants":
///     {"availableVariants": [
///         {"id": "standard", "description": ""},
///         {"id": "compact", "description": "", "hints": {"contextSize": "compact"}},
///         {"id": "debug", "description": "", "hints": {"useCase": "debugging"}},
///     ]},
/// }}));
/// let choose = |context| ChoiceRules::default().choose(&offers, &context).to_string();
/// assert_eq!(choose(TaskContext::new()), "`standard`: the server's default");
/// assert_eq!(
///     choose(TaskContext::new().with_phase("debugging")),
///     "`debug`: matches the phase debugging",
/// );
/// assert_eq!(
///     choose(TaskContext::new().with_phase("debugging").with_remaining_tokens(8_000)),
///     "`compact`: 8000 tokens are left, fewer than 10000",
/// );
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct ChoiceRules {
    /// The rules in their order.
    pub rules: Vec<ChoiceRule>,
    /// Whether rules may choose experimental variants.
    pub experimental: bool,
}

impl Default for ChoiceRules {
    /// The user's request, then `contextSize=compact` below 10,000 tokens, then the phase.
    fn default() -> Self {
        Self::new([
            ChoiceRule::RequestedVariant,
            ChoiceRule::TokenBudget {
                below: COMPACT_BELOW_TOKENS,
                context_size: "compact".to_owned(),
            },
            ChoiceRule::Phase,
        ])
    }
}

impl ChoiceRules {
    /// Creates a list of rules in this order.
    #[must_use]
    pub fn new(rules: impl IntoIterator<Item = ChoiceRule>) -> Self {
        Self {
            rules: rules.into_iter().collect(),
            experimental: false,
        }
    }

    /// Allows rules to choose experimental variants.
    #[must_use]
    pub fn with_experimental(mut self) -> Self {
        self.experimental = true;
        self
    }

    /// Chooses a variant for `context`.
    #[must_use]
    pub fn choose(&self, offers: &Offers, context: &TaskContext) -> Choice {
        let Some(default) = offers.first() else {
            return Choice::new(None, ChoiceReason::NoVariants);
        };
        self.rules
            .iter()
            .find_map(|rule| self.apply(rule, offers, context))
            .unwrap_or_else(|| Choice::new(Some(&default.id), ChoiceReason::Default))
    }

    /// Whether a rule may choose `variant`.
    fn allows(&self, variant: &ServerVariant) -> bool {
        match variant.status {
            Status::Stable => true,
            Status::Experimental => self.experimental,
            Status::Deprecated => false,
        }
    }

    /// The variants that the application's function may choose, best first: those that a rule could
    /// have chosen, and the server's default.
    pub(super) fn candidates<'o>(
        &self,
        offers: &'o Offers,
    ) -> impl Iterator<Item = &'o ServerVariant> {
        let default = offers.first().map(|variant| &variant.id);
        let is_candidate =
            move |variant: &&ServerVariant| self.allows(variant) || Some(&variant.id) == default;
        offers.iter().filter(is_candidate)
    }

    fn apply(&self, rule: &ChoiceRule, offers: &Offers, context: &TaskContext) -> Option<Choice> {
        let hinted = |key: &str, value: &str| {
            let is = |variant: &&ServerVariant| {
                variant.hints.get(key).is_some_and(|held| held == value) && self.allows(variant)
            };
            offers.iter().find(is).map(|variant| &variant.id)
        };
        match rule {
            ChoiceRule::RequestedVariant => {
                let preference = context
                    .requested_variant
                    .as_ref()
                    .filter(|preference| offers.allows(preference))?;
                Some(Choice::new(Some(preference), ChoiceReason::Requested))
            }
            ChoiceRule::TokenBudget {
                below,
                context_size,
            } => {
                let remaining = context.remaining_tokens.filter(|left| left < below)?;
                let id = hinted("contextSize", context_size)?;
                let below = *below;
                Some(Choice::new(
                    Some(id),
                    ChoiceReason::TokenBudget { remaining, below },
                ))
            }
            ChoiceRule::Phase => {
                let phase = context.phase.as_deref()?;
                let id = hinted("useCase", phase)?;
                Some(Choice::new(Some(id), ChoiceReason::Phase(phase.to_owned())))
            }
        }
    }
}

/// A variant, and the reason for the choice.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Choice {
    /// The variant to select; `None` if no selector is sent.
    pub variant: Option<VariantId>,
    /// The reason.
    pub reason: ChoiceReason,
}

impl Choice {
    pub(super) fn new(variant: Option<&VariantId>, reason: ChoiceReason) -> Self {
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
pub enum ChoiceReason {
    /// The server offers no variants.
    #[error("the server offers no variants")]
    NoVariants,
    /// No rule chose another variant.
    #[error("the server's default")]
    Default,
    /// [`ChoiceRule::RequestedVariant`]
    #[error("requested by the user")]
    Requested,
    /// The application named it.
    #[error("named by the application")]
    Named,
    /// [`ChoiceRule::TokenBudget`]
    #[error("{remaining} tokens are left, fewer than {below}")]
    TokenBudget {
        /// Tokens left.
        remaining: u64,
        /// The rule's limit.
        below: u64,
    },
    /// [`ChoiceRule::Phase`]
    #[error("matches the phase {}", .0.escape_debug())]
    Phase(String),
    /// The application's function chose it.
    #[error("chosen by the application")]
    Chosen,
    /// The application's function chose a variant that it may not choose, so the rules decided.
    #[error("{rules}; the application chose `{}`, which is not offered or not stable", .chosen.as_str().escape_debug())]
    NotAllowed {
        /// What the function chose.
        chosen: VariantId,
        /// The reason of the rules.
        rules: Box<Self>,
    },
    /// The switch limit was reached, so the client stays in its variant.
    #[error("unchanged after {switches} switches within {seconds} s; `{preferred}` was preferred")]
    SwitchLimited {
        /// The number of recent switches.
        switches: usize,
        /// The window of the limit, in seconds.
        seconds: u64,
        /// The variant that was chosen before the limit applied.
        preferred: VariantId,
    },
}

/// The limit below which the extension's sketch looks for a compact variant.
const COMPACT_BELOW_TOKENS: u64 = 10_000;
