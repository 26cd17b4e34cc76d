"""How a stack is brought up. From `workloads` it imports only `workloads.spec`."""
