//! Values of jq from JSON, and as JSON.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::str;

use jaq_json::{Map, Num, Rc, Val};
use mcp_vary::json::{Builder, Json, MAX_DEPTH, write_string};

use crate::limits::LARGEST;

/// Builds the values that filters read.
pub(super) struct Values;

impl<'a> Builder<'a> for Values {
    type Value = Val;

    fn null() -> Val {
        Val::Null
    }

    fn bool(is: bool) -> Val {
        Val::Bool(is)
    }

    fn number(spelling: &'a str) -> Val {
        let is_integer = !spelling.contains(['.', 'e', 'E']);
        let integer = is_integer.then(|| Num::from_str_radix(spelling, 10));
        let number = integer.flatten();
        Val::Num(number.unwrap_or_else(|| Num::Dec(Rc::new(spelling.to_owned()))))
    }

    fn string(text: Cow<'a, str>) -> Val {
        Val::utf8_str(text.into_owned())
    }

    fn array(elements: Vec<Val>) -> Val {
        Val::Arr(Rc::new(elements))
    }

    fn object(members: Vec<(Cow<'a, str>, Val)>) -> Val {
        let entries = members.into_iter();
        Val::obj(
            entries
                .map(|(key, value)| (Self::string(key), value))
                .collect(),
        )
    }
}

/// Appends `value` as JSON. Fails where it is none, as `nan`, and where the text becomes longer than [`LARGEST`]: a value
/// can contain another value many times without using more memory.
pub(super) fn write(value: &Val, depth: usize, out: &mut String) -> Result<(), String> {
    match value {
        Val::Null => out.push_str("null"),
        Val::Bool(is) => out.push_str(if *is { "true" } else { "false" }),
        Val::Num(number) => write_number(number, out)?,
        Val::TStr(text) => write_string(out, &String::from_utf8_lossy(text)),
        Val::BStr(_) => return Err("it makes no JSON, but bytes".to_owned()),
        Val::Arr(_) | Val::Obj(_) if depth == MAX_DEPTH => {
            return Err("it makes no JSON: nested too deep".to_owned());
        }
        Val::Arr(elements) => {
            out.push('[');
            for (at, element) in elements.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                write(element, depth + 1, out)?;
            }
            out.push(']');
        }
        Val::Obj(members) => write_members(members, depth, out)?,
    }
    if out.len() > LARGEST {
        return Err(format!("it makes a value of more than {LARGEST} bytes"));
    }
    Ok(())
}

fn write_members(members: &Map, depth: usize, out: &mut String) -> Result<(), String> {
    out.push('{');
    for (at, (key, value)) in members.iter().enumerate() {
        let Val::TStr(key) = key else {
            return Err(format!("it makes no JSON: the key {key} is not a string"));
        };
        let Ok(key) = str::from_utf8(key) else {
            return Err("it makes no JSON: a key is not UTF-8".to_owned());
        };
        if at > 0 {
            out.push(',');
        }
        write_string(out, key);
        out.push(':');
        write(value, depth + 1, out)?;
    }
    out.push('}');
    Ok(())
}

fn write_number(number: &Num, out: &mut String) -> Result<(), String> {
    let start = out.len();
    let _ = write!(out, "{number}");
    match number {
        Num::Int(_) | Num::BigInt(_) => Ok(()),
        // A filter may have `01.5` or `nan`.
        Num::Float(_) | Num::Dec(_) => match Json::parse(&out[start..]) {
            Ok(_) => Ok(()),
            Err(_) => Err(format!("it makes no JSON, but {number}")),
        },
    }
}
