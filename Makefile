# Every target sets up what it needs. `make help` lists them.
