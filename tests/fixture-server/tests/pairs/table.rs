//! The table: what each client sees before each server.

use std::pin::Pin;
use std::sync::Arc;

use crate::pair::Pair;
use crate::{asks, calls, changes, contents, discovery, ends, errors, lists, logs, tasks};

/// One thing that a client does, and what it sees then.
pub(crate) struct Row {
    pub(crate) about: &'static str,
    /// A sign for each pair: a group for each client, in it one for each server, both in the order of
    /// [`SIDES`](crate::pair::SIDES).
    pub(crate) cells: &'static str,
    /// What each sign of the row stands for: what the client sees, word for word.
    pub(crate) sees: &'static [(char, &'static str)],
    pub(crate) look: Look,
}

/// Does what a row is about, as a client of a pair, and tells what was seen.
pub(crate) type Look = fn(Arc<Pair>) -> Pin<Box<dyn Future<Output = String> + Send>>;

macro_rules! look {
    ($look:path) => {
        |pair| Box::pin($look(pair))
    };
}

/// All rows, by what they are about.
///
/// `=`: nothing is lost. What the server says arrives, in the form of the client's revision. The other signs stand in
/// [`WHY`].
#[rustfmt::skip]
pub(crate) const TABLE: &[(&str, &[Row])] = &[
    // The servers in each group: legacy HTTP, legacy stdio, modern HTTP, modern stdio.
    //                                                       client: lHTTP lstd. mHTTP mstd.
    ("Discovery", &[
        Row { about: "the server's name, in a version of the client", cells: "==== ==== ==== ====", look: look!(discovery::introduction), sees: &[
            ('=', r#""fixture" in its revision"#),
        ]},
        Row { about: "instructions",                             cells: "==== ==== ==== ====", look: look!(discovery::instructions), sees: &[
            ('=', r#""For tests only: every tool says what it does.""#),
        ]},
        Row { about: "capabilities",                             cells: "==kk ==kk ==== ====", look: look!(discovery::capabilities), sees: &[
            ('k', "completions extensions.io.modelcontextprotocol/tasks logging prompts.listChanged=true resources.listChanged=true resources.subscribe=true tasks.cancel tasks.list tasks.requests.tools.call tools.listChanged=true"),
            ('=', "completions extensions.io.modelcontextprotocol/tasks logging prompts.listChanged=true resources.listChanged=true resources.subscribe=true tools.listChanged=true"),
        ]},
        Row { about: "`ping`",                                   cells: "==== ==== rrrr rrrr", look: look!(discovery::ping), sees: &[
            ('=', "{}"),
            ('r', "-32601"),
        ]},
    ]),
    ("Lists", &[
        Row { about: "tools, page by page",                      cells: "==kk ==kk ==== ====", look: look!(lists::tools), sees: &[
            ('k', "all as they are listed, page by page, each with leave to wish for a task"),
            ('=', "all as they are listed, page by page"),
        ]},
        Row { about: "prompts",                                  cells: "==== ==== ==== ====", look: look!(lists::prompts), sees: &[
            ('=', "all as they are listed, page by page"),
        ]},
        Row { about: "resources",                                cells: "==== ==== ==== ====", look: look!(lists::resources), sees: &[
            ('=', "all as they are listed"),
        ]},
        Row { about: "resource templates",                       cells: "==== ==== ==== ====", look: look!(lists::templates), sees: &[
            ('=', "all as they are listed"),
        ]},
        Row { about: "an unknown cursor",                cells: "==== ==== ==== ====", look: look!(lists::cursor), sees: &[
            ('=', "-32602"),
        ]},
    ]),
    ("Calls", &[
        Row { about: "arguments and result",                     cells: "==== ==== ==== ====", look: look!(calls::echo), sees: &[
            ('=', "what it said, as structure and as text"),
        ]},
        Row { about: "content of every kind",                    cells: "==== ==== ==== ====", look: look!(calls::every_kind), sees: &[
            ('=', r#"text image audio resource_link resource text {"items":[{"id":1},{"id":2}]}"#),
        ]},
        Row { about: "a structured value that is not an object",            cells: "==tt ==tt ==== ====", look: look!(calls::array), sees: &[
            ('=', r#"structure [1,2], text "[1,2]""#),
            ('t', r#"text "[1,2]""#),
        ]},
        Row { about: "what reaches the server",                  cells: "==== ==== ==== ====", look: look!(calls::seen), sees: &[
            ('=', r#"its own revision, {"a":1}, {"b":2}"#),
        ]},
        Row { about: "progress with the client's token",         cells: "==== ==== ==== ====", look: look!(calls::progress), sees: &[
            ('=', r#""mine" 1.0/3.0, "mine" 2.0/3.0, "mine" 3.0/3.0, then "took 3 steps""#),
        ]},
        Row { about: "no progress without a token",              cells: "==== ==== ==== ====", look: look!(calls::silence), sees: &[
            ('=', r#"then "took 3 steps""#),
        ]},
    ]),
    ("Log messages", &[
        Row { about: "for a client that names no level",          cells: "==uu ==uu qqqq qqqq", look: look!(logs::without_level), sees: &[
            ('=', "debug info notice warning error critical alert emergency"),
            ('u', "nothing"),
            ('q', "nothing"),
        ]},
        Row { about: "from `warning` on",                        cells: "==== ==== ==== ====", look: look!(logs::from_warning), sees: &[
            ('=', "warning error critical alert emergency"),
        ]},
        Row { about: "from `alert` on, for a client's second call", cells: "==== ==== dd=d ====", look: look!(logs::of_the_second_call), sees: &[
            ('=', "alert emergency"),
            ('d', "nothing"),
        ]},
        Row { about: "from `alert` on, after another client's call", cells: "dd=d dd=d dd=d dd=d", look: look!(logs::of_several), sees: &[
            ('=', "alert emergency"),
            ('d', "nothing"),
        ]},
        Row { about: "from `warning` on, for a client that accepts server requests", cells: "==== ==== ==== ====", look: look!(logs::of_one_who_can_be_asked), sees: &[
            ('=', "warning error critical alert emergency"),
        ]},
        Row { about: "while another client's call is running",   cells: "dd=d dd=d dd=d dd=d", look: look!(logs::beside_another), sees: &[
            ('=', "alert emergency"),
            ('d', "nothing"),
        ]},
    ]),
    ("Cancelled calls", &[
        Row { about: "cancelled, as in the client's version", cells: "==== ==== ==== ====", look: look!(ends::cancellation), sees: &[
            ('=', "no answer; the server stops"),
        ]},
        Row { about: "the client closes the connection",                      cells: "==== eeee cccc eeee", look: look!(ends::hang_up), sees: &[
            ('=', r#"the server goes on; who comes back hears "waited 500 ms""#),
            ('c', "the server stops"),
            ('e', "the server stops"),
        ]},
    ]),
    ("Resources, prompts, completions", &[
        Row { about: "a text",                                   cells: "==== ==== ==== ====", look: look!(contents::text), sees: &[
            ('=', r#""text/plain" "This is the content of the static text resource.""#),
        ]},
        Row { about: "bytes",                                    cells: "==== ==== ==== ====", look: look!(contents::binary), sees: &[
            ('=', r#""image/png" 92 characters"#),
        ]},
        Row { about: "a URI of a template",               cells: "==== ==== ==== ====", look: look!(contents::template), sees: &[
            ('=', r#""text/plain" "A note called a%20b.""#),
        ]},
        Row { about: "a prompt with arguments",                  cells: "==== ==== ==== ====", look: look!(contents::prompt), sees: &[
            ('=', r#""user": "Prompt with arguments: arg1='one', arg2='ü'""#),
        ]},
        Row { about: "a prompt with a resource",                 cells: "==== ==== ==== ====", look: look!(contents::prompt_with_resource), sees: &[
            ('=', r#""user": "resource" "test://static-text", "user": "Please process the embedded resource above.""#),
        ]},
        Row { about: "completion of a prompt's argument",        cells: "==== ==== ==== ====", look: look!(contents::completion), sees: &[
            ('=', r#"["paris","party"]"#),
        ]},
        Row { about: "completion of a template's argument",      cells: "==== ==== ==== ====", look: look!(contents::completion_of_template), sees: &[
            ('=', r#"["12","123"]"#),
        ]},
    ]),
    ("Errors", &[
        Row { about: "an error of the server",             cells: "==== ==== ==== ====", look: look!(errors::of_protocol), sees: &[
            ('=', r#"-32050 "as asked" {"a":[1.0]}"#),
        ]},
        Row { about: "an error of the tool",                     cells: "==== ==== ==== ====", look: look!(errors::of_tool), sees: &[
            ('=', r#"isError true: "as asked""#),
        ]},
        Row { about: "arguments that the tool rejects",          cells: "==== ==== ==== ====", look: look!(errors::of_arguments), sees: &[
            ('=', r#"-32602 "`a` is missing or not a number""#),
        ]},
        Row { about: "an unknown tool",                          cells: "==== ==== ==== ====", look: look!(errors::unknown_tool), sees: &[
            ('=', r#"-32602 "Unknown tool: nobody" {"activeVariant":"standard"}"#),
        ]},
        Row { about: "an unknown prompt",                        cells: "==== ==== ==== ====", look: look!(contents::no_prompt), sees: &[
            ('=', r#"-32602 "Unknown prompt: nobody" {"activeVariant":"standard"}"#),
        ]},
        Row { about: "an unknown resource",                      cells: "==== ==== mmmm mmmm", look: look!(contents::no_resource), sees: &[
            ('=', r#"-32002 "resource not found: test://nowhere" {"uri":"test://nowhere"}"#),
            ('m', r#"-32602 "resource not found: test://nowhere" {"uri":"test://nowhere"}"#),
        ]},
        Row { about: "an unknown method",                        cells: "==== ==== ==== ====", look: look!(errors::unknown_method), sees: &[
            ('=', r#"-32601 "Method not found: no/such""#),
        ]},
    ]),
    ("Requests of the server", &[
        Row { about: "a form",                                   cells: "==== ==== ==== ====", look: look!(asks::form), sees: &[
            ('=', r#""Hello, Ada!""#),
        ]},
        Row { about: "a sampled message",                        cells: "==== ==== ==== ====", look: look!(asks::sampling), sees: &[
            ('=', r#""the model says {\"type\":\"text\",\"text\":\"Paris\"}""#),
        ]},
        Row { about: "the roots",                                cells: "==== ==== ==== ====", look: look!(asks::roots), sees: &[
            ('=', r#""the roots are [{\"uri\":\"file:///a\"}]""#),
        ]},
        Row { about: "several requests, one after the other",               cells: "==== ==== ==== ====", look: look!(asks::twice), sees: &[
            ('=', r#""all rounds are done""#),
        ]},
        Row { about: "for a client that does not accept them",         cells: "==vv ==vv ==vv ==vv", look: look!(asks::nothing), sees: &[
            ('=', r#"-32603 "the client did not answer: Mcp error: -32601: there is no client on this connection, so `elicitation/create` cannot be answered""#),
            ('v', r#"-32603 "server `fixture` asks for `elicitation/create`: the client declared no `elicitation`""#),
        ]},
    ]),
    ("Tasks", &[
        Row { about: "to the result",                            cells: "==== ==== ==== ====", look: look!(tasks::result), sees: &[
            ('=', r#""computed it""#),
        ]},
        Row { about: "with a request for input",               cells: "==== ==== ==== ====", look: look!(tasks::question), sees: &[
            ('=', r#""deleted a""#),
        ]},
        Row { about: "cancelled",                                cells: "==== ==== ==== ====", look: look!(tasks::cancellation), sees: &[
            ('=', "the server stops"),
        ]},
        Row { about: "requested as in 2025-11-25, to the result", cells: "ww== ww== oooo oooo", look: look!(tasks::wish), sees: &[
            ('=', r#""computed it""#),
            ('w', "no task"),
            ('o', "no task"),
        ]},
        Row { about: "the same, with a request for input",           cells: "ww== ww== oooo oooo", look: look!(tasks::wish_with_a_question), sees: &[
            ('=', r#""deleted a""#),
            ('w', "no task"),
            ('o', "no task"),
        ]},
        Row { about: "the same, listed and cancelled",                 cells: "ww== ww== oooo oooo", look: look!(tasks::wish_withdrawn), sees: &[
            ('=', "listed as `working`, then as `cancelled`"),
            ('w', "no task"),
            ('o', "no task"),
        ]},
    ]),
    ("Changes", &[
        Row { about: "a tool is added and removed",                    cells: "==== ==== ==== ====", look: look!(changes::of_tools), sees: &[
            ('=', "told and it is there, told and it is gone"),
        ]},
        Row { about: "a subscribed resource", cells: "==== ==== ==== ====", look: look!(changes::of_a_resource), sees: &[
            ('=', "told of test://watched-resource"),
        ]},
    ]),
];

/// What each sign but `=` means, and why it is so.
#[rustfmt::skip]
pub(crate) const WHY: &[(char, &str)] = &[
    ('c', "The server's work is cancelled. In 2026-07-28, closing the connection cancels the request."),
    ('d', "Nothing arrives. The message names no request, so it may be about another client's call ([0004](../decisions/0004-one-log-level.md))."),
    ('e', "The server's work is cancelled. Closing the pipes ends everything that runs on them."),
    ('k', "Vary offers the tasks of 2025-11-25, and declares them for each tool. It gets them from the server by the extension ([0019](../decisions/0019-tasks-between-the-eras.md))."),
    ('m', "The code is -32602, which replaces -32002 in 2026-07-28."),
    ('o', "The call is answered like any other. In 2026-07-28 a client cannot request a task; the server decides, if the client declares the extension."),
    ('q', "Nothing arrives. In 2026-07-28 a request without a level asks for no messages."),
    ('r', "The error is -32601. 2026-07-28 does not have this method."),
    ('t', "The text arrives, and the structured value does not. In 2025-11-25 it must be an object."),
    ('u', "Nothing arrives. Servers of 2026-07-28 send no messages for a request without a level, and this client has not called `logging/setLevel`."),
    ('v', "The error is from Vary. The server asks for input that its client did not declare, which is not allowed."),
    ('w', "The call is answered like any other. The server creates tasks by the extension, which a client of 2025-11-25 declares for a whole connection, not for one call ([0019](../decisions/0019-tasks-between-the-eras.md))."),
];
