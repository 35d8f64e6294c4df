"""What a request puts into its prompt, message by message, and where one request stops continuing another. Pure."""
