"""The messages between the judge and a person's process: whatever bytes arrive are numbers and text, or refused."""

from __future__ import annotations

import socket
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from attnlab.check.judge.inside.frames import (
    DTYPES,
    HEADER,
    MAGIC,
    MAX_BYTES,
    Channel,
    Closed,
    Kind,
    Late,
    Malformed,
    decode,
    decode_header,
    encode,
)
from attnlab.check.judge.inside.frames import Value as AnyValue

NUMBERS = st.sampled_from(DTYPES).flatmap(
    lambda dtype: arrays.arrays(dtype, arrays.array_shapes(min_dims=0, max_dims=5))
)
VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False), st.text(), NUMBERS
)


@settings(max_examples=60, deadline=None)
@given(st.lists(VALUES, max_size=6))
def test_what_is_sent_arrives(values: list[AnyValue]) -> None:
    message = encode(Kind.ANSWER, 7, values)
    kind, ticket, count, length = decode_header(message[: HEADER.size])
    assert (kind, ticket, length) == (Kind.ANSWER, 7, len(message) - HEADER.size)
    for sent, got in zip(values, decode(message[HEADER.size :], count), strict=True):
        if isinstance(sent, np.ndarray):
            assert isinstance(got, np.ndarray) and got.dtype == sent.dtype and got.shape == sent.shape
            np.testing.assert_array_equal(got, sent)
        else:
            assert type(got) is type(sent) and got == sent


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=200), st.integers(0, 2**16 - 1))
def test_any_bytes_are_values_or_refused(body: bytes, count: int) -> None:
    try:
        values = decode(body, count)
    except Malformed:
        return
    assert all(value is None or isinstance(value, bool | int | float | str | np.ndarray) for value in values)


@settings(max_examples=200, deadline=None)
@given(st.lists(VALUES, min_size=1, max_size=3), st.data())
def test_a_message_with_a_changed_byte_is_values_or_refused(values: list[AnyValue], data: st.DataObject) -> None:
    body = bytearray(encode(Kind.ANSWER, 1, values)[HEADER.size :])
    body[data.draw(st.integers(0, len(body) - 1))] ^= data.draw(st.integers(1, 255))
    test_any_bytes_are_values_or_refused.hypothesis.inner_test(bytes(body), len(values))  # type: ignore[attr-defined]


def test_a_size_is_checked_before_it_is_used() -> None:
    with pytest.raises(Malformed, match="at most"):
        decode_header(HEADER.pack(MAGIC, Kind.ANSWER, 1, 1, MAX_BYTES + 1))
    with pytest.raises(Malformed, match="too early"):
        decode(b"a" + struct.pack("<BB8I", 8, 8, *[2**32 - 1] * 8), 1)
    with pytest.raises(Malformed, match="at most"):
        encode(Kind.ANSWER, 1, [np.zeros(MAX_BYTES)])


def test_a_channel_ends_with_a_word() -> None:
    ours, theirs = socket.socketpair()
    channel = Channel(ours)
    with pytest.raises(Late):
        channel.receive(0.01)
    theirs.sendall(b"\x80\x04\x95pickle and more of it")
    with pytest.raises(Malformed):
        channel.receive(10)
    theirs.close()
    with pytest.raises(Closed):
        Channel(ours).receive(10)
