// The board: keeps what is chosen, links the parts to one another, and is called with new data.

const SPEAK_AFTER = 150 // milliseconds after the last frame of a drag
const boards = new WeakMap()

export default function ({ data, parentElement, setStateValue }) {
  const root = parentElement.querySelector(".board")
  if (!root || !data) return undefined
  if (!boards.has(root)) boards.set(root, openBoard(root))
  const view = boards.get(root)
  view.send = (said) => setStateValue("said", said)
  adopt(view, JSON.parse(new TextDecoder().decode(data)))
  writeSheet(view)
  drawPicker(view)
  draw(view)
  sayUnsaid()
  return () => view.observer.disconnect()
}

function openBoard(root) {
  const heat = root.querySelector(".heat")
  const view = {
    root,
    heat,
    cards: root.querySelector(".cards"),
    heatRows: heat.appendChild(setRole(make("div", "rows"), "rowgroup")),
    heatColumn: heat.appendChild(make("i", "column")),
    tabs: root.querySelector(".tabs").appendChild(make("div", "choices")),
    why: root.querySelector(".why"),
    sheet: root.parentElement.appendChild(document.createElement("style")),
    given: null, // what the server sent
    live: null, // the part of it that the votes are cast from
    setting: null, // what is set; may be ahead of the server
    data: null, // what is drawn: composed of these
    told: 0, // number of the last thing that the server was told
    asked: null, // id of the query that was asked for here
    finder: null, // or who is to find it
    trail: [], // ids of the queries before it
    hot: 0, // index of the neighbor that is shown
    head: ALL,
    frame: 0, // of the next drawing, if one is awaited
    speaking: 0, // timer
    telling: 0, // timer
    raceWidth: 0, // pixels
    heatWidth: 0,
  }
  openControls(view)
  openPicker(view)
  openMind(view)
  listen(view)
  return view
}

function listen(view) {
  const { root, cards } = view
  root.onpointerover = (event) => {
    tellHints(event)
    const target = event.target.closest("[data-j]")
    if (target) mark(view, Number(target.dataset.j))
    else if (event.target.closest(".why")) rest(view) // others were crossed on the way
  }
  root.onpointerleave = () => rest(view)
  root.onclick = (event) => {
    const target = event.target.closest("[data-j], [data-mute]")
    if (!target) return
    if (target.dataset.mute !== undefined) toggleHead(view, target.dataset.mute)
    else if (event.target.closest(".card .label .chip")) flip(view, Number(target.dataset.j))
    else select(view, Number(target.dataset.j))
  }
  cards.ondblclick = (event) => {
    const card = event.target.closest(".card")
    if (card && !event.target.closest(".label")) askAboutNeighbor(view, Number(card.dataset.j))
  }
  root.onchange = (event) => {
    if (event.target.name === "head") pickHead(view, Number(event.target.value))
  }
  cards.addEventListener("focusin", (event) => mark(view, Number(event.target.dataset.j)))
  cards.onkeydown = (event) => steer(view, event)
  listenToLedger(view)
  view.observer = new ResizeObserver(() => resize(view))
  view.observer.observe(root)
}

// Take new data in; what was set here stays until the server has heard it.
function adopt(view, given) {
  const isSameQuery = view.given?.query.id === given.query.id
  const mayAdopt = !view.given || !isAhead(view, given.heard)
  if (!isSameQuery) view.hot = 0
  if (!isSameQuery && mayAdopt && view.asked !== given.query.id) view.trail = view.trail.slice(0, Math.max(view.trail.indexOf(given.query.id), 0))
  if (mayAdopt) view.asked = view.finder = null
  if (mayAdopt) view.setting = given.setting
  view.given = given
  view.live = readPayload(given.live)
}

function redrawSoon(view) {
  view.frame ||= requestAnimationFrame(() => {
    view.frame = 0
    draw(view)
    clearTimeout(view.speaking)
    view.speaking = setTimeout(sayUnsaid, SPEAK_AFTER)
  })
}

function indexOf(view, id) {
  return id == null ? -1 : view.data.neighbors.findIndex((neighbor) => neighbor.id === id)
}

