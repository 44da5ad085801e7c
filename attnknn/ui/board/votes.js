// Every vote on one query, cast in the browser: attnknn/votes.py, models/attention.py, models/terms.py and
// calibration.py, formula by formula, under the names they have there.
//
//     castVotes(live, state) → neighbors, heads, votes · respondToNoise(live, state, …) → the curve
//
// `live` and `state` are those of bank.js. Heads that are not muted count equally; one at least must be heard.

const FELLOW_TEMPERATURE = 0.1
const FLOOR = 1e-3
const HIGHEST_SCORE = 15
const TEMPERATURE_BOUNDS = [0.05, 20]
const ATTENTIONS = ["attention", "attention_averages"]

// ---- Arrays (attnknn.arrays)

/** Σ_i x_i */
export const sum = (values) => values.reduce((total, value) => total + value, 0)

/** Σ_i a_i b_i */
export const dot = (one, other) => sum(one.map((value, i) => value * other[i]))

/** (1/n) Σ_i x_i, row by row: from n rows to one */
export const meanRows = (rows) => Array.from(rows[0], (_, j) => sum(rows.map((row) => row[j])) / rows.length)

/** the first place of the largest: who wins; the lowest number wins a tie */
export const argmax = (values) => values.reduce((best, value, j) => (value > values[best] ? j : best), 0)

/** w_j = exp(s_j / t) / Σ_i exp(s_i / t) */
export function softmax(scores, temperature = 1) {
  const highest = Math.max(...scores)
  const raised = scores.map((score) => Math.exp((score - highest) / temperature))
  const total = sum(raised)
  return raised.map((power) => power / total)
}

/** H = −Σ_j w_j log w_j, with 0 log 0 = 0 */
export const entropy = (weights) => -sum(weights.map((w) => (w > 0 ? w * Math.log(w) : 0)))

/** 1 / (1 + exp(−x)) */
export const sigmoid = (x) => 0.5 * (1 + Math.tanh(0.5 * x))

/** p[c] = Σ_j w_j [y_j = c] */
export function tally(weights, labels, nClasses) {
  const p = new Array(nClasses).fill(0)
  weights.forEach((weight, j) => (p[labels[j]] += weight))
  return p
}

// ---- Terms (attnknn.models.terms)

/** φ_j = −d_j / r, r = the mean distance */
export function relativeDistance(distances) {
  const mean = sum(distances) / distances.length
  return distances.map((distance) => -distance / (mean > 0 ? mean : 1))
}

/** φ_j = (n[y_j] − 1) / (K − 1), n[c] = neighbors with label c; 0 for K = 1 */
export function agreement({ labels, n_classes: C }) {
  const counts = tally(new Array(labels.length).fill(1), labels, C)
  return labels.map((label) => (counts[label] - 1) / Math.max(labels.length - 1, 1))
}

/** φ_j = Σ_l A[j, l] · (−d_l / r), A[j, l] = softmax over l ≠ j of (cos(z_j, z_l) / 0.1); 0 for K = 1 */
export function fellows(live, places, closeness) {
  if (places.length === 1) return [0]
  const similarity = (j) => places.map((l) => (j === l ? -Infinity : live.gram[j * live.P + l]))
  return places.map((j) => dot(softmax(similarity(j), FELLOW_TEMPERATURE), closeness))
}

/** φ_t by name: distance −d/r · rank −log(1 + j) · content −‖W(z − z_j)‖² · prototype = contrast · the others above */
const TERMS = {
  distance: (around) => around.closeness,
  rank: (around) => around.places.map((_, rank) => -Math.log(1 + rank)),
  content: (around, live, vote) => around.places.map((j) => live.content[vote][j]),
  trust: (around) => around.trust,
  agreement,
  prototype: (around) => around.contrast,
  fellows: (around) => around.fellows,
}

// ---- Attention (attnknn.models.attention)

