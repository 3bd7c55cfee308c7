"""Judges calls of every recorded tool with the package `jsonschema`, whose verdicts must be those of Vary.

verdicts.mjs does the same with `ajv`. `cargo run -p mcp-vary-view --example verdicts` prints the calls."""

import asyncio
import json
import sys
from pathlib import Path

from jsonschema import Draft202012Validator
from jsonschema.validators import validator_for

from telling import told

JOB = json.loads(sys.argv[1])


def different(tool):
    """The calls that Vary judges in another way, without those that only Vary refuses: with arguments that the schema
    does not name."""
    schema = tool["schema"]
    accepts = validator_for(schema, default=Draft202012Validator)(schema).is_valid
    for call in tool["calls"]:
        theirs = accepts(call["arguments"])
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
