//! Which arm a client gets.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use thiserror::Error;

/// The most arms of an experiment.
pub const MAX_ARMS: usize = 16;

/// The longest name of an experiment or an arm, in bytes.
pub const MAX_NAME: usize = 128;

/// The greatest weight of an arm.
pub const MAX_WEIGHT: u32 = 1_000_000;

/// A client of an experiment: a digest from which nobody learns its principal or session.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Unit(pub(crate) u64);

/// One of the variants that are compared.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Arm {
    /// The id of its variant.
    pub variant: String,
    /// Its share of the clients, in parts of the sum of all weights. An arm of weight 0 gets no new clients.
    pub weight: u32,
}

/// An experiment that the operator may not have meant.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
pub enum ExperimentError {
    /// The name, or the variant of an arm, is empty or too long.
    #[error("`{0}` must have 1 to {MAX_NAME} bytes")]
    Name(String),
    /// There is nothing to compare, or too much.
    #[error("an experiment has 2 to {MAX_ARMS} arms; this one has {0}")]
    Arms(usize),
    /// Two arms have the same variant.
    #[error("two arms have the variant `{0}`")]
    Twice(String),
    /// A weight is too great.
    #[error("the weight of `{0}` is more than {MAX_WEIGHT}; write less")]
    Weight(String),
    /// All weights are zero.
    #[error("all weights are 0; write at least one that is not")]
    NoWeight,
}

/// What is compared: the first arm is the control, all others are compared with it.
///
/// # Examples
///
/// ```
/// use mcp_vary_experiment::{Arm, Experiment};
///
/// let arm = |variant: &str, weight| Arm { variant: variant.to_owned(), weight };
/// let experiment = Experiment::new("tool-desc-2026-q1", vec![arm("control", 50), arm("verbose", 50)])?;
/// let unit = Experiment::unit(b"key", "tool-desc-2026-q1", b"https://idp.example\0alice");
/// let first = experiment.assign(b"key", unit);
///
/// // The arm does not depend on the order of requests, nor on the replica.
/// assert_eq!(experiment.assign(b"key", unit), first);
///
/// // A greater weight for the arm that a client has leaves it there.
/// let mut arms = experiment.arms().to_vec();
/// arms[first].weight = 90;
/// assert_eq!(Experiment::new("tool-desc-2026-q1", arms)?.assign(b"key", unit), first);
/// # Ok::<(), mcp_vary_experiment::ExperimentError>(())
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Experiment {
    name: String,
    arms: Vec<Arm>,
}

impl Experiment {
    /// An experiment.
    ///
    /// # Errors
    ///
    /// An [`ExperimentError`] that names the member which has to change.
    pub fn new(name: &str, arms: Vec<Arm>) -> Result<Self, ExperimentError> {
        let names = arms.iter().map(|arm| arm.variant.as_str());
        for name in std::iter::once(name).chain(names) {
            if name.is_empty() || name.len() > MAX_NAME {
                let shown = name.chars().take(32).collect();
                return Err(ExperimentError::Name(shown));
            }
        }
        if arms.len() < 2 || arms.len() > MAX_ARMS {
            return Err(ExperimentError::Arms(arms.len()));
        }
        for (at, arm) in arms.iter().enumerate() {
            let mut earlier = arms.iter().take(at);
            if earlier.any(|other| other.variant == arm.variant) {
                return Err(ExperimentError::Twice(arm.variant.clone()));
            }
            if arm.weight > MAX_WEIGHT {
                return Err(ExperimentError::Weight(arm.variant.clone()));
            }
        }
        if arms.iter().all(|arm| arm.weight == 0) {
            return Err(ExperimentError::NoWeight);
        }
        let name = name.to_owned();
        Ok(Self { name, arms })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its arms, the control first.
    pub fn arms(&self) -> &[Arm] {
        &self.arms
    }

    /// The client that is meant by `identity`, the bytes of a principal or a session.
    ///
    /// `experiment` is the name of the experiment: in another one, the client is another unit.
    pub fn unit(key: &[u8], experiment: &str, identity: &[u8]) -> Unit {
        Unit(digest(key, &[b"unit", experiment.as_bytes(), identity]))
    }

    /// Identifies the experiment with this key among others: with another name, arm or weight, it is another one.
    pub fn id(&self, key: &[u8]) -> u64 {
        let encoded = self.arms.iter().map(|arm| arm.weight.to_be_bytes());
        let weights: Vec<_> = encoded.collect();
        let weighted = self.arms.iter().zip(&weights);
        let arms = weighted.flat_map(|(arm, weight)| [arm.variant.as_bytes(), weight]);
        let parts: Vec<_> = [&b"experiment"[..], self.name.as_bytes()]
            .into_iter()
            .chain(arms)
            .collect();
        digest(key, &parts)
    }

    /// The index of the arm that a client gets.
    ///
    /// Each arm draws a number from an exponential distribution with the arm's weight as its rate; the least one wins
    /// (weighted rendezvous hashing). So a change of one weight moves clients to or from this arm, and no others.
    pub fn assign(&self, key: &[u8], unit: Unit) -> usize {
        let mut best = (f64::INFINITY, 0);
        for (at, arm) in self.arms.iter().enumerate() {
            if arm.weight == 0 {
                continue;
            }
            let drawn = digest(
                key,
                &[b"arm", arm.variant.as_bytes(), &unit.0.to_be_bytes()],
            );
            let drawn = -uniform(drawn).ln() / f64::from(arm.weight);
            if drawn < best.0 {
                best = (drawn, at);
            }
        }
        best.1
    }
}

/// A number in (0, 1), of 53 bits.
#[expect(
    clippy::cast_precision_loss,
    reason = "53 bits are represented exactly"
)]
fn uniform(bits: u64) -> f64 {
    ((bits >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
}

/// The first 64 bits of HMAC-SHA-256 over `parts`, each with its length in front.
fn digest(key: &[u8], parts: &[&[u8]]) -> u64 {
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key) else {
        return 0; // keys of any length are accepted
    };
    for part in parts {
        mac.update(&(part.len() as u64).to_be_bytes());
        mac.update(part);
    }
    let bytes = mac.finalize().into_bytes();
    bytes
        .iter()
        .take(8)
        .fold(0, |bits, byte| bits << 8 | u64::from(*byte))
}
