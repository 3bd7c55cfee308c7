"""Lines for what was checked, and what it is checked against, with whichever SDK."""

import json
import sys

VARIANT = "io.modelcontextprotocol/server-variant"

# What the script is asked to do, by its command line.
JOB = json.loads(sys.argv[1])


def same(found, wanted):
    if found != wanted:
        raise AssertionError(f"{found!r} instead of {wanted!r}")


def holds(found, *parts):
    for part in parts:
        if part not in found:
            raise AssertionError(f"no {part} in {found}")


def text(result):
    return "\n".join(block.text for block in result.content if block.type == "text")


def said(error):
    """What went wrong, out of the groups that the SDK wraps it in."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return f"{type(error).__name__}: {error}"


async def told(name, action, server=None):
    """Does `action` with `server`, and prints how it went."""
    line = {"name": name, "server": server, "ok": True}
    try:
        await action()
    except Exception as error:
        line |= {"ok": False, "detail": said(error)}
    print(json.dumps(line, ensure_ascii=False) + "\n", end="", flush=True)


def lacks(name, why, server=None):
    """Prints what the SDK has no way to do."""
    print(json.dumps({"name": name, "server": server, "lacks": why}) + "\n", end="", flush=True)