function draw(view) {
  view.data = compose(view)
  const { data, root } = view
  const chosen = indexOf(view, view.setting.neighbor)
  view.hot = view.setting.neighbor == null ? clamp(view.hot, 0, data.neighbors.length - 1) : Math.max(chosen, 0)
  drawControls(view)
  set(root, "data-kind", data.kind)
  set(root, "data-names", data.classes.some((name) => name.length > 3) ? "long" : "short")
  if (!view.raceWidth) measure(view)
  drawQuery(view)
  drawCards(view)
  drawAverages(view)
  drawHeat(view)
  drawVotes(view)
  drawCurve(view)
  drawMind(view)
  drawTabs(view)
  say(root.querySelector(".provenance"), data.provenance)
  markSelected(view)
  mark(view, view.hot)
  markHead(view)
}

// Only when the board's own width changes: reading a width makes the browser lay out.
function measure(view) {
  view.raceWidth = view.root.querySelector(".races").clientWidth || view.raceWidth
  view.heatWidth = view.heatPicture?.clientWidth || view.heatWidth
}

function resize(view) {
  const { raceWidth, heatWidth } = view
  measure(view)
  if (!view.data || (raceWidth === view.raceWidth && heatWidth === view.heatWidth)) return
  drawVotes(view)
  paintHeat(view)
  mark(view, view.hot)
}

// Show one neighbor everywhere.
function mark(view, j) {
  view.hot = j
  for (const card of view.cards.children) card.classList.toggle("hot", card.dataset.j === String(j))
  markHeat(view, j)
  markVotes(view, j)
  drawLedger(view, j)
}

// Go back to the chosen neighbor, if there is one.
function rest(view) {
  const chosen = indexOf(view, view.setting.neighbor)
  if (chosen >= 0 && chosen !== view.hot) mark(view, chosen)
}

// Choose a neighbor; choosing it again gives the choice back, and the nearest is shown, as at first.
function select(view, j) {
  const { id } = view.data.neighbors[j]
  const isBack = view.setting.neighbor === id
  view.setting = { ...view.setting, neighbor: isBack || j === 0 ? null : id }
  markSelected(view)
  mark(view, isBack ? 0 : j)
  tell(view)
}

// The chosen neighbor, or else the nearest.
function markSelected(view) {
  const chosen = Math.max(indexOf(view, view.setting.neighbor), 0)
  for (const card of view.cards.children) {
    const j = Number(card.dataset.j)
    card.classList.toggle("chosen", j === chosen)
    set(card, "aria-selected", j === chosen)
    set(card, "tabindex", j === chosen ? 0 : -1)
  }
}

function steer(view, event) {
  const last = view.cards.childElementCount - 1
  const j = Number(event.target.dataset.j)
  const across = getComputedStyle(view.cards).gridTemplateColumns.split(" ").length
  const steps = { ArrowLeft: j - 1, ArrowRight: j + 1, ArrowUp: j - across, ArrowDown: j + across, Home: 0, End: last }
  const acts = { f: flip, x: leaveOut, delete: leaveOut, q: askAboutNeighbor }
  if (event.ctrlKey || event.metaKey || event.altKey) return
  if (event.key === "Enter" || event.key === " ") select(view, j)
  else if (event.key === "Escape" && indexOf(view, view.setting.neighbor) >= 0) select(view, indexOf(view, view.setting.neighbor))
  else if (event.key.toLowerCase() in acts) acts[event.key.toLowerCase()](view, j)
  else if (event.key in steps) focusCard(view, clamp(steps[event.key], 0, last))
  else return
  event.preventDefault()
}

function focusCard(view, j) {
  for (const card of view.cards.children) set(card, "tabindex", Number(card.dataset.j) === j ? 0 : -1)
  view.cards.children[j].focus()
}

function pickHead(view, head) {
  view.head = head
  markHead(view)
  drawLedger(view, view.hot)
}

// The picked head stands out on the cards and in the heatmap.
function markHead(view) {
  set(view.root, "data-head", view.head)
  drawBars(view)
  Array.from(view.heatRows.children, (row, r) => row.classList.toggle("picked", r - 1 === view.head && view.head !== ALL))
}
