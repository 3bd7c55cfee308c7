//! The definitions and functions that filters can use, each of which counts as a step.
//!
//! Nothing runs on without end but by a definition that calls itself: so every definition checks first how
//! much effort there was.

use std::cell::Cell;
use std::ptr;
use std::time::{Duration, Instant};

use jaq_core::load::lex::StrPart;
use jaq_core::load::parse::{BinaryOp, Def, Pattern, Term};
use jaq_core::native::{Fun, bome};
use jaq_core::path::{Part, Path};
use jaq_core::{Error, Native};
use jaq_json::{Val, read};
use jaq_std::ValT as _;

use super::Kind;

/// What the operator's filter is called.
pub(super) const NAME: &str = "vary_projection";
const STEP: &str = "vary_step";
const STEP_VARIABLE: &str = "$vary_step";

/// What would end the process, tell of it, or write to its streams.
const REFUSED: [&str; 5] = ["halt", "halt_error", "env", "stderr", "debug"];
const REFUSED_FUNCTIONS: [&str; 4] = ["halt", "env", "stderr_empty", "debug_empty"];
/// What is done here.
const REPLACED: [&str; 2] = ["range", "fromjson"];

/// `range` in steps: its own would go on without one.
const RANGE: &str = "def range($from; $to; $by):
  def rec:
    if $by > 0 then . < $to elif $by < 0 then . > $to else . != $to end as $more |
    if $more then ., (. + $by | rec) else {}[] end;
  $from | rec;";

/// How much a run has done, and may do.
pub(super) struct Effort {
    until: Instant,
    /// Where the stack is when it begins.
    bottom: usize,
    steps: Cell<u32>,
    /// Why it may do no more: then every step fails, or a filter could try again.
    spent: Cell<Option<&'static str>>,
}

impl Effort {
    pub(super) fn new(time: Duration) -> Self {
        Self {
            until: Instant::now() + time,
            bottom: stack(),
            steps: Cell::new(0),
            spent: Cell::new(None),
        }
    }

    fn step(&self) -> Result<(), &'static str> {
        if self.spent.get().is_none() {
            let steps = self.steps.get().wrapping_add(1);
            self.steps.set(steps);
            if stack().abs_diff(self.bottom) > DEEPEST {
                self.spent.set(Some("it recurses too deep"));
            } else if steps.is_multiple_of(64) && Instant::now() > self.until {
                self.spent.set(Some("it takes too long"));
            }
        }
        self.spent.get().map_or(Ok(()), Err)
    }
}

/// Where the stack is.
#[inline(never)]
fn stack() -> usize {
    let here = 0_u8;
    ptr::from_ref(&here).addr()
}

/// How many bytes of the stack a run may use: a thread of the runtime has 2 MiB.
const DEEPEST: usize = 384 << 10;

/// Everything that is defined, last of all `main` as [`NAME`].
pub(super) fn definitions(main: Term<&str>) -> Vec<Def<&str>> {
    let range = jaq_core::load::parse(RANGE, |parser| parser.defs()).unwrap_or_default();
    let main = Def {
        name: NAME,
        args: Vec::new(),
        body: main,
    };
    let library = jaq_core::defs()
        .chain(jaq_std::defs())
        .chain(jaq_json::defs())
        .filter(|def| !REFUSED.contains(&def.name));
    let mut definitions: Vec<Def<&str>> = range.into_iter().chain(library).collect();
    definitions.push(main);
    definitions.into_iter().map(in_steps).collect()
}

/// Everything that is built in.
pub(super) fn functions() -> impl Iterator<Item = Fun<Kind>> {
    let step: Fun<Kind> = (
        STEP,
        [].into(),
        Native::new(|cv| {
            let step = cv.0.data().effort.step();
            bome(step.map(|()| Val::Null).map_err(Error::str))
        }),
    );
    let from_json: Fun<Kind> = (
        "fromjson",
        [].into(),
        Native::new(|cv| bome(from_json(&cv.1).map_err(Error::str))),
    );
    jaq_core::funs()
        .chain(jaq_std::funs())
        .chain(jaq_json::funs())
        .filter(|(name, ..)| !REFUSED_FUNCTIONS.contains(name) && !REPLACED.contains(name))
        .chain([step, from_json])
}

