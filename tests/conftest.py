"""What holds for every test."""

pytest_plugins = ["tests.no_skips"]
