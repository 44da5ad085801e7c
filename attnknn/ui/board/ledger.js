// Why a neighbor has its weight: each term of its score against its average fellow.

const ALL = -1 // the mean of the heads

function termOf({ heads }, neighbor, term, head) {
  const values = neighbor.terms[term] ?? []
  return head === ALL ? meanHeard(values, heads) : (values[head] ?? 0)
}

// Over the heads that are not muted, which count equally.
function meanHeard(values, heads) {
  const heard = values.filter((_, h) => !heads[h].isMuted)
  return heard.length ? sum(heard) / heard.length : 0
}

// Per term: what it adds to neighbor j's score, the mean over all neighbors, and the difference.
function relativeTerms(data, j, head) {
  return data.terms.map((term) => {
    const own = termOf(data, data.neighbors[j], term, head)
    const mean = sum(data.neighbors.map((neighbor) => termOf(data, neighbor, term, head))) / data.neighbors.length
    return { term, own, mean, difference: own - mean }
  })
}

// The softmax with numbers: weight = (1 − sink) · e^(score / t) / sum, scores against their mean.
function weightFormula(data, j, head) {
  const t = data.temperature ?? 1
  const rows = data.neighbors.map((neighbor) => sum(data.terms.map((term) => termOf(data, neighbor, term, head))))
  const mean = sum(rows) / rows.length
  const scores = rows.map((score) => score - mean)
  const total = sum(scores.map((score) => Math.exp(score / t))) + averagesPart(data, head, mean, t)
  const { sink } = data.heads[head]
  const weight = ((1 - sink) * Math.exp(scores[j] / t)) / total
  const isExact = Math.abs(weight - data.neighbors[j].weights[head]) < 5e-3
  return { score: scores[j], t, total, sink, weight, isExact }
}

// What the class averages add to the sum, where they sit at the table.
function averagesPart(data, head, mean, t) {
  return sum((data.heads[head].averages ?? []).map((score) => Math.exp((score - mean) / t)))
}

function drawTabs(view) {
  const { data } = view
  const names = data.heads.length > 1 ? ["all heads", ...data.heads.map((head) => head.name)] : data.heads.map((head) => head.name)
  if (view.head >= data.heads.length || (data.heads.length === 1 && view.head === ALL)) view.head = data.heads.length > 1 ? ALL : 0
  const first = data.heads.length > 1 ? ALL : 0
  const tabs = fit(view.tabs, names.length, () => makeTab(view))
  names.forEach((name, i) => {
    const [radio, text] = tabs[i].children
    radio.value = i + first
    radio.checked = i + first === view.head
    say(text, name)
  })
}

function makeTab(view) {
  const radio = make("input")
  radio.type = "radio"
  radio.name = "head"
  return make("label", "tab", radio, make("span"))
}

// What can be done with the neighbor that is shown.
function listenToLedger(view) {
  const [ask, label, out] = view.why.querySelectorAll(".ask, select, .out")
  ask.onclick = () => askAboutNeighbor(view, view.hot)
  label.onchange = () => flipTo(view, view.hot, Number(label.value))
  out.onclick = () => leaveOut(view, view.hot)
}

function drawActions(view, neighbor) {
  const { classes, neighbors } = view.data
  const [label, out] = view.why.querySelectorAll("select, .out")
  if (label.childElementCount !== classes.length || label.firstChild.textContent !== classes[0]) {
    label.replaceChildren(...classes.map((name) => make("option", "", name)))
    ;[...label.children].forEach((option, c) => (option.value = c))
  }
  label.selectedIndex = classes.indexOf(neighbor.observed_label)
  out.disabled = neighbors.length === 1
}

function drawLedger(view, j) {
  const { data, head } = view
  const panel = view.why
  const neighbor = data.neighbors[j]
  panel.classList.toggle("empty", !neighbor)
  if (!neighbor) return
  drawActions(view, neighbor)
  const one = head === ALL ? null : data.heads[head]
  const share = one ? neighbor.weights[head] : neighbor.share
  say(panel.querySelector("h2"), `Why neighbor ${neighbor.rank} has ${percent(share)}${one ? ` from ${one.name}` : ""}`)
  paintChip(panel.querySelector("header .chip"), data, neighbor.observed_label, neighbor.is_flipped)
  say(panel.querySelector(".job"), one ? one.why : describeMean(data))
  say(panel.querySelector("caption"), `Terms of the score of neighbor ${neighbor.rank} against the average of ${counted(data.neighbors.length, "neighbor")}`)
  const rows = relativeTerms(data, j, head)
  const reach = drawWaterfall(panel.querySelector("tbody"), rows, isHeard(data, head))
  const scale = panel.querySelector(".scale")
  say(scale.firstChild, signed(-reach, 0))
  say(scale.lastChild, signed(reach, 0))
  sentence(panel.querySelector(".formula"), ...formulaParts(data, j, head, rows))
}

