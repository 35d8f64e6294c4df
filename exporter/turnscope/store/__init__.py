"""The Parquet store: ``StoreWriter`` for the sidecar, ``StoreReader`` for whoever asks."""

from turnscope.store.errors import StoreBroken, StoreError, StoreMissing, StorePermanentError, StoreTransientError
from turnscope.store.reader import StoreReader
from turnscope.store.summaries import SummarisingWriter
from turnscope.store.writer import StoreWriter

__all__ = [
    "StoreBroken",
    "StoreError",
    "StoreMissing",
    "StorePermanentError",
    "StoreReader",
    "StoreTransientError",
    "StoreWriter",
    "SummarisingWriter",
]
