#!/usr/bin/python3
"""Writes the committed seeds of fuzz_wav, fuzz_edge_impulse and fuzz_png.

usage: make_signal_seeds.py
"""

import json
import os
import struct
import zlib

CORPUS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus")


def write(fuzzer, name, data):
    os.makedirs(os.path.join(CORPUS, fuzzer), exist_ok=True)
    with open(os.path.join(CORPUS, fuzzer, name), "wb") as f:
        f.write(data)


def wav(tag, channels, bits, samples, block=None, extra=b"", form=b"RIFF", rate=8000):
    block = block or channels * bits // 8
    fmt = struct.pack("<HHIIHH", tag, channels, rate, rate * block, block, bits) + extra
    body = b"WAVEfmt " + struct.pack("<I", len(fmt)) + fmt
    body += b"data" + struct.pack("<I", len(samples)) + samples
    return form + struct.pack("<I", len(body)) + body


def wav_seeds():
    ramp = struct.pack("<64h", *[400 * i - 12800 for i in range(64)])
    guid = bytes.fromhex("0100000000001000800000aa00389b71")
    seeds = {
        "pcm16": wav(1, 1, 16, ramp), "stereo": wav(1, 2, 16, ramp), "pcm8": wav(1, 1, 8, ramp),
        "pcm24": wav(1, 1, 24, ramp[:126]), "float": wav(3, 1, 32, struct.pack("<8f", *[i / 8 for i in range(8)])),
        "alaw": wav(6, 1, 8, ramp), "mulaw": wav(7, 1, 8, ramp),
        "ima": wav(17, 1, 4, b"\0" * 256, 256, struct.pack("<HH", 2, 505)),
        "extensible": wav(0xFFFE, 1, 16, ramp, extra=struct.pack("<HHI", 22, 16, 4) + guid),
        "gsm": wav(49, 1, 0, b"\x11" * 65, 65, struct.pack("<HH", 2, 320)),
    }
    for name, data in seeds.items():
        write("fuzz_wav", name, b"\0" + data)
    write("fuzz_wav", "resampled", b"\1" + wav(1, 1, 16, ramp, rate=11025))


def cbor(value):
    def head(major, n):
        return bytes([major << 5 | n]) if n < 24 else bytes([major << 5 | 24, n])
    if isinstance(value, dict):
        return head(5, len(value)) + b"".join(cbor(k) + cbor(v) for k, v in value.items())
    if isinstance(value, list):
        return head(4, len(value)) + b"".join(map(cbor, value))
    if isinstance(value, str):
        return head(3, len(value)) + value.encode()
    if value is None:
        return b"\xf6"
    if isinstance(value, int):
        return head(0, value) if value >= 0 else head(1, -1 - value)
    return b"\xfb" + struct.pack(">d", value)


def edge_impulse_seeds():
    sensors = [{"name": "accx", "units": "m/s2"}, {"name": "accy", "units": "m/s2"}]
    payload = {"device_type": "T", "interval_ms": 9.5, "sensors": sensors, "values": [[1.5, -2], [3, None]]}
    file = {"protected": {"ver": "v1", "alg": "none"}, "signature": "0", "payload": payload}
    flat = {"payload": {"interval_ms": 1, "sensors": sensors[:1], "values": [1, 2, 3]}}
    for name, value in (("two", file), ("flat", flat)):
        write("fuzz_edge_impulse", name + "_json", b"\0" + json.dumps(value).encode())
        write("fuzz_edge_impulse", name + "_cbor", b"\1" + cbor(value))


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width, height, depth, colour, row_bytes, before=b"", interlace=0, rows=None):
    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, interlace)
    raw = rows or b"".join(bytes([y % 5]) + bytes((7 * y + x) & 255 for x in range(row_bytes)) for y in range(height))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + before + chunk(b"IDAT", zlib.compress(raw)) +
            chunk(b"IEND", b""))


def png_seeds():
    palette = chunk(b"PLTE", bytes(range(12))) + chunk(b"tRNS", b"\x80\0")
    write("fuzz_png", "gray8", png(4, 4, 8, 0, 4))
    write("fuzz_png", "gray1", png(9, 3, 1, 0, 2))
    write("fuzz_png", "gray16", png(3, 3, 16, 0, 6, chunk(b"tRNS", b"\0\1")))
    write("fuzz_png", "rgb", png(3, 3, 8, 2, 9, chunk(b"gAMA", struct.pack(">I", 45455))))
    write("fuzz_png", "palette", png(4, 2, 2, 3, 1, palette, rows=b"\0\x1b\0\x1b"))
    write("fuzz_png", "rgba16", png(2, 2, 16, 6, 16, chunk(b"tEXt", b"a\0b")))
    write("fuzz_png", "gray_alpha", png(2, 3, 8, 4, 4))
    # One pixel of 8 x 8 a pass: six passes of Adam7.
    write("fuzz_png", "interlaced", png(2, 2, 8, 0, 0, interlace=1, rows=b"\0\1\0\2\0\3\4"))


if __name__ == "__main__":
    wav_seeds()
    edge_impulse_seeds()
    png_seeds()
