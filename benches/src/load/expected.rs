//! The expected answers. The first answer to each request is parsed and checked. A later one must have the same bytes
//! except for its number; otherwise it is parsed and checked, too.

use serde::Deserialize;
use serde_json::Value;

use super::Response;
use super::script::TEXT;
use crate::upstream::tools;

/// The required content of an answer.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Goal {
    /// The text of the call and `size` more bytes, after `steps` notifications.
    Echo { size: usize, steps: usize },
    /// The text of the call and so many rows, in a form.
    Data { rows: usize, form: Form },
    /// This many tools of each server, or in a variant of read-only tools, these among them.
    List { tools: usize, servers: usize },
    /// A fixed answer of this size.
    Fixed { size: usize },
}

/// The form of the data in a result.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Form {
    /// A value, and the text that repeats it.
    Both,
    /// Only a value.
    Value,
    /// A line for the text and for each row.
    Lines,
    /// The text, and a table with a line for each row.
    Table,
    /// A value and a shorter text.
    Few,
}

/// The expected answers to a script, learned from the first answers.
#[derive(Debug)]
pub(crate) struct Expected {
    goal: Goal,
    learned: Vec<Option<Learned>>,
}

/// The parts of an answer between its numbers.
#[derive(Debug)]
struct Learned(Vec<Vec<u8>>);

impl Expected {
    pub(crate) fn new(goal: Goal, templates: usize) -> Self {
        Self {
            goal,
            learned: (0..templates).map(|_| None).collect(),
        }
    }

    /// Whether every client gets the same result.
    pub(crate) const fn is_fixed(&self) -> bool {
        matches!(self.goal, Goal::Fixed { .. })
    }

    /// Whether `response` is the answer to the request `template` with `number`.
    pub(crate) fn check(
        &mut self,
        template: usize,
        number: u64,
        response: &Response<'_>,
    ) -> Result<(), String> {
        let sent = || excerpt(response.body);
        if response.status != 200 {
            return Err(format!("HTTP status {}: {}", response.status, sent()));
        }
        let digits = number.to_string();
        if let Some(learned) = &self.learned[template]
            && learned.is(response.body, digits.as_bytes())
        {
            return Ok(());
        }
        let messages = messages(response.body);
        let understood = messages.and_then(|messages| self.goal.understand(number, &messages));
        understood.map_err(|why| format!("{why}: {}", sent()))?;
        self.learned[template] = Some(Learned::cut(response.body, digits.as_bytes()));
        Ok(())
    }
}

impl Learned {
    fn cut(body: &[u8], digits: &[u8]) -> Self {
        let mut pieces = vec![Vec::new()];
        let mut remaining = body;
        while let Some((first, after)) = remaining.split_first() {
            if let Some(after) = remaining.strip_prefix(digits) {
                pieces.push(Vec::new());
                remaining = after;
                continue;
            }
            if let Some(piece) = pieces.last_mut() {
                piece.push(*first);
            }
            remaining = after;
        }
        Self(pieces)
    }

    fn is(&self, mut body: &[u8], digits: &[u8]) -> bool {
        for (index, piece) in self.0.iter().enumerate() {
            if index > 0 {
                let Some(remaining) = body.strip_prefix(digits) else {
                    return false;
                };
                body = remaining;
            }
            let Some(remaining) = body.strip_prefix(piece.as_slice()) else {
                return false;
            };
            body = remaining;
        }
        body.is_empty()
    }
}

impl Goal {
    fn understand(self, number: u64, messages: &[Value]) -> Result<(), String> {
        let Some((answer, before)) = messages.split_last() else {
            return Err("no message".to_owned());
        };
        if let Self::Fixed { size } = self {
            let length = answer.to_string().len();
            return expect(length == size, || format!("{length} bytes, not {size}"));
        }
        expect(answer["jsonrpc"] == "2.0" && answer["id"] == number, || {
            format!("not the answer to {number}")
        })?;
        match self {
            Self::Echo { size, steps } => {
                says_again(number, size, &answer["result"])?;
                check_progress(number, steps, before)
            }
            Self::Data { rows, form } => form.understand(number, rows, &answer["result"]),
            Self::List { tools, servers } => lists(tools, servers, &answer["result"]["tools"]),
            Self::Fixed { .. } => Ok(()),
        }
    }
}

