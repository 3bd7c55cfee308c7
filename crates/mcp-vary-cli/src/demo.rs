//! Follows.
use crate::{args::Demo, failure::*, stop::Stop};
pub(crate) async fn run(_a: Demo, _s: Stop) -> Result<Verdict, Failure> {
    Ok(Verdict::Fine)
}