/// Reads one value that is not nested without end.
fn from_json(text: &Val) -> Result<Val, String> {
    let bytes = text
        .as_utf8_bytes()
        .ok_or("only text can be read as JSON")?;
    let text = std::str::from_utf8(bytes).map_err(|error| error.to_string())?;
    mcp_vary::json::Json::parse(text).map_err(|error| error.to_string())?;
    read::parse_single(bytes).map_err(|error| error.to_string())
}

/// The definition, a step before it.
fn in_steps(def: Def<&str>) -> Def<&str> {
    let step = Box::new(Term::Call(STEP, Vec::new()));
    let then = BinaryOp::Pipe(Some(Pattern::Var(STEP_VARIABLE)));
    Def {
        body: Term::BinOp(step, then, Box::new(inside(def.body))),
        ..def
    }
}

/// The term, with steps in the definitions inside of it.
fn inside(term: Term<&str>) -> Term<&str> {
    match term {
        Term::Def(defs, body) => Term::Def(defs.into_iter().map(in_steps).collect(), boxed(body)),
        Term::Str(format, parts) => {
            let parts = parts.into_iter().map(|part| match part {
                StrPart::Term(term) => StrPart::Term(inside(term)),
                part => part,
            });
            Term::Str(format, parts.collect())
        }
        Term::Arr(term) => Term::Arr(term.map(boxed)),
        Term::Obj(members) => Term::Obj(pairs(members, |value| value.map(inside))),
        Term::Neg(term) => Term::Neg(boxed(term)),
        Term::BinOp(left, operator, right) => {
            let operator = match operator {
                BinaryOp::Pipe(Some(bound)) => BinaryOp::Pipe(Some(pattern(bound))),
                operator => operator,
            };
            Term::BinOp(boxed(left), operator, boxed(right))
        }
        Term::Label(label, term) => Term::Label(label, boxed(term)),
        Term::Fold(name, term, bound, terms) => {
            Term::Fold(name, boxed(term), pattern(bound), all(terms))
        }
        Term::TryCatch(term, catch) => Term::TryCatch(boxed(term), catch.map(boxed)),
        Term::IfThenElse(cases, otherwise) => {
            Term::IfThenElse(pairs(cases, inside), otherwise.map(boxed))
        }
        Term::Call(name, arguments) => Term::Call(name, all(arguments)),
        Term::Path(term, path) => Term::Path(boxed(term), along(path)),
        term @ (Term::Id | Term::Recurse | Term::Num(_) | Term::Break(_) | Term::Var(_)) => term,
    }
}

#[expect(clippy::boxed_local, reason = "terms are boxed in terms")]
fn boxed(term: Box<Term<&str>>) -> Box<Term<&str>> {
    Box::new(inside(*term))
}

fn all(terms: Vec<Term<&str>>) -> Vec<Term<&str>> {
    terms.into_iter().map(inside).collect()
}

fn pairs<T>(pairs: Vec<(Term<&str>, T)>, value: impl Fn(T) -> T) -> Vec<(Term<&str>, T)> {
    let pairs = pairs.into_iter();
    pairs.map(|(key, it)| (inside(key), value(it))).collect()
}

fn pattern(bound: Pattern<&str>) -> Pattern<&str> {
    match bound {
        Pattern::Var(name) => Pattern::Var(name),
        Pattern::Arr(patterns) => Pattern::Arr(patterns.into_iter().map(pattern).collect()),
        Pattern::Obj(members) => Pattern::Obj(pairs(members, pattern)),
    }
}

fn along(Path(parts): Path<Term<&str>>) -> Path<Term<&str>> {
    let parts = parts.into_iter().map(|(part, optional)| {
        let part = match part {
            Part::Index(term) => Part::Index(inside(term)),
            Part::Range(from, to) => Part::Range(from.map(inside), to.map(inside)),
        };
        (part, optional)
    });
    Path(parts.collect())
}
