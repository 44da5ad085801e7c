// The fewest labels that would have to be different for a vote to answer something else: among the neighbors that vote,
// on top of what a hand flipped already, at the noise in force.
//
//     smallestFlips(live, state, vote) → { found: [{ id, from, to }], predicted, at_least, is_exact }
//
// A set works if some class c then beats the answer w of now. Of two sets the one with fewer flips is better, then the
// one with the larger margin max_c p[c] − p[w], then the one of nearer neighbors. `at_least`: no set of fewer flips
// works, proven; k + 1 if none works at all. `is_exact`: so many were found, or there are none. Uniform and distance
// votes are solved; for the others `reachOf` (reach.js) bounds from above what n more flips can do, and what it cannot
// exclude is tried, until `limit` answers were asked for.

const LIMIT = 300
const REACH_COST = 0.2 // of one bound of reach.js, in answers
const SLACK = 1e-6 // what rounding may do to a bound: class sums come in 32 bits

/** the smallest set of flips after which the vote answers another class */
export function smallestFlips(live, state, vote, limit = LIMIT) {
  const asked = ask(live, state)
  const stop = stopOf(live, state.rate)
  const now = probe(live, asked, stop, vote, {})
  const desk = { live, asked, stop, vote, now, K: asked.places.length, left: limit, best: null }
  if (vote === "uniform" || vote === "distance") solve(desk)
  else if (vote === "baseline") desk.at_least = desk.K + 1
  else explore(desk)
  const { best, at_least } = desk
  const found = best ? best.ranks.map((rank) => ({ id: live.ids[asked.places[rank]], from: now.labels[rank], to: best.labels[rank] })) : []
  return { found, predicted: best ? best.predicted : now.predicted, at_least, is_exact: at_least === (best ? found.length : desk.K + 1) }
}

/** what a vote answers after more flips, {rank of a neighbor: class} */
function probe(live, asked, stop, vote, more) {
  const flips = { ...asked.flips }
  for (const rank in more) flips[live.ids[asked.places[rank]]] = more[rank]
  const around = surround(live, { ...asked, flips }, stop)
  const { probabilities, weights } = cast(live, around, (which) => attend(live, around, which), vote)
  return { around, labels: around.labels, ranks: Object.keys(more).map(Number), flips, probabilities, weights, predicted: argmax(probabilities) }
}

/** one more answer, of what is left to ask; the best that works is kept */
function attempt(desk, more) {
  desk.left -= 1
  const told = probe(desk.live, desk.asked, desk.stop, desk.vote, more)
  told.margin = Math.max(...told.probabilities.filter((_, c) => c !== desk.now.predicted)) - told.probabilities[desk.now.predicted]
  if (told.predicted !== desk.now.predicted && isBetter(told, desk.best)) desk.best = told
  return told
}

/** fewer flips, then more margin, then nearer neighbors */
function isBetter(one, other) {
  if (!other || one.ranks.length !== other.ranks.length) return !other || one.ranks.length < other.ranks.length
  if (Math.abs(one.margin - other.margin) > 1e-9) return one.margin > other.margin
  const place = one.ranks.findIndex((rank, i) => rank !== other.ranks[i])
  return place >= 0 && one.ranks[place] < other.ranks[place]
}

/**
 * Weights w_j that read no label. Toward p[c] − p[w], a flip of j to c gives 2 w_j if y_j = w, w_j if y_j is a third
 * class, and a flip to any other class no more; gains add up, so the n largest are the best n flips for c.
 */
function solve(desk) {
  const { labels, weights, predicted: w } = desk.now
  const rivals = Array.from({ length: desk.live.C }, (_, c) => c).filter((c) => c !== w)
  const order = (c) => {
    const gain = (j) => weights[j] * (labels[j] === w ? 2 : 1)
    return [...labels.keys()].filter((j) => labels[j] !== c).sort((i, j) => gain(j) - gain(i) || i - j)
  }
  const orders = new Map(rivals.map((c) => [c, order(c)]))
  const works = (c, n) => {
    const changed = labels.with ? [...labels] : labels
    for (const j of orders.get(c).slice(0, n)) changed[j] = c
    return argmax(tally(weights, changed, desk.live.C)) !== w
  }
  for (desk.at_least = 1; desk.at_least <= desk.K && !desk.best; desk.at_least++) {
    for (const c of rivals) {
      if (works(c, desk.at_least)) attempt(desk, Object.fromEntries(orders.get(c).slice(0, desk.at_least).map((j) => [j, c])))
    }
  }
  if (desk.best) desk.at_least--
}

/** n = 1, 2, …: every set of n flips that no bound excludes; before that, a set that works, so as to know where to stop */
function explore(desk) {
  const { live, asked, now, K } = desk
  desk.order = [...now.labels.keys()].sort((i, j) => (now.weights ? now.weights[j] - now.weights[i] : 0) || i - j)
  desk.free = new Array(K).fill(true)
  desk.rivals = Array.from({ length: live.C }, (_, c) => c).filter((c) => c !== now.predicted)
  desk.at_least = 1
  let reach
  const isExcluded = (n) => !desk.rivals.some((c) => (reach = reachOf(desk, now, n))(c) >= -SLACK)
  while (desk.at_least <= K && isExcluded(desk.at_least)) desk.at_least++
  if (desk.at_least > K) return
  const reached = desk.rivals.map((c) => [c, reach(c)]).sort((one, other) => other[1] - one[1])
  for (const [c, margin] of reached) if (margin >= -SLACK && desk.left > limitOfGreed(desk)) greet(desk, c)
  const most = () => (desk.best ? desk.best.ranks.length : K)
  while (desk.at_least <= most() && visit(desk, {}, 0, desk.at_least)) {
    if (desk.best?.ranks.length === desk.at_least) return
    desk.at_least++
  }
}
