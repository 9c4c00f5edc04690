"""Image sizes come from the header of the data URL; costs are those of OpenAI's guide."""

import base64
import struct

import pytest
from support.recorded import png

from policies.counting.images import Area, Flat, Patches, Tiles, size


def url(image: bytes, kind: str = "image/x") -> str:
    return f"data:{kind};base64,{base64.b64encode(image).decode()}"


JPEG = (
    b"\xff\xd8\xff\xe0\x00\x10" + b"J" * 14 + b"\xff\xff\x01\xff\xd0\x00" + b"\xff\xe1\x00\x04\xff\xff"
    b"\xff\xc2\x00\x11\x08" + struct.pack(">HH", 300, 400) + b"\x03"
)
WEBP = b"RIFF\x00\x00\x00\x00WEBP"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (png(640, 480), (640, 480)),
        (url(b"GIF89a" + struct.pack("<HH", 32, 16)), (32, 16)),
        (url(JPEG), (400, 300)),
        (url(WEBP + b"VP8 " + bytes(10) + struct.pack("<HH", 550, 368)), (550, 368)),
        (url(WEBP + b"VP8L" + bytes(5) + (549 | 367 << 14).to_bytes(4, "little")), (550, 368)),
        (url(WEBP + b"VP8X" + bytes(8) + (549).to_bytes(3, "little") + (367).to_bytes(3, "little")), (550, 368)),
    ],
    ids=["png", "gif", "jpeg", "webp-lossy", "webp-lossless", "webp-extended"],
)
def test_width_and_height_are_read_from_the_header(source: str, expected: tuple[int, int]) -> None:
    assert size(source) == expected


@pytest.mark.parametrize(
    "source",
    [
        "",
        "https://example.com/a.png",
        "https://example.com/a,b.png",
        "data:image/png,raw",
        "data:image/png;base64,",
        "data:image/png;base64,!!!!",
        "data:image/png;base64,é€é€",
        url(b"\x89PNG"),
        url(b"\xff\xd8\xff\xd9"),
        url(WEBP + b"VP9 " + bytes(20)),
        url(b"RIFF\x00\x00\x00\x00WAVE"),
        url(b"BM" + bytes(40)),
        png(0, 10),
    ],
)
def test_what_cannot_be_read_has_no_size(source: str) -> None:
    assert size(source) is None


@pytest.mark.parametrize(
    ("width", "height", "tokens"),
    [(128, 128, 255), (640, 480, 425), (3008, 2000, 1105), (4096, 8192, 1105), (513, 512, 425)],
)
def test_tiles_are_counted_after_fitting(width: int, height: int, tokens: int) -> None:
    assert Tiles(85, 170).tokens(width, height, low=False) == tokens


def test_low_detail_costs_the_base_alone() -> None:
    assert Tiles(85, 170).tokens(4000, 4000, low=True) == 85


@pytest.mark.parametrize(("width", "height", "tokens"), [(640, 480, 488), (1, 1, 3), (9000, 9000, 2490)])
def test_patches_are_counted_up_to_a_ceiling(width: int, height: int, tokens: int) -> None:
    assert Patches(1.62).tokens(width, height, low=False) == tokens


@pytest.mark.parametrize(
    ("width", "height", "tokens"), [(75, 10, 1), (300, 100, 40), (301, 100, 41), (4_000, 4_000, 1_600)]
)
def test_an_area_costs_by_its_pixels_up_to_the_most(width: int, height: int, tokens: int) -> None:
    assert Area(750, 1_600).tokens(width, height, low=False) == tokens


def test_a_flat_price_is_the_same_for_all() -> None:
    assert Flat(258).tokens(1, 1, low=True) == Flat(258).tokens(4_000, 3_000, low=False) == 258
