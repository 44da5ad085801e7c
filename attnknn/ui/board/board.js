// The board: keeps what is chosen, links the parts to one another, and is called with new data.

const boards = new WeakMap()

export default function ({ data, parentElement, setStateValue }) {
  const root = parentElement.querySelector(".board")
  if (!root || !data) return undefined
  if (!boards.has(root)) boards.set(root, openBoard(root))
  const view = boards.get(root)
  view.choose = (id) => setStateValue("neighbor", id)
  adopt(view, JSON.parse(new TextDecoder().decode(data)))
  draw(view)
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
    data: null,
    selected: null, // id of the chosen neighbor
    awaited: undefined, // a choice the server has not confirmed yet
    hot: 0, // index of the neighbor that is shown
    head: ALL,
    raceWidth: 0, // pixels
    heatWidth: 0,
  }
  listen(view)
  return view
}

function listen(view) {
  const { root, cards } = view
  root.onpointerover = (event) => {
    const target = event.target.closest("[data-j]")
    if (target) mark(view, Number(target.dataset.j))
  }
  root.onpointerleave = () => rest(view)
  root.onclick = (event) => {
    const target = event.target.closest("[data-j]")
    if (target) select(view, Number(target.dataset.j))
  }
  root.onchange = (event) => {
    if (event.target.name === "head") pickHead(view, Number(event.target.value))
  }
  cards.addEventListener("focusin", (event) => mark(view, Number(event.target.dataset.j)))
  cards.onkeydown = (event) => steer(view, event)
  view.observer = new ResizeObserver(() => resize(view))
  view.observer.observe(root)
}

// Take new data in; a choice made here stays until the server has answered it.
function adopt(view, data) {
  const isSameQuery = view.data?.query.id === data.query.id
  const isShown = (id) => data.neighbors.some((neighbor) => neighbor.id === id)
  if (!isSameQuery || (view.awaited && !isShown(view.awaited))) view.awaited = undefined
  if (view.awaited === undefined || view.awaited === data.selected) {
    view.awaited = undefined
    view.selected = data.selected
  }
  view.data = data
  const chosen = indexOf(view, view.selected)
  view.hot = chosen >= 0 ? chosen : isSameQuery ? clamp(view.hot, 0, data.neighbors.length - 1) : 0
}

function indexOf(view, id) {
  return id == null ? -1 : view.data.neighbors.findIndex((neighbor) => neighbor.id === id)
}

function draw(view) {
  const { data, root } = view
  writeSheet(view)
  set(root, "data-kind", data.kind)
  set(root, "data-names", data.classes.some((name) => name.length > 3) ? "long" : "short")
  if (!view.heatWidth) measure(view)
  drawQuery(view)
  drawCards(view)
  drawHeat(view)
  drawVotes(view)
  drawCurve(view)
  drawTabs(view)
  say(root.querySelector(".provenance"), data.provenance)
  markSelected(view)
  mark(view, view.hot)
  markHead(view)
}

// Only when the board's own width changes: reading a width makes the browser lay out.
function measure(view) {
  view.raceWidth = view.root.querySelector(".races").clientWidth || view.raceWidth
  view.heatWidth = view.heat.parentElement.clientWidth || view.heatWidth
}

function resize(view) {
  const { raceWidth, heatWidth } = view
  measure(view)
  if (!view.data || (raceWidth === view.raceWidth && heatWidth === view.heatWidth)) return
  drawVotes(view)
  sizeHeat(view)
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
  const chosen = indexOf(view, view.selected)
  if (chosen >= 0 && chosen !== view.hot) mark(view, chosen)
}

// Choose a neighbor; choosing it again gives the choice back, and the nearest is shown, as at first.
function select(view, j) {
  const { id } = view.data.neighbors[j]
  const isBack = view.selected === id
  view.selected = view.awaited = isBack ? view.data.neighbors[0].id : id
  markSelected(view)
  mark(view, isBack ? 0 : j)
  view.choose(isBack ? null : id)
}

function markSelected(view) {
  const chosen = indexOf(view, view.selected)
  const stop = chosen >= 0 ? chosen : view.hot
  for (const card of view.cards.children) {
    const j = Number(card.dataset.j)
    card.classList.toggle("chosen", j === chosen)
    set(card, "aria-selected", j === chosen)
    set(card, "tabindex", j === stop ? 0 : -1)
  }
}

function steer(view, event) {
  const last = view.cards.childElementCount - 1
  const j = Number(event.target.dataset.j)
  const across = getComputedStyle(view.cards).gridTemplateColumns.split(" ").length
  const steps = { ArrowLeft: j - 1, ArrowRight: j + 1, ArrowUp: j - across, ArrowDown: j + across, Home: 0, End: last }
  if (event.key === "Enter" || event.key === " ") select(view, j)
  else if (event.key === "Escape" && indexOf(view, view.selected) >= 0) select(view, indexOf(view, view.selected))
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
  for (const bars of view.cards.querySelectorAll(".bars")) [...bars.children].forEach((bar, h) => bar.classList.toggle("dim", view.head !== ALL && h !== view.head))
  ;[...view.heatRows.children].forEach((row, r) => row.classList.toggle("picked", r - 1 === view.head && view.head !== ALL))
}
