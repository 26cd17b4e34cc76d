"""One decoder for the Llama family, and the files that its weights come from."""
