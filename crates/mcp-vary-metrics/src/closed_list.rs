//! The closed lists that labels come from.

/// The values that a label can have. The last one is for everything else.
#[derive(Clone, Copy, Debug)]
pub struct ClosedList(&'static [&'static str]);

impl ClosedList {
    /// How many values there are.
    pub(crate) const fn len(&self) -> usize {
        self.0.len()
    }

    /// The position of `value`; that of the last one if it is not in the list.
    pub(crate) fn position(&self, value: &str) -> usize {
        let position = self.0.iter().position(|known| *known == value);
        position.unwrap_or(self.0.len() - 1)
    }

    /// The value at `position`.
    pub(crate) fn value(&self, position: usize) -> &'static str {
        self.0.get(position).copied().unwrap_or(OTHER)
    }

    /// The value in the list that stands for `value`: itself, or the last one.
    pub fn entry(&self, value: &str) -> &'static str {
        self.value(self.position(value))
    }

    /// The values.
    pub const fn values(&self) -> &'static [&'static str] {
        self.0
    }
}

/// What the semantic conventions call a value that is not in a list.
const OTHER: &str = "_OTHER";

/// The methods of requests, those first that are frequent.
pub const METHODS: ClosedList = ClosedList(&[
    TOOLS_CALL,
    "tools/list",
    "ping",
    "initialize",
    "server/discover",
    "resources/read",
    "resources/list",
    "resources/templates/list",
    "prompts/get",
    "prompts/list",
    "completion/complete",
    "subscriptions/listen",
    "resources/subscribe",
    "resources/unsubscribe",
    "logging/setLevel",
    "tasks/get",
    "tasks/update",
    "tasks/cancel",
    "tasks/result",
    "tasks/list",
    OTHER,
]);

/// The method that calls a tool; the first one of [`METHODS`].
pub(crate) const TOOLS_CALL: &str = "tools/call";

/// The eras of the protocol: which revisions clients speak.
pub const ERAS: ClosedList = ClosedList(&["before-2026-07-28", "2026-07-28", OTHER]);

/// What can decide the variant of a request.
pub const REASONS: ClosedList = ClosedList(&[
    "selector",
    "address",
    "header",
    "pin",
    "rule",
    "experiment",
    "model",
    "ranking",
    OTHER,
]);

/// What can become of a credential.
pub const AUTH_OUTCOMES: ClosedList = ClosedList(&[
    "ok",
    "missing",
    "invalid",
    "expired",
    "audience",
    "scope",
    "malformed",
    "keys_unavailable",
    "limited",
    OTHER,
]);

/// The outcome of a request as a label.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Code(usize);

impl Code {
    /// The request has a result.
    pub const OK: Self = Self(0);
    /// The result of a tool reports its failure.
    pub const TOOL_ERROR: Self = Self(1);
    /// The client did not wait for the response.
    pub const CANCELLED: Self = Self(2);

    /// The outcome of a request that was answered with this error of JSON-RPC.
    pub fn of_error(code: i64) -> Self {
        let known = NUMBERS.iter().position(|number| *number == code);
        Self(CODES.position("-32700") + known.unwrap_or(NUMBERS.len()))
    }

    pub(crate) const fn position(self) -> usize {
        self.0
    }

    /// The value of the label `error_type` for the code at `position`: empty if there was no error.
    pub(crate) fn error_type(position: usize) -> &'static str {
        if position == Self::OK.0 {
            ""
        } else {
            CODES.value(position)
        }
    }
}

/// The errors of JSON-RPC that have a label of their own, in the order of [`CODES`].
const NUMBERS: [i64; 14] = [
    -32700, -32600, -32601, -32602, -32603, -32000, -32001, -32002, -32003, -32004, -32005, -32020,
    -32021, -32042,
];

/// The outcomes of requests.
pub(crate) const CODES: ClosedList = ClosedList(&[
    "ok",
    "tool_error",
    "cancelled",
    "-32700",
    "-32600",
    "-32601",
    "-32602",
    "-32603",
    "-32000",
    "-32001",
    "-32002",
    "-32003",
    "-32004",
    "-32005",
    "-32020",
    "-32021",
    "-32042",
    OTHER,
]);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_has_its_number_or_the_last_label() {
        for number in NUMBERS {
            let code = Code::of_error(number);
            assert_eq!(CODES.value(code.position()), number.to_string());
        }
        for unknown in [0, 7, -1, i64::MIN, i64::MAX] {
            assert_eq!(CODES.value(Code::of_error(unknown).position()), OTHER);
        }
    }

    #[test]
    fn an_unknown_value_is_the_last_one() {
        assert_eq!(METHODS.value(METHODS.position("x/y")), OTHER);
        assert_eq!(ERAS.value(ERAS.position("2030-01-01")), OTHER);
        assert_eq!(METHODS.value(METHODS.position("ping")), "ping");
        assert_eq!(METHODS.position(TOOLS_CALL), 0);
    }
}
