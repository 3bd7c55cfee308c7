//! Words and phrases by which [`rules`](super::rules) recognise a sentence, in lowercase, without punctuation.

/// Something is dangerous, or not to be trusted.
pub(super) const WARNINGS: &[&str] = &[
    "also deletes",
    "also removes",
    "anyone",
    "capped",
    "careful",
    "clamped",
    "caution",
    "credential",
    "credentials",
    "danger",
    "dangerous",
    "deprecated",
    "destructive",
    "executes arbitrary",
    "irreversible",
    "never",
    "no effect",
    "no-op",
    "overwrite",
    "overwrites",
    "permanent",
    "permanently",
    "publicly",
    "risk",
    "risks",
    "secret",
    "secrets",
    "silently",
    "unsafe",
    "untrusted",
    "uploaded",
    "warning",
];

/// What something is not for.
pub(super) const LIMITS: &[&str] = &[
    "limitation",
    "limitations",
    "limited to",
    "not designed",
    "not intended",
    "not meant",
    "not suitable",
];

/// From where something is counted or measured.
pub(super) const POSITIONS: &[&str] = &[
    "0-based",
    "0-indexed",
    "1-based",
    "1-indexed",
    "bottom-left",
    "is the top",
    "one-based",
    "one-indexed",
    "origin at",
    "top-left",
    "zero-based",
    "zero-indexed",
];

/// What must hold for a call.
pub(super) const CONDITIONS: &[&str] = &[
    "allowed",
    "always",
    "at least",
    "at most",
    "before",
    "both",
    "can't",
    "cannot",
    "do not",
    "don't",
    "either",
    "empty string",
    "exact",
    "exactly",
    "except",
    "exclude",
    "excludes",
    "excluding",
    "fail",
    "fails",
    "first call",
    "has to",
    "have to",
    "if",
    "ignored",
    "ignores",
    "incompatible",
    "instead",
    "leave out",
    "make sure",
    "mandatory",
    "must",
    "mutually",
    "need to",
    "needs",
    "needs to",
    "non-empty",
    "not both",
    "not compatible",
    "not supported",
    "omit",
    "omitted",
    "one of",
    "only",
    "persist",
    "persists",
    "prefer",
    "refuses",
    "rejected",
    "remain",
    "remains",
    "require",
    "required",
    "requires",
    "share",
    "shared",
    "shares",
    "should",
    "supported",
    "together with",
    "unless",
    "until",
    "up to",
    "without",
];

/// What must hold for a call, in the description of a tool.
pub(super) const ITEM_CONDITIONS: &[&str] = &["call", "first", "null", "replaces", "truncated"];

/// What must hold for a value, in the description of an argument.
pub(super) const SCHEMA_CONDITIONS: &[&str] = &[
    "accept",
    "accepts",
    "after",
    "already",
    "also accepts",
    "cannot be",
    "first",
    "for example",
    "keys are",
    "last",
    "leave",
    "not",
    "null",
    "order",
    "otherwise",
    "provide",
    "set",
    "such as",
    "use",
    "used for",
    "valid",
    "values include",
    "when",
];

/// What a condition says that a caller cannot leave out.
pub(super) const STRICT_CONDITIONS: &[&str] = &[
    "cannot",
    "combined",
    "ignored",
    "incompatible",
    "must",
    "not supported",
    "only",
    "otherwise",
    "require",
    "required",
    "requires",
    "unless",
];

/// Phrases with the words of conditions that set none.
pub(super) const NO_CONDITIONS: &[&str] = &[
    "even if",
    "if any",
    "if applicable",
    "if available",
    "if needed",
    "if possible",
    "set to true",
    "to only return",
    "to return only",
    "when available",
];

/// How a sentence begins that says what to do, in the description of a tool.
pub(super) const ADVICE: &[&str] = &[
    "assign",
    "avoid",
    "ensure",
    "include",
    "keep in mind",
    "pass",
    "provide",
    "specify",
    "use the",
    "use these",
    "use this to",
];

/// How a sentence begins that says what `true` means.
pub(super) const SWITCHES: &[&str] = &[
    "a boolean indicating",
    "determines if",
    "determines whether",
    "flag indicating whether",
    "flag to",
    "if set to true",
    "if true",
    "set to true",
    "true if",
    "true to",
    "whether",
];

/// What `true` may remove.
pub(super) const REMOVALS: &[&str] = &[
    "archive", "archives", "clear", "clears", "delete", "deletes", "drop", "drops", "erase",
    "erases", "remove", "removes", "replace", "replaces",
];

/// How a sentence begins that only gives an example.
pub(super) const EXAMPLES: &[&str] = &["example", "examples"];

/// From where a value is.
pub(super) const ORIGINS: &[&str] = &[
    "from a previous",
    "from the list",
    "from the listed",
    "from the page",
    "given by",
    "given in",
    "obtained from",
    "obtained via",
    "retrieved from",
    "returned by",
    "returned from",
];

/// After which the name of a tool says where a value comes from, or what to call: `from list-pages`.
pub(super) const NAMED_AFTER: &[&str] = &["by", "call", "calling", "from", "the", "using", "via"];

/// What may follow the name of a tool.
pub(super) const NAMED_BEFORE: &[&str] =
    &["first", "output", "response", "result", "results", "tool"];

