//! The expressions of rules, in CEL.

mod cost;
mod error;
mod structure;
mod values;

use std::collections::BTreeSet;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, LazyLock};

use cel::{Context, Env, ExecutionError, IdedExpr, Value};

pub use self::error::{
    ExpressionError, MAX_EXPRESSION, MAX_EXPRESSION_BRACKETS, MAX_EXPRESSION_DEPTH,
};
use self::structure::Structure;
pub(crate) use self::values::CallContext;

/// The maximum size of the arguments that an expression reads, in bytes of JSON.
pub const MAX_ARGUMENTS: usize = 64 << 10;

/// The maximum work of one evaluation, in operations and compared bytes.
pub const MAX_WORK: u64 = 1 << 20;

/// An expression that decides on a call, in the Common Expression Language (CEL).
///
/// | variable | |
/// |---|---|
/// | `claims.NAME`, `claims["NAME"]` | a claim of the principal; `claims.scope` is a list |
/// | `principal.kind`, `.id`, `.key`, `.client` | how the principal was recognised, its id, the name of its key and the subject of its certificate, or `""` |
/// | `kind`, `name`, `server` | the kind of the item, its name or URI in the variant `standard`, the key of its server |
/// | `tool` | the name of the tool; `""` for other items |
/// | `variant` | the active variant |
/// | `args` | the arguments; `{}` if there are none |
///
/// There are the operators of CEL, `size`, `contains`, `startsWith`, `endsWith`, conversions (`string`, `int`, `uint`,
/// `double`, `bool`), and the macros `has`, `all`, `exists` and `exists_one`.
///
/// # Properties
///
/// - It is compiled and checked once. An unknown variable or function is an error then.
/// - Evaluation takes at most [`MAX_WORK`] operations. The work is estimated from the sizes of the claims and arguments
///   before anything is evaluated.
/// - What fails is never true: a claim or argument that does not exist (check it with `has`), values of other types,
///   a result that is not a boolean. As CEL defines it, `a || b` is true if one of them is, even if the other fails,
///   and `a && b` is false if one of them is.
///
/// # Examples
///
/// ```
/// use mcp_vary_access::Expression;
///
/// let expression = Expression::compile(r#"args.environment != "production" || "sre" in claims.groups"#)?;
/// assert_eq!(expression.claim_names().collect::<Vec<_>>(), ["groups"]);
///
/// // A misspelt variable would fail at every call; it is refused when the file is read.
/// let error = Expression::compile("arg.environment == 'test'").unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "it uses `arg`, which does not exist; there are args, claims, kind, name, principal, server, tool, variant"
/// );
/// # Ok::<(), mcp_vary_access::ExpressionError>(())
/// ```
#[derive(Clone)]
pub struct Expression {
    source: Box<str>,
    tree: Arc<IdedExpr>,
    structure: Structure,
}

/// Why an expression could not be evaluated. It contains no values.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum EvaluationError {
    /// The arguments have more than [`MAX_ARGUMENTS`].
    #[error("the arguments have more than {MAX_ARGUMENTS} bytes")]
    ArgumentsTooLarge,
    /// The arguments are not a JSON object with unique names, or have a number beyond 64 bits.
    #[error("the arguments are not a JSON object with unique names and ordinary numbers")]
    Arguments,
    /// The evaluation could take more than [`MAX_WORK`].
    #[error("the evaluation could take too long for arguments of this size")]
    TooMuchWork,
    /// Something that the expression reads does not exist.
    #[error("an argument or claim that the expression reads does not exist")]
    Missing,
    /// An operation does not apply to its values.
    #[error("an operation of the expression does not apply to the types of its values")]
    Type,
    /// The result is not a boolean.
    #[error("the result is not true or false")]
    NotBoolean,
    /// Another failure, such as an overflow.
    #[error("the evaluation failed")]
    Failed,
}

/// What the parser counts as depth: conditionals in conditionals, too.
const PARSER_DEPTH: u16 = 32;

