"""A server whose tool `who` says which process it is.

With arguments, it notes its start in the file of the first, waits the seconds of the second, in which it computes a
little, and computes for those of the third.
"""

import os
import sys
import time

from scripted import serve, tools

if sys.argv[1:]:
    with open(sys.argv[1], "a") as starts:
        starts.write("x")
    ready = time.monotonic() + float(sys.argv[2])
    while time.monotonic() < ready:
        time.sleep(0.05)
        pause = time.process_time() + 0.005
        while time.process_time() < pause:
            pass
    while time.process_time() < float(sys.argv[3]):
        pass

serve("who", {"tools": {}}, {
    "tools/list": lambda request: {"tools": tools("who")},
    "tools/call": lambda request: {"content": [{"type": "text", "text": str(os.getpid())}]},
})
