"""The palette: one colour has one meaning, and everybody can tell apart what stands in one chart."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import turnscope_app
from turnscope.semconv import Detail, Part, TokenSource
from turnscope.semconv import Path as Reused
from turnscope.store.fates import Fate
from turnscope_app import colours, retention_frames, words

MEANINGS = {name: value for name, value in vars(colours).items() if isinstance(value, str) and value.startswith("#")}
CHARTS = {
    "parts": set(colours.PARTS.values()),
    "first word": set(colours.INPUT.values()),
    "tokens": set(colours.SOURCES.values()),
    "paths": set(colours.PATHS.values()),
    "fates": set(colours.FATES.values()),
    "pauses": set(retention_frames.SHADES.values()),
    "moved": {colours.FETCHED, colours.HANDED_OVER},
    "waits": {colours.REST, colours.READING},
}
GROUNDS = {"light": "#ffffff", "dark": "#171614"}
"""As Streamlit draws them."""
SEEN = {
    "by most": np.eye(3),
    # Machado, Oliveira and Fernandes 2009, https://doi.org/10.1109/TVCG.2009.113, severity 1.0.
    "without red": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "without green": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
    "without blue": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
}
APART = 0.07
"""Of Oklab (https://bottosson.github.io/posts/oklab/): about 7 steps that can just be told."""


def _linear(colour: str) -> Any:
    values = np.array([int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)])
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def _luminance(colour: str) -> float:
    return float(_linear(colour) @ np.array([0.2126, 0.7152, 0.0722]))


def _oklab(linear: Any) -> Any:
    cones = np.array(
        [
            [0.4122214708, 0.5363325363, 0.0514459929],
            [0.2119034982, 0.6806995451, 0.1073969566],
            [0.0883024619, 0.2817188376, 0.6299787005],
        ]
    )
    opponents = np.array(
        [
            [0.2104542553, 0.7936177850, -0.0040720468],
            [1.9779984951, -2.4285922050, 0.4505937099],
            [0.0259040371, 0.7827717662, -0.8086757660],
        ]
    )
    return opponents @ np.cbrt(cones @ np.clip(linear, 0, 1))


def _distance(one: str, other: str, seen: Any) -> float:
    return float(np.linalg.norm(_oklab(np.array(seen) @ _linear(one)) - _oklab(np.array(seen) @ _linear(other))))


def _contrast(one: float, other: float) -> float:
    return (max(one, other) + 0.05) / (min(one, other) + 0.05)


@pytest.mark.parametrize("ground", GROUNDS)
def test_every_colour_stands_out_from_the_ground(ground: str) -> None:
    found = {name: _contrast(_luminance(colour), _luminance(GROUNDS[ground])) for name, colour in MEANINGS.items()}
    assert {name: round(ratio, 2) for name, ratio in found.items() if ratio < 3} == {}


@pytest.mark.parametrize("chart", CHARTS)
@pytest.mark.parametrize("eyes", SEEN)
def test_what_stands_in_one_chart_is_told_apart_by_everybody(chart: str, eyes: str) -> None:
    names = {colour: name for name, colour in MEANINGS.items()}
    pairs = itertools.combinations(sorted(CHARTS[chart]), 2)
    close = {(names[a], names[b]): round(_distance(a, b, SEEN[eyes]), 3) for a, b in pairs}
    assert {pair: far for pair, far in close.items() if far < APART} == {}


def test_one_colour_has_one_meaning_on_all_pages() -> None:
    assert len(set(MEANINGS.values())) == len(MEANINGS)
    pairs = itertools.combinations(MEANINGS.items(), 2)
    close = [(a, b) for (a, one), (b, other) in pairs if _distance(one, other, SEEN["by most"]) < APART]
    assert close == []


def test_everything_that_is_drawn_has_a_colour() -> None:
    assert set(colours.PARTS) == set(Part)
    assert set(colours.SOURCES) == set(TokenSource)
    assert set(colours.PATHS) == set(Reused)
    assert set(colours.FATES) == set(Fate)
    assert {*colours.INPUT, Detail.CLIENT} == set(words.INPUT)


def test_fates_are_one_thing_in_a_chart_exactly_where_they_have_one_colour() -> None:
    for one, other in itertools.combinations(Fate, 2):
        same = words.ENDS[one] == words.ENDS[other]
        assert same == (colours.FATES[one] == colours.FATES[other]), (one, other)


def test_no_colour_is_named_beside_the_palette() -> None:
    folder = Path(turnscope_app.__file__).parent
    named = re.compile(r"#[0-9a-fA-F]{6}\b")
    found = [f.name for f in folder.rglob("*.py") if f.name != "colours.py" and named.search(f.read_text())]
    assert found == []
