"""FastMCP's own proxy in front of the servers at these URLs, in its fastest mode: answers are JSON, not streams."""

import socket
import sys

from fastmcp.server import create_proxy

servers = {f"server{index}": {"url": url} for index, url in enumerate(sys.argv[1:], 1)}
proxy = create_proxy({"mcpServers": servers} if len(servers) > 1 else sys.argv[1])
listener = socket.create_server(("127.0.0.1", 0))
print(f"listening on http://127.0.0.1:{listener.getsockname()[1]}/mcp", flush=True)
proxy.run(transport="http", sockets=[listener], json_response=True, show_banner=False, log_level="error")
