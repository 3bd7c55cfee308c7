"""The process of `asks.py`, of which only one can run at a time: it takes the port of its argument, or ends."""

import os
import runpy
import socket
import sys

taken = socket.socket()
try:
    taken.bind(("127.0.0.1", int(sys.argv[1])))
except OSError:
    sys.exit(f"Port {sys.argv[1]} is already in use")
runpy.run_path(os.path.join(os.path.dirname(__file__), "asks.py"), run_name="__main__")
