"""Where a stack can live. Each platform has `deploy(stack_name, stack)`; nothing else knows which one it is."""
