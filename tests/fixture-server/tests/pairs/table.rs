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

/// The rows by what they are about: what a client does, what it is called, a sign for each pair, and what each sign stands for.
macro_rules! table {
    ($($topic:literal: { $($look:path, $about:literal, $cells:literal: $($sign:literal $sees:literal),+;)+ })+) => {
        pub(crate) const TABLE: &[(&str, &[Row])] = &[$(($topic, &[$(Row {
            about: $about,
            cells: $cells,
            sees: &[$(($sign, $sees)),+],
            look: |pair| Box::pin($look(pair)),
        }),+])),+];
    };
}

// `=`: nothing is lost. What the server says arrives, in the form of the client's revision. The other signs stand in [`WHY`].
// The servers in each group: legacy HTTP, legacy stdio, modern HTTP, modern stdio; so are the groups, which are the clients.
table! {
    "Discovery": {
        discovery::introduction, "the server's name, in a version of the client", "==== ==== ==== ====":
            '=' r#""fixture" in its revision"#;
        discovery::instructions, "instructions", "==== ==== ==== ====":
            '=' r#""For tests only: every tool says what it does.""#;
        discovery::capabilities, "capabilities", "==kk ==kk ==== ====":
            'k' "completions extensions.io.modelcontextprotocol/tasks logging prompts.listChanged=true resources.listChanged=true resources.subscribe=true tasks.cancel tasks.list tasks.requests.tools.call tools.listChanged=true",
            '=' "completions extensions.io.modelcontextprotocol/tasks logging prompts.listChanged=true resources.listChanged=true resources.subscribe=true tools.listChanged=true";
        discovery::ping, "`ping`", "==== ==== rrrr rrrr":
            '=' "{}",
            'r' "-32601";
    }
    "Lists": {
        lists::tools, "tools, page by page", "==kk ==kk ==== ====":
            'k' "all as they are listed, page by page, each with leave to wish for a task",
            '=' "all as they are listed, page by page";
        lists::prompts, "prompts", "==== ==== ==== ====":
            '=' "all as they are listed, page by page";
        lists::resources, "resources", "==== ==== ==== ====":
            '=' "all as they are listed";
        lists::templates, "resource templates", "==== ==== ==== ====":
            '=' "all as they are listed";
        lists::cursor, "an unknown cursor", "==== ==== ==== ====":
            '=' "-32602";
    }
    "Calls": {
        calls::echo, "arguments and result", "==== ==== ==== ====":
            '=' "what it said, as structure and as text";
        calls::every_kind, "content of every kind", "==== ==== ==== ====":
            '=' r#"text image audio resource_link resource text {"items":[{"id":1},{"id":2}]}"#;
        calls::array, "a structured value that is not an object", "==tt ==tt ==== ====":
            '=' r#"structure [1,2], text "[1,2]""#,
            't' r#"text "[1,2]""#;
        calls::seen, "what reaches the server", "==== ==== ==== ====":
            '=' r#"its own revision, {"a":1}, {"b":2}"#;
        calls::progress, "progress with the client's token", "==== ==== ==== ====":
            '=' r#""mine" 1.0/3.0, "mine" 2.0/3.0, "mine" 3.0/3.0, then "took 3 steps""#;
        calls::silence, "no progress without a token", "==== ==== ==== ====":
            '=' r#"then "took 3 steps""#;
    }
    "Log messages": {
        logs::without_level, "for a client that names no level", "==uu ==uu qqqq qqqq":
            '=' "debug info notice warning error critical alert emergency",
            'u' "nothing",
            'q' "nothing";
        logs::from_warning, "from `warning` on", "==== ==== ==== ====":
            '=' "warning error critical alert emergency";
        logs::of_the_second_call, "from `alert` on, for a client's second call", "==== ==== dd=d ====":
            '=' "alert emergency",
            'd' "nothing";
        logs::of_several, "from `alert` on, after another client's call", "dd=d dd=d dd=d dd=d":
            '=' "alert emergency",
            'd' "nothing";
        logs::of_one_who_can_be_asked, "from `warning` on, for a client that accepts server requests", "==== ==== ==== ====":
            '=' "warning error critical alert emergency";
        logs::beside_another, "while another client's call is running", "dd=d dd=d dd=d dd=d":
            '=' "alert emergency",
            'd' "nothing";
    }
    "Cancelled calls": {
        ends::cancellation, "cancelled, as in the client's version", "==== ==== ==== ====":
            '=' "no answer; the server stops";
        ends::hang_up, "the client closes the connection", "==== eeee cccc eeee":
            '=' r#"the server goes on; who comes back hears "waited 500 ms""#,
            'c' "the server stops",
            'e' "the server stops";
    }
    "Resources, prompts, completions": {
        contents::text, "a text", "==== ==== ==== ====":
            '=' r#""text/plain" "This is the content of the static text resource.""#;
        contents::binary, "bytes", "==== ==== ==== ====":
            '=' r#""image/png" 92 characters"#;
        contents::template, "a URI of a template", "==== ==== ==== ====":
            '=' r#""text/plain" "A note called a%20b.""#;
        contents::prompt, "a prompt with arguments", "==== ==== ==== ====":
            '=' r#""user": "Prompt with arguments: arg1='one', arg2='ü'""#;
        contents::prompt_with_resource, "a prompt with a resource", "==== ==== ==== ====":
            '=' r#""user": "resource" "test://static-text", "user": "Please process the embedded resource above.""#;
        contents::completion, "completion of a prompt's argument", "==== ==== ==== ====":
            '=' r#"["paris","party"]"#;
        contents::completion_of_template, "completion of a template's argument", "==== ==== ==== ====":
            '=' r#"["12","123"]"#;
    }
    "Errors": {
        errors::of_protocol, "an error of the server", "==== ==== ==== ====":
            '=' r#"-32050 "as asked" {"a":[1.0]}"#;
        errors::of_tool, "an error of the tool", "==== ==== ==== ====":
            '=' r#"isError true: "as asked""#;
        errors::of_arguments, "arguments that the tool rejects", "==== ==== ==== ====":
            '=' r#"-32602 "`a` is missing or not a number""#;
        errors::unknown_tool, "an unknown tool", "==== ==== ==== ====":
            '=' r#"-32602 "Unknown tool: nobody" {"activeVariant":"standard"}"#;
        contents::no_prompt, "an unknown prompt", "==== ==== ==== ====":
            '=' r#"-32602 "Unknown prompt: nobody" {"activeVariant":"standard"}"#;
        contents::no_resource, "an unknown resource", "==== ==== mmmm mmmm":
            '=' r#"-32002 "resource not found: test://nowhere" {"uri":"test://nowhere"}"#,
            'm' r#"-32602 "resource not found: test://nowhere" {"uri":"test://nowhere"}"#;
        errors::unknown_method, "an unknown method", "==== ==== ==== ====":
            '=' r#"-32601 "Method not found: no/such""#;
    }
    "Requests of the server": {
        asks::form, "a form", "==== ==== ==== ====":
            '=' r#""Hello, Ada!""#;
        asks::sampling, "a sampled message", "==== ==== ==== ====":
            '=' r#""the model says {\"type\":\"text\",\"text\":\"Paris\"}""#;
        asks::roots, "the roots", "==== ==== ==== ====":
            '=' r#""the roots are [{\"uri\":\"file:///a\"}]""#;
        asks::twice, "several requests, one after the other", "==== ==== ==== ====":
            '=' r#""all rounds are done""#;
        asks::nothing, "for a client that does not accept them", "==vv ==vv ==vv ==vv":
            '=' r#"-32603 "the client did not answer: Mcp error: -32601: there is no client on this connection, so `elicitation/create` cannot be answered""#,
            'v' r#"-32603 "server `fixture` asks for `elicitation/create`: the client declared no `elicitation`""#;
    }
    "Tasks": {
        tasks::result, "to the result", "==== ==== ==== ====":
            '=' r#""computed it""#;
        tasks::question, "with a request for input", "==== ==== ==== ====":
            '=' r#""deleted a""#;
        tasks::cancellation, "cancelled", "==== ==== ==== ====":
            '=' "the server stops";
        tasks::wish, "requested as in 2025-11-25, to the result", "ww== ww== oooo oooo":
            '=' r#""computed it""#,
            'w' "no task",
            'o' "no task";
        tasks::wish_with_a_question, "the same, with a request for input", "ww== ww== oooo oooo":
            '=' r#""deleted a""#,
            'w' "no task",
            'o' "no task";
        tasks::wish_withdrawn, "the same, listed and cancelled", "ww== ww== oooo oooo":
            '=' "listed as `working`, then as `cancelled`",
            'w' "no task",
            'o' "no task";
    }
    "Changes": {
        changes::of_tools, "a tool is added and removed", "==== ==== ==== ====":
            '=' "told and it is there, told and it is gone";
        changes::of_a_resource, "a subscribed resource", "==== ==== ==== ====":
            '=' "told of test://watched-resource";
    }
}

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
