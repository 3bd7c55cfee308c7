"""Lines for what was checked."""

import json

from library import said


async def told(name, action, server=None):
    """Does `action` with `server`, and prints how it went."""
    line = {"name": name, "server": server, "ok": True}
    try:
        await action()
    except Exception as error:
        line |= {"ok": False, "detail": said(error)}
    print(json.dumps(line, ensure_ascii=False), flush=True)


def lacks(name, why, server=None):
    """Prints what the SDK has no way to do."""
    print(json.dumps({"name": name, "server": server, "lacks": why}), flush=True)
