"""Training: one run on one slice, from a text to an exported model."""
