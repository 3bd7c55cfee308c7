//! Explains the order of the variants.

use std::fmt::Write as _;

use mcp_vary::rank::Ranked;
use mcp_vary::variant::VariantId;
use mcp_vary_gateway::Explanation;
use serde_json::{Value, json};

use super::table::table;

/// A ranking, and the variant that is offered first.
#[derive(Debug)]
pub(crate) struct Why<'a> {
    pub(crate) explanation: &'a Explanation,
    pub(crate) first: Option<&'a VariantId>,
}

impl Why<'_> {
    /// A row for each variant, then the hints that had no effect.
    pub(crate) fn to_text(&self) -> String {
        let mut rows = vec![["rank", "variant", "points"].map(str::to_owned).to_vec()];
        for (at, ranked) in self.explanation.ranking.entries().iter().enumerate() {
            let mut points = ranked.score.to_string();
            for (at, reason) in ranked.reasons.iter().enumerate() {
                let sign = if at == 0 { "=" } else { "+" };
                let _ = write!(points, " {sign} {} {}", reason.label, reason.points);
            }
            for remark in self.remarks(ranked, at) {
                let _ = write!(points, ", {remark}");
            }
            rows.push(vec![format!("{}", at + 1), ranked.id.to_string(), points]);
        }
        let mut out = table(&rows, 3);
        for key in &self.explanation.unweighted {
            let _ = writeln!(
                out,
                "`{key}` decides nothing: it has no weight; `ranking: {{weights: {{{key}: 40}}}}` gives it one"
            );
        }
        for key in &self.explanation.unknown {
            let _ = writeln!(out, "`{key}` decides nothing: no variant has it");
        }
        out
    }

    fn remarks(&self, ranked: &Ranked, at: usize) -> Vec<&'static str> {
        let is_first = self.first == Some(&ranked.id);
        let is_advertised = self.explanation.advertised.contains(&ranked.id);
        let remarks = [
            (ranked.promoted, "moved to the front: the first is stable"),
            (is_first && at > 0, "put first by `variant` or `clients`"),
            (!is_advertised && !is_first, "not advertised"),
        ];
        let applicable = remarks.into_iter().filter(|(holds, _)| *holds);
        applicable.map(|(_, remark)| remark).collect()
    }

    pub(crate) fn to_json(&self) -> Value {
        let order = self.explanation.ranking.entries().iter().map(|ranked| {
            let scored = ranked.reasons.iter();
            let reasons =
                scored.map(|reason| json!({"what": reason.label, "points": reason.points}));
            let is_first = self.first == Some(&ranked.id);
            json!({
                "id": ranked.id,
                "score": ranked.score,
                "reasons": reasons.collect::<Value>(),
                "movedToFront": ranked.promoted,
                "first": is_first,
                "advertised": is_first || self.explanation.advertised.contains(&ranked.id),
            })
        });
        json!({
            "order": order.collect::<Value>(),
            "unweighted": self.explanation.unweighted,
            "unknown": self.explanation.unknown,
        })
    }
}
