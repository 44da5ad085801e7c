// What n more flips can do for a class c at most: an upper bound of p[c] − p[w] after them, w the answer of now.
//
//     reachOf(desk, told, n, from) → (c, forced) → bound
//
// Neighbors that may be flipped are those from a place of desk.order on; with forced = { rank, to } this flip is one of
// the n, and the others are of later places. Every number of a vote that reads labels is put between two values that n
// flips cannot leave, each neighbor by itself; the n neighbors that then do most for c give the bound. `told` is what
// the vote answers before the n flips (`probe` in flips.js).

const HALVINGS = 12

export function reachOf(desk, told, n, from) {
  if (desk.vote === "edited") return reachEdited(desk, told, n, from)
  if (desk.vote === "prototype") return reachPrototype(desk, told, n)
  return reachAttention(desk, told, n, from)
}

/** the neighbors, as places, from a place of the order on */
const laterPlaces = ({ asked, place }, from) => new Set(asked.places.filter((_, j) => place[j] >= from))

/** whether the averages follow a flip: at the noise that the payload was made for */
const isAtHere = ({ live, asked, stop }) => live.here.kind === asked.kind && live.here.stop === stop

/** cos(z_i, μ_c) = cos ∠; ∠ turns by at most asin(n / ‖m_c‖) when n unit keys join or leave the class sum m_c */
function turn({ live }, told, i, c, n) {
  const length = Math.sqrt(live.squares[c]) - told.n_moved
  const most = n < length ? Math.asin(n / length) : Math.PI
  const angle = Math.acos(Math.min(Math.max(told.cosines[i][c], -1), 1))
  return [Math.cos(Math.min(angle + most, Math.PI)), Math.cos(Math.max(angle - most, 0))]
}

/**
 * Nearest prototype: p[c] − p[w] = (p[c] + p[w]) tanh(s (cos(z, μ_c) − cos(z, μ_w)) / 2), s its sharpness. Only flips from a
 * class or to it move its average.
 */
function reachPrototype(desk, told, n) {
  const { live, now } = desk
  const fixed = told.around.average_distances
  return (c, forced) => {
    const cosinesOf = (one) => {
      const touches = n - (forced && forced.to !== one && told.labels[forced.rank] !== one)
      return isAtHere(desk) ? turn(desk, told, live.P, one, touches) : [1 - fixed[one] ** 2 / 2, 1 - fixed[one] ** 2 / 2]
    }
    return Math.tanh((live.fitted.prototype * (cosinesOf(c)[1] - cosinesOf(now.predicted)[0])) / 2)
  }
}

// ---- Attention

/** between which values a term that reads labels stays, if neighbor j carries c: (j, c) → [low, high] */
const RANGES = {
  trust(desk, { around }, n, from) {
    const { live, asked } = desk
    const isFree = laterPlaces(desk, from)
    const counts = asked.places.map((place) => {
      const [all, movable] = [new Array(live.C).fill(0), new Array(live.C).fill(0)]
      for (const i of live.vouching[place]) all[around.everybody[i]]++, (movable[around.everybody[i]] += isFree.has(i))
      return { all, movable, n_movable: sum(movable), size: live.vouching[place].length }
    })
    return (j, c) => {
      const { all, movable, n_movable, size } = counts[j]
      const others = n - (c !== around.labels[j])
      const logit = (a) => Math.log((a + 0.5) / (size - a + 0.5))
      return [logit(all[c] - Math.min(others, movable[c])), logit(all[c] + Math.min(others, n_movable - movable[c]))]
    }
  },
  agreement({ K, live }, { around }, n) {
    const counts = tally(new Array(K).fill(1), around.labels, live.C)
    const most = Math.max(K - 1, 1)
    return (j, c) => {
      const isKept = c === around.labels[j]
      const [a, others] = [counts[c] - isKept, isKept ? n : n - 1]
      return [Math.max(a - others, 0) / most, Math.min(a + others, K - 1) / most]
    }
  },
  prototype(desk, told, n) {
    const { live, asked, stop } = desk
    const classes = [...new Array(live.C).keys()]
    const turned = asked.places.map((place) => classes.map((c) => turn(desk, told, place, c, n)))
    const [lows, highs] = [0, 1].map((end) => turned.map((row) => topTwo(row.map((range) => range[end]))))
    const beyond = ({ first, at, second }, c) => (at === c ? second : first)
    const at = (asked.kind * live.S + stop) * live.P
    return (j, c) => {
      const [low, high] = [turned[j][c][0] - beyond(highs[j], c), turned[j][c][1] - beyond(lows[j], c)]
      if (isAtHere(desk)) return [low, high]
      const plain = c === told.labels[j] ? told.around.contrast[j] : live.contrast[at + asked.places[j]]
      return [Math.min(low, plain), Math.max(high, plain)]
    }
  },
}

