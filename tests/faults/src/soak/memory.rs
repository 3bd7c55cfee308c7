//! How the memory of the gateway goes while clients come, and whether it stays where it is.

/// What was resident after each [`EACH`] clients, in KiB.
#[derive(Clone, Debug, Default)]
pub(super) struct MemorySeries(Vec<usize>);

/// Memory is read after so many clients.
pub(super) const EACH: usize = 1_000;
/// It is level when the last so many readings are.
const LAST: usize = 3;
/// By which they differ at most, in KiB: a quarter of a kilobyte for each client between them.
const LEVEL: usize = 512;
/// What may be more after than before, in KiB: an allocator keeps pages of what was freed, and a kilobyte of each of
/// ten thousand clients is more than this.
const MORE: usize = 8 << 10;

impl MemorySeries {
    pub(super) fn push(&mut self, resident: usize) {
        self.0.push(resident);
    }

    /// Whether the last clients had it grow no more than nothing.
    pub(super) fn is_level(&self) -> bool {
        let Some(at) = self.0.len().checked_sub(LAST) else {
            return false;
        };
        let last = &self.0[at..];
        last.iter().all(|resident| *resident <= last[0] + LEVEL)
    }

    /// Clients that had come, and what was resident then.
    pub(super) fn rows(&self) -> impl Iterator<Item = (usize, String)> {
        let rows = self.0.iter().enumerate();
        rows.map(|(at, resident)| ((at + 1) * EACH, mebibytes(*resident)))
    }
}

/// What is wrong with so much after as much before.
pub(super) fn left(before: usize, after: usize) -> Option<String> {
    let [said_before, said_after] = [before, after].map(mebibytes);
    let more = format!("memory: {said_before} before, {said_after} after");
    (after > before + MORE).then_some(more)
}

pub(super) fn mebibytes(kibibytes: usize) -> String {
    let tenths = (kibibytes * 10 + 512) >> 10;
    format!("{}.{} MiB", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn is_level(memory_series: &[usize], expected: bool) {
        assert_eq!(
            MemorySeries(memory_series.to_vec()).is_level(),
            expected,
            "{memory_series:?}"
        );
    }

    #[test]
    fn it_is_level_when_the_last_thousands_had_it_grow_by_little() {
        is_level(&[], false);
        is_level(&[50_000, 50_000], false);
        is_level(&[50_000, 55_000, 55_500, 55_400], true);
        is_level(&[50_000, 55_000, 55_500, 55_600], false);
        is_level(&[60_000, 58_000, 57_000], true);
    }

    /// Ten thousand clients, each of whom leaves a kilobyte.
    #[test]
    fn a_kilobyte_of_each_client_is_seen() {
        let left_by = |clients: usize| 50_000 + clients * 1_000 / 1_024;
        is_level(&[left_by(0), left_by(1_000), left_by(2_000)], false);
        assert_eq!(
            left(left_by(0), left_by(10_000)).as_deref(),
            Some("memory: 48.8 MiB before, 58.4 MiB after")
        );
        assert_eq!(left(left_by(0), left_by(0)), None);
    }
}
