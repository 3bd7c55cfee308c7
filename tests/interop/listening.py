"""Serves an application over HTTP on a port that the system chooses unless there is one, and prints its URL."""

import socket

import uvicorn


def serve(app, path="mcp", port=0):
    listener = socket.create_server(("127.0.0.1", port))
    print(f"listening on http://127.0.0.1:{listener.getsockname()[1]}/{path}", flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listener])