/** the largest, where it is, and the largest of the others */
function topTwo(values) {
  const at = argmax(values)
  return { first: values[at], at, second: Math.max(...values.filter((_, c) => c !== at)) }
}

/** ends of every term that some head hears: [low, high] of neighbor j with label c at j C + c; null for a term it does not hear */
function rangeTerms(desk, told, n, from) {
  const { live, asked, K } = desk
  const { coefficients } = live.fitted[desk.vote]
  return live.fitted.terms.map((name, t) => {
    if (asked.heard.every((h) => !coefficients[h][t])) return null
    const range = RANGES[name]?.(desk, told, n, from)
    const ends = [new Float64Array(K * live.C), new Float64Array(K * live.C)]
    for (let at = 0; at < K * live.C; at++) {
      const j = Math.floor(at / live.C)
      const [low, high] = range ? range(j, at % live.C) : [told.features[t][j], told.features[t][j]]
      ends[0][at] = low
      ends[1][at] = high
    }
    return ends
  })
}

/** between which values the scores of class averages stay */
function rangeAverages(desk, told, n, seat, pull) {
  const { live } = desk
  const { dissent, average_distances } = told.around
  const more = (n * desk.most_pairs) / Math.max(live.n_pairs, 1)
  return average_distances.map((distance, c) => {
    const cosines = isAtHere(desk) ? turn(desk, told, live.P, c, n) : [1 - distance ** 2 / 2]
    const score = (z, cosine) => seat[0] + z * seat[1] - (pull[0] + z * pull[1]) * (1 - cosine)
    const scores = cosines.flatMap((cosine) => [score(dissent - more, cosine), score(dissent + more, cosine)])
    return [Math.min(...scores), Math.max(...scores)]
  })
}

/** low and high e^score of head h: of neighbor j with label c at j C + c, and of class averages behind them */
function rangePowers(desk, told, n, h, terms) {
  const { coefficients, seat, pull } = desk.live.fitted[desk.vote]
  const size = desk.K * desk.live.C
  const scores = [0, 1].map((end) => {
    const total = new Float64Array(size)
    terms.forEach((ends, t) => {
      const theta = coefficients[h][t]
      if (theta) for (let at = 0; at < size; at++) total[at] += theta * ends[theta > 0 ? end : 1 - end][at]
    })
    return total
  })
  const averages = seat ? rangeAverages(desk, told, n, seat[h], pull[h]) : []
  const all = scores.map((score, end) => [...score, ...averages.map((range) => range[end])])
  const top = Math.max(...all[1])
  return all.map((ends) => Float64Array.from(ends, (score) => Math.exp((score - top) / told.around.temperature)))
}

/**
 * Head by head: m = (Σ_{j votes c} e_j − Σ_{j votes w} e_j) / Σ e_j ≥ t iff Σ_j e_j ([votes c] − [votes w] − t) ≥ 0, a
 * sum in which every neighbor does its best by itself; the largest such t is halved in. The sink mixes m with the prior.
 */
