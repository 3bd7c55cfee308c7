//! The table: what each client sees before each server. Its rows are in `table.json`.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, LazyLock};

use serde::Deserialize;

use crate::pair::Pair;
use crate::{asks, calls, changes, contents, discovery, ends, errors, lists, logs, tasks};

/// The whole table.
///
/// `=`: nothing is lost. What the server says arrives, in the form of the client's revision.
#[derive(Deserialize)]
pub(crate) struct Table {
    pub(crate) topics: Vec<Topic>,
    /// What each sign but `=` means, and why it is so.
    pub(crate) why: Vec<(char, String)>,
}

/// The rows about one thing.
#[derive(Deserialize)]
pub(crate) struct Topic {
    pub(crate) topic: String,
    pub(crate) rows: Vec<Row>,
}

/// One thing that a client does, and what it sees then.
#[derive(Deserialize)]
pub(crate) struct Row {
    /// The path of the function that does it.
    pub(crate) look: String,
    pub(crate) about: String,
    /// A sign for each pair: a group for each client, in it one for each server, both in the order of
    /// [`SIDES`](crate::pair::SIDES): legacy HTTP, legacy stdio, modern HTTP, modern stdio.
    pub(crate) cells: String,
    /// What each sign of the row stands for: what the client sees, word for word.
    pub(crate) sees: BTreeMap<char, String>,
}

impl Row {
    /// Does what the row is about, as a client of `pair`, and tells what was seen.
    pub(crate) fn look(&self, pair: Arc<Pair>) -> Seen {
        let found = LOOKS.iter().find(|(path, _)| *path == self.look);
        let (_, look) = found.unwrap_or_else(|| panic!("there is no `{}`", self.look));
        look(pair)
    }
}

/// What was seen, once it was.
pub(crate) type Seen = Pin<Box<dyn Future<Output = String> + Send>>;

pub(crate) static TABLE: LazyLock<Table> = LazyLock::new(|| {
    serde_json::from_str(include_str!("table.json")).expect("the file is a table")
});

macro_rules! looks {
    ($($look:path)+) => {
        /// What rows can be about.
        pub(crate) const LOOKS: &[(&str, fn(Arc<Pair>) -> Seen)] =
            &[$((stringify!($look), |pair| Box::pin($look(pair)))),+];
    };
}

looks! {
    discovery::introduction discovery::instructions discovery::capabilities discovery::ping
    lists::tools lists::prompts lists::resources lists::templates lists::cursor
    calls::echo calls::every_kind calls::array calls::seen calls::progress calls::silence
    logs::without_level logs::from_warning logs::of_the_second_call logs::of_several logs::of_one_who_can_be_asked
    logs::beside_another
    ends::cancellation ends::hang_up
    contents::text contents::binary contents::template contents::prompt contents::prompt_with_resource
    contents::completion contents::completion_of_template contents::no_prompt contents::no_resource
    errors::of_protocol errors::of_tool errors::of_arguments errors::unknown_tool errors::unknown_method
    asks::form asks::sampling asks::roots asks::twice asks::nothing
    tasks::result tasks::question tasks::cancellation tasks::wish
    changes::of_tools changes::of_a_resource
}