/// How a sentence begins that cannot be understood without the one before it.
pub(super) const BACKWARD: &[&str] = &[
    "if so",
    "if that",
    "if this",
    "in such",
    "in that case",
    "in this case",
    "otherwise",
    "this happens",
    "this means",
    "when this",
];

/// What a bound on a number is called.
pub(super) const BOUNDS: &[&str] = &[
    "at least", "at most", "max", "maximum", "min", "minimum", "up to",
];

/// Units.
pub(super) const UNITS: &[&str] = &[
    "bytes",
    "celsius",
    "cents",
    "cm",
    "days",
    "degrees",
    "dollars",
    "fahrenheit",
    "gb",
    "hours",
    "hz",
    "inch",
    "inches",
    "kb",
    "kib",
    "kilometers",
    "km",
    "lines",
    "mb",
    "meters",
    "mib",
    "miles",
    "milliseconds",
    "minutes",
    "months",
    "ms",
    "nanoseconds",
    "percent",
    "percentage",
    "pixels",
    "points",
    "pt",
    "px",
    "seconds",
    "usd",
    "weeks",
];

/// Formats of texts.
pub(super) const FORMATS: &[&str] = &[
    "absolute",
    "base64",
    "case-insensitive",
    "case-sensitive",
    "comma-separated",
    "csv",
    "e.g",
    "encoded",
    "format",
    "glob",
    "glob-style",
    "html",
    "iana",
    "iso",
    "iso-8601",
    "javascript",
    "json",
    "latex",
    "markdown",
    "mime",
    "notation",
    "query language",
    "regex",
    "regexp",
    "regular expression",
    "relative",
    "rfc",
    "separated",
    "syntax",
    "utc",
    "url-encoded",
    "voice",
    "xml",
    "xpath",
    "yaml",
];

/// How a sentence begins that only says the default.
pub(super) const DEFAULTS: &[&str] = &[
    "default",
    "defaults",
    "the default",
    "by default",
    "if omitted defaults",
    "if not specified defaults",
];

/// How a sentence begins that recommends a tool.
pub(super) const PRAISE: &[&str] = &[
    "great for",
    "ideal for",
    "perfect for",
    "this is more",
    "this tool is",
    "use this to visually",
    "use this tool when you",
    "use to",
    "useful for",
    "useful when",
];

/// How a sentence begins that says what the result looks like.
pub(super) const RESULTS: &[&str] = &[
    "displays",
    "each entry",
    "output",
    "outputs",
    "result",
    "results",
    "return",
    "returns",
    "shows",
    "the output",
    "the response",
    "the result",
    "the results",
];

/// Words that only English has.
pub(super) const ENGLISH: &[&str] = &[
    "a", "about", "across", "after", "all", "also", "an", "and", "any", "are", "as", "at", "be",
    "been", "before", "between", "but", "by", "can", "cannot", "does", "each", "every", "for",
    "from", "has", "have", "how", "if", "in", "into", "is", "it", "its", "may", "must", "needed",
    "no", "not", "of", "on", "only", "or", "other", "same", "should", "such", "than", "that",
    "the", "their", "them", "then", "there", "these", "this", "to", "use", "used", "using", "was",
    "what", "when", "where", "whether", "which", "while", "who", "will", "with", "without", "you",
    "your",
];

/// Frequent words of other languages that English lacks.
pub(super) const FOREIGN: &[&str] = &[
    "aan", "auf", "av", "avec", "com", "como", "con", "da", "das", "dans", "de", "dei", "del",
    "della", "dem", "den", "der", "des", "det", "di", "du", "een", "ein", "eine", "el", "en", "et",
    "het", "ikke", "il", "inte", "ist", "la", "las", "le", "les", "los", "med", "mit", "na",
    "nicht", "och", "ou", "para", "por", "pour", "que", "sich", "som", "sur", "til", "till", "um",
    "una", "und", "une", "uno", "van", "voor", "wird", "zu", "zum", "zur",
];

/// Words that say nothing of what is meant.
pub(super) const EMPTY: &[&str] = &[
    "additional",
    "against",
    "argument",
    "array",
    "associated",
    "automatically",
    "boolean",
    "contain",
    "contains",
    "controls",
    "corresponding",
    "create",
    "current",
    "data",
    "default",
    "defaults",
    "definition",
    "delete",
    "description",
    "desired",
    "document",
    "entire",
    "execute",
    "executed",
    "existing",
    "fetch",
    "field",
    "first",
    "full",
    "get",
    "given",
    "id",
    "identifier",
    "ids",
    "include",
    "included",
    "item",
    "items",
    "kind",
    "list",
    "maximum",
    "multiple",
    "name",
    "names",
    "new",
    "number",
    "object",
    "one",
    "operation",
    "option",
    "optional",
    "options",
    "parameter",
    "parameters",
    "particular",
    "perform",
    "provide",
    "provided",
    "request",
    "response",
    "result",
    "resulting",
    "results",
    "retrieve",
    "return",
    "returned",
    "run",
    "select",
    "set",
    "show",
    "shown",
    "single",
    "some",
    "specific",
    "specified",
    "specify",
    "string",
    "type",
    "update",
    "value",
    "values",
    "want",
];

/// What a result makes a caller do.
pub(super) const RESULT_CONDITIONS: &[&str] = &["call", "have to", "must", "use"];

/// A sentence with a link is only about the link.
pub(super) const REFERENCES: &[&str] = &[
    "consult",
    "refer to",
    "for more details",
    "for more information",
    "see",
];
