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
import selectors
import signal
import socket
import struct
import sys

# Seconds for the rest of a request, once it has begun.
LIMIT = 60


class Forks:
    """The running forks, and the connections of those who asked for them."""

    def __init__(self, path):
        self.connections = {}
        self.selector = selectors.DefaultSelector()
        self.listener = socket.socket(socket.AF_UNIX)
        # Nobody finds the socket before it listens.
        self.listener.bind(f"{path}.new")
        self.listener.listen(64)
        os.rename(f"{path}.new", path)
        # A child that ends wakes the selector.
        self.woken, self.wakes = socket.socketpair()
        for end in (self.woken, self.wakes):
            end.setblocking(False)
        signal.set_wakeup_fd(self.wakes.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self.selector.register(self.listener, selectors.EVENT_READ)
        self.selector.register(self.woken, selectors.EVENT_READ)

    def serve(self):
        """Returns in each fork, with the arguments of its script."""
        while True:
            for key, _ in self.selector.select():
                if key.fileobj is self.listener:
                    argv = self.accept()
                    if argv:
                        return argv
                elif key.fileobj is self.woken:
                    self.reap()
                else:
                    self.abandon(key.fileobj)

    def accept(self):
        """Forks for a connection. The arguments of the script in the fork, and nothing in the server."""
        connection, _ = self.listener.accept()
        connection.settimeout(LIMIT)
        streams = []
        try:
            length, streams, _, _ = socket.recv_fds(connection, 8, 3)
            with connection.makefile("rb") as reader:
                request = json.loads(reader.read(struct.unpack("!q", length)[0]))
            pid = os.fork()
            if pid == 0:
                self.close()
                connection.close()
                return enter(request, streams)
            self.connections[pid] = connection
            self.selector.register(connection, selectors.EVENT_READ)
            connection.sendall(struct.pack("!i", pid))
        except (OSError, ValueError, struct.error) as error:
            print(f"a connection failed: {error}", file=sys.stderr, flush=True)
        finally:
            for stream in streams:
                os.close(stream)

    def reap(self):
        """Reports how each ended fork ended."""
        self.woken.recv(1024)
        while self.connections:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            if connection := self.connections.pop(pid, None):
                self.selector.unregister(connection)
                try:
                    connection.sendall(struct.pack("!i", os.waitstatus_to_exitcode(status)))
                except OSError:
                    pass  # It was killed.
                connection.close()

    def abandon(self, connection):
        """Ends the fork of one who was killed."""
        for pid, each in self.connections.items():
            if each is connection:
                self.selector.unregister(connection)
                self.connections[pid] = None
                connection.close()
                os.kill(pid, signal.SIGKILL)
                return

    def close(self):
        """Leaves nothing of the server in a fork."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        self.selector.close()
        for each in [self.listener, self.woken, self.wakes, *filter(None, self.connections.values())]:
            each.close()


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
    return Forks(path).serve()


sys.argv = main()
sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
runpy.run_path(sys.argv[0], run_name="__main__")
