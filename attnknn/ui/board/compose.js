// From the votes to what the other scripts draw: names for numbers, and lines that change with what is set.

const CURVE_EVERY = 5 // stops of the noise slider between two points of the curve
const AVERAGED = "attention_averages"

function compose(view) {
  const { given, live, setting } = view
  const { classes, kind, query } = given
  const cast = castVotes(live, setting)
  const truth = query.label == null ? -1 : classes.indexOf(query.label)
  const neighbors = cast.neighbors.map((neighbor) => ({
    ...neighbor,
    clean_label: classes[neighbor.clean_label],
    observed_label: classes[neighbor.observed_label],
    is_by_hand: neighbor.id in setting.flips,
    tile: kind === "image" ? neighbor.place + 1 : null,
    values: given.values?.[neighbor.place] ?? null,
  }))
  return {
    ...given,
    query: { ...query, tile: kind === "image" ? 0 : null },
    heads: cast.heads.map((head, h) => composeHead(head, given.heads[h], neighbors, h, setting)),
    terms: live.fitted.terms,
    neighbors,
    peak: Math.max(1e-9, ...neighbors.flatMap(({ weights }) => weights)), // the largest weight on the board
    votes: inOrder(given.votes, setting).map(({ name, title }) => composeVote(cast.votes[name], name, title, classes, truth)),
    curve: composeCurve(view, truth),
    provenance: describeSource(given.source, { ...setting, seed: given.setting.seed }),
    temperature: setting.temperature,
  }
}

// The three that race come first; with the class averages at the table, attention with averages runs for attention.
function inOrder(votes, { averages }) {
  if (!averages) return votes
  const swapped = { attention: AVERAGED, [AVERAGED]: "attention" }
  return votes.map(({ name }) => votes.find((vote) => vote.name === (swapped[name] ?? name)))
}

function composeHead({ sink, averages }, { name, why }, neighbors, h, { muted }) {
  return { name, why, sink, averages, effective: effectiveOf(neighbors.map((neighbor) => neighbor.weights[h])), isMuted: muted.includes(name) }
}

function composeVote(vote, name, title, classes, truth) {
  return {
    ...vote,
    name,
    title,
    predicted: classes[vote.predicted],
    is_correct: truth < 0 ? null : vote.predicted === truth,
    sure: vote.calibrated[vote.predicted],
    sink: vote.sink ?? 0,
    effective: vote.weights && effectiveOf(vote.weights),
  }
}

// exp(entropy), of weights that are made to sum to one
function effectiveOf(weights) {
  const total = sum(weights)
  return Math.exp(entropy(weights.map((weight) => weight / total)))
}

// The curve does not depend on the noise that is set: it is cast anew when something else is.
function composeCurve(view, truth) {
  const { given, live, setting } = view
  const racing = inOrder(given.votes, setting).slice(0, RACING)
  const { rate, seed, neighbor, ...rest } = setting
  const key = JSON.stringify(rest)
  if (view.curve?.key !== key || view.curve.live !== live) {
    const followed = truth >= 0 ? truth : castVotes(live, { ...setting, rate: 0 }).votes[racing[2].name].predicted
    view.curve = { key, live, followed, ...respondToNoise(live, setting, followed, racing.map(({ name }) => name), CURVE_EVERY) }
  }
  const subject = truth >= 0 ? "the true label" : `“${given.classes[view.curve.followed]}”, attention’s answer,`
  return { ...view.curve, subject, rate }
}

// One line: search, noise and seed, what was done by hand, checkpoint.
function describeSource({ search, labels, fit }, { rate, kind, seed, flips, dropped, muted }) {
  const noise = rate ? `${kind} label noise ${percent(rate)}, seed ${seed}, nested draws` : "no label noise"
  const changed = Object.keys(flips).length
  return [
    search,
    labels,
    labels ? `${noise} added` : noise,
    changed && `${counted(changed, "label")} changed by hand`,
    dropped.length && `${counted(dropped.length, "entry", "entries")} left out`,
    muted.length && `without ${muted.join(", ")}`,
    fit,
  ].filter(Boolean).join(" · ") // prettier-ignore
}
