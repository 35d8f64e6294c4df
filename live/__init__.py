"""A real vLLM prefill/decode pair on this machine's CPU: set up, driven through a proxy, and reconciled."""
