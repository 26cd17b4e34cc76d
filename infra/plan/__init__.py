"""From a stack to what has to exist. Pure: no resource is made here and nothing is read."""
