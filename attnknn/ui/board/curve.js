// Probability of one class as noise grows, the true label where it is known, one line per vote, named where it ends.

const NAME_GAP = 12 // of 100: the least distance between two names

function drawCurve(view) {
  const { data, root } = view
  const panel = root.querySelector(".noise")
  panel.hidden = !data.curve || data.curve.rates.length < 2
  if (panel.hidden) return
  const lines = curveLines(data)
  const end = data.curve.rates.at(-1)
  drawLines(panel.querySelector("svg"), lines, end)
  drawMarks(panel.querySelector(".marks"), lines, data.curve, end)
  describe(panel.querySelector(".plot"), () => describeCurve(lines, data))
  say(panel.querySelector("h2"), `Probability of ${data.curve.subject} as noise grows`)
  say(panel.querySelector(".count"), counted(data.curve.rates.length, "noise rate"))
  sentence(panel.querySelector(".leaves"), ...leavesSentence(lines, data.curve.subject))
}

function curveLines(data) {
  const { rates, rate, probability, leaves } = data.curve
  return data.votes
    .filter((vote) => probability[vote.name])
    .map((vote) => {
      const values = probability[vote.name]
      const leave = leaves[vote.name] ?? null
      return { name: vote.name, title: vote.title, rates, values, leave, now: valueAt(rates, values, rate) }
    })
}

function valueAt(rates, values, rate) {
  const i = clamp(rates.findIndex((r) => r >= rate), 1, rates.length - 1)
  const part = clamp((rate - rates[i - 1]) / (rates[i] - rates[i - 1]), 0, 1)
  return values[i - 1] + part * (values[i] - values[i - 1])
}

function drawLines(svg, lines, end) {
  const drawn = fit(svg, lines.length, () => makeSvg("polyline", "line"))
  lines.forEach((line, i) => {
    set(drawn[i], "data-vote", line.name)
    set(drawn[i], "points", line.rates.map((rate, r) => `${((100 * rate) / end).toFixed(2)},${(100 - 100 * line.values[r]).toFixed(2)}`).join(" "))
  })
}

function drawMarks(layer, lines, curve, end) {
  const marks = [...yTicks(), ...xTicks(end), nowMark(curve.rate, end), ...nameMarks(lines)]
  for (const line of lines) {
    marks.push({ kind: "bead", vote: line.name, x: curve.rate / end, y: line.now, text: "" })
    if (line.leave != null) marks.push({ kind: "exit", vote: line.name, x: line.leave / end, y: valueAt(line.rates, line.values, line.leave), text: "✗" })
  }
  const elements = fit(layer, marks.length, () => make("span"))
  marks.forEach((mark, i) => placeMark(elements[i], mark))
}

function placeMark(element, { kind, vote, x, y, text }) {
  set(element, "class", kind)
  set(element, "data-vote", vote ?? "")
  element.style.left = `${100 * clamp(x, 0, 1)}%`
  element.style.top = `${100 - 100 * y}%`
  say(element, text)
}

function yTicks() {
  return [0, 0.5, 1].map((y) => ({ kind: "tick across", x: 0, y, text: percent(y) }))
}

function xTicks(end) {
  const step = [0.3, 0.25, 0.2, 0.1].find((size) => Math.abs(end / size - Math.round(end / size)) < 1e-6) ?? end
  return Array.from({ length: Math.round(end / step) + 1 }, (_, i) => ({ kind: "tick up", x: (i * step) / end, y: 0, text: percent(i * step) }))
}

function nowMark(rate, end) {
  return { kind: rate / end > 0.75 ? "now flip" : "now", x: rate / end, y: 1, text: `now ${percent(rate)}` }
}

// Names beside the ends of their lines, pushed apart where they would touch.
function nameMarks(lines) {
  const names = lines.map((line) => ({ kind: "name", vote: line.name, x: 1, y: line.values.at(-1), text: line.title }))
  const order = [...names].sort((a, b) => a.y - b.y)
  const gap = NAME_GAP / 100
  order.forEach((name, i) => (name.y = Math.max(name.y, i ? order[i - 1].y + gap : 0.03)))
  for (let i = order.length - 1, top = 0.97; i >= 0; i--, top = order[i + 1].y - gap) order[i].y = Math.min(order[i].y, top)
  return names
}

function leavesSentence(lines, subject) {
  return lines.flatMap((line, i) => {
    const said = i === 0 ? firstLeaves(line, subject) : laterLeaves(line)
    return i === 0 ? said : [" · ", ...said]
  })
}

function firstLeaves({ title, leave }, subject) {
  if (leave === null) return [`${title} `, ["never"], ` leaves ${subject}`]
  if (leave === 0) return [`${title} misses ${subject} `, ["from the start"]]
  return [`${title} leaves ${subject} at `, [percent(leave)]]
}

function laterLeaves({ title, leave }) {
  if (leave === null) return [`${title} `, ["never"]]
  return leave === 0 ? [`${title} `, ["from the start"]] : [`${title} at `, [percent(leave)]]
}

function describeCurve(lines, data) {
  const { rates, rate } = data.curve
  const points = [0, 1 / 3, 2 / 3, 1].map((part) => rates[Math.round(part * (rates.length - 1))])
  const said = lines.map((line) => `${line.title}: ${points.map((r) => `${percent(valueAt(rates, line.values, r))} at noise ${percent(r)}`).join(", ")}, now ${percent(line.now)}`)
  const which = data.query.label == null ? "" : ` ${data.query.label}`
  return `Probability of ${data.curve.subject}${which} against label noise, now ${percent(rate)}. ${said.join("; ")}.`
}
