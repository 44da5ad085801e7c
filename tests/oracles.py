"""Slow, obvious twins: every number is calculated a second time, in loops that anyone can check."""

import math
from fractions import Fraction

import numpy as np

# ---- Metrics and calibration -------------------------------------------------------------------


def macro_f1(p, labels):
    predicted = [list(row).index(max(row)) for row in p]
    scores = []
    for c in sorted(set(predicted) | set(labels.tolist())):
        hits = sum(y == c and g == c for y, g in zip(labels, predicted, strict=True))
        missed = sum(y == c and g != c for y, g in zip(labels, predicted, strict=True))
        wrong = sum(y != c and g == c for y, g in zip(labels, predicted, strict=True))
        scores.append(2 * hits / (2 * hits + missed + wrong))
    return sum(scores) / len(scores)


def brier(p, labels):
    return sum((p[i][c] - (c == labels[i])) ** 2 for i in range(len(p)) for c in range(len(p[0]))) / len(p)


def reliability(p, labels, n_bins, binning):
    """Return, for each bin, the list of (confidence, right) of its items."""
    items = [(max(row), row.index(max(row)) == y) for row, y in zip(np.asarray(p).tolist(), labels, strict=True)]
    rounded = [round(confidence, 6) for confidence, _ in items]
    bins = [[] for _ in range(n_bins)]
    for item, confidence in zip(items, rounded, strict=True):
        if binning == "equal_width":
            b = max(i for i in range(n_bins) if confidence >= round(i / n_bins, 6))
        else:
            below, equal = sum(other < confidence for other in rounded), rounded.count(confidence)
            b = math.floor(Fraction(2 * below + equal - 1, 2) * n_bins / len(items))
        bins[b].append(item)
    return bins


def ece(p, labels, n_bins, binning):
    total = 0.0
    for items in reliability(p, labels, n_bins, binning):
        total += abs(sum(right for _, right in items) - sum(confidence for confidence, _ in items))
    return total / len(p)


def debiased_ece(p, labels, n_bins, binning, draws, seed=0):
    """Kumar et al. (2019): twice the ECE, less its mean when accuracies are drawn again."""
    rng = np.random.default_rng(seed)
    again = np.zeros(draws)
    for items in reliability(p, labels, n_bins, binning):
        if items:
            confidence, accuracy = np.mean(items, axis=0)
            deviation = (accuracy * (1 - accuracy) / len(items)) ** 0.5
            again += np.abs(rng.normal(accuracy, deviation, draws) - confidence) * len(items) / len(p)
    return max(0.0, 2 * ece(p, labels, n_bins, binning) - again.mean())


def chance_ece(p, n_bins, binning, draws, seed=0):
    """Draw labels that make the model perfectly calibrated, and measure its ECE, again and again."""
    rng = np.random.default_rng(seed)
    return [ece(p, [rng.choice(len(row), p=row) for row in p], n_bins, binning) for _ in range(draws)]


def ece_that_drops(confidences, right, n_bins):
    """The original's ECE: bins (lower, upper], so that a confidence above one is in none of them."""
    total = 0.0
    for i in range(n_bins):
        inside = [j for j, c in enumerate(confidences) if i / n_bins < c <= (i + 1) / n_bins]
        if inside:
            gap = np.mean([right[j] for j in inside]) - np.mean([confidences[j] for j in inside])
            total += abs(gap) * len(inside) / len(confidences)
    return total


def paired_means(a, b, draws, seed=0):
    """Resampled means of a - b: n items, the same for every seed, and S of the S seeds."""
    rng = np.random.default_rng(seed)
    means = []
    for _ in range(draws):
        items = rng.choice(a.shape[1], a.shape[1])
        seeds = rng.choice(a.shape[0], a.shape[0])
        means.append(np.mean([a[s, i] - b[s, i] for s in seeds for i in items]))
    return means


def calibrate(p, facts, sink, heat, floor):
    out = []
    for row, fact in zip(p, facts, strict=True):
        score = sum(f * s for f, s in zip(fact, sink, strict=True))
        temperature = math.exp(sum(f * h for f, h in zip(fact, heat, strict=True)))
        mass = floor + (1 - floor) / (1 + math.exp(-score))
        powers = [((1 - mass) * x + mass / len(row)) ** (1 / temperature) for x in row]
        out.append([power / sum(powers) for power in powers])
    return out


# ---- The bank ----------------------------------------------------------------------------------


def unit_distance(a, b):
    """Euclidean distance of two vectors after scaling both to length one, to six digits."""
    a, b = [float(x) for x in a], [float(x) for x in b]
    dot = math.fsum(x * y for x, y in zip(a, b, strict=True))
    cosine = dot / (math.sqrt(math.fsum(x * x for x in a)) * math.sqrt(math.fsum(y * y for y in b)))
    return round(math.sqrt(max(0.0, 2 - 2 * cosine)), 6)


def nearest(keys, ids, query, k, groups=None, exclude_id=None, exclude_group=-1):
    """Sort all entries by (distance, id); return rows and distances of the first k that are allowed."""
    found = []
    for row, key in enumerate(keys):
        duplicate = groups is not None and exclude_group >= 0 and groups[row] == exclude_group
        if ids[row] != exclude_id and not duplicate:
            found.append((unit_distance(key, query), str(ids[row]), row))
    found = sorted(found)[:k]
    return [row for _, _, row in found], [d for d, _, _ in found]


def neighborhood(neighborhoods, row, size, groups=None, exclude_group=-1):
    """The first `size` neighbors of an entry, without padding and without a duplicate group."""
    members = [int(i) for i in neighborhoods[row] if i >= 0]
    return [i for i in members if exclude_group < 0 or groups[i] != exclude_group][:size]