/** ψ = (1, mean_j d_j, min_j d_j, entropy of the vote) */
export const queryFacts = (distances, p) => [1, sum(distances) / distances.length, Math.min(...distances), entropy(p)]

/** φ, T × K */
export const stackFeatures = (live, around, vote) => live.fitted.terms.map((name) => TERMS[name](around, live, vote))

/** score[j] = Σ_t θ_t φ_t[j] */
export function scoreNeighbors(features, theta) {
  const scores = new Array(features[0].length).fill(0)
  theta.forEach((coefficient, t) => {
    if (coefficient) for (let j = 0; j < scores.length; j++) scores[j] += coefficient * features[t][j]
  })
  return scores
}

/** score[c] = (seat[0] + z seat[1]) − (pull[0] + z pull[1]) ‖z_b − μ_c‖² / 2, z the dissent of the bank */
export function scoreAverages(around, seat, pull) {
  const [raised, drawn] = [seat, pull].map(([plain, more]) => plain + around.dissent * more)
  return around.average_distances.map((distance) => raised - (drawn * distance ** 2) / 2)
}

/** p_h[c] = Σ_j w_hj [y_j = c] + g_h · prior(c), w_h = (1 − g_h) softmax(score_h / t), g_h = sigmoid(b_h · ψ_h) */
export function attend(live, around, vote) {
  const { coefficients, sink: b, seat, pull } = live.fitted[vote]
  const K = around.places.length
  const features = stackFeatures(live, around, vote)
  return coefficients.map((theta, h) => {
    const neighbors = scoreNeighbors(features, theta)
    const scores = seat ? [...neighbors, ...scoreAverages(around, seat[h], pull[h])] : neighbors
    const share = softmax(scores, around.temperature)
    const heard = tally(share.slice(0, K), around.labels, around.n_classes).map((p, c) => p + (seat ? share[K + c] : 0))
    const sink = sigmoid(dot(queryFacts(around.distances, heard), b[h]))
    const probabilities = heard.map((p, c) => (1 - sink) * p + sink * around.prior[c])
    return { name: live.fitted.heads[h], scores, weights: share.map((w) => (1 - sink) * w), sink, probabilities }
  })
}

/** θ_ht · φ_t[j], by term, H numbers for each neighbor j */
export function explainScores(live, around, vote) {
  const features = stackFeatures(live, around, vote)
  const explain = (name, t) => [name, features[t].map((phi) => live.fitted[vote].coefficients.map((theta) => theta[t] * phi))]
  return Object.fromEntries(live.fitted.terms.map(explain))
}

// ---- Votes (attnknn.votes)

/** p = (1/H) Σ_h p_h over the heads that are heard; each neighbor's share is its mean weight */
export function attentionVote(heads, heard, k) {
  const voices = heard.map((h) => heads[h])
  const shares = meanRows(voices.map((head) => head.weights))
  const averages = shares.length > k ? shares.slice(k) : null
  return { probabilities: meanRows(voices.map((head) => head.probabilities)), weights: shares.slice(0, k), averages, sink: sum(voices.map((head) => head.sink)) / voices.length }
}

/** p[c] = Σ_j w_j [y_j = c] */
const neighborsVote = (weights, around) => ({ probabilities: tally(weights, around.labels, around.n_classes), weights, averages: null, sink: null })

/** w_j = 1/K over the K nearest entries of the pool that keep their label; over the K nearest if none does */
export function editedVote(live, around, k) {
  const kept = around.pool.filter((j) => keepsLabel(live, j, around.everybody)).slice(0, k)
  const voters = kept.length ? kept : around.places
  const weights = voters.map(() => 1 / voters.length)
  return { probabilities: tally(weights, voters.map((j) => around.everybody[j]), around.n_classes), weights: null, averages: null, sink: null }
}

