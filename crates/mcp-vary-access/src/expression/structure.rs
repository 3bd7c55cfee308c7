//! What an expression consists of, checked when it is compiled.

use std::collections::BTreeSet;

use cel::IdedExpr;
use cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, LiteralValue, SelectExpr, operators,
};
use mcp_vary::ignored::for_display;

use super::error::{ExpressionError, MAX_EXPRESSION_DEPTH};

/// The variables of an expression.
pub(super) const VARIABLES: [&str; 8] = [
    "args",
    "claims",
    "kind",
    "name",
    "principal",
    "server",
    "tool",
    "variant",
];

/// The members of `principal`.
pub(super) const PRINCIPAL: [&str; 4] = ["client", "id", "key", "kind"];

/// The operators and functions. The size of each result is at most the sum of the sizes of the arguments, so that
/// [`cost`](super::cost) holds.
const FUNCTIONS: [&str; 31] = [
    operators::CONDITIONAL,
    operators::LOGICAL_AND,
    operators::LOGICAL_OR,
    operators::LOGICAL_NOT,
    operators::SUBSTRACT,
    operators::ADD,
    operators::MULTIPLY,
    operators::DIVIDE,
    operators::MODULO,
    operators::EQUALS,
    operators::NOT_EQUALS,
    operators::GREATER_EQUALS,
    operators::LESS_EQUALS,
    operators::GREATER,
    operators::LESS,
    operators::NEGATE,
    operators::INDEX,
    operators::NOT_STRICTLY_FALSE,
    operators::IN,
    "size",
    "contains",
    "startsWith",
    "endsWith",
    "string",
    "int",
    "uint",
    "double",
    "bool",
    "bytes",
    "type",
    "dyn",
];

/// What an expression reads.
#[derive(Clone, Debug, Default)]
pub(super) struct Structure {
    pub(super) claims: BTreeSet<Box<str>>,
    pub(super) variables: BTreeSet<&'static str>,
}

impl Structure {
    /// Checks an expression.
    pub(super) fn of(expression: &IdedExpr) -> Result<Self, ExpressionError> {
        let mut reader = Reader::default();
        reader.read(expression, 1)?;
        if cannot_be_boolean(&expression.expr) {
            Err(ExpressionError::NotBoolean)
        } else {
            Ok(reader.found)
        }
    }
}

/// The depth of brackets in the text of an expression, those in strings included.
pub(super) fn text_depth(source: &str) -> usize {
    let mut depth = 0_usize;
    let mut most = 0;
    for byte in source.bytes() {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        most = most.max(depth);
    }
    most
}

/// Whether the result is surely not a boolean. Types of claims and arguments are not known.
const fn cannot_be_boolean(expression: &Expr) -> bool {
    match expression {
        Expr::Literal(literal) => !matches!(literal, LiteralValue::Boolean(_)),
        Expr::List(_) | Expr::Map(_) | Expr::Struct(_) => true,
        _ => false,
    }
}

#[derive(Default)]
struct Reader {
    found: Structure,
    /// The variables of the macros around an expression.
    bound: Vec<String>,
    /// The number of macros around an expression.
    loops: usize,
}

/// The maximum number of macros inside of each other: each multiplies the work.
const MAX_LOOPS: usize = 4;

impl Reader {
    fn read(&mut self, expression: &IdedExpr, depth: usize) -> Result<(), ExpressionError> {
        if depth > MAX_EXPRESSION_DEPTH {
            return Err(ExpressionError::TooDeep);
        }
        let next = depth + 1;
        match &expression.expr {
            Expr::Literal(_) => Ok(()),
            Expr::Ident(name) => self.variable(name),
            Expr::Select(select) => self.select(select, next),
            Expr::Call(call) => self.call(call, next),
            Expr::Comprehension(inner) => self.comprehension(inner, next),
            Expr::List(list) => {
                let mut elements = list.elements.iter();
                elements.try_for_each(|element| self.read(element, next))
            }
            Expr::Map(map) => {
                let mut entries = map.entries.iter();
                entries.try_for_each(|entry| match &entry.expr {
                    EntryExpr::MapEntry(entry) => {
                        self.read(&entry.key, next)?;
                        self.read(&entry.value, next)
                    }
                    EntryExpr::StructField(_) => unknown_function("a message"),
                })
            }
            Expr::Struct(message) => unknown_function(&message.type_name),
            Expr::Unspecified => unknown_function("an unknown operation"),
        }
    }