/// The operators and functions, without macros of our own. Optional values are not needed.
static ENVIRONMENT: LazyLock<Arc<Env>> =
    LazyLock::new(|| Arc::new(Env::stdlib().with_optional_support(false)));

impl Expression {
    /// Compiles and checks an expression.
    ///
    /// # Errors
    ///
    /// See [`ExpressionError`].
    pub fn compile(source: &str) -> Result<Self, ExpressionError> {
        if source.len() > MAX_EXPRESSION {
            return Err(ExpressionError::TooLong);
        }
        if structure::text_depth(source) > MAX_EXPRESSION_BRACKETS {
            return Err(ExpressionError::TooManyBrackets);
        }
        // The generated parser is foreign code, and a file must not end the process.
        let parsed = catch_unwind(|| {
            let parser = ENVIRONMENT.parser();
            parser.max_recursion_depth(PARSER_DEPTH).parse(source)
        });
        let tree = match parsed {
            Ok(Ok(tree)) => tree,
            Ok(Err(errors)) => {
                let first = errors.errors.first().map(|error| error.msg.as_str());
                let why = mcp_vary::ignored::for_display(first.unwrap_or("syntax error"));
                return Err(ExpressionError::Syntax(why));
            }
            Err(_) => return Err(ExpressionError::Syntax("syntax error".into())),
        };
        let structure = Structure::of(&tree)?;
        Ok(Self {
            source: source.into(),
            tree: Arc::new(tree),
            structure,
        })
    }

    /// The text of the expression.
    pub fn as_str(&self) -> &str {
        &self.source
    }

    /// The names of the claims that it reads, sorted.
    pub fn claim_names(&self) -> impl Iterator<Item = &str> {
        self.structure.claims.iter().map(|name| &**name)
    }

    /// The variables that it reads.
    const fn variables(&self) -> &BTreeSet<&'static str> {
        &self.structure.variables
    }

    /// Whether it reads the arguments of the call.
    pub(crate) fn reads_arguments(&self) -> bool {
        self.variables().contains("args")
    }

    /// Whether the expression is true for a call.
    pub(crate) fn evaluate(&self, call: &CallContext<'_>) -> Result<bool, EvaluationError> {
        let mut context = Context::with_env(Arc::clone(&ENVIRONMENT));
        let sizes = call.bind(self, &mut context)?;
        if cost::work(&self.tree, &sizes) > MAX_WORK {
            return Err(EvaluationError::TooMuchWork);
        }
        // A panic of the interpreter refuses the call, as every failure does.
        let result = catch_unwind(AssertUnwindSafe(|| Value::resolve(&self.tree, &context)));
        match result {
            Ok(Ok(Value::Bool(result))) => Ok(result),
            Ok(Ok(_)) => Err(EvaluationError::NotBoolean),
            Ok(Err(error)) => Err((&error).into()),
            Err(_) => Err(EvaluationError::Failed),
        }
    }
}

impl fmt::Debug for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Expression({:?})", self.source)
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.source)
    }
}

/// The kind of the failure. The interpreter's text may contain arguments and claims.
impl From<&ExecutionError> for EvaluationError {
    fn from(error: &ExecutionError) -> Self {
        match error {
            ExecutionError::NoSuchKey(_)
            | ExecutionError::IndexOutOfBounds(_)
            | ExecutionError::UndeclaredReference(_) => Self::Missing,
            ExecutionError::NoSuchOverload(_)
            | ExecutionError::UnexpectedType { .. }
            | ExecutionError::UnsupportedTargetType { .. }
            | ExecutionError::NotSupportedAsMethod { .. }
            | ExecutionError::UnsupportedKeyType(_)
            | ExecutionError::ValuesNotComparable(..)
            | ExecutionError::UnsupportedBinaryOperator(..)
            | ExecutionError::UnsupportedIndex(..) => Self::Type,
            _ => Self::Failed,
        }
    }
}

#[cfg(test)]
mod tests;
