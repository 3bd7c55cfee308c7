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
        Row { about: "the server's name, in a revision of the client", cells: "==== ==== ==== ====", look: look!(discovery::introduction), sees: &[
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
        Row { about: "a cursor that is nobody's",                cells: "==== ==== ==== ====", look: look!(lists::cursor), sees: &[
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
        Row { about: "a structure that is no object",            cells: "==tt ==tt ==== ====", look: look!(calls::array), sees: &[
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
    ("Messages for the log", &[
        Row { about: "of a client that names no level",          cells: "==uu ==uu qqqq qqqq", look: look!(logs::without_level), sees: &[
            ('=', "debug info notice warning error critical alert emergency"),
            ('u', "nothing"),
            ('q', "nothing"),
        ]},
        Row { about: "from `warning` on",                        cells: "==== ==== ==== ====", look: look!(logs::from_warning), sees: &[
            ('=', "warning error critical alert emergency"),
        ]},
        Row { about: "from `alert` on, of a client's second call", cells: "==== ==== dd=d ====", look: look!(logs::of_the_second_call), sees: &[
            ('=', "alert emergency"),
            ('d', "nothing"),
        ]},
        Row { about: "from `alert` on, after another client's call", cells: "dd=d dd=d dd=d dd=d", look: look!(logs::of_several), sees: &[
            ('=', "alert emergency"),
            ('d', "nothing"),
        ]},
        Row { about: "from `warning` on, of a client that can be asked", cells: "==== ==== ==== ====", look: look!(logs::of_one_who_can_be_asked), sees: &[
            ('=', "warning error critical alert emergency"),
        ]},
        Row { about: "while another client's call is at work",   cells: "dd=d dd=d dd=d dd=d", look: look!(logs::beside_another), sees: &[
            ('=', "alert emergency"),
            ('d', "nothing"),
        ]},
    ]),
    ("Calls that are given up", &[
        Row { about: "cancelled, as the client's revision has it", cells: "==== ==== ==== ====", look: look!(ends::cancellation), sees: &[
            ('=', "no answer; the server stops"),
        ]},
        Row { about: "the client hangs up",                      cells: "==== eeee cccc eeee", look: look!(ends::hang_up), sees: &[
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
        Row { about: "what only a template knows",               cells: "==== ==== ==== ====", look: look!(contents::template), sees: &[
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
        Row { about: "an error of the server's own",             cells: "==== ==== ==== ====", look: look!(errors::of_protocol), sees: &[
            ('=', r#"-32050 "as asked" {"a":[1.0]}"#),
        ]},
        Row { about: "an error of the tool",                     cells: "==== ==== ==== ====", look: look!(errors::of_tool), sees: &[
            ('=', r#"isError true: "as asked""#),
        ]},
        Row { about: "arguments that the tool refuses",          cells: "==== ==== ==== ====", look: look!(errors::of_arguments), sees: &[
            ('=', r#"-32602 "`a` is missing or not a number""#),
        ]},
        Row { about: "an unknown tool",                          cells: "==== ==== ==== ====", look: look!(errors::unknown_tool), sees: &[
            ('=', r#"-32602 "Unknown tool: nobody" {"activeVariant":"standard"}"#),
        ]},
        Row { about: "an unknown prompt",                        cells: "==== ==== ==== ====", look: look!(contents::no_prompt), sees: &[
            ('=', r#"-32602 "Unknown prompt: nobody" {"activeVariant":"standard"}"#),
        ]},
        Row { about: "an unknown resource",                      cells: "==== ==== mmmm mmmm", look: look!(contents::no_resource), sees: &[
            ('=', r#"-32002 "resource not found: test://nowhere" {"uri":"test://nowhere","activeVariant":"standard"}"#),
            ('m', r#"-32602 "resource not found: test://nowhere" {"uri":"test://nowhere","activeVariant":"standard"}"#),
        ]},
        Row { about: "an unknown method",                        cells: "==== ==== ==== ====", look: look!(errors::unknown_method), sees: &[
            ('=', r#"-32601 "Method not found: no/such""#),
        ]},
    ]),
    ("What the server asks", &[
        Row { about: "a form",                                   cells: "==== ==== ==== ====", look: look!(asks::form), sees: &[
            ('=', r#""Hello, Ada!""#),
        ]},
        Row { about: "a sampled message",                        cells: "==== ==== ==== ====", look: look!(asks::sampling), sees: &[
            ('=', r#""the model says {\"type\":\"text\",\"text\":\"Paris\"}""#),
        ]},
        Row { about: "the roots",                                cells: "==== ==== ==== ====", look: look!(asks::roots), sees: &[
            ('=', r#""the roots are [{\"uri\":\"file:///a\"}]""#),
        ]},
        Row { about: "one question after another",               cells: "==== ==== ==== ====", look: look!(asks::twice), sees: &[
            ('=', r#""all rounds are done""#),
        ]},
        Row { about: "of a client that cannot be asked",         cells: "==vv ==vv ==vv ==vv", look: look!(asks::nothing), sees: &[
            ('=', r#"-32603 "the client did not answer: Mcp error: -32601: there is no client on this connection, so `elicitation/create` cannot be answered""#),
            ('v', r#"-32603 "server `fixture` asks for `elicitation/create`: the client declared no `elicitation`""#),
        ]},
    ]),
    ("Tasks", &[
        Row { about: "to the result",                            cells: "==== ==== ==== ====", look: look!(tasks::result), sees: &[
            ('=', r#""computed it""#),
        ]},
        Row { about: "with a question on the way",               cells: "==== ==== ==== ====", look: look!(tasks::question), sees: &[
            ('=', r#""deleted a""#),
        ]},
        Row { about: "cancelled",                                cells: "==== ==== ==== ====", look: look!(tasks::cancellation), sees: &[
            ('=', "the server stops"),
        ]},
        Row { about: "as 2025-11-25 wishes for it, to the result", cells: "ww== ww== oooo oooo", look: look!(tasks::wish), sees: &[
            ('=', r#""computed it""#),
            ('w', "no task"),
            ('o', "no task"),
        ]},
        Row { about: "so, with a question on the way",           cells: "ww== ww== oooo oooo", look: look!(tasks::wish_with_a_question), sees: &[
            ('=', r#""deleted a""#),
            ('w', "no task"),
            ('o', "no task"),
        ]},
        Row { about: "so, listed and cancelled",                 cells: "ww== ww== oooo oooo", look: look!(tasks::wish_withdrawn), sees: &[
            ('=', "listed as `working`, then as `cancelled`"),
            ('w', "no task"),
            ('o', "no task"),
        ]},
    ]),
    ("What changes", &[
        Row { about: "a tool comes and goes",                    cells: "==== ==== ==== ====", look: look!(changes::of_tools), sees: &[
            ('=', "told and it is there, told and it is gone"),
        ]},
        Row { about: "a resource that the client is subscribed to", cells: "==== ==== ==== ====", look: look!(changes::of_a_resource), sees: &[
            ('=', "told of test://watched-resource"),
        ]},
    ]),
];

/// What each sign but `=` means, and why it is so.
#[rustfmt::skip]
pub(crate) const WHY: &[(char, &str)] = &[
    ('c', "The server's work is cancelled. A client of 2026-07-28 that hangs up has cancelled."),
    ('d', "Nothing arrives. The message names no request, and what may be another client's is not shown ([0004](decisions/0004-one-log-level.md))."),
    ('e', "The server's work is cancelled. Who closes the pipes has ended everything that ran on them."),
    ('k', "Vary offers tasks as 2025-11-25 has them, and says so of each tool: it gets them of the server by the extension ([0019](decisions/0019-tasks-between-the-eras.md))."),
    ('m', "The code is -32602, which 2026-07-28 has for this instead of -32002."),
    ('o', "The call is answered as any other. 2026-07-28 has no such wish: servers decide, where a client declares the extension."),
    ('q', "Nothing arrives. Since 2026-07-28 a request that names no level wants no messages."),
    ('r', "The error is -32601. 2026-07-28 has no such method."),
    ('t', "The text arrives, and the structure does not. Clients of 2025-11-25 know structures that are objects, no others."),
    ('u', "Nothing arrives. Servers of 2026-07-28 log nothing for a request that names no level, and a client that has not called `logging/setLevel` names none."),
    ('v', "The error is Vary's. The server's result asks for what its client did not declare, which it must not."),
    ('w', "The call is answered as any other. The server makes tasks by the extension, which clients of 2025-11-25 declare for all of a connection, and so not for one call ([0019](decisions/0019-tasks-between-the-eras.md))."),
];
