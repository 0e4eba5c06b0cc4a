#!/usr/bin/python3
"""Writes the committed seeds of fuzz_data: small files of every format that it reads.

usage: make_table_seeds.py
"""
import io
import os
import struct
import tarfile
import zlib

HERE = os.path.dirname(os.path.abspath(__file__))


def write(name, kind, body):
    with open(os.path.join(HERE, "corpus", "fuzz_data", name), "wb") as f:
        f.write(bytes([kind]) + body)


def pair(labels, values):
    return struct.pack("<H", len(labels)) + labels + values


def idx(kind, dims, values):
    return bytes([0, 0, kind, len(dims)]) + struct.pack(f">{len(dims)}I", *dims) + values


def npy(descr, shape, values, fortran=False):
    header = f"{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}, }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + values


def npz(members, packed):
    out, directory = b"", b""
    for name, content in members:
        squeeze = zlib.compressobj(9, zlib.DEFLATED, -15)
        data = squeeze.compress(content) + squeeze.flush() if packed else content
        common = struct.pack("<HHHIIIIH", 20, 0, 8 if packed else 0, 0, zlib.crc32(content), len(data), len(content),
                             len(name))
        directory += b"PK\x01\x02" + struct.pack("<H", 20) + common + bytes(12) + struct.pack("<I", len(out)) + name
        out += b"PK\x03\x04" + common + bytes(2) + name + data
    return out + directory + b"PK\x05\x06" + struct.pack("<IHHIIH", 0, len(members), len(members), len(directory),
                                                        len(out), 0)


def dataset(version, groups):
    text = b'{"class_names":["a","b"],"group_names":["r","s"],"source":"csv x","target_names":[],"unit":""}'
    out = b"ODTD" + struct.pack("<HBB4I I3I II", version, 2, 1, 2, 0, 0, 0, 2, 2, 1, 1, 2, len(text))
    if version == 2:
        out += struct.pack("<IIfI", 0, 2 if groups else 0, 104.0, 0)
    out += text + bytes(-(len(out) + len(text)) % 4)
    out += bytes([0, 1, 0, 1]) + struct.pack("<4I", 0, 1, 2, 3) + struct.pack("<4f", 0, 9, 1, 8)
    return out + (struct.pack("<4I", 0, 0, 1, 1) if groups else b"") + bytes(range(8))


def archive(*names):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name in names:
            info = tarfile.TarInfo(name)
            info.size = 5
            tar.addfile(info, io.BytesIO(b"1,2,a"))
    return out.getvalue()[:3072]


def main():
    os.makedirs(os.path.join(HERE, "corpus", "fuzz_data"), exist_ok=True)
    rows = b"x,y,kind\n1,2,a\n3,-4,b\n5,6,a\n7,8,b\n"
    write("csv-plain", 0, b"\x00" + rows)
    write("csv-missing", 0, b"\x20" + rows.replace(b"3,", b","))
    write("csv-groups", 0, b"\x03" + rows)
    write("csv-targets", 0, b"\x04" + rows.replace(b"kind", b"z").replace(b"a", b"1").replace(b"b", b"2"))
    write("csv-quoted", 0, b"\x00\xef\xbb\xbfx;l\r\n\"1,5\";\"a \"\"b\"\"\"\r\n2;c\r\n")
    write("csv-gzip", 0, b"\x00" + zlib.compress(rows, 9, 31))
    write("idx", 1, pair(idx(8, [4], bytes([0, 1, 0, 1])), idx(8, [4, 2, 2], bytes(range(16)))))
    write("idx-float", 1, pair(idx(8, [2], bytes([0, 1])), idx(13, [2, 1], struct.pack(">2f", 1.5, -2))))
    write("npy", 2, pair(npy("<U1", "(2,)", "ab".encode("utf-32-le")), npy("<f4", "(2, 2)", struct.pack("<4f", 1, 2, 3, 4))))
    write("npy-fortran", 2, pair(b"", npy(">i2", "(2, 3)", bytes(12), True)))
    for packed in (False, True):
        write(f"npz-{packed}", 2, pair(b"", npz([(b"x.npy", npy("|u1", "(2, 2)", b"abcd")),
                                                 (b"y.npy", npy("|u1", "(2,)", b"\x00\x01"))], packed)))
    write("tar", 3, archive("up/1.csv", "down/" + "n" * 80 + "/2.csv"))
    write("tar-evil", 3, archive("../evil", "/etc/evil"))
    write("odtd-1", 4, dataset(1, False))
    write("odtd-2", 4, dataset(2, True))


main()
