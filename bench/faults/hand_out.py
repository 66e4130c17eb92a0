# SPDX-License-Identifier: GPL-2.0-or-later
"""Write a kernel's file with other words in place of its own, each as long: `python3 hand_out.py FILE OLD NEW [OLD NEW]…`.

Run by the makefile of a tree that hands a kernel out (real_kernel.py), so it needs nothing but Python. In a bzImage the words are in
the compressed payload, which keeps its length: the decompressor stops at the end of the stream, and does not read the zeros after it.
"""

import struct
import sys
import zlib
from pathlib import Path

# Documentation/arch/x86/boot.rst: a magic number; setup_sects; payload_offset and payload_length.
_HEADER, _SECTORS, _PAYLOAD = 0x202, 0x1F1, 0x248
_SECTOR = 512
_GZIP = 31


def replaced(data: bytes, words: dict[bytes, bytes]) -> bytes:
    """Return the file with each of these words replaced by another of its length."""
    if data[_HEADER : _HEADER + 4] == b"HdrS":
        return _in_payload(data, words)
    for old, new in words.items():
        assert len(old) == len(new), (old, new)
        data = data.replace(old, new)
    return data


def _in_payload(image: bytes, words: dict[bytes, bytes]) -> bytes:
    offset, length = struct.unpack_from("<II", image, _PAYLOAD)
    begin = (image[_SECTORS] + 1) * _SECTOR + offset
    kernel = replaced(zlib.decompress(image[begin : begin + length], _GZIP), words)
    packer = zlib.compressobj(9, zlib.DEFLATED, _GZIP)
    packed = packer.compress(kernel) + packer.flush()
    assert len(packed) <= length, f"{len(packed)} bytes do not fit into {length}"
    return image[:begin] + packed.ljust(length, b"\0") + image[begin + length :]


def main() -> None:
    """Write the file to standard output."""
    file, *words = sys.argv[1:]
    pairs = {old.encode(): new.encode() for old, new in zip(words[::2], words[1::2], strict=True)}
    sys.stdout.buffer.write(replaced(Path(file).read_bytes(), pairs))


if __name__ == "__main__":
    main()
