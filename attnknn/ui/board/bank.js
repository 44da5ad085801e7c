// One query and the part of the bank that its neighbors can see: attnknn/bank/statistics.py and entries.py, formula
// by formula, under the names they have there.
//
//     readPayload(attnknn.ui.live.lay_out(...)) → live · ask(live, state) → asked
//     see(live, asked, stop) → the bank at a stop of the noise slider · surround(live, asked, stop) → what votes look at
//
// state = { k, temperature, kind, rate, muted: [heads by name], flips: {id: class}, dropped: [ids], averages }
//
// A label flipped by hand is a label of the bank, and everything follows it; only class averages, away from the noise
// that the payload was made for (`here`), wait for a payload that knows the flip. A dropped neighbor is one that the
// search had not found: the next one moves up.

const SIZE = 20 // entries of a neighborhood that count
const NOBODY = -1

/** base64 → typed array */
function unpack(text, Kind) {
  const letters = atob(text)
  const bytes = new Uint8Array(letters.length)
  for (let i = 0; i < bytes.length; i++) bytes[i] = letters.charCodeAt(i)
  return new Kind(bytes.buffer)
}

/** attnknn/ui/packing.py, backwards: tables by name */
export function unpackTables({ heads, codes }) {
  const words = unpack(codes, Int32Array)
  const tables = {}
  let at = 0
  for (const name in heads) {
    const [size, n, q, unit] = heads[name]
    tables[name] = new (unit === 1 ? Int32Array : Float64Array)(size)
    at = readTable(tables[name], words, at, n, q, unit)
  }
  return tables
}

/** 32 bits from a bit on */
const bitsFrom = (words, at) => (words[at >> 5] << (at & 31)) | ((words[(at >> 5) + 1] >>> 1) >>> (31 - (at & 31)))

/** fill a table of n columns with what is coded from a bit on: steps from row to row → where the next table starts */
function readTable(table, words, at, n, q, unit) {
  for (let i = 0; i < table.length; i++) {
    const zeros = Math.clz32(bitsFrom(words, at))
    const folded = (bitsFrom(words, at + zeros) >>> (31 - zeros - q)) - (1 << q)
    table[i] = unit * ((folded >> 1) ^ -(folded & 1)) + (i < n ? 0 : table[i - n])
    at += 2 * zeros + q + 1
  }
  return at
}

/** cos(z_i, z_j), P × P, from what is below the diagonal; a last row for the query, from its distances: 1 − d² / 2 */
function wholeGram(below, distances) {
  const P = distances.length
  const gram = new Float64Array((P + 1) * P)
  for (let i = 0, at = 0; i < P; i++) {
    for (let j = 0; j < i; j++) gram[i * P + j] = gram[j * P + i] = below[at++]
    gram[i * P + i] = 1
    gram[P * P + i] = 1 - distances[i] ** 2 / 2
  }
  return gram
}

/** P neighbors, C classes, S stops; by neighbor its first 20 near entries, and those without the query's own group */
export function readPayload(payload) {
  const live = { ...payload, P: payload.ids.length, C: payload.n_classes, S: payload.rates.length, seen: new Map() }
  Object.assign(live, unpackTables(payload.tables))
  live.gram = wholeGram(live.gram, payload.distances)
  const size = live.neighborhoods.length / live.P
  const rows = live.ids.map((_, j) => live.neighborhoods.subarray(j * size, (j + 1) * size))
  live.near = rows.map((row) => row.subarray(0, SIZE).filter((i) => i !== NOBODY))
  live.vouching = rows.map((row) => row.filter((i) => i !== NOBODY && !live.is_own_group[i]).subarray(0, SIZE))
  live.place = new Map(live.ids.map((id, j) => [id, j]))
  return live
}

/** the stop of the noise slider at a rate: 100 · rate */
export const stopOf = (live, rate) => Math.min(Math.round(100 * rate), live.S - 1)

/** y_i = flips[i], or else other_i from the stop flips_at_i on, or else the label before noise */
export function observe(live, kind, stop, flips) {
  const others = live.others.subarray(kind * live.labels.length)
  const labels = live.labels.map((label, i) => (stop >= live.flips_at[i] ? others[i] : label))
  for (const id in flips) if (live.place.has(id)) labels[live.place.get(id)] = flips[id]
  return labels
}

/** trust_j = log((a + ½) / (n − a + ½)): of n entries near neighbor j, the query's own group left out, a carry its label */
export function trust(live, j, labels) {
  const n = live.vouching[j].length
  const a = live.vouching[j].reduce((agreeing, i) => agreeing + (labels[i] === labels[j]), 0)
  return Math.log((a + 0.5) / (n - a + 0.5))
}

/** keeps_j = [ #{i : y_i = y_j} = max_c #{i : y_i = c} ], i near neighbor j */
export function keepsLabel(live, j, labels) {
  const votes = new Array(live.C).fill(0)
  for (const i of live.near[j]) votes[labels[i]]++
  return votes[labels[j]] === Math.max(...votes)
}

/** contrast_j = cos(z_j, μ_y) − max over c ≠ y of cos(z_j, μ_c) */
export const contrast = (cosines, label) => cosines[label] - Math.max(...cosines.filter((_, c) => c !== label))

