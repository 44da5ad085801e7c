// The fewest labels that would have to be different for a vote to answer something else: among the neighbors that vote,
// on top of what a hand flipped already, at the noise in force.
//
//     smallestFlips(live, state, vote, limit) → { found: [{ id, from, to }], predicted, at_least, is_exact }
//
// A set of flips works if some class c then beats the answer w of now. Of two that work the one with fewer flips is
// better, then the one with the larger margin max_c p[c] − p[w], then the one of nearer neighbors.
//
// at_least: no set of fewer flips works, proven; k + 1 if none works at all. is_exact: so many were found, or none
// works. Uniform and distance votes are solved. For the others reach.js bounds from above what n flips can do, and sets
// that it cannot exclude are tried, until `limit` answers were asked for.

const LIMIT = 300
const REACH_COST = 1 // of what the bounds after a set have in common, in answers
const SLACK = 1e-6 // what rounding may do to a bound: class sums come in steps of 2⁻²⁴

/** the smallest set of flips after which the vote answers another class */
export function smallestFlips(live, state, vote, limit = LIMIT) {
  const desk = openDesk(live, state, vote, limit)
  if (vote === "uniform" || vote === "distance") solve(desk)
  else if (vote === "baseline") desk.at_least = desk.K + 1
  else explore(desk)
  const { best, now, at_least, asked, K } = desk
  const found = best ? best.ranks.map((j) => ({ id: live.ids[asked.places[j]], from: now.labels[j], to: best.labels[j] })) : []
  return { found, predicted: (best ?? now).predicted, at_least, is_exact: at_least === (found.length || K + 1) }
}

/** what a search needs and learns: neighbors are ranks from 0, and are flipped in an `order`, those with most weight first */
export function openDesk(live, state, vote, limit) {
  const asked = ask(live, state)
  const own = { ...live, seen: new Map(), hand: null } // what the board has seen stays seen
  const desk = { live: own, asked, stop: stopOf(live, state.rate), vote, K: asked.places.length, left: limit, best: null, at_least: 1, told: new Map() }
  const { labels, weights, predicted } = (desk.now = attempt(desk, {}))
  desk.rivals = Array.from({ length: live.C }, (_, c) => c).filter((c) => c !== predicted)
  desk.order = [...labels.keys()].sort((i, j) => (weights ? weights[j] - weights[i] : 0) || i - j)
  desk.place = labels.map((_, j) => desk.order.indexOf(j))
  return desk
}

/** what the vote answers after more flips: { rank of a neighbor: class } */
function probe(desk, more) {
  const { live, asked, stop, vote } = desk
  const flips = { ...asked.flips }
  for (const j in more) flips[live.ids[asked.places[j]]] = more[j]
  const around = surround(live, { ...asked, flips }, stop)
  const { probabilities, weights } = cast(live, around, (which) => attend(live, around, which), vote)
  const told = { around, labels: around.labels, ranks: Object.keys(more).map(Number), flips, probabilities, weights }
  return { ...told, cosines: live.cosines, predicted: argmax(probabilities) }
}

/** one more answer, if it is not known; the best set that works is kept */
export function attempt(desk, more) {
  const key = JSON.stringify(more)
  if (desk.told.has(key)) return desk.told.get(key)
  desk.left -= 1
  const told = probe(desk, more)
  desk.told.set(key, told)
  const w = (desk.now ?? told).predicted
  told.margin = Math.max(...told.probabilities.filter((_, c) => c !== w)) - told.probabilities[w]
  told.works = told.predicted !== w
  if (told.works && isBetter(told, desk.best)) desk.best = told
  return told
}

/** fewer flips, then more margin, then nearer neighbors */
function isBetter(one, other) {
  if (!other || one.ranks.length !== other.ranks.length) return !other || one.ranks.length < other.ranks.length
  if (Math.abs(one.margin - other.margin) > 1e-9) return one.margin > other.margin
  const i = one.ranks.findIndex((j, place) => j !== other.ranks[place])
  return i >= 0 && one.ranks[i] < other.ranks[i]
}

/**
 * Weights w_j that read no label. Toward p[c] − p[w] a flip of j to c gives 2 w_j if y_j = w, and w_j if y_j is a third
 * class; a flip to any other class gives no more. Gains add up: the n largest are the best n flips for c.
 */
