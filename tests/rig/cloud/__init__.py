"""A double of Google's side, called by the stand-in `gcp` provider: what the APIs hold, fill in, change by themselves
and refuse. For tests only.

Every refusal is a function of its own in `refusals_*.py` that names its source. Where only the rule is public and not
the words of the answer, the docstring says "our words".
"""
