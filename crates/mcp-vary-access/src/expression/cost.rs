//! An upper bound for the work of an evaluation, from the sizes of the variables.

use cel::IdedExpr;
use cel::common::ast::{ComprehensionExpr, EntryExpr, Expr, LiteralValue};

/// The sizes of variables. The size of a value is a bound for its elements and for the bytes of its texts together.
#[derive(Debug, Default)]
pub(super) struct Sizes(Vec<(String, u64)>);

/// What evaluating an expression can take.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Estimate {
    work: u64,
    /// The size of the result.
    size: u64,
}

impl Sizes {
    pub(super) fn insert(&mut self, name: &str, size: u64) {
        self.0.push((name.to_owned(), size));
    }

    /// The size of the innermost variable of this name.
    fn get(&self, name: &str) -> u64 {
        let found = self.0.iter().rev().find(|(known, _)| known == name);
        found.map_or(1, |(_, size)| *size)
    }

    /// Evaluates with more variables.
    fn with<const N: usize>(
        &self,
        variables: [(&str, u64); N],
        estimate: impl Fn(&Self) -> u64,
    ) -> u64 {
        let mut inner = Self(self.0.clone());
        for (name, size) in variables {
            inner.insert(name, size);
        }
        estimate(&inner)
    }
}

/// The work of evaluating an expression: operations, and bytes that are compared or copied.
pub(super) fn work(expression: &IdedExpr, sizes: &Sizes) -> u64 {
    estimate(expression, sizes).work
}

/// Every function takes linear time in its arguments, and gives a result that is not larger than they are together.
fn estimate(expression: &IdedExpr, sizes: &Sizes) -> Estimate {
    match &expression.expr {
        Expr::Literal(literal) => constant(literal_size(literal)),
        Expr::Ident(name) => constant(sizes.get(name)),
        Expr::Select(select) => {
            let operand = estimate(&select.operand, sizes);
            Estimate {
                work: operand.work.saturating_add(1),
                size: operand.size,
            }
        }
        Expr::Call(call) => together(call.target.as_deref().into_iter().chain(&call.args), sizes),
        Expr::List(list) => together(list.elements.iter(), sizes),
        Expr::Map(map) => {
            let entries = map.entries.iter().flat_map(|entry| match &entry.expr {
                EntryExpr::MapEntry(entry) => vec![&entry.key, &entry.value],
                EntryExpr::StructField(field) => vec![&field.value],
            });
            together(entries, sizes)
        }
        Expr::Comprehension(inner) => comprehension(inner, sizes),
        Expr::Struct(_) | Expr::Unspecified => constant(u64::MAX),
    }
}

const fn constant(size: u64) -> Estimate {
    Estimate { work: 1, size }
}

fn literal_size(literal: &LiteralValue) -> u64 {
    let bytes = match literal {
        LiteralValue::String(text) => text.inner().len(),
        LiteralValue::Bytes(bytes) => bytes.inner().len(),
        _ => 0,
    };
    bytes as u64 + 1
}

fn together<'e>(parts: impl Iterator<Item = &'e IdedExpr>, sizes: &Sizes) -> Estimate {
    let mut total = constant(1);
    for part in parts {
        let part = estimate(part, sizes);
        total.work = total
            .work
            .saturating_add(part.work)
            .saturating_add(part.size);
        total.size = total.size.saturating_add(part.size);
    }
    total
}

/// A loop over a value of size R has at most R elements, whose sizes are together at most R.
///
/// The work of one step is a polynomial in the size of the element, with coefficients that are not negative. So it is
/// convex, and all steps together take no more than if one element were as large as all, and the others had nothing.
fn comprehension(inner: &ComprehensionExpr, sizes: &Sizes) -> Estimate {
    let range = estimate(&inner.iter_range, sizes);
    let init = estimate(&inner.accu_init, sizes);
    let step = |size: u64| {
        let second = inner.iter_var2.as_deref().unwrap_or_default();
        let variables = [
            (&*inner.iter_var, size),
            (second, size),
            (&*inner.accu_var, ACCUMULATED),
        ];
        sizes.with(variables, |sizes| {
            work(&inner.loop_cond, sizes).saturating_add(work(&inner.loop_step, sizes))
        })
    };
    let steps = range
        .size
        .saturating_mul(step(1))
        .saturating_add(step(range.size));
    let result = sizes.with([(&*inner.accu_var, ACCUMULATED)], |sizes| {
        work(&inner.result, sizes)
    });
    let work = [range.work, init.work, steps, result];
    Estimate {
        work: work.into_iter().fold(1, u64::saturating_add),
        size: 1,
    }
}

/// Macros that collect more than a boolean or a number are refused.
const ACCUMULATED: u64 = 1;