    /// A variable of a macro, or one of [`VARIABLES`].
    fn variable(&mut self, name: &str) -> Result<(), ExpressionError> {
        if self.is_bound(name) {
            return Ok(());
        }
        match VARIABLES.into_iter().find(|known| *known == name) {
            Some("claims") => Err(ExpressionError::AllClaims),
            Some(known) => {
                self.found.variables.insert(known);
                Ok(())
            }
            None => Err(ExpressionError::UnknownVariable(for_display(name))),
        }
    }

    fn is_bound(&self, name: &str) -> bool {
        self.bound.iter().any(|bound| bound == name)
    }

    /// Whether `expression` is the variable `name`, and not one of a macro.
    fn is_variable(&self, expression: &IdedExpr, name: &str) -> bool {
        matches!(&expression.expr, Expr::Ident(it) if it == name) && !self.is_bound(name)
    }

    fn select(&mut self, select: &SelectExpr, depth: usize) -> Result<(), ExpressionError> {
        if self.is_variable(&select.operand, "claims") {
            self.claim(&select.field);
            return Ok(());
        }
        let is_principal = self.is_variable(&select.operand, "principal");
        if is_principal && !PRINCIPAL.contains(&select.field.as_str()) {
            let field = for_display(&select.field);
            return Err(ExpressionError::UnknownMember(field));
        }
        self.read(&select.operand, depth)
    }

    fn claim(&mut self, name: &str) {
        self.found.claims.insert(name.into());
        self.found.variables.insert("claims");
    }

    fn call(&mut self, call: &CallExpr, depth: usize) -> Result<(), ExpressionError> {
        if let (operators::INDEX, [operand, index]) = (&*call.func_name, &*call.args)
            && self.is_variable(operand, "claims")
        {
            let Expr::Literal(LiteralValue::String(name)) = &index.expr else {
                return Err(ExpressionError::AllClaims);
            };
            self.claim(name.inner());
            return Ok(());
        }
        if matches!(&*call.func_name, operators::MAP | operators::FILTER) {
            return Err(ExpressionError::UnboundedMacro);
        }
        if !FUNCTIONS.contains(&&*call.func_name) {
            return unknown_function(&call.func_name);
        }
        if let Some(target) = &call.target {
            self.read(target, depth)?;
        }
        let mut arguments = call.args.iter();
        arguments.try_for_each(|argument| self.read(argument, depth))
    }

    /// `all`, `exists` and `exists_one` collect a boolean or a number; `map` and `filter` collect a list.
    fn comprehension(
        &mut self,
        inner: &ComprehensionExpr,
        depth: usize,
    ) -> Result<(), ExpressionError> {
        use LiteralValue::{Boolean, Int};
        if !matches!(&inner.accu_init.expr, Expr::Literal(Boolean(_) | Int(_))) {
            return Err(ExpressionError::UnboundedMacro);
        }
        self.read(&inner.iter_range, depth)?;
        if self.loops == MAX_LOOPS {
            return Err(ExpressionError::TooDeep);
        }
        let outer = self.bound.len();
        self.loops += 1;
        self.bound.push(inner.iter_var.clone());
        self.bound.push(inner.accu_var.clone());
        self.bound.extend(inner.iter_var2.clone());
        let parts = [&inner.loop_cond, &inner.loop_step, &inner.result];
        let read = parts
            .into_iter()
            .try_for_each(|part| self.read(part, depth));
        self.bound.truncate(outer);
        self.loops -= 1;
        read
    }
}

fn unknown_function(name: &str) -> Result<(), ExpressionError> {
    Err(ExpressionError::UnknownFunction(for_display(name)))
}