function solve(desk) {
  const { labels, weights, predicted: w } = desk.now
  const gain = (j) => weights[j] * (labels[j] === w ? 2 : 1)
  const all = [...labels.keys()].sort((i, j) => gain(j) - gain(i) || i - j)
  const orders = desk.rivals.map((c) => [c, all.filter((j) => labels[j] !== c)])
  for (; desk.at_least <= desk.K; desk.at_least++) {
    for (const [c, order] of orders) {
      const flipped = order.slice(0, desk.at_least)
      const p = tally(weights, labels.map((label, j) => (flipped.includes(j) ? c : label)), desk.live.C) // prettier-ignore
      if (argmax(p) !== w) attempt(desk, Object.fromEntries(flipped.map((j) => [j, c])))
    }
    if (desk.best) return
  }
}

/** n = 1, 2, …: sets of n flips that no bound excludes; first of all a set that works, to know where to stop */
function explore(desk) {
  const reached = bisect(desk)
  const half = desk.left / 2
  reached.sort((one, other) => other[1] - one[1])
  for (const [c] of reached) if (desk.left > half) rush(desk, c)
  for (; desk.at_least <= desk.K; desk.at_least++) {
    if (!visit(desk, {}, 0, desk.at_least) || desk.best?.ranks.length === desk.at_least) return
  }
}

/** put at_least where a bound first excludes nothing more: a bound grows with n → [class, bound] of those that are left */
function bisect(desk) {
  let reached = []
  let beyond = desk.K + 1
  while (desk.at_least < beyond) {
    const n = (desk.at_least + beyond) >> 1
    const reach = reachAfter(desk, desk.now, n, 0)
    const some = desk.rivals.map((c) => [c, reach(c)]).filter(([, bound]) => bound >= -SLACK)
    if (some.length) [beyond, reached] = [n, some]
    else desk.at_least = n + 1
  }
  return reached
}

/** a set that works: flips to c in the order of what each does alone, less those that need not be */
function rush(desk, c) {
  const toward = ({ probabilities: p }) => p[c] - p[desk.now.predicted]
  const alone = desk.order.filter((j) => desk.now.labels[j] !== c).map((j) => [j, toward(attempt(desk, { [j]: c }))])
  const more = {}
  const works = alone.sort((one, other) => other[1] - one[1]).some(([j]) => {
    more[j] = c
    return attempt(desk, more).works
  })
  if (!works) return
  for (const [j] of alone) {
    const { [j]: dropped, ...fewer } = more
    if (dropped !== undefined && attempt(desk, fewer).works) delete more[j]
  }
}

/** `reachOf`, of what is left to ask; where class averages are after the flips that were made is looked up before */
export function reachAfter(desk, told, n, from) {
  const { live } = desk
  desk.left -= REACH_COST
  desk.most_pairs ??= countPairs(live)
  told.cosines ??= movedCosines(live, told.flips)
  told.n_moved ??= live.ids.filter((id) => told.flips[id] !== live.flips[id]).length
  told.features ??= ATTENTIONS.includes(desk.vote) ? stackFeatures(live, told.around, desk.vote) : null
  return reachOf(desk, told, n, from)
}

/** try `more` with n flips more, of neighbors from a place of the order on: whether all was tried or excluded */
function visit(desk, more, from, n) {
  if (desk.left <= 0) return false
  const told = attempt(desk, more)
  if (!n) return true
  const reach = reachAfter(desk, told, n, from)
  const floor = () => (desk.best?.ranks.length === desk.at_least ? desk.best.margin : 0) - SLACK
  const rivals = desk.rivals.filter((c) => reach(c) >= floor())
  for (let i = from; i < desk.K && rivals.length; i++) {
    const j = desk.order[i]
    for (let to = 0; to < desk.live.C; to++) {
      if (to === told.labels[j] || !rivals.some((c) => reach(c, { rank: j, to }) >= floor())) continue
      if (!visit(desk, { ...more, [j]: to }, i + 1, n - 1)) return false
    }
  }
  return true
}

/** the most pairs of near entries that one neighbor is part of */
function countPairs(live) {
  const pairs = live.near.map((others) => others.length)
  for (const others of live.near) for (const i of others) if (i < live.P) pairs[i]++
  for (let f = 1; f < live.followers.length; f += 2) pairs[live.followers[f]]++
  return Math.max(...pairs)
}
