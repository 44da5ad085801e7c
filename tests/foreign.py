"""A foreign writer and reader of checkpoints: it knows `docs/formats.md` and no line of the product.

Only json, hashlib, NumPy and safetensors. What it writes, the product must read; what the product wrote, it
must be able to calculate again.
"""

import hashlib
import json
import math

import numpy as np
from safetensors.numpy import load_file, save_file

CALIBRATION = np.array([[-3.0, 0.5, 0.2, 0.1, 1.0, 0.0, 0.3, 0.2], [0.1, 0.2, 0.0, 0.1, 0.4, 0.0, 0.2, -0.3]])
VOTES = ("uniform", "distance", "edited", "prototype", "attention", "attention_averages", "baseline")

# ---- Inputs → keys → neighbors -------------------------------------------------------------------


def unit(vectors):
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def gelu(x):
    return x * 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


def embed_rows(x, tensors):
    t = {name.removeprefix("embedder."): tensor.astype(np.float64) for name, tensor in tensors.items()}
    x = (x - t["mean"]) / t["scale"]
    for linear, norm in ((0, 1), (4, 5)):
        x = x @ t[f"body.{linear}.weight"].T + t[f"body.{linear}.bias"]
        x = (x - x.mean(axis=1, keepdims=True)) / np.sqrt(x.var(axis=1, keepdims=True) + 1e-5)
        x = gelu(t[f"body.{norm}.weight"] * x + t[f"body.{norm}.bias"])
    z = unit(x @ t["body.8.weight"].T + t["body.8.bias"])
    return z, 12 * z @ t["classifier.weight"].T + t["classifier.bias"]


def convolve(x, weight):
    windows = np.lib.stride_tricks.sliding_window_view(x, weight.shape[2:], axis=(2, 3))
    return np.einsum("oikl,birckl->borc", weight, windows, optimize=True)


def same_size(x, weight):
    return convolve(np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1))), weight)