def trust(neighborhoods, labels, row, size, groups=None, exclude_group=-1):
    members = neighborhood(neighborhoods, row, size, groups, exclude_group)
    agreeing = sum(labels[i] == labels[row] for i in members)
    return math.log((agreeing + 0.5) / (len(members) - agreeing + 0.5))


def keeps_label(neighborhoods, labels, row, size):
    """Wilson's editing: the label stays unless another one has strictly more votes."""
    votes = [int(labels[i]) for i in neighborhood(neighborhoods, row, size)]
    return not any(votes.count(c) > votes.count(int(labels[row])) for c in votes)


def prototype(keys, labels, c, counted=None):
    counted = [True] * len(labels) if counted is None else counted
    members = [key for key, label, counts in zip(keys, labels, counted, strict=True) if label == c and counts]
    sums = [math.fsum(float(key[i]) for key in members) for i in range(len(keys[0]))]
    length = math.sqrt(math.fsum(x * x for x in sums))
    return [x / length if length > 1e-9 else 0.0 for x in sums]


def contrast(keys, labels, n_classes, row, counted=None):
    centers = [prototype(keys, labels, c, counted) for c in range(n_classes)]
    cosines = [sum(float(x) * m for x, m in zip(keys[row], center, strict=True)) for center in centers]
    return cosines[labels[row]] - max(cosines[c] for c in range(n_classes) if c != labels[row])


def hubness(neighborhoods, row, k):
    return sum(row in [int(i) for i in members[:k]] for members in neighborhoods)


# ---- Terms, heads and votes: one query at a time -------------------------------------------------


def softmax(scores, temperature=1.0):
    top = max(scores)
    raised = [math.exp((score - top) / temperature) for score in scores]
    return [x / sum(raised) for x in raised]


def entropy(weights):
    return -sum(w * math.log(w) for w in weights if w > 0)


def dot(a, b):
    return sum(float(x) * float(y) for x, y in zip(a, b, strict=True))


def relative(numbers, distances):
    mean = sum(distances) / len(distances)
    return [-number / mean if mean > 0 else -number for number in numbers]


def term(name, around, b, metric=None):
    """φ of every neighbor of query b."""
    distances, labels, places = list(around.distances[b]), list(around.labels[b]), range(around.distances.shape[1])
    if name == "distance":
        return relative(distances, distances)
    if name == "rank":
        return [-math.log(1 + j) for j in places]
    if name == "content":
        moves = [[q - z for q, z in zip(around.queries[b], around.keys[b, j], strict=True)] for j in places]
        return [-sum(dot(row, move) ** 2 for row in metric) for move in moves]
    if name == "trust":
        return list(around.trust[b])
    if name == "agreement":
        others = [[labels[i] for i in places if i != j] for j in places]
        return [others[j].count(labels[j]) / len(others[j]) if others[j] else 0.0 for j in places]
    if name == "prototype":
        return list(around.contrast[b])
    if name == "fellows":
        return [fellows(around.keys[b], relative(distances, distances), j) for j in places]
    raise KeyError(name)


def fellows(keys, closeness, j):
    others = [i for i in range(len(keys)) if i != j]
    if not others:
        return 0.0
    heard = softmax([dot(keys[j], keys[i]) / 0.1 for i in others])
    return sum(weight * closeness[i] for weight, i in zip(heard, others, strict=True))


def facts(distances, probabilities):
    return [1.0, sum(distances) / len(distances), min(distances), entropy(probabilities)]


def head_vote(around, attention, b, h, temperature=1.0):
    """Scores, weights, sink and probabilities of one head for one query, averages behind the neighbors."""
    distances, classes = list(around.distances[b]), range(around.prior.shape[1])
    scores = [0.0] * len(distances)
    for t, name in enumerate(attention.terms):
        for j, phi in enumerate(term(name, around, b, attention.metric)):
            scores[j] += attention.coefficients[h, t] * phi
    names = list(around.labels[b])
    if attention.seat is not None:
        seat, pull = (numbers[h][0] + around.dissent[b] * numbers[h][1] for numbers in (attention.seat, attention.pull))
        scores += [seat - pull * distance**2 / 2 for distance in around.average_distances[b]]
        names += classes
    shares = softmax(scores, temperature)
    heard = [sum(w for w, y in zip(shares, names, strict=True) if y == c) for c in classes]
    logit = dot(attention.sink[h], facts(distances, heard))
    sink = 1 / (1 + math.exp(-logit)) if logit > -700 else 0.0
    said = [(1 - sink) * heard[c] + sink * around.prior[b, c] for c in classes]
    return scores, [(1 - sink) * w for w in shares], sink, said


def disagreement(weights):
    """Half the mean absolute difference of the shares of two heads, over all pairs of heads."""
    shares = [[w / sum(row) for w in row] for row in weights]
    pairs = [(one, two) for i, one in enumerate(shares) for two in shares[i + 1 :]]
    gaps = [sum(abs(a - b) for a, b in zip(one, two, strict=True)) / 2 for one, two in pairs]
    return sum(gaps) / len(gaps) if gaps else 0.0


def tally(weights, labels, n_classes):
    votes = [0.0] * n_classes
    for weight, label in zip(weights, labels, strict=True):
        votes[label] += weight
    return votes


def edited(keeps, k):
    """The k nearest survivors share the vote; if there is none, the k nearest do."""
    voters = [j for j, survives in enumerate(keeps) if survives][:k] or list(range(len(keeps)))[:k]
    return [1 / len(voters) if j in voters else 0.0 for j in range(len(keeps))]


def nearest_prototype(average_distances, sharpness):
    return softmax([sharpness * (1 - d * d / 2) for d in average_distances])
