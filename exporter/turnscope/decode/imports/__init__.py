"""Files that others write, read into rows of the store: one module a kind, each a pure streaming generator.

What a record's Struct does not name is never decoded into an object: the Structs are the allowlist, and prompts,
answers and what tools were given or said stay in the file.
"""
