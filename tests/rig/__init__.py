"""Stand-ins for the parts of Google Cloud that cannot be had on a bare machine. For tests only."""
