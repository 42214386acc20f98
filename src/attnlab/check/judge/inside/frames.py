"""Messages between the judge and the person's process: a small header, then values. No value can carry code.

    header   magic, kind, ticket, number of values, length of the rest
    value    a tag, then: nothing | one byte | 8 bytes | length and UTF-8 | type, axes, sizes and raw numbers

The person's code may write anything into its end. So every size is checked before it is used, and whatever does not fit
is `Malformed`. An answer repeats the ticket of its question: one sent ahead of time is refused.
"""

from __future__ import annotations

import enum
import math
import socket
import struct
import time

import numpy as np

Array = np.ndarray
Value = None | bool | int | float | str | Array

MAGIC = b"attn"
HEADER = struct.Struct("<4sBQHI")
MAX_AXES = 8
MAX_BYTES = 16 * 2**20  # of one message
CHUNK = 2**16
DTYPES = tuple(np.dtype(name) for name in ("?", "u1", "i1", "<i2", "<i4", "<i8", "<f2", "<f4", "<f8", "<c8", "<c16"))


class Kind(enum.IntEnum):
    """Questions of the judge, then the answers of the person's process."""

    LOAD = 1
    CALL = 2
    PROJECT = 3
    READY = 10
    LOADING = 11
    REMARK = 12
    LOADED = 13
    ANSWER = 14
    ERROR = 15


class Malformed(Exception):
    """Bytes that are not a message; the text says why."""


class Closed(Exception):
    """The other end is gone."""


class Late(Exception):
    """No whole message came in time."""


def encode(kind: Kind, ticket: int, values: list[Value]) -> bytes:
    body = b"".join(_encode_value(value) for value in values)
    if len(body) > MAX_BYTES:
        raise Malformed(f"the message has {len(body):,} bytes, at most {MAX_BYTES:,} are allowed")
    return HEADER.pack(MAGIC, kind, ticket, len(values), len(body)) + body


def _encode_value(value: Value) -> bytes:
    if value is None:
        return b"n"
    if isinstance(value, bool):
        return b"b" + struct.pack("<?", value)
    if isinstance(value, int):
        return b"i" + struct.pack("<q", value)
    if isinstance(value, float):
        return b"f" + struct.pack("<d", value)
    if isinstance(value, str):
        text = value.encode("utf-8", "replace")
        return b"t" + struct.pack("<I", len(text)) + text
    code = DTYPES.index(value.dtype)
    sizes = struct.pack(f"<{value.ndim}I", *value.shape)
    return b"a" + struct.pack("<BB", code, value.ndim) + sizes + np.ascontiguousarray(value).tobytes()


def decode_header(header: bytes) -> tuple[Kind, int, int, int]:
    """The kind, the ticket, the number of values and the number of bytes that follow."""
    magic, kind, ticket, count, length = HEADER.unpack(header)
    if magic != MAGIC:
        raise Malformed("it does not begin like a message")
    if kind not in list(Kind):
        raise Malformed(f"there is no message of kind {kind}")
    if length > MAX_BYTES:
        raise Malformed(f"it announces {length:,} bytes, at most {MAX_BYTES:,} are allowed")
    return Kind(kind), ticket, count, length


def decode(body: bytes, count: int) -> list[Value]:
    """The values; everything must fit exactly."""
    reader = _Reader(body)
    values = [reader.value() for _ in range(count)]
    if reader.position != len(body):
        raise Malformed("bytes are left over")
    return values


class _Reader:
    def __init__(self, body: bytes) -> None:
        self.body, self.position = body, 0

    def take(self, size: int) -> bytes:
        start, self.position = self.position, self.position + size
        if self.position > len(self.body):
            raise Malformed("it ends too early")
        return self.body[start : self.position]

    def numbers(self, code: str) -> tuple[int | float | bool, ...]:
        layout = struct.Struct("<" + code)
        return layout.unpack(self.take(layout.size))

    def value(self) -> Value:
        match self.take(1):
            case b"n":
                return None
            case b"b":
                return self.take(1) != b"\0"
            case b"i":
                return int(self.numbers("q")[0])
            case b"f":
                return float(self.numbers("d")[0])
            case b"t":
                return self.take(int(self.numbers("I")[0])).decode("utf-8", "replace")
            case b"a":
                return self.array()
        raise Malformed("a value is of an unknown type")

    def array(self) -> Array:
        code, axes = (int(number) for number in self.numbers("BB"))
        if code >= len(DTYPES) or axes > MAX_AXES:
            raise Malformed("an array is of an unknown type")
        shape = tuple(int(size) for size in self.numbers(f"{axes}I"))
        raw = self.take(math.prod(shape) * DTYPES[code].itemsize)
        if DTYPES[code] == np.bool_:
            return np.asarray(np.frombuffer(raw, np.uint8).reshape(shape) != 0)  # such a byte may be anything
        return np.frombuffer(raw, DTYPES[code]).reshape(shape).copy()


class Channel:
    """One end of a pair of sockets."""

    def __init__(self, end: socket.socket) -> None:
        self.end = end

    def send(self, kind: Kind, ticket: int, values: list[Value], seconds: float | None = None) -> None:
        self.end.settimeout(seconds)
        try:
            self.end.sendall(encode(kind, ticket, values))
        except TimeoutError:
            raise Late from None
        except OSError:
            raise Closed from None

    def receive(self, seconds: float | None = None) -> tuple[Kind, int, list[Value]]:
        until = None if seconds is None else time.monotonic() + seconds
        kind, ticket, count, length = decode_header(self._exactly(HEADER.size, until))
        return kind, ticket, decode(self._exactly(length, until), count)

    def _exactly(self, size: int, until: float | None) -> bytes:
        parts, left = [], size
        while left:
            if until is not None and until <= time.monotonic():
                raise Late
            self.end.settimeout(None if until is None else max(until - time.monotonic(), 1e-3))
            try:
                part = self.end.recv(min(left, CHUNK))
            except TimeoutError:
                raise Late from None
            except OSError:
                raise Closed from None
            if not part:
                raise Closed
            parts.append(part)
            left -= len(part)
        return b"".join(parts)

    def close(self) -> None:
        self.end.close()