def pool(x):
    b, _, h, w = x.shape
    return x[:, :, : h // 2 * 2, : w // 2 * 2].reshape(b, -1, h // 2, 2, w // 2, 2).max(axis=(3, 5))


def normed(x, t, layer):
    of = {name: t[f"{layer}.{name}"][:, None, None] for name in ("weight", "bias", "running_mean", "running_var")}
    return gelu(of["weight"] * (x - of["running_mean"]) / np.sqrt(of["running_var"] + 1e-5) + of["bias"])


def embed_pictures(x, tensors):
    if any(name.startswith("embedder.body.networks.") for name in tensors):
        return embed_by_members(x, tensors)
    t = {name.removeprefix("embedder."): tensor.astype(np.float64) for name, tensor in tensors.items()}
    x = (x - t["mean"]) / t["scale"]
    x = x[:, None] if x.ndim == 3 else x.transpose(0, 3, 1, 2)
    x = gelu(convolve(x, t["body.whitening.filters"]) + t["body.whitening.bias"][:, None, None])
    for n in range(1, 7):
        x = same_size(x, t[f"body.layers.{n}.0.weight"])
        x = normed(pool(x) if n % 2 else x, t, f"body.layers.{n}.2")
    z = unit(x.max(axis=(2, 3)) @ t["body.projection.weight"].T)
    return z, 12 * z @ t["classifier.weight"].T + t["classifier.bias"]


def embed_by_members(x, tensors):
    networks = sorted({name.split(".")[3] for name in tensors if name.startswith("embedder.body.networks.")}, key=int)
    rest = {name: tensor for name, tensor in tensors.items() if ".networks." not in name}
    shares = []
    for m in networks:
        own = {name.replace(f"networks.{m}.", ""): t for name, t in tensors.items() if f".networks.{m}." in name}
        size = len(own["embedder.body.projection.weight"])
        shares.append(embed_pictures(x, rest | own | {"embedder.classifier.weight": np.zeros((1, size))})[0])
    z = unit(np.concatenate(shares, axis=1))
    return z, 12 * z @ tensors["embedder.classifier.weight"].T.astype(np.float64) + tensors["embedder.classifier.bias"]


def embed_images(x, tensors):
    t = {name.removeprefix("embedder."): tensor.astype(np.float64) for name, tensor in tensors.items()}
    x = ((x - t["mean"]) / t["scale"])[:, None]
    for conv, norm in ((1, 2), (4, 5), (8, 9)):
        x = normed(same_size(x, t[f"body.{conv}.weight"]), t, f"body.{norm}")
        x = pool(x) if conv == 4 else x
    z = unit(x.reshape(len(x), -1) @ t["body.13.weight"].T + t["body.13.bias"])
    return z, 12 * z @ t["classifier.weight"].T + t["classifier.bias"]


def nearest(key, keys, ids, allowed):
    """Rows of the allowed entries, by rounded distance and then by id, and their distances."""
    cosines = unit(keys.astype(np.float64)) @ unit(key.astype(np.float64))
    distances = np.sqrt(np.maximum(0, 2 - 2 * cosines)).round(6)
    rows = sorted(np.flatnonzero(allowed), key=lambda row: (distances[row], ids[row]))
    return rows, distances[rows]


def draw_tensors(rng, n_features=3, width=6, dimension=4, n_classes=2):
    def numbers(*shape):
        return rng.normal(size=shape).astype(np.float32)

    tensors = {"embedder.mean": numbers(n_features), "embedder.scale": np.exp(numbers(n_features))}
    for layer, (rows, columns) in {0: (width, n_features), 4: (width, width), 8: (dimension, width)}.items():
        tensors |= {
            f"embedder.body.{layer}.weight": numbers(rows, columns),
            f"embedder.body.{layer}.bias": numbers(rows),
        }
    for layer in (1, 5):
        tensors |= {f"embedder.body.{layer}.weight": numbers(width), f"embedder.body.{layer}.bias": numbers(width)}
    tensors["embedder.classifier.weight"] = numbers(n_classes, dimension)
    tensors["embedder.classifier.bias"] = numbers(n_classes)
    for vote in ("attention", "attention_averages"):
        tensors[f"{vote}.coefficients"] = np.array([[1.5, 0.7, 0.4, 0.0], [0.8, 0.0, 0.0, 2.0]])
        tensors[f"{vote}.sink"] = rng.normal(size=(2, 4)) - [2, 0, 0, 0]
    tensors["attention_averages.seat"] = np.array([[0.3, 1.2], [-0.2, 0.0]])
    tensors["attention_averages.pull"] = np.array([[2.0, 0.5], [3.0, 0.0]])
    tensors |= {f"calibration.{vote}": CALIBRATION for vote in VOTES}
    tensors["calibration.uniform"] = np.add(CALIBRATION, [[23.0], [-9.0]])  # beyond their highest and lowest
    return tensors | {"sharpness": np.array([2.0, 4.0])}


def draw_familiar(rng):
    """Card and tensors to add: other heads, whose terms read keys."""
    terms = ["distance", "rank", "content", "fellows"]
    tensors = {}
    for vote in ("attention", "attention_averages"):
        tensors[f"{vote}.coefficients"] = np.array([[1.5, 0.7, 0.0, 0.0], [0.8, 0.0, 1.1, 2.0]])
        tensors[f"{vote}.metric"] = rng.normal(size=(3, 4))
    return {"attention": {"heads": ["nearest", "familiar"], "terms": terms}}, tensors


def draw_arrays(rng, tensors, n=12, n_queries=5):
    labels, true = np.arange(n) % 2, np.arange(n_queries) % 2
    inputs = rng.normal(size=(n, 3)) + 2 * labels[:, None]
    inputs[2] = inputs[0]
    groups = np.array([0, 1, 0, *range(2, n - 1)])
    asked = rng.normal(size=(n_queries, 3)) + 2 * true[:, None]
    ids, query_ids = [f"tiny/train/{i}é" for i in range(n)], [f"tiny/test/{i}" for i in range(n_queries)]
    (keys, logits), (query_keys, query_logits) = embed_rows(inputs, tensors), embed_rows(asked, tensors)
    keys, query_keys = keys.astype(np.float32), query_keys.astype(np.float32)
    found = [nearest(key, keys, ids, np.full(n, True)) for key in query_keys]
    around = [nearest(key, keys, ids, groups != group)[0] for key, group in zip(keys, groups, strict=True)]
    floats = {
        "entry_keys": keys,
        "entry_logits": logits,
        "entry_inputs": inputs,
        "query_keys": query_keys,
        "query_logits": query_logits,
        "query_inputs": asked,
        "query_distances": [distances for _, distances in found],
        "class_confusion": [[0.5, 1], [1, 0.5]],
    }
    integers = {
        "entry_labels": labels,
        "entry_groups": groups,
        "entry_neighborhoods": [row + [-1] * (24 - len(row)) for row in around],
        "query_labels": true,
        "query_neighbors": [rows for rows, _ in found],
    }
    texts = {"entry_ids": ids, "query_ids": query_ids}
    return (
        {name: np.array(values, "<f4") for name, values in floats.items()}
        | {name: np.array(values, "<i4") for name, values in integers.items()}
        | {name: np.array([text.encode() for text in values]) for name, values in texts.items()}
    )


def write_checkpoint(root, card, tensors, arrays):
    folder = root / "tiny"
    (folder / "bundle").mkdir(parents=True)
    save_file({name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()}, folder / "weights.safetensors")
    for name, array in arrays.items():
        np.save(folder / "bundle" / f"{name}.npy", array, allow_pickle=False)
    files = {}
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        content = path.read_bytes()
        name = path.relative_to(folder).as_posix()
        files[name] = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        if path.suffix == ".npy":
            array = arrays[path.stem]
            files[name] |= {"dtype": array.dtype.str, "shape": list(array.shape)}
    (folder / "card.json").write_text(json.dumps(card | {"files": files}), encoding="utf-8")
    return folder


# ---- Reading it, and voting by hand --------------------------------------------------------------


def read_checkpoint(folder):
    """Card, tensors and arrays."""
    arrays = {path.stem: np.load(path) for path in folder.glob("bundle/*.npy")}
    return json.loads((folder / "card.json").read_text("utf-8")), load_file(folder / "weights.safetensors"), arrays


def softmax(scores):
    raised = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return raised / raised.sum(axis=-1, keepdims=True)


def entropy(p):
    return -sum(x * math.log(x) for x in p if x > 0)


def flip(card, arrays, kind, rate, seed):
    """Observed labels of the entries under label noise."""
    n_classes, observed = len(card["dataset"]["class_names"]), []
    for item, c in zip(arrays["entry_ids"].tolist(), arrays["entry_labels"].tolist(), strict=True):
        h = hashlib.blake2b(f"{seed}:{item.decode()}".encode(), digest_size=16).digest()
        u, v = ((int.from_bytes(half, "little") >> 11) * 2.0**-53 for half in (h[:8], h[8:]))
        row = arrays["class_confusion"][c].astype(np.float64) * (np.arange(n_classes) != c)
        a = int(v * (n_classes - 1))
        others = {
            "symmetric": a + (a >= c),
            "pair": (c + 1) % n_classes,
            "matrix": int(np.argmax(np.cumsum(row) > v * np.cumsum(row)[-1])) if row.any() else c,
        }
        observed.append(others[kind] if u < rate else c)
    return np.array(observed)


class ByHand:
    """Every vote on one item, from the formulas of the document.

    `kind` is query or entry, `y` the observed labels of the entries.
    """

    def __init__(self, card, tensors, arrays, y, k, kind, row):
        self.card, self.tensors, self.y, self.k = card, tensors, y, k
        keys, groups = arrays["entry_keys"], arrays["entry_groups"]
        z, key = keys.astype(np.float64), arrays[f"{kind}_keys"][row].astype(np.float64)
        self.classes = np.arange(len(card["dataset"]["class_names"]))
        allowed = groups != groups[row] if kind == "entry" else groups >= 0
        pool, distances = nearest(key, keys, arrays["entry_ids"].tolist(), allowed)
        self.pool, self.near, self.d = pool[:64], np.array(pool[:k]), distances[:k]
        self.r = self.d.mean()
        self.prior = np.array([np.mean(y == c) for c in self.classes])
        rows = [[i for i in rows if i >= 0] for rows in arrays["entry_neighborhoods"].tolist()]
        self.around = [members[:20] for members in rows]
        kept = np.array([self.keeps_label(j) for j in range(len(y))])
        sums = [z[(y == c) & kept].sum(axis=0) for c in self.classes]
        means = np.array([unit(one) if np.any(one) else one for one in sums])
        self.of_means = np.sqrt(np.maximum(0, 2 - 2 * means @ key))
        self.dissent = np.mean([y[i] != y[j] for j, members in enumerate(self.around) for i in members])
        self.around_allowed = [[i for i in members if allowed[i]][:20] for members in rows]
        self.logits = arrays[f"{kind}_logits"][row].astype(np.float64)
        self.key, self.z, self.cosines = key, z[self.near], z[self.near] @ means.T

    def counts(self, members):
        labels = [self.y[i] for i in members]
        return [labels.count(c) for c in self.classes]

    def keeps_label(self, j):
        found = self.counts(self.around[j])
        return found[self.y[j]] == max(found)

    def trust(self, j):
        members = self.around_allowed[j]
        a = self.counts(members)[self.y[j]]
        return math.log((a + 0.5) / (len(members) - a + 0.5))

    def fellows(self, j):
        others = np.arange(self.k) != j
        return softmax(self.z[others] @ self.z[j] / 0.1) @ (-self.d[others] / self.r)

    def term(self, name):
        y = self.y[self.near]
        return {
            "distance": lambda: -self.d / self.r,
            "rank": lambda: -np.log(1 + np.arange(self.k)),
            "content": lambda: -(((self.key - self.z) @ self.metric.T) ** 2).sum(axis=1),
            "trust": lambda: [self.trust(j) for j in self.near],
            "agreement": lambda: [(sum(y == label) - 1) / (self.k - 1) for label in y],
            "prototype": lambda: [row[c] - max(np.delete(row, c)) for row, c in zip(self.cosines, y, strict=True)],
            "fellows": lambda: [self.fellows(j) for j in range(self.k)],
        }[name]()

    def attention(self, vote):
        terms = self.card["attention"]["terms"]
        theta, sink, self.metric = (self.tensors.get(f"{vote}.{name}") for name in ("coefficients", "sink", "metric"))
        scores, labels = theta @ np.array([self.term(name) for name in terms]), self.y[self.near]
        if vote == "attention_averages":
            seat, pull = (self.tensors[f"{vote}.{name}"] @ [1, self.dissent] for name in ("seat", "pull"))
            scores = np.hstack([scores, seat[:, None] - pull[:, None] * self.of_means**2 / 2])
            labels = np.append(labels, self.classes)
        heard = softmax(scores) @ (labels[:, None] == self.classes)
        g = np.array([1 / (1 + math.exp(-b @ self.facts(row))) for b, row in zip(sink, heard, strict=True)])[:, None]
        return ((1 - g) * heard + g * self.prior).mean(axis=0)

    def facts(self, p):
        return np.array([1, self.d.mean(), self.d.min(), entropy(p)])

    def tally(self, weights, rows):
        return np.array([sum(weights[self.y[rows] == c]) for c in self.classes])

    def edited(self):
        voters = [j for j in self.pool if self.keeps_label(j)][: self.k] or list(self.near)
        return self.tally(np.full(len(voters), 1 / len(voters)), voters)

    def probabilities(self, vote):
        theta, s = self.tensors["sharpness"]
        return {
            "uniform": lambda: self.tally(np.full(self.k, 1 / self.k), self.near),
            "distance": lambda: self.tally(softmax(-theta * self.d / self.r), self.near),
            "edited": self.edited,
            "prototype": lambda: softmax(-s * self.of_means**2 / 2),
            "baseline": lambda: softmax(self.logits),
        }.get(vote, lambda: self.attention(vote))()

    def calibrated(self, vote):
        u, v = self.tensors[f"calibration.{vote}"]
        p = self.probabilities(vote)
        certainty = np.array([1, self.d.mean(), entropy(p), entropy(p) ** 2])
        facts = np.concatenate([certainty, self.dissent * certainty])
        g = 0.001 + 0.999 / (1 + math.exp(-min(u @ facts, 15)))
        tau = math.exp(min(max(v @ facts, math.log(0.05)), math.log(20)))
        q = np.exp(np.log((1 - g) * p + g / len(p)) / tau)
        return q / q.sum()
