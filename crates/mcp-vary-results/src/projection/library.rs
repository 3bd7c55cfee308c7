//! The definitions and functions that filters can use. Each use counts as a step.
//!
//! Only a definition that calls itself can run forever, and only repeated iteration over values can take long. So every
//! definition, and every function that iterates over a value, first checks the effort so far. Only `*` and `+` can
//! create a large value in one step, so they check the size of their output first.

use std::cell::Cell;
use std::fmt::{self, Write as _};
use std::ptr;
use std::time::{Duration, Instant};

use jaq_core::data::HasLut;
use jaq_core::load::lex::StrPart;
use jaq_core::load::parse::{BinaryOp, Def, Pattern, Term};
use jaq_core::native::{Fun, bome, v};
use jaq_core::ops::Math;
use jaq_core::path::{Part, Path};
use jaq_core::{Cv, DataT, Error, Lut, Native, ValR, ValXs};
use jaq_json::Val;
use jaq_std::ValT as _;
use mcp_vary::json::build;

use super::json::Values;
use crate::limits::LARGEST;

/// The types that filters work with.
pub(super) struct Kind;

impl DataT for Kind {
    type V<'a> = Val;
    type Data<'a> = Run<'a>;
}

/// One run of a filter.
#[derive(Clone)]
pub(super) struct Run<'a> {
    pub(super) lut: &'a Lut<Kind>,
    pub(super) effort: &'a Effort,
}

impl<'a> HasLut<'a, Kind> for Run<'a> {
    fn lut(&self) -> &'a Lut<Kind> {
        self.lut
    }
}

/// The name of the definition for the operator's filter.
pub(super) const NAME: &str = "vary_projection";
const STEP: &str = "vary_step";
const STEP_VARIABLE: &str = "$vary_step";
const TIMES: &str = "vary_times";
const PLUS: &str = "vary_plus";
const TEXT: &str = "vary_text";
const OPERAND: &str = "$vary_operand";

/// Definitions that would end the process, reveal its environment, or write to its streams.
const REFUSED: [&str; 5] = ["halt", "halt_error", "env", "stderr", "debug"];
const REFUSED_FUNCTIONS: [&str; 4] = ["halt", "env", "stderr_empty", "debug_empty"];
/// Definitions that are replaced in this file.
const REPLACED: [&str; 3] = ["range", "fromjson", "tojson"];

/// `range` with steps. The original would iterate without any.
const RANGE: &str = "def range($from; $to; $by):
  def rec:
    if $by > 0 then . < $to elif $by < 0 then . > $to else . != $to end as $more |
    if $more then ., (. + $by | rec) else {}[] end;
  $from | rec;";

/// The effort of a run so far, and its limits.
pub(super) struct Effort {
    until: Instant,
    /// The position of the stack at the start of the run.
    bottom: usize,
    steps: Cell<u32>,
    /// Why the run was stopped. From then on every step fails, so that a filter cannot catch the error and continue.
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
            } else if steps > STEPS || steps.is_multiple_of(16) && Instant::now() > self.until {
                self.spent.set(Some("it takes too long"));
            }
        }
        self.spent.get().map_or(Ok(()), Err)
    }
}

/// The maximum number of steps of a run, even if there is time left.
const STEPS: u32 = 1_000_000;

/// The current position of the stack.
#[inline(never)]
fn stack() -> usize {
    let here = 0_u8;
    ptr::from_ref(&here).addr()
}

/// The maximum number of bytes that a run may use of the stack. A thread of the runtime has 2 MiB.
const DEEPEST: usize = 384 << 10;

/// All definitions. The last one is `main`, named [`NAME`].
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

