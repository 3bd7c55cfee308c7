//! jq filters over values.
//!
//! The operator writes the filters, but their input comes from a server. So the time, the depth of recursion and the
//! size of the output are limited.

mod json;
mod library;

use std::time::Duration;

use jaq_core::load::{Arena, File, Loader, lex, parse};
use jaq_core::{Compiler, Ctx, Filter, Vars, compile, load, unwrap_valr};
use mcp_vary::json::build;
use mcp_vary_base::blocking_work::run_blocking;

use self::json::{Values, write};
use self::library::{Effort, Kind, NAME, Run};

/// A jq filter that turns one value into one value.
///
/// Numbers keep their spelling unless the filter calculates with them, and objects keep the order of their keys.
/// `input`, `env`, `$ENV`, `halt`, `debug`, `stderr`, `import` and `include` are not available.
pub struct Projection {
    filter: Filter<Kind>,
}

mcp_vary_base::debug_by_name!(Projection);

impl Projection {
    /// Parses a filter.
    ///
    /// # Errors
    ///
    /// If the filter is invalid. The error is the end of a sentence that begins with the filter.
    pub fn new(source: &str) -> Result<Self, String> {
        let main = term(source)?;
        let arena = Arena::default();
        let loader = Loader::new(library::definitions(main));
        let file = File {
            code: NAME,
            path: (),
        };
        let loaded = loader.load(&arena, file);
        let modules = loaded.map_err(|_| "is not a jq filter".to_owned())?;
        let compiler = Compiler::default().with_funs(library::functions());
        let filter = compiler.compile(modules).map_err(|errors| {
            let all = errors.iter().flat_map(|(_, errors)| errors);
            let unknown: Vec<_> = all.map(|(name, kind)| missing(name, kind)).collect();
            format!("uses {}, which is not there", unknown.join(", "))
        })?;
        Ok(Self { filter })
    }

    /// Applies the filter to `value`, which is JSON. The tasks of others go on meanwhile.
    ///
    /// # Errors
    ///
    /// If the filter fails. The error may contain a part of the value, so only the operator may see it.
    pub fn apply(&self, value: &str) -> Result<String, String> {
        run_blocking(|| self.run(value))
    }

    fn run(&self, value: &str) -> Result<String, String> {
        let input = build::<Values>(value).map_err(|error| error.to_string())?;
        let effort = Effort::new(TIME);
        let run = Run {
            lut: &self.filter.lut,
            effort: &effort,
        };
        let context = Ctx::<Kind>::new(run, Vars::new([]));
        let mut values = self.filter.id.run((context, input)).map(unwrap_valr);
        let computed = values.next().ok_or("it makes no value")?;
        let first = computed.map_err(|error| error.to_string())?;
        if values.next().is_some() {
            return Err("it makes more than one value; put it in [ ]".to_owned());
        }
        let mut text = String::new();
        write(&first, 0, &mut text)?;
        Ok(text)
    }
}

fn term(source: &str) -> Result<parse::Term<&str>, String> {
    let tokens = lex::Lexer::new(source).lex().map_err(|errors| {
        let what = errors
            .first()
            .map(|(expected, at)| (expected.as_str(), *at));
        misplaced(source, what)
    })?;
    let term = parse::Parser::new(&tokens).parse(parse::Parser::term);
    term.map_err(|errors| {
        let first = errors.first();
        let what = first.map(|(expected, at)| (expected.as_str(), at.map_or("", |token| token.0)));
        misplaced(source, what)
    })
}

fn misplaced(source: &str, what: Option<(&str, &str)>) -> String {
    let Some((expected, at)) = what else {
        return "is not a jq filter".to_owned();
    };
    match load::span(source, at).start {
        _ if at.is_empty() => format!("is not a jq filter: {expected} is expected at its end"),
        start => format!(
            "is not a jq filter: {expected} is expected at character {}",
            { source[..start].chars().count() + 1 }
        ),
    }
}

fn missing(name: &str, kind: &compile::Undefined) -> String {
    match kind {
        compile::Undefined::Filter(arity) => format!("`{name}/{arity}`"),
        _ => format!("`{name}`"),
    }
}