function reachAttention(desk, told, n, from) {
  const { live, asked, place: order, K } = desk
  const { C } = live
  const { around, labels } = told
  const w = desk.now.predicted
  const terms = rangeTerms(desk, told, n, from)
  const heads = asked.heard.map((h) => {
    const [low, high] = rangePowers(desk, told, n, h, terms)
    const own = labels.map((_, j) => [low, high].map((ends) => ends.subarray(j * C, j * C + C)))
    const others = own.map(([lows, highs]) => [Math.min(...lows), Math.max(...highs)])
    const facts = queryFacts(asked.distances, [1]) // entropy is between 0 and log C
    const sinks = [0, Math.log(C)].map((H) => sigmoid(dot([...facts.slice(0, 3), H], live.fitted[desk.vote].sink[h])))
    return { low, high, others, sinks }
  })
  const [stay, best, gains] = [new Float64Array(K), new Float64Array(K), new Float64Array(K)]
  const isReached = ({ low, high, others }, c, forced, t) => {
    const worth = (at, label) => (label === c ? (1 - t) * high[at] : label === w ? -(1 + t) * low[at] : -t * (t < 0 ? high : low)[at])
    const first = forced ? order[forced.rank] + 1 : from
    let total = 0
    for (let label = 0, at = K * C; at < low.length; label++, at++) total += worth(at, label)
    for (let j = 0; j < K; j++) {
      const label = forced?.rank === j ? forced.to : labels[j]
      best[j] = stay[j] = worth(j * C + label, label)
      if (order[j] >= first) {
        const third = C > 2 ? -t * others[j][t < 0 ? 1 : 0] : -Infinity
        best[j] = Math.max(stay[j], (1 - t) * high[j * C + c], -(1 + t) * low[j * C + w], third)
      }
      gains[j] = best[j] - stay[j]
    }
    const most = n - (forced ? 1 : 0)
    const least = most > 0 ? gains.slice().sort()[Math.max(K - most, 0)] : Infinity
    // What is flipped is added as it then is: as its gain, a small weight would be lost beside the large one that it replaces.
    for (let j = 0; j < K; j++) total += gains[j] >= least ? best[j] : stay[j]
    return total >= 0
  }
  const reachOfHead = (head, c, forced) => {
    let [low, high] = [-1, 1]
    for (let i = 0; i < HALVINGS; i++) {
      const t = (low + high) / 2
      if (isReached(head, c, forced, t)) low = t
      else high = t
    }
    return high
  }
  return (c, forced) => {
    desk.left -= K / 200
    const prior = around.prior[c] - around.prior[w] + (2 * n) / live.n_entries
    const mixed = heads.map((head) => {
      const m = reachOfHead(head, c, forced)
      return Math.max(...head.sinks.map((g) => (1 - g) * m + g * prior))
    })
    return sum(mixed) / mixed.length
  }
}

// ---- Edited

/** who is kept is put between what n flips near it can do; then the best of all ways to keep the first K of the pool */
function reachEdited(desk, told, n, from) {
  const { live, asked, place: order, K } = desk
  const labels = told.around.everybody
  const w = desk.now.predicted
  const isFree = laterPlaces(desk, from)
  const fates = asked.pool.map((place) => {
    const votes = new Array(live.C).fill(0)
    let movable = 0
    for (const i of live.near[place]) votes[labels[i]]++, (movable += isFree.has(i))
    return votes.map((count, label) => {
      const lead = count - Math.max(...votes.filter((_, c) => c !== label)) // a flip moves it by two at most
      const change = 2 * Math.min(n - (label !== labels[place]), movable)
      return { label, cost: +(label !== labels[place]), keeps: lead + change >= 0, drops: lead - change < 0 }
    })
  })
  return (c, forced) => {
    desk.left -= ((n + 1) * K) / 100
    const worth = (label) => (label === c) - (label === w)
    const first = forced ? order[forced.rank] + 1 : from
    const optionsOf = (place, r) => {
      if (r < K && forced?.rank === r) return [fates[r][forced.to]]
      const stays = fates[r][labels[place]]
      return r < K && order[r] >= first ? [stays, ...mergeFates(fates[r], stays, worth)] : [stays]
    }
    let best = new Float64Array((n + 1) * (K + 1)).fill(-Infinity) // worth by flips and by how many are kept
    best[0] = 0
    asked.pool.forEach((place, r) => {
      const next = best.map((value, at) => (at % (K + 1) === K ? value : -Infinity))
      for (const { label, cost, keeps, drops } of optionsOf(place, r)) {
        const value = worth(label)
        for (let u = 0; u + cost <= n; u++) {
          for (let at = u * (K + 1), end = at + Math.min(K, r + 1), then = at + cost * (K + 1); at < end; at++, then++) {
            if (drops && best[at] > next[then]) next[then] = best[at]
            if (keeps && best[at] + value > next[then + 1]) next[then + 1] = best[at] + value
          }
        }
      }
      best = next
    })
    return best.reduce((most, value, at) => Math.max(most, at % (K + 1) ? value / (at % (K + 1)) : Math.min(value, 0) + 1), -1)
  }
}

/** of flips that count alike for the vote one, which may do what any of them may */
function mergeFates(fates, stays, worth) {
  const alike = [1, 0, -1].map((value) => fates.filter((fate) => fate !== stays && worth(fate.label) === value))
  return alike.filter((some) => some.length).map((some) => ({ ...some[0], keeps: some.some((f) => f.keeps), drops: some.some((f) => f.drops) }))
}