function describeMean({ heads }) {
  const n = heads.filter((head) => !head.isMuted).length
  return n > 1 ? `The mean of ${counted(n, "head")}, which count equally.` : "The one head that is heard."
}

// A head does not hear a term that is zero for every neighbor.
function isHeard(data, head) {
  return (term) => data.neighbors.some((neighbor) => termOf(data, neighbor, term, head) !== 0)
}

function drawWaterfall(body, rows, heard) {
  const total = sum(rows.map((row) => row.difference))
  const reach = waterfallReach(rows)
  const lines = fit(body, rows.length + 1, makeLine)
  let before = 0
  rows.forEach((row, i) => {
    drawLine(lines[i], row.term, before, before + row.difference, reach, heard(row.term))
    set(lines[i], "title", `${row.term}: ${signed(row.own)} here, ${signed(row.mean)} on average`)
    before += row.difference
  })
  const last = lines[rows.length]
  drawLine(last, "together", 0, total, reach, true)
  set(last, "title", "score above its average fellow")
  for (const line of lines) line.classList.toggle("together", line === last)
  return reach
}

// Half the width of the scale: a round number that holds every step of the waterfall.
function waterfallReach(rows) {
  let before = 0
  const furthest = rows.reduce((most, row) => Math.max(most, Math.abs((before += row.difference))), 0)
  return [1, 2, 3, 5, 8, 12, 20, 30, 50].find((reach) => furthest <= reach) ?? furthest
}

function makeLine() {
  const name = make("th")
  name.scope = "row"
  return make("tr", "line", name, make("td", "fall", make("i")), make("td", "number"))
}

function drawLine(line, name, from, to, reach, isHeardHere) {
  const [term, fall, number] = line.children
  const at = (score) => 50 + (48 * score) / reach
  say(term, name)
  say(number, isHeardHere ? signed(to - from) : "–")
  line.classList.toggle("unheard", !isHeardHere)
  line.classList.toggle("against", to < from)
  fall.firstChild.style.left = `${at(Math.min(from, to))}%`
  fall.firstChild.style.width = `${at(Math.max(from, to)) - at(Math.min(from, to))}%`
  fall.style.setProperty("--to", `${at(to)}%`)
}

function formulaParts(data, j, head, rows) {
  const heard = rows.filter((row) => isHeard(data, head)(row.term))
  const total = sum(rows.map((row) => row.difference))
  const parts = heard.map((row, i) => (i ? `${row.difference < 0 ? " − " : " + "}${Math.abs(row.difference).toFixed(2)}` : signed(row.difference))).join("")
  const score = [`score above its average fellow\n= ${heard.length > 1 ? `${parts} = ` : ""}`, [signed(total)], "\n"]
  if (data.neighbors.length === 1) return ["Only one neighbor was asked: it has no fellows to be compared with."]
  return [...score, ...(head === ALL ? shareParts(data, data.neighbors[j]) : weightParts(data, j, head))]
}

function shareParts({ heads }, neighbor) {
  const weights = neighbor.weights.filter((_, h) => !heads[h].isMuted)
  if (weights.length > 6) return [`share = mean of ${weights.length} heads = `, [precise(neighbor.share)]]
  return [`share = (${weights.map((weight) => (100 * weight).toFixed(1)).join(" + ")})${NO_BREAK}% / ${weights.length} = `, [precise(neighbor.share)]]
}

function weightParts(data, j, head) {
  const { score, t, total, sink, isExact } = weightFormula(data, j, head)
  const weight = precise(data.neighbors[j].weights[head])
  if (!isExact) return ["weight = ", [weight]]
  const power = t === 1 ? signed(score) : `${signed(score)} / ${t}`
  return [`weight = (1 − ${sink.toFixed(2)}) · exp(${power}) / ${total.toFixed(1)} = `, [weight]]
}
