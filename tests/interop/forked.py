"""Has the fork server at a socket run a script, and ends as the script does.

    python -IS forked.py SOCKET SCRIPT ARGUMENT...
"""

import json
import os
import signal
import socket
import struct
import sys


def received(connection):
    """A number of the server, which closes the connection if it fails."""
    number = connection.recv(4, socket.MSG_WAITALL)
    if len(number) < 4:
        sys.exit("the fork server has ended")
    return struct.unpack("!i", number)[0]


path, *argv = sys.argv[1:]
connection = socket.socket(socket.AF_UNIX)
connection.connect(path)
request = json.dumps({"argv": argv, "directory": os.getcwd(), "environment": dict(os.environ)}).encode()
socket.send_fds(connection, [struct.pack("!q", len(request))], [0, 1, 2])
connection.sendall(request)
pid = received(connection)
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(number, lambda number, _: os.kill(pid, number))
# Only the script has them now, so that the other side sees when it closes them.
nothing = os.open(os.devnull, os.O_RDWR)
os.dup2(nothing, 0)
os.dup2(nothing, 1)
code = received(connection)
if code < 0:
    signal.signal(-code, signal.SIG_DFL)
    os.kill(os.getpid(), -code)
os._exit(code)
