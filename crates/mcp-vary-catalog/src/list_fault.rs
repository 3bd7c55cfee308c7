//! What is wrong with the items of a list, and what became of them.

use std::sync::Arc;

use mcp_vary_wire::sanitize::excerpt;

use mcp_vary_wire::list_kind::ListKind;

/// One thing that is wrong with items of a list.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ListFault {
    /// What is wrong, as a sentence without its subject's name, in printable text.
    pub problem: String,
    /// Whether the items are left out; if not, they are repaired.
    pub is_left_out: bool,
    /// The names of the first of them, in printable text.
    pub items: Vec<Arc<str>>,
    /// How many there are.
    pub count: usize,
}

/// The faults of a list, bounded: each problem once, with the items that have it.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ListFaults(Vec<ListFault>);

impl ListFaults {
    /// Adds an item.
    pub fn add(&mut self, item: &str, problem: &str, is_left_out: bool) {
        let is_same = |it: &ListFault| {
            it.is_left_out == is_left_out && (it.problem == problem || it.problem == OTHERS)
        };
        let item = excerpt(item.as_bytes(), MAX_NAME).into();
        if let Some(known) = self.0.iter_mut().find(|fault| is_same(fault)) {
            known.count += 1;
            if known.items.len() < MAX_ITEMS {
                known.items.push(item);
            }
            return;
        }
        let of_kind = self.0.iter().filter(|it| it.is_left_out == is_left_out);
        let problem = if of_kind.count() < MAX_PROBLEMS {
            problem
        } else {
            OTHERS
        };
        self.0.push(ListFault {
            problem: problem.to_owned(),
            is_left_out,
            items: vec![item],
            count: 1,
        });
    }

    /// Adds what is wrong with a further page.
    pub fn append(&mut self, more: &Self) {
        for fault in &more.0 {
            for item in &fault.items {
                self.add(item, &fault.problem, fault.is_left_out);
            }
        }
    }

    /// Whether nothing is wrong.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A sentence for each fault of a list of `kind`, those of items that are left out first.
    pub fn sentences(&self, kind: ListKind) -> impl Iterator<Item = String> {
        let (left_out, repaired): (Vec<_>, Vec<_>) = self.0.iter().partition(|it| it.is_left_out);
        let all = left_out.into_iter().chain(repaired);
        all.map(move |fault| fault.sentence(kind))
    }
}

impl ListFault {
    fn sentence(&self, kind: ListKind) -> String {
        let names: Vec<_> = self.items.iter().map(|name| format!("`{name}`")).collect();
        let more = match self.count - self.items.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let (s, are) = if self.count == 1 {
            ("", "is")
        } else {
            ("s", "are")
        };
        let outcome = if self.is_left_out {
            "left out"
        } else {
            "repaired"
        };
        let noun = kind.noun();
        let list = names.join(", ");
        let problem = &self.problem;
        format!("{noun}{s} {list}{more} {are} {outcome}: {problem}")
    }
}

/// The problem of the items beyond [`MAX_PROBLEMS`].
const OTHERS: &str = "they have other problems";
/// The most different problems of items that are left out, and of repaired ones.
const MAX_PROBLEMS: usize = 20;
/// The most names of items with one problem.
const MAX_ITEMS: usize = 20;
/// Characters of a name.
const MAX_NAME: usize = 80;