/** dissent = 1 − Σ a / Σ n = share of near pairs with different labels; more by what changes for pairs of moved neighbors */
function dissent(live, at, moved, known, labels) {
  if (!moved.length || !live.n_pairs) return live.dissents[at]
  let more = 0
  const isMoved = new Uint8Array(live.labels.length)
  for (const j of moved) isMoved[j] = 1
  const count = (i, j) => (more += (labels[i] !== labels[j]) - (known[i] !== known[j]))
  live.near.forEach((others, j) => others.forEach((i) => (isMoved[i] || isMoved[j]) && count(i, j)))
  const { followers } = live // pairs (entry that is no neighbor, neighbor near it)
  for (let f = 0; f < followers.length; f += 2) if (isMoved[followers[f + 1]]) count(followers[f], followers[f + 1])
  return live.dissents[at] + more / live.n_pairs
}

/** cos(z_i, μ_c) = z_i · m_c / ‖m_c‖ at `here`, after each z_j that counts and moved left one class sum m for another */
function movedCosines(live, flips) {
  const { P, C, here } = live
  const [known, labels] = [live.flips, flips].map((hand) => observe(live, here.kind, here.stop, hand))
  const squares = [...live.squares] // ‖m_c‖²
  const dots = Array.from({ length: P + 1 }, (_, i) => rowOf(live.cosines_here, i, C).map((cosine, c) => cosine * Math.sqrt(squares[c])))
  const counts = [...live.n_counted]
  const move = (j, c, sign) => {
    squares[c] += 2 * sign * dots[j][c] + 1
    counts[c] += sign
    dots.forEach((row, i) => (row[c] += sign * live.gram[i * P + j]))
  }
  live.ids.forEach((_, j) => {
    if (labels[j] === known[j] || !live.is_counted[j]) return
    move(j, known[j], -1)
    move(j, labels[j], 1)
  })
  return dots.map((row) => row.map((dot, c) => (counts[c] ? dot / Math.sqrt(squares[c]) : 0)))
}

/** row r of a table of n columns */
const rowOf = (table, r, n) => Array.from(table.subarray(r * n, (r + 1) * n))

/** ‖z − μ_c‖ = √(2 − 2 cos(z, μ_c)) */
const distanceOf = (cosine) => Math.sqrt(Math.max(2 - 2 * cosine, 0))

/** the bank at a stop, kept until a hand flips something else: (y, trust, contrast, ‖z − μ_c‖, prior, dissent) of all neighbors */
export function see(live, { flips, kind }, stop) {
  const hand = JSON.stringify(flips)
  if (live.hand !== hand) {
    live.hand = hand
    live.hasNews = live.ids.some((id) => flips[id] !== live.flips[id])
    live.cosines = live.hasNews ? movedCosines(live, flips) : null
    live.seen.clear()
  }
  const at = kind * live.S + stop
  if (!live.seen.has(at)) live.seen.set(at, look(live, flips, kind, stop))
  return live.seen.get(at)
}

/** a function of a neighbor that is worked out once, for those who are asked */
const lazily = (of, known = []) => (j) => (known[j] ??= of(j))

/** what `see` keeps; away from `here`, contrast of a moved neighbor is that at `here`, and the averages have not moved */
function look(live, flips, kind, stop) {
  const { P, C, here, hasNews, cosines } = live
  const at = kind * live.S + stop
  const labels = observe(live, kind, stop, flips)
  const known = hasNews ? observe(live, kind, stop, live.flips) : labels
  const moved = hasNews ? live.ids.map((_, j) => j).filter((j) => known[j] !== labels[j]) : []
  const isHere = hasNews && kind === here.kind && stop === here.stop
  const counts = rowOf(live.counts, at, C)
  for (const j of moved) counts[known[j]]--, counts[labels[j]]++
  return {
    labels,
    trust: lazily((j) => trust(live, j, labels)),
    contrast: lazily((j) => (isHere || moved.includes(j) ? contrast(cosines[j], labels[j]) : live.contrast[at * P + j])),
    average_distances: (isHere ? cosines[P] : rowOf(live.query_cosines, at, C)).map(distanceOf),
    prior: counts.map((count) => count / live.n_entries),
    dissent: dissent(live, at, moved, known, labels),
  }
}

/** state → who votes, and what about them depends on no label and no noise */
export function ask(live, state) {
  const pool = live.ids.map((_, j) => j).filter((j) => !state.dropped?.includes(live.ids[j]))
  const places = pool.slice(0, state.k)
  const heard = live.fitted.heads.map((_, h) => h).filter((h) => !state.muted?.includes(live.fitted.heads[h]))
  const distances = places.map((j) => live.distances[j])
  const closeness = relativeDistance(distances)
  const resembled = live.fitted.terms.includes("fellows") ? fellows(live, places, closeness) : null
  const { temperature, flips = {} } = state
  return { pool, places, heard, distances, closeness, fellows: resembled, temperature, flips, kind: live.kinds.indexOf(state.kind) }
}

/** what the votes may look at: the k neighbors, as the bank at a stop shows them */
export function surround(live, asked, stop) {
  const seen = see(live, asked, stop)
  const [labels, trust, contrast] = [(j) => seen.labels[j], seen.trust, seen.contrast].map((of) => asked.places.map((j) => of(j)))
  return { ...asked, ...seen, labels, trust, contrast, everybody: seen.labels, n_classes: live.C }
}