/** vote by name → {probabilities, weights, averages, sink} */
function cast(live, around, heads, name) {
  const { fitted } = live
  if (ATTENTIONS.includes(name)) return attentionVote(heads(name), around.heard, around.places.length)
  if (name === "uniform") return neighborsVote(around.places.map(() => 1 / around.places.length), around)
  if (name === "distance") return neighborsVote(softmax(around.closeness.map((phi) => fitted.distance * phi), around.temperature), around)
  if (name === "edited") return editedVote(live, around, around.places.length)
  const alone = name === "baseline" ? live.baseline : softmax(around.average_distances.map((d) => (-fitted.prototype * d ** 2) / 2))
  return { probabilities: alone, weights: null, averages: null, sink: null }
}

// ---- Calibration (attnknn.calibration)

/** ψ = (1, mean_j d_j, H, H²), H the entropy of the vote */
export function certaintyFacts(distances, p) {
  const [one, mean, , H] = queryFacts(distances, p)
  return [one, mean, H, H ** 2]
}

/** q = m^(1/T) / Σ m^(1/T), m = (1 − g) p + g / C, g = FLOOR + (1 − FLOOR) sigmoid(ψ₈ · sink), log T = ψ₈ · heat, ψ₈ = (ψ, z ψ) */
export function calibrate(p, around, { sink, heat }) {
  const plain = certaintyFacts(around.distances, p)
  const facts = [...plain, ...plain.map((fact) => fact * around.dissent)].slice(0, sink.length)
  const g = FLOOR + (1 - FLOOR) * sigmoid(Math.min(dot(facts, sink), HIGHEST_SCORE))
  const T = Math.exp(Math.min(Math.max(dot(facts, heat), Math.log(TEMPERATURE_BOUNDS[0])), Math.log(TEMPERATURE_BOUNDS[1])))
  return softmax(p.map((share) => Math.log((1 - g) * share + g / p.length) / T))
}

// ---- What the board asks

/** the whole ballot at the state's noise: { neighbors, heads, averages, votes }, all formulas above */
export function castVotes(live, state) {
  const around = surround(live, ask(live, state), stopOf(live, state.rate))
  const attended = Object.fromEntries(ATTENTIONS.map((name) => [name, attend(live, around, name)]))
  const votes = {}
  for (const [name, calibrator] of Object.entries(live.fitted.calibrators)) {
    const vote = cast(live, around, (which) => attended[which], name)
    votes[name] = { ...vote, calibrated: calibrate(vote.probabilities, around, calibrator), predicted: argmax(vote.probabilities) }
  }
  const shown = state.averages ? "attention_averages" : "attention"
  const heads = attended[shown]
  const terms = Object.entries(explainScores(live, around, shown))
  const neighbors = around.places.map((place, j) => ({
    id: live.ids[place], place, rank: j + 1, distance: live.distances[place],
    clean_label: live.labels[place], observed_label: around.labels[j], is_flipped: around.labels[j] !== live.labels[place],
    weights: heads.map((head) => head.weights[j]), scores: heads.map((head) => head.scores[j]), share: votes[shown].weights[j],
    terms: Object.fromEntries(terms.map(([name, rows]) => [name, rows[j]])),
  })) // prettier-ignore
  return { neighbors, heads: heads.map(({ name, sink, probabilities, scores }) => ({ name, sink, probabilities, averages: shown === "attention" ? null : scores.slice(around.places.length) })), averages: votes[shown].averages, votes }
}

/** p(followed class) by vote at every stop, and the first rate at which a vote answers another: None is null */
export function respondToNoise(live, state, followed, votes, every = 1) {
  const asked = ask(live, state)
  const rates = live.rates.filter((_, stop) => stop % every === 0)
  const probability = Object.fromEntries(votes.map((name) => [name, []]))
  const leaves = Object.fromEntries(votes.map((name) => [name, null]))
  for (const rate of rates) {
    const around = surround(live, asked, stopOf(live, rate))
    for (const name of votes) {
      const { probabilities } = cast(live, around, (which) => attend(live, around, which), name)
      probability[name].push(probabilities[followed])
      if (argmax(probabilities) !== followed) leaves[name] ??= rate
    }
  }
  return { rates, probability, leaves }
}
