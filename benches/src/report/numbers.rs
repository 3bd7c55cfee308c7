//! The numbers of every round, as JSON.

use serde_json::{Value, json};

use super::costs::{Fan, Forwarding};
use super::{Cell, Report};

impl Report {
    /// The numbers of every round.
    pub(crate) fn to_json(&self) -> String {
        let rows = self.rows.iter().map(|(row, cells)| {
            let cells = cells.iter().map(Cell::to_json);
            json!({
                "name": row.name, "connections": row.connections,
                "programs": cells.collect::<Vec<_>>(),
            })
        });
        let memory = self.memory.iter().map(|memory| {
            json!({
                "program": memory.subject.name(), "sessions": memory.sessions, "none": memory.none,
                "idle": memory.idle, "streams": memory.streams, "listening": memory.listening,
            })
        });
        let changes = self.changes.iter().map(|change| {
            json!({"variants": change.variants, "cpuMs": change.cpu, "wallMs": change.took})
        });
        let moments = self.moments.iter().map(|moment| {
            let times = moment.times.iter();
            let times = times.map(|(took, cpu)| json!({"ms": took, "cpuMs": cpu}));
            json!({"name": moment.name, "rounds": times.collect::<Vec<_>>()})
        });
        let value = json!({
            "changes": changes.collect::<Vec<_>>(),
            "cores": {"measured": self.cores.subject, "rest": self.cores.load},
            "rows": rows.collect::<Vec<_>>(),
            "memory": memory.collect::<Vec<_>>(),
            "moments": moments.collect::<Vec<_>>(),
            "forwarding": self.forwarding.as_ref().map(Forwarding::to_json),
            "fans": self.fans.iter().map(Fan::to_json).collect::<Vec<_>>(),
        });
        format!("{value:#}\n")
    }
}

impl Cell {
    fn to_json(&self) -> Value {
        let rounds = self.rounds.iter().map(|round| {
            json!({
                "requests": round.requests, "perSecond": round.per_second, "p50": round.median,
                "p99": round.p99, "cpu": round.cpu, "resident": round.resident,
                "answerBytes": round.answer, "wrong": round.wrong, "complaint": round.complaint,
            })
        });
        json!({
            "program": self.subject.name(), "failure": self.failure, "startCpuNs": self.starts,
            "rounds": rounds.collect::<Vec<_>>(),
        })
    }
}
