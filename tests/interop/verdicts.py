"""Judges calls of every recorded tool with the package `jsonschema`, whose verdicts must be those of Vary.

verdicts.mjs does the same with `ajv`. `cargo run -p mcp-vary-view --example verdicts` prints the calls."""

import asyncio
import json
import re
from copy import deepcopy
from pathlib import Path

from jsonschema import Draft202012Validator, ValidationError
from jsonschema.validators import extend, validator_for

from telling import JOB, told


def matches(validator, pattern, instance, schema):
    """`pattern` as ECMA 262 reads it: `\\d` and `\\w` are characters of ASCII."""
    if validator.is_type(instance, "string") and not re.search(pattern, instance, re.ASCII):
        yield ValidationError(f"{instance!r} does not match {pattern!r}")


def rejected_nulls(errors):
    """Where a property of an object is `null`, and the schema rejects that."""
    for error in errors:
        path = list(error.absolute_path)
        if error.instance is None and path and isinstance(path[-1], str):
            yield path
        yield from rejected_nulls(error.context or [])


def meant(validator, arguments):
    """The arguments without these: Vary takes them for left out."""
    arguments = deepcopy(arguments)
    for *objects, name in list(rejected_nulls(validator.iter_errors(arguments))):
        parent = arguments
        for key in objects:
            parent = parent[key]
        parent.pop(name, None)
    return arguments


def different(tool):
    """The calls that Vary judges in another way, without those that only Vary refuses: with arguments that the schema
    does not name."""
    schema = tool["schema"]
    dialect = validator_for(schema, default=Draft202012Validator)
    validator = extend(dialect, {"pattern": matches})(schema)
    accepts = validator.is_valid
    for call in tool["calls"]:
        theirs = accepts(call["arguments"])
        if call["accepted"] and not theirs:
            theirs = accepts(meant(validator, call["arguments"]))
        if theirs != call["accepted"] and not (theirs and call["only_names"]):
            yield f"{json.dumps(call['arguments'])}: {theirs}, and Vary: {call['errors'] or 'accepted'}"


async def main():
    tools = [json.loads(line) for line in Path(JOB["calls"]).read_text().splitlines()]

    async def judge(tool):
        found = list(different(tool))
        assert not tool["unchecked"], tool["unchecked"]
        assert not found, f"{len(found)} of {len(tool['calls'])} differ; the first: {found[0][:600]}"

    for tool in tools:
        await told(tool["tool"], lambda tool=tool: judge(tool))


asyncio.run(main())
