"""The hook's variables: what is understood, and what is said about the rest."""

from __future__ import annotations

import pytest

from turnscope.emit.settings import VARIABLES, Endpoint, SettingsError, parse_endpoint, read


@pytest.mark.parametrize(
    ("text", "target", "tls"),
    [
        ("http://localhost:4317", "localhost:4317", False),
        ("grpc://sidecar:5000/", "sidecar:5000", False),
        ("127.0.0.1:4317", "127.0.0.1:4317", False),
        ("sidecar", "sidecar:4317", False),
        ("https://sidecar.example", "sidecar.example:4317", True),
        ("grpcs://[::1]:4317", "[::1]:4317", True),
    ],
)
def test_an_endpoint_is_understood_with_and_without_a_scheme(text: str, target: str, tls: bool) -> None:
    assert parse_endpoint(text) == Endpoint(target, tls)


@pytest.mark.parametrize("text", ["http://localhost:4318", "localhost:4318", "http://localhost:4317/v1/logs"])
def test_an_otlp_http_address_is_refused_naming_protocol_and_port(text: str) -> None:
    with pytest.raises(SettingsError, match=r"TURNSCOPE_ENDPOINT=.*OTLP/HTTP.*4318.*grpc://localhost:4317"):
        parse_endpoint(text)


@pytest.mark.parametrize("text", ["unix:///tmp/x", "http://host:port", "http://:4317"])
def test_any_other_address_is_refused_with_what_to_write_instead(text: str) -> None:
    with pytest.raises(SettingsError, match=r"TURNSCOPE_ENDPOINT=.*grpc://host:4317"):
        parse_endpoint(text)


@pytest.mark.parametrize("text", ["", "  "])
def test_without_an_endpoint_there_is_no_hook(text: str) -> None:
    assert read({"TURNSCOPE_ENDPOINT": text}) is None
    assert read({}) is None


@pytest.mark.parametrize("text", ["soon", "0", "-1", "nan"])
def test_a_heartbeat_that_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(SettingsError, match="TURNSCOPE_HEARTBEAT_SECONDS"):
        read({"TURNSCOPE_ENDPOINT": "localhost", "TURNSCOPE_HEARTBEAT_SECONDS": text})


@pytest.mark.parametrize(("text", "on"), [("", True), ("on", True), ("off", False), (" OFF ", False)])
def test_digests_are_made_unless_they_are_switched_off(text: str, on: bool) -> None:
    found = read({"TURNSCOPE_ENDPOINT": "sidecar", "TURNSCOPE_DIGESTS": text})
    assert found is not None
    assert found.digests is on


def test_a_switch_that_is_neither_on_nor_off_is_refused() -> None:
    with pytest.raises(SettingsError, match="TURNSCOPE_DIGESTS=maybe: on or off"):
        read({"TURNSCOPE_ENDPOINT": "sidecar", "TURNSCOPE_DIGESTS": "maybe"})


def test_a_short_digest_key_is_refused_without_telling_it() -> None:
    with pytest.raises(SettingsError, match="TURNSCOPE_DIGEST_KEY has fewer than 16") as refused:
        read({"TURNSCOPE_ENDPOINT": "sidecar", "TURNSCOPE_DIGEST_KEY": "hunter2"})
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize("name", sorted({*VARIABLES} - {"TURNSCOPE_OFF_FILE"}))
def test_a_value_that_is_no_text_is_refused_without_telling_it(name: str) -> None:
    junk = "s3cret" + b"\xff\xfe".decode("utf-8", "surrogateescape") + "s3cret"  # as Python reads such a variable
    with pytest.raises(SettingsError, match=name) as refused:
        read({"TURNSCOPE_ENDPOINT": "sidecar", "TURNSCOPE_DIGEST_KEY": "a longer secret", name: junk})
    str(refused.value).encode()
    assert name != "TURNSCOPE_DIGEST_KEY" or "s3cret" not in str(refused.value)
