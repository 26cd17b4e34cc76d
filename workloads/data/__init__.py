"""Text to rows of tokens, and rows to the global batch of a step."""
