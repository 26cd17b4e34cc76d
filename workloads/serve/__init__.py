"""Serving: HTTP in front, one replica per slice behind it, an engine on every host of the slice."""