/// All native functions.
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
    let to_json: Fun<Kind> = (
        "tojson",
        [].into(),
        Native::new(|cv| {
            let text = text_of(&cv.1).ok_or(TOO_LARGE);
            bome(text.map(Val::utf8_str).map_err(Error::str))
        }),
    );
    let text: Fun<Kind> = (TEXT, [].into(), Native::new(|cv| bome(as_text(cv.1))));
    let times: Fun<Kind> = (TIMES, v(2), Native::new(|cv| calculate(cv, times)));
    let plus: Fun<Kind> = (PLUS, v(2), Native::new(|cv| calculate(cv, plus)));
    jaq_core::funs()
        .chain(jaq_std::funs())
        .chain(jaq_json::funs())
        .filter(|(name, ..)| !REFUSED_FUNCTIONS.contains(name) && !REPLACED.contains(name))
        .chain([step, from_json, to_json, text, times, plus])
}

/// Applies `operate` to the two arguments.
fn calculate<'a>(mut cv: Cv<'a, Kind>, operate: fn(Val, Val) -> ValR<Val>) -> ValXs<'a, Val> {
    let right = cv.0.pop_var();
    let left = cv.0.pop_var();
    bome(operate(left, right))
}

/// `left * right`, unless that is a text that is too long.
fn times(left: Val, right: Val) -> ValR<Val> {
    let length = |value: &Val| value.as_bytes().map(<[u8]>::len);
    let of_left = length(&left).map(|length| (length, &right));
    let text = of_left.or_else(|| length(&right).map(|length| (length, &left)));
    if let Some((length, count)) = text {
        // A count that does not fit into a machine word is larger than any limit.
        let times = count.as_isize().unwrap_or(isize::MAX).max(0).unsigned_abs();
        if length.saturating_mul(times) > LARGEST {
            return Err(Error::str(TOO_LARGE));
        }
    }
    left * right
}

/// `left + right`, unless that is too large.
fn plus(left: Val, right: Val) -> ValR<Val> {
    let size = |value: &Val| match value {
        Val::Arr(elements) => elements.len(),
        value => value.as_bytes().map_or(0, <[u8]>::len),
    };
    if size(&left).saturating_add(size(&right)) > LARGEST {
        return Err(Error::str(TOO_LARGE));
    }
    left + right
}

/// The text of a value that is interpolated into another text, unless it is too long.
fn as_text(value: Val) -> ValR<Val> {
    if value.as_bytes().is_some() {
        return Ok(value);
    }
    let text = text_of(&value).ok_or(TOO_LARGE);
    text.map(Val::utf8_str).map_err(Error::str)
}

const TOO_LARGE: &str = "it makes a value that is too large";

/// Parses one value, with a limit on its nesting.
fn from_json(text: &Val) -> Result<Val, String> {
    let bytes = text
        .as_utf8_bytes()
        .ok_or("only text can be read as JSON")?;
    let text = std::str::from_utf8(bytes).map_err(|error| error.to_string())?;
    build::<Values>(text).map_err(|error| error.to_string())
}

/// The definition, preceded by a step.
fn in_steps(def: Def<&str>) -> Def<&str> {
    Def {
        body: after_step(inside(def.body)),
        ..def
    }
}

fn after_step(term: Term<&str>) -> Term<&str> {
    let step = Box::new(Term::Call(STEP, Vec::new()));
    let then = BinaryOp::Pipe(Some(Pattern::Var(STEP_VARIABLE)));
    Term::BinOp(step, then, Box::new(term))
}

/// `left operator right`, as a call of the function that checks the size of its output.
fn operation<'s>(
    left: Term<&'s str>,
    operator: BinaryOp<&'s str>,
    right: Term<&'s str>,
) -> Term<&'s str> {
    let careful = |math| match math {
        Math::Mul => Some(TIMES),
        Math::Add => Some(PLUS),
        _ => None,
    };
    match operator {
        BinaryOp::Math(math) if careful(math).is_some() => {
            Term::Call(careful(math).unwrap_or_default(), vec![left, right])
        }
        BinaryOp::UpdateMath(math) if careful(math).is_some() => {
            let arguments = vec![Term::Id, Term::Var(OPERAND)];
            let call = Term::Call(careful(math).unwrap_or_default(), arguments);
            let update = Term::BinOp(Box::new(left), BinaryOp::Update, Box::new(call));
            let then = BinaryOp::Pipe(Some(Pattern::Var(OPERAND)));
            Term::BinOp(Box::new(right), then, Box::new(update))
        }
        operator => Term::BinOp(Box::new(left), operator, Box::new(right)),
    }
}

