"""A server whose tool `who` says which process it is.

With arguments, it notes its start in the file of the first, waits the seconds of the second, and computes those of the third.
"""

import os
import sys
import time

from scripted import serve, tools

if sys.argv[1:]:
    with open(sys.argv[1], "a") as starts:
        starts.write("x")
    time.sleep(float(sys.argv[2]))
    while time.process_time() < float(sys.argv[3]):
        pass

serve("who", {"tools": {}}, {
    "tools/list": lambda request: {"tools": tools("who")},
    "tools/call": lambda request: {"content": [{"type": "text", "text": str(os.getpid())}]},
})
