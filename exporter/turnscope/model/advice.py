"""What people are told to do, in the same words wherever it is said."""

from __future__ import annotations

from typing import Final

SESSION_ADVICE: Final = (
    "Let clients send the header X-Session-ID with every request of a session, or conversation_id in the body where "
    "proxy and engines accept it."
)
"""For turns without a session id. Strict front ends refuse a body field that they do not know."""