fn says_again(number: u64, size: usize, result: &Value) -> Result<(), String> {
    let reported = result["content"][0]["text"].as_str().unwrap_or_default();
    let wanted = format!("{number} {TEXT}");
    expect(reported.starts_with(&wanted), || "another text".to_owned())?;
    let (length, wanted) = (reported.len(), wanted.len() + size);
    expect(length == wanted, || {
        format!("a text of {length} bytes, not {wanted}")
    })
}

fn check_progress(number: u64, steps: usize, messages: &[Value]) -> Result<(), String> {
    let sent = messages
        .iter()
        .filter(|message| message["method"] == "notifications/progress")
        .zip(1..)
        .filter(|(message, step)| {
            let params = &message["params"];
            params["progressToken"] == number
                && params["progress"].as_f64() == Some(f64::from(*step))
        });
    let sent = sent.count();
    expect(sent == steps, || format!("{sent} steps, not {steps}"))
}

impl Form {
    fn understand(self, number: u64, rows: usize, result: &Value) -> Result<(), String> {
        let wanted = format!("{number} {TEXT}");
        let text = result["content"][0]["text"].as_str().unwrap_or_default();
        let value = &result["structuredContent"];
        let is_whole = value["text"] == wanted
            && value["rows"]
                .as_array()
                .is_some_and(|all| all.len() == rows);
        let read = || serde_json::from_str::<Value>(text).is_ok_and(|text| text == *value);
        let lines = || text.starts_with(&wanted) && text.lines().count() == rows + 1;
        let table = || {
            let of_table = text.lines().filter(|line| line.starts_with('|'));
            text.contains(&wanted) && of_table.count() == rows + 2
        };
        let holds = match self {
            Self::Both => is_whole && read(),
            Self::Value => is_whole && result["content"] == Value::Array(Vec::new()),
            Self::Lines => value.is_null() && lines(),
            Self::Table => value.is_null() && table(),
            Self::Few => is_whole && text.len() < value.to_string().len(),
        };
        expect(holds, || format!("not {rows} rows in the form {self:?}"))
    }
}

/// Checks that all tools are listed. Names may have a prefix, and the proxy may add tools.
fn lists(tools: usize, servers: usize, listed: &Value) -> Result<(), String> {
    let listed = listed.as_array().ok_or("no list of tools")?;
    let names: Vec<_> = listed
        .iter()
        .filter_map(|tool| tool["name"].as_str())
        .collect();
    let has = |index: usize| {
        let name = tools::name(index);
        let of_servers = names.iter().filter(|listed| listed.ends_with(&name));
        of_servers.count() >= servers
    };
    let missing = (0..tools).find(|index| !has(*index));
    let reading_missing = (0..tools).find(|index| tools::only_reads(*index) && !has(*index));
    match (missing, reading_missing) {
        (None, _) => Ok(()),
        (Some(_), None) => {
            let all = names.len();
            let reading = (0..tools).filter(|index| tools::only_reads(*index));
            let reading = reading.count() * servers;
            expect(all == reading, || {
                format!("{all} tools of {}", tools * servers)
            })
        }
        (Some(_), Some(index)) => Err(format!("`{}` is not listed", tools::name(index))),
    }
}

fn expect(holds: bool, why: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(why()) }
}

/// The messages of a body: one, or those of a stream of events.
fn messages(body: &[u8]) -> Result<Vec<Value>, String> {
    let text = std::str::from_utf8(body).map_err(|error| error.to_string())?;
    let read = |text: &str| serde_json::from_str(text).map_err(|error| error.to_string());
    if text.starts_with('{') {
        return read(text).map(|message| vec![message]);
    }
    let data = text.lines().filter_map(|line| line.strip_prefix("data:"));
    let data = data.map(str::trim).filter(|data| !data.is_empty());
    data.map(read).collect()
}

