"""A fork server: imports modules once, and runs scripts in forks of itself.

To import an SDK takes longer than most tests of it. `forked.py` passes its arguments, directory, environment and standard
streams to the server at the path of a socket, and ends as the script does.

    python fork_server.py SOCKET MODULE...
"""

import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import struct
import sys
from contextlib import suppress

# Seconds for the rest of a request, once it has begun.
LIMIT = 60


def serve(path):
    """Returns in each fork, with the arguments of its script."""
    listener = socket.socket(socket.AF_UNIX)
    # Nobody finds the socket before it listens.
    listener.bind(f"{path}.new")
    listener.listen(64)
    os.rename(f"{path}.new", path)
    # The system forgets the processes of `accept` as they end.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        connection, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            return accept(connection)
        connection.close()


def accept(connection):
    """Forks for a connection, and returns in the fork; reports how the fork ended, and ends it with the connection."""
    connection.settimeout(LIMIT)
    try:
        length, streams, _, _ = socket.recv_fds(connection, 8, 3)
        with connection.makefile("rb") as reader:
            request = json.loads(reader.read(struct.unpack("!q", length)[0]))
    except (OSError, ValueError, struct.error) as error:
        print(f"a connection failed: {error}", file=sys.stderr, flush=True)
        os._exit(1)
    pid = os.fork()
    if pid == 0:
        connection.close()
        return enter(request, streams)
    for stream in streams:
        os.close(stream)
    ended = os.pidfd_open(pid)
    with suppress(OSError):
        connection.sendall(struct.pack("!i", pid))
    # Nothing more is sent: the connection is readable when the one who asked was killed.
    if connection in select.select([connection, ended], [], [])[0]:
        os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    with suppress(OSError):
        connection.sendall(struct.pack("!i", os.waitstatus_to_exitcode(status)))
    os._exit(0)


def enter(request, streams):
    """Makes this process look as if it had been started for the script."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    os.chdir(request["directory"])
    os.environ.clear()
    os.environ.update(request["environment"])
    return request["argv"]


def main():
    path, *modules = sys.argv[1:]
    for module in modules:
        importlib.import_module(module)
    # The collector would copy the memory that the forks share.
    gc.collect()
    gc.freeze()
    return serve(path)


sys.argv = main()
sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
runpy.run_path(sys.argv[0], run_name="__main__")
