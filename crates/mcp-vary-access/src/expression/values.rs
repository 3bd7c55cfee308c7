//! The variables of expressions.

use std::cell::OnceCell;

use cel::objects::{Key, Map};
use cel::{Context, Value};
use mcp_vary::json::Json;

use super::cost::Sizes;
use super::structure::PRINCIPAL;
use super::{EvaluationError, Expression, MAX_ARGUMENTS};
use crate::call::Call;
use crate::claims::Claim;
use crate::item::ItemKind;

/// A call whose arguments are read at most once, and only if an expression needs them.
pub(crate) struct CallContext<'c> {
    call: &'c Call<'c>,
    arguments: OnceCell<Result<Value, EvaluationError>>,
}

impl<'c> CallContext<'c> {
    pub(crate) const fn new(call: &'c Call<'c>) -> Self {
        Self {
            call,
            arguments: OnceCell::new(),
        }
    }

    /// Adds the variables that `expression` reads, and returns their sizes.
    pub(super) fn bind(
        &self,
        expression: &Expression,
        context: &mut Context<'_, '_>,
    ) -> Result<Sizes, EvaluationError> {
        let mut sizes = Sizes::default();
        for variable in expression.variables() {
            let (value, size) = self.variable(variable, expression)?;
            sizes.insert(variable, size as u64 + 1);
            context.add_variable_from_value(*variable, value);
        }
        Ok(sizes)
    }

    /// A variable, and its size in bytes.
    fn variable(
        &self,
        variable: &str,
        expression: &Expression,
    ) -> Result<(Value, usize), EvaluationError> {
        let call = self.call;
        let text = |text: &str| Ok((Value::from(text), text.len()));
        match variable {
            "args" => {
                let size = call.arguments.map_or(0, str::len);
                Ok((self.arguments()?, size))
            }
            "claims" => self.claims(expression),
            "principal" => Ok(self.principal()),
            "kind" => text(call.item.kind().as_str()),
            "name" => text(call.item.name()),
            "server" => text(call.item.server()),
            "tool" if call.item.kind() == ItemKind::Tool => text(call.item.name()),
            "tool" => text(""),
            "variant" => text(call.variant.as_str()),
            _ => Err(EvaluationError::Failed),
        }
    }

    fn arguments(&self) -> Result<Value, EvaluationError> {
        let read = || match self.call.arguments {
            None => Ok(object(std::iter::empty())),
            Some(json) if json.len() > MAX_ARGUMENTS => Err(EvaluationError::ArgumentsTooLarge),
            Some(json) => match Json::parse(json) {
                Ok(object @ Json::Object(_)) => value(&object),
                _ => Err(EvaluationError::Arguments),
            },
        };
        self.arguments.get_or_init(read).clone()
    }

    /// The claims that the expression reads and the principal has.
    fn claims(&self, expression: &Expression) -> Result<(Value, usize), EvaluationError> {
        let mut members = Vec::new();
        let mut size = 0;
        for name in expression.claim_names() {
            if let Some(claim) = self.call.principal.claims().get(name) {
                size += name.len() + claim_size(claim);
                members.push((name, claim_value(claim)?));
            }
        }
        Ok((object(members.into_iter()), size))
    }

    fn principal(&self) -> (Value, usize) {
        let principal = self.call.principal;
        let texts = PRINCIPAL.map(|member| {
            let text = match member {
                "client" => principal.certificate_subject(),
                "id" => Some(principal.id_text()),
                "key" => principal.key_name(),
                _ => Some(principal.kind().as_str()),
            };
            (member, text.unwrap_or_default())
        });
        let sizes = texts.iter().map(|(member, text)| member.len() + text.len());
        let size = sizes.sum();
        let members = texts.map(|(member, text)| (member, Value::from(text)));
        (object(members.into_iter()), size)
    }
}

fn claim_size(claim: &Claim) -> usize {
    match claim {
        Claim::Text(text) | Claim::Number(text) => text.len() + 1,
        Claim::Bool(_) => 1,
        Claim::List(list) => list.iter().map(|text| text.len() + 1).sum::<usize>() + 1,
        Claim::Json { json, .. } => json.len(),
    }
}

fn claim_value(claim: &Claim) -> Result<Value, EvaluationError> {
    Ok(match claim {
        Claim::Text(text) => Value::from(&**text),
        Claim::Number(number) => number_value(number)?,
        Claim::Bool(bool) => Value::Bool(*bool),
        Claim::List(list) => {
            let texts: Vec<Value> = list.iter().map(|text| Value::from(&**text)).collect();
            Value::from(texts)
        }
        Claim::Json { json, .. } => {
            let json = Json::parse(json).map_err(|_| EvaluationError::Failed)?;
            value(&json)?
        }
    })
}

fn value(json: &Json<'_>) -> Result<Value, EvaluationError> {
    Ok(match json {
        Json::Null => Value::Null,
        Json::Bool(bool) => Value::Bool(*bool),
        Json::Number(number) => number_value(number)?,
        Json::String(text) => Value::from(&**text),
        Json::Array(elements) => {
            let values: Result<Vec<Value>, _> = elements.iter().map(value).collect();
            Value::from(values?)
        }
        Json::Object(members) => {
            let mut values = Vec::with_capacity(members.len());
            for (name, member) in members {
                values.push((&**name, value(member)?));
            }
            object(values.into_iter())
        }
    })
}

/// An integer of 64 bits, else a double. An integer that would lose digits is refused: two readers of it would see
/// different numbers.
fn number_value(number: &str) -> Result<Value, EvaluationError> {
    if let Ok(int) = number.parse::<i64>() {
        return Ok(Value::Int(int));
    }
    if let Ok(uint) = number.parse::<u64>() {
        return Ok(Value::UInt(uint));
    }
    let is_integer = !number.contains(['.', 'e', 'E']);
    match number.parse::<f64>() {
        Ok(float) if float.is_finite() && !is_integer => Ok(Value::Float(float)),
        _ => Err(EvaluationError::Arguments),
    }
}

fn object<'m>(members: impl Iterator<Item = (&'m str, Value)>) -> Value {
    let keyed = members.map(|(name, value)| (Key::from(name), value));
    Value::Map(Map {
        map: std::sync::Arc::new(keyed.collect()),
    })
}
