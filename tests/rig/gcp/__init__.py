"""A stand-in for Google's `gcp` resource provider, spoken to by the real Pulumi engine.

It does what the provider does without calling Google: checks inputs, fills defaults, names resources, plans changes and
decides what is sent. What is sent goes to `tests.rig.cloud`. Its truth is `data/`: properties and observed results.
"""

VERSION = "10.2.0"