fn excerpt(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let mut cut: String = text.chars().take(300).collect();
    if cut.len() < text.len() {
        cut.push('…');
    }
    cut
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_known_again_whatever_its_number() {
        let learned = Learned::cut(br#"{"id":10000001,"text":"10000001 x"}"#, b"10000001");
        assert!(learned.is(br#"{"id":10000002,"text":"10000002 x"}"#, b"10000002"));
        assert!(!learned.is(br#"{"id":10000001,"text":"10000002 x"}"#, b"10000002"));
        assert!(!learned.is(br#"{"id":10000002,"text":"10000002 xy"}"#, b"10000002"));
    }

    #[track_caller]
    fn understands(goal: Goal, body: &str, expected: Result<(), &str>) {
        let messages = messages(body.as_bytes()).unwrap();
        let understood = goal.understand(10_000_001, &messages);
        assert_eq!(
            understood.as_ref().map_err(String::as_str),
            expected.as_ref().map_err(|why| *why),
            "{body}"
        );
    }

    #[test]
    fn an_answer_to_another_or_with_another_text_is_wrong() {
        let echo = Goal::Echo { size: 2, steps: 0 };
        let answer = |id: &str, text: &str| {
            format!(
                r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"type":"text","text":"{text}"}}]}}}}"#
            )
        };
        let text = format!("10000001 {TEXT}");
        understands(echo, &answer("10000001", &format!("{text}xx")), Ok(()));
        let wrong = Err("not the answer to 10000001");
        understands(echo, &answer("10000002", &format!("{text}xx")), wrong);
        understands(echo, &answer("10000001", "10000002"), Err("another text"));
        let short = format!("a text of {} bytes, not {}", text.len(), text.len() + 2);
        understands(echo, &answer("10000001", &text), Err(&short));
    }

    #[test]
    fn progress_that_is_missing_or_is_about_another_request_is_wrong() {
        let streamed = Goal::Echo { size: 0, steps: 1 };
        let stream = |token: &str| {
            format!(
                "event: message\ndata: {{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":\
                 {{\"progressToken\":{token},\"progress\":1}}}}\n\ndata: {{\"jsonrpc\":\"2.0\",\"id\":10000001,\
                 \"result\":{{\"content\":[{{\"type\":\"text\",\"text\":\"10000001 {TEXT}\"}}]}}}}\n\n"
            )
        };
        understands(streamed, &stream("10000001"), Ok(()));
        understands(streamed, &stream("10000002"), Err("0 steps, not 1"));
    }

    #[test]
    fn a_list_has_all_tools_or_all_that_only_read() {
        let list = |names: &[&str]| {
            let tools: Vec<_> = names
                .iter()
                .map(|name| format!("{{\"name\":\"{name}\"}}"))
                .collect();
            format!(
                r#"{{"jsonrpc":"2.0","id":10000001,"result":{{"tools":[{}]}}}}"#,
                tools.join(",")
            )
        };
        let three = Goal::List {
            tools: 3,
            servers: 1,
        };
        let of_two = Goal::List {
            tools: 1,
            servers: 2,
        };
        understands(of_two, &list(&["a_echo", "b_echo"]), Ok(()));
        let missing = Err("`echo` is not listed");
        understands(of_two, &list(&["a_echo"]), missing);
        understands(three, &list(&["echo", "record_001", "record_002"]), Ok(()));
        understands(
            three,
            &list(&["a_echo", "a_record_001", "a_record_002", "own"]),
            Ok(()),
        );
        understands(three, &list(&["echo", "record_002"]), Ok(()));
        understands(
            three,
            &list(&["echo", "record_001"]),
            Err("`record_002` is not listed"),
        );
        understands(
            three,
            &list(&["echo", "record_002", "x"]),
            Err("3 tools of 3"),
        );
    }
}
