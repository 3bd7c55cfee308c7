"""Gives servers more time for the first request of the Python SDK 2.x and of FastMCP 4.

The SDK takes a server that has not answered `server/discover` after 10 seconds for one that only knows the older
revision. Beside other jobs, a server that is written in Python can take longer than that to start.
"""

from mcp.client import session

session.DISCOVER_TIMEOUT_SECONDS = 60.0
