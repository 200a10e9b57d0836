"""Simulated buyers who use the HTTP API like anybody else: for the demo, and for flash sales against a server."""
