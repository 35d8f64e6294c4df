"""What was received, on disk before it is acknowledged, and where assembly reads it from."""
