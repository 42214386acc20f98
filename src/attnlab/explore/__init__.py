"""Attention by hand: choose a query, see the weights, and learn what no query can do.

    from attnlab import explore

    example = explore.example("selection")
    result = explore.select(example.keys, example.values, index=0)
    result.error, result.why
    result.draw("select.png")

`try_query(query, keys, values, target)` is `attnlab explore attend`; the other explorations have the names of their
commands. Each returns an `Exploration`: its numbers, an explanation (`why`), `as_dict()` and `draw(path)`. `attend` and
`softmax` return plain arrays. Keys, values and queries are lists, arrays, tensors or files of numbers. Indices count
from 0. All arithmetic is in double precision.
"""

from attnlab.explore.attend import attend as _attend
from attnlab.explore.attend import softmax as _softmax
from attnlab.explore.averaging import average, average_some
from attnlab.explore.constructing import construct
from attnlab.explore.copying import copy
from attnlab.explore.examples import EXAMPLES, example
from attnlab.explore.exploration import Exploration, QueryExploration
from attnlab.explore.extracting import extract, random_subspaces
from attnlab.explore.hard_attention import argmax
from attnlab.explore.matrices import read_matrix, read_rows, read_vector, takes_numbers
from attnlab.explore.noisy_keys import noise
from attnlab.explore.reaching import reach
from attnlab.explore.replacing import replace_key
from attnlab.explore.selecting import identity, select
from attnlab.explore.trying import try_query

attend, softmax = takes_numbers(_attend), takes_numbers(_softmax)

__all__ = [
    "EXAMPLES",
    "Exploration",
    "QueryExploration",
    "argmax",
    "attend",
    "average",
    "average_some",
    "construct",
    "copy",
    "example",
    "extract",
    "identity",
    "noise",
    "random_subspaces",
    "reach",
    "read_matrix",
    "read_rows",
    "read_vector",
    "replace_key",
    "select",
    "softmax",
    "try_query",
]
