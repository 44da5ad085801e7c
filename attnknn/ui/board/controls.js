// What can be set on the board. It acts while it is dragged; the server is told when it is let go.

const TELL_AFTER = 120 // milliseconds; an arrow key that is held down tells once

function openControls(view) {
  const place = view.root.querySelector(".controls")
  const range = (name) => place.querySelector(`[name="${name}"]`)
  view.inputs = Object.fromEntries(["k", "temperature", "noise", "kind", "seed", "averages"].map((name) => [name, range(name)]))
  place.oninput = (event) => readControl(view, event.target)
  place.onchange = () => tell(view)
  view.root.querySelector(".by-hand button").onclick = () => change(view, { flips: {}, dropped: [], muted: [] })
  view.root.querySelector(".trail").onclick = (event) => event.target.value && askAbout(view, event.target.value, true)
}

function readControl(view, { name, value, checked, validity }) {
  const { temperatures } = view.given.controls
  const read = {
    k: () => ({ k: Number(value) }),
    temperature: () => ({ temperature: temperatures[Number(value)] }),
    noise: () => ({ rate: Number(value) / 100 }),
    kind: () => ({ kind: value }),
    seed: () => (validity.valid && value !== "" ? { seed: Number(value) } : {}), // the server knows who is flipped under another seed
    averages: () => ({ averages: checked }),
  }
  view.setting = { ...view.setting, ...read[name]() }
  redrawSoon(view)
}

function drawControls(view) {
  const { inputs, setting, given } = view
  const { largest_k, temperatures, highest_rate, largest_seed, kinds } = given.controls
  inputs.k.max = largest_k
  inputs.temperature.max = temperatures.length - 1
  inputs.noise.max = Math.round(100 * highest_rate)
  inputs.seed.max = largest_seed
  const options = fit(inputs.kind, kinds.length, () => make("option"))
  kinds.forEach((kind, i) => (options[i].value = options[i].textContent = kind))
  hold(inputs.k, setting.k, String(setting.k), largest_k)
  hold(inputs.temperature, temperatures.indexOf(setting.temperature), String(setting.temperature), temperatures.length - 1)
  hold(inputs.noise, Math.round(100 * setting.rate), percent(setting.rate), 100 * highest_rate)
  if (inputs.kind.value !== setting.kind) inputs.kind.value = setting.kind
  if (view.root.getRootNode().activeElement !== inputs.seed) inputs.seed.value = setting.seed
  inputs.averages.checked = setting.averages
  drawByHand(view)
  drawTrail(view)
}

// A slider, its value in words, and how far it is filled.
function hold(input, value, words, last) {
  if (Number(input.value) !== value) input.value = value
  say(input.parentElement.querySelector(".value"), words)
  set(input, "aria-valuetext", words)
  const first = Number(input.min)
  input.style.setProperty("--filled", `${(100 * (value - first)) / Math.max(last - first, 1)}%`)
}

function drawByHand(view) {
  const { flips, dropped, muted } = view.setting
  const changed = Object.keys(flips).length
  const said = [
    changed && `${counted(changed, "label")} flipped by hand`,
    dropped.length && `${counted(dropped.length, "neighbor")} left out`,
    muted.length && `${muted.join(", ")} muted`,
  ].filter(Boolean) // prettier-ignore
  const line = view.root.querySelector(".by-hand")
  line.hidden = !said.length
  say(line.firstElementChild, said.join(" · "))
}

// Whom one has come from, by making neighbors the query.
function drawTrail(view) {
  const line = view.root.querySelector(".trail")
  line.hidden = !view.trail.length
  const steps = fit(line.lastElementChild, view.trail.length, () => make("button", "step"))
  view.trail.forEach((id, i) => {
    say(steps[i], id)
    steps[i].value = id
  })
}

// ---- What is set by other means than a control

function change(view, changes) {
  const { flips = {}, dropped = [] } = changes
  const { most_flips, most_dropped } = view.given.controls
  if (Object.keys(flips).length > most_flips || dropped.length > most_dropped) return
  view.setting = { ...view.setting, ...changes }
  redrawSoon(view)
  tell(view)
}

// Away from the answer to its runner-up, or else to the answer; if it was flipped by hand, back.
function flip(view, j) {
  const { id, observed_label: label } = view.data.neighbors[j]
  if (id in view.setting.flips) return flipTo(view, j, null)
  const vote = view.data.votes[RACING - 1]
  const rival = label === vote.predicted ? runnerUp(vote, view.data).label : vote.predicted
  flipTo(view, j, view.data.classes.indexOf(rival))
}

// A label that it has anyway is none that was flipped.
function flipTo(view, j, c) {
  const { live, setting } = view
  const { id, place } = view.data.neighbors[j]
  const { [id]: _, ...flips } = setting.flips
  const own = observe(live, live.kinds.indexOf(setting.kind), stopOf(live, setting.rate), flips)[place]
  change(view, { flips: c === null || c === own ? flips : { ...flips, [id]: c } })
}

function leaveOut(view, j) {
  const { dropped, neighbor } = view.setting
  const { id } = view.data.neighbors[j]
  if (view.data.neighbors.length > 1) change(view, { dropped: [...dropped, id], neighbor: neighbor === id ? null : neighbor })
}

// One head at least is heard.
function toggleHead(view, name) {
  const { muted } = view.setting
  const then = muted.includes(name) ? muted.filter((one) => one !== name) : [...muted, name]
  if (then.length < view.data.heads.length) change(view, { muted: then })
}

function askAbout(view, id, isBack = false) {
  if (view.asked === id) return
  seek(view, { asked: id, trail: isBack ? view.trail.slice(0, view.trail.indexOf(id)) : [...view.trail, view.given.query.id] })
}

// For another query: by its id, or by the name of a finder.
function seek(view, { asked = null, finder = null, trail }) {
  Object.assign(view, { asked, finder, trail, setting: { ...view.setting, neighbor: null } })
  tell(view, 0)
}

function askAboutNeighbor(view, j) {
  askAbout(view, view.data.neighbors[j].id)
}

// ---- What the server and the address learn

function tell(view, after = TELL_AFTER) {
  clearTimeout(view.telling)
  view.telling = setTimeout(() => {
    view.telling = 0
    view.told = Math.max(view.told, view.given.heard) + 1
    view.send({ number: view.told, link: { ...writeLink(view.setting), query: view.asked ?? "", find: view.finder ?? "" } })
  }, after)
}

// Whether the server has yet to hear, or to answer, what is set here.
function isAhead(view, heard) {
  return Boolean(view.telling) || view.told > heard || view.root.querySelector(".controls input:active") !== null
}

function writeLink({ k, temperature, rate, kind, seed, flips, dropped, muted, averages, neighbor }) {
  const flipped = Object.entries(flips).map(([id, c]) => `${id}:${c}`)
  return {
    k: String(k), temperature: String(temperature), noise: String(rate), kind, seed: String(seed),
    flips: flipped.join(","), dropped: dropped.join(","), muted: muted.join(","),
    averages: averages ? "1" : "", neighbor: neighbor ?? "",
  } // prettier-ignore
}