/// The term, with steps added to its inner definitions.
fn inside(term: Term<&str>) -> Term<&str> {
    match term {
        Term::Def(defs, body) => Term::Def(defs.into_iter().map(in_steps).collect(), boxed(body)),
        Term::Str(format, parts) => joined(format.unwrap_or(TEXT), parts),
        Term::Arr(term) => Term::Arr(term.map(boxed)),
        Term::Obj(members) => Term::Obj(pairs(members, |value| value.map(inside))),
        Term::Neg(term) => Term::Neg(boxed(term)),
        Term::BinOp(left, operator, right) => {
            let operator = match operator {
                BinaryOp::Pipe(Some(bound)) => BinaryOp::Pipe(Some(pattern(bound))),
                operator => operator,
            };
            operation(inside(*left), operator, inside(*right))
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
        Term::Path(term, path) => {
            let goes_through = path
                .0
                .iter()
                .any(|(part, _)| matches!(part, Part::Range(..)));
            let term = Term::Path(boxed(term), along(path));
            if goes_through { after_step(term) } else { term }
        }
        Term::Recurse => after_step(Term::Recurse),
        term @ (Term::Id | Term::Num(_) | Term::Break(_) | Term::Var(_)) => term,
    }
}

/// A text of parts, each formatted with the filter `format`. They are joined by the function that checks the size of
/// its output.
fn joined<'s>(format: &'s str, parts: Vec<StrPart<&'s str, Term<&'s str>>>) -> Term<&'s str> {
    let text = |part: StrPart<&'s str, Term<&'s str>>| match part {
        StrPart::Term(term) => {
            let text = Box::new(Term::Call(format, Vec::new()));
            Term::BinOp(boxed(Box::new(term)), BinaryOp::Pipe(None), text)
        }
        part => Term::Str(None, vec![part]),
    };
    let terms = parts.into_iter().map(text);
    let joined = terms.reduce(|left, right| Term::Call(PLUS, vec![left, right]));
    joined.unwrap_or_else(|| Term::Str(None, Vec::new()))
}

#[expect(clippy::boxed_local, reason = "terms are boxed in terms")]
fn boxed(term: Box<Term<&str>>) -> Box<Term<&str>> {
    Box::new(inside(*term))
}

fn all(terms: Vec<Term<&str>>) -> Vec<Term<&str>> {
    terms.into_iter().map(inside).collect()
}

fn pairs<T>(pairs: Vec<(Term<&str>, T)>, value: impl Fn(T) -> T) -> Vec<(Term<&str>, T)> {
    let entries = pairs.into_iter();
    entries.map(|(key, it)| (inside(key), value(it))).collect()
}

fn pattern(bound: Pattern<&str>) -> Pattern<&str> {
    match bound {
        Pattern::Var(name) => Pattern::Var(name),
        Pattern::Arr(patterns) => Pattern::Arr(patterns.into_iter().map(pattern).collect()),
        Pattern::Obj(members) => Pattern::Obj(pairs(members, pattern)),
    }
}

fn along(Path(parts): Path<Term<&str>>) -> Path<Term<&str>> {
    let inner = parts.into_iter().map(|(part, optional)| {
        let part = match part {
            Part::Index(term) => Part::Index(inside(term)),
            Part::Range(from, to) => Part::Range(from.map(inside), to.map(inside)),
        };
        (part, optional)
    });
    Path(inner.collect())
}

/// The value as JSON, or `None` if that is too long. A value can contain another value many times without using more
/// memory, so the text may be much larger.
fn text_of(value: &Val) -> Option<String> {
    let mut text = Text::default();
    write!(text, "{value}").ok()?;
    Some(text.0)
}

/// A text with a maximum length.
#[derive(Default)]
struct Text(String);

impl fmt::Write for Text {
    fn write_str(&mut self, more: &str) -> fmt::Result {
        if self.0.len() + more.len() > LARGEST {
            return Err(fmt::Error);
        }
        self.0.push_str(more);
        Ok(())
    }
}
