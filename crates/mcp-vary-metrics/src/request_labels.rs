//! The labels of a request that are known when it arrives.

use crate::closed_list::{CODES, Code, ERAS, METHODS};
use crate::exposition::Labels;

/// The labels of a request, as positions in their closed lists. With an outcome, they are the position of its series.
#[derive(Clone, Copy, Debug)]
pub struct RequestLabels {
    pub(crate) method: usize,
    pub(crate) era: usize,
}

impl Default for RequestLabels {
    /// Those of a message that is not a request.
    fn default() -> Self {
        Self::new("", "")
    }
}

impl RequestLabels {
    /// How many series there are.
    pub(crate) const SERIES: usize = METHODS.len() * ERAS.len() * CODES.len();

    /// The labels of a request of a client of `era`.
    #[must_use]
    pub fn new(method: &str, era: &str) -> Self {
        Self {
            method: METHODS.position(method),
            era: ERAS.position(era),
        }
    }

    /// Whether the request calls a tool.
    pub(crate) const fn is_call(self) -> bool {
        self.method == 0
    }

    /// The position of the series of requests with this outcome.
    pub(crate) const fn position(self, code: Code) -> usize {
        (self.method * ERAS.len() + self.era) * CODES.len() + code.position()
    }

    /// The labels of the series at a position, where the method has this label, and the position of its outcome.
    pub(crate) fn of_series(position: usize, method_label: &'static str) -> (Labels, usize) {
        let of_method = position / CODES.len();
        let method = METHODS.value(of_method / ERAS.len());
        let era = ERAS.value(of_method % ERAS.len());
        let labels = vec![
            (method_label, method.to_owned()),
            ("protocol", era.to_owned()),
        ];
        (labels, position % CODES.len())
    }
}
