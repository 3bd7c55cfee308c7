//! How far a server came in the handshake, for an error.

use mcp_vary_base::lock::ScopedLock;

/// The requests of a handshake, and whether the server has answered each.
#[derive(Debug, Default)]
pub(crate) struct HandshakeProgress(ScopedLock<Vec<SentRequest>>);

#[derive(Debug)]
struct SentRequest {
    id: u64,
    method: &'static str,
    is_answered: bool,
}

impl HandshakeProgress {
    pub(crate) fn note_sent(&self, id: u64, method: &'static str) {
        self.0.lock().push(SentRequest {
            id,
            method,
            is_answered: false,
        });
    }

    pub(crate) fn note_answered(&self, id: u64) {
        let mut requests = self.0.lock();
        if let Some(request) = requests.iter_mut().find(|request| request.id == id) {
            request.is_answered = true;
        }
    }

    /// "answered `initialize`, but not `ping`"; `None` if nothing was answered.
    pub(crate) fn summary(&self) -> Option<String> {
        let requests = self.0.lock();
        let methods = |is_answered: bool, conjunction: &str| {
            let found = requests.iter().filter(|one| one.is_answered == is_answered);
            let mut names: Vec<_> = found.map(|sent| format!("`{}`", sent.method)).collect();
            names.dedup();
            (!names.is_empty()).then(|| names.join(conjunction))
        };
        let answered = methods(true, " and ")?;
        let missing = methods(false, " or ");
        let clause = missing.map_or_else(String::new, |methods| format!(", but not {methods}"));
        Some(format!("answered {answered}{clause}"))
    }
}