/// The maximum time of a run.
const TIME: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn makes(filter: &str, value: &str) -> Result<String, String> {
        Projection::new(filter).unwrap().apply(value)
    }

    #[test]
    fn what_is_not_calculated_stays_as_it_is_spelled() {
        let items = r#"{"items":[{"n":1.50,"z":1},{"n":100000000000000000000000000}]}"#;
        let expected = r#"[{"n":1.50},{"n":100000000000000000000000000}]"#;
        assert_eq!(makes(".items | map({n})", items).unwrap(), expected);
        assert_eq!(makes(".", r#"{"b":1,"a":2}"#).unwrap(), r#"{"b":1,"a":2}"#);
    }

    #[test]
    fn the_language_is_there() {
        let objects = "{a: 1} * {b: 2} + {c: null}";
        let delete = "del(.. | select(. == null))";
        let walk = r#"walk(if type == "number" then . + 1 end)"#;
        let recursive = "def f: ., (. + 1 | f); [limit(1000; f)] | length";
        for (filter, value, made) in [
            ("[range(5; 0; -2)]", "1", "[5,3,1]"),
            ("[range(0, 1; 2, 3)]", "1", "[0,1,0,1,2,1,1,2]"),
            ("[limit(3; repeat(1))]", "1", "[1,1,1]"),
            ("[(1, 2) * (3, 4)]", "1", "[3,4,6,8]"),
            ("\"ab\" * 2 + \"c\"", "1", "\"ababc\""),
            (
                ".a += 1 | .b *= 2",
                r#"{"a":1,"b":2.5}"#,
                r#"{"a":2,"b":5.0}"#,
            ),
            (objects, "1", r#"{"a":1,"b":2,"c":null}"#),
            (".[] |= . + 1", "[1,2]", "[2,3]"),
            ("[paths]", "[[1]]", "[[0],[0,0]]"),
            ("map_values(. * 2) | add", "[1,2]", "6"),
            (walk, r#"[1,{"a":2}]"#, r#"[2,{"a":3}]"#),
            (delete, r#"{"a":null,"b":[1,null]}"#, r#"{"b":[1]}"#),
            ("[.. | numbers]", "[1,[2]]", "[1,2]"),
            ("def f($x): $x + 1; f(2)", "1", "3"),
            ("fromjson | .a", r#""{\"a\": [1]}""#, "[1]"),
            ("[.[] | select(test(\"^a\"))]", r#"["ab","b"]"#, r#"["ab"]"#),
            (". as {a: $x} | $x", r#"{"a":5}"#, "5"),
            ("\"n: \\(.n)\"", r#"{"n":5}"#, r#""n: 5""#),
            (
                r#"["\(1, 2)-\(3, 4)"]"#,
                "1",
                r#"["1-3","1-4","2-3","2-4"]"#,
            ),
            ("@json \"n: \\(.n)!\"", r#"{"n":["5"]}"#, r#""n: [\"5\"]!""#),
            ("\"\"", "1", "\"\""),
            (recursive, "1", "1000"),
        ] {
            assert_eq!(makes(filter, value).as_deref(), Ok(made), "{filter}");
        }
    }

    #[test]
    fn nothing_runs_without_end() {
        let endless = "it takes too long";
        let deep = "it recurses too deep";
        let quadratic = "[range(3000)] as $r | [$r[] as $a | $r[] as $b | 1] | length";
        for (filter, value, why) in [
            ("def f: f; f", "1", endless),
            ("[repeat(1)]", "1", endless),
            ("[range(0; infinite)]", "1", endless),
            ("until(. < 0; . + 1)", "1", endless),
            ("\"\\(def f: f; f)\"", "1", endless),
            ("{a: (def f: f; f)}", "1", endless),
            (".[def f: f; f]", "[1]", endless),
            ("def f: 1 + f; f", "1", deep),
            ("def f: try f catch f; f", "1", deep),
            ("def f: [f]; f", "1", deep),
            (quadratic, "1", endless),
            ("[range(3000)] | [.[] + .[]] | length", "1", endless),
            ("[range(3000)] | [{a: .[], b: .[]}] | length", "1", endless),
        ] {
            let error = makes(filter, value).unwrap_err();
            assert!(error.contains(why), "{filter}: {error}");
        }
        // As many as an index says.
        assert!(makes("null | .[10000000000] = 1", "1").is_err());
        let nested = format!("\"{}\"", "[".repeat(100_000));
        assert!(makes("fromjson", &nested).unwrap_err().contains("nested"));
    }

    #[test]
    fn one_value_of_json_is_made() {
        let large = |filter: &str| format!(r#"("x" * 8000000) as $x | {filter}"#);
        for (filter, why) in [
            ("empty", "no value"),
            (".[]", "more than one value"),
            ("nan", "no JSON, but NaN"),
            ("[infinite]", "no JSON, but Infinity"),
            ("01.5", "no JSON, but 01.5"),
            ("{(\"a\"|tobytes): 1}", "the key b\"a\" is not a string"),
            ("[\"a\"|tobytes]", "no JSON, but bytes"),
            ("{(\"/w==\"|@base64d): 1}", "a key is not UTF-8"),
            ("reduce range(200) as $i (1; [.])", "nested too deep"),
            (".a", "cannot index"),
            ("\"x\" * 10000000", "too large"),
            ("10000000000000 * \"x\"", "too large"),
            ("reduce range(60) as $i (\"x\"; . + .)", "too large"),
            ("reduce range(60) as $i ([1]; . += .)", "too large"),
            (&large("[$x, $x]"), "more than 8388608 bytes"),
            (&large("[$x, $x] | tojson | length"), "too large"),
            (&large("[$x, $x] | tostring | length"), "too large"),
            (&large(r#""\([$x, $x])" | length"#), "too large"),
            (&large(r#""\($x)\($x)" | length"#), "too large"),
            (&large(r#"@json "\($x)\($x)" | length"#), "too large"),
            (&large("[$x, $x] | @json | length"), "too large"),
            (&large(r#"[$x, $x] | join(",") | length"#), "too large"),
            ("{a: \"x\"} | .a *= 10000000000000", "too large"),
        ] {
            let error = makes(filter, "[1,2]").unwrap_err();
            assert!(error.contains(why), "{filter}: {error}");
        }
    }

    #[test]
    fn a_bad_filter_says_where() {
        for (filter, why) in [
            ("", "is not a jq filter: "),
            (".[", "is not a jq filter: "),
            (".a | | .b", "at character 6"),
            ("foo(1)", "uses `foo/1`, which is not there"),
            ("$x", "uses `$x`, which is not there"),
            ("halt", "uses `halt/0`, which is not there"),
            ("env", "uses `env/0`, which is not there"),
            ("$ENV.HOME", "uses `$ENV`, which is not there"),
            ("input", "uses `input/0`, which is not there"),
            ("debug", "uses `debug/0`, which is not there"),
            ("import \"x\" as x; .", "is not a jq filter: "),
        ] {
            let error = Projection::new(filter).unwrap_err();
            assert!(error.contains(why), "{filter}: {error}");
        }
    }
}
