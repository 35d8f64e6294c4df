"""What is written directly is what protobuf's own library would have written."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord

from turnscope.decode import wire

INTS = st.integers(-(2**63), 2**63 - 1)
TEXTS = st.text(st.characters(codec="utf-8"))


@given(
    st.one_of(
        st.tuples(st.just("int_value"), st.just(wire.put_int), INTS),
        st.tuples(st.just("string_value"), st.just(wire.put_str), TEXTS),
        st.tuples(st.just("bytes_value"), st.just(wire.put_bytes), st.binary(max_size=300)),
        st.tuples(st.just("double_value"), st.just(wire.put_float), st.floats(allow_nan=False)),
        st.tuples(st.just("bool_value"), st.just(wire.put_bool), st.booleans()),
    ),
    st.text("abc._", min_size=1, max_size=200),
)
def test_an_attribute_is_written_as_protobuf_writes_it(case: tuple[str, wire.Put, Any], key: str) -> None:
    field, put, value = case
    whole = AnyValue(**{field: value})
    assert put(value) == whole.SerializeToString()
    record = LogRecord(attributes=[KeyValue(key=key, value=whole)])
    before = wire.tag(LogRecord, "attributes")
    assert wire.Attribute(before, key).of(put(value)) == record.SerializeToString()


@given(st.lists(INTS, max_size=100), st.lists(TEXTS, max_size=100))
def test_lists_are_written_as_protobuf_writes_them(numbers: list[int], texts: list[str]) -> None:
    entries = [*(AnyValue(int_value=n) for n in numbers)], [*(AnyValue(string_value=text) for text in texts)]
    for values, put, whole in ((numbers, wire.put_int, entries[0]), (texts, wire.put_str, entries[1])):
        assert wire.put_list(values, put) == AnyValue(array_value=ArrayValue(values=whole)).SerializeToString()


@pytest.mark.parametrize(
    ("put", "value"),
    [
        (wire.put_int, 2**63),
        (wire.put_int, -(2**63) - 1),
        (wire.put_int, "1"),
        (wire.put_int, 1.5),
        (wire.put_str, "\ud800"),
        (wire.put_str, None),
        (wire.put_bytes, "text"),
        (wire.put_float, "1"),
    ],
)
def test_a_value_that_its_field_cannot_hold_is_refused(put: wire.Put, value: Any) -> None:
    with pytest.raises((OverflowError, TypeError, UnicodeError, AttributeError, struct.error)):
        put(value)
