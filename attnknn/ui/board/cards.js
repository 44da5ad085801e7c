// One card per neighbor: who it is, what its label says, and how much each head listened.

function makeCard() {
  const card = make(
    "div",
    "card",
    make("div", "top", make("b", "rank"), make("span", "distance")),
    make("div", "thumb tile"),
    make("dl", "values"),
    make("div", "label", make("span", "chip"), make("span", "was", make("span", "word", "was "), make("s"))),
    make("div", "bottom", make("div", "bars"), make("span", "share")),
  )
  set(card, "role", "option")
  return card
}

function drawCards(view) {
  const { data, root } = view
  const cards = fit(view.cards, data.neighbors.length, makeCard)
  const peak = highestWeight(data)
  data.neighbors.forEach((neighbor, j) => drawCard(cards[j], neighbor, j, peak, data))
  const n = data.neighbors.length
  say(view.cards.parentElement.querySelector(".count"), `${counted(n, "neighbor")} · ${counted(data.heads.length, "head")}`)
  set(view.cards, "data-size", n > 32 ? "many" : "few")
  view.cards.style.setProperty("--values", data.neighbors[0]?.values?.length ?? 0)
  set(view.cards, "data-heads", data.heads.length > 6 ? "many" : "few")
}

function drawCard(card, neighbor, j, peak, data) {
  const [top, thumb, values, label, bottom] = card.children
  set(card, "data-j", j)
  set(card, "aria-label", describeNeighbor(neighbor, data))
  say(top.firstChild, String(neighbor.rank))
  say(top.lastChild, neighbor.distance.toFixed(2))
  set(top.lastChild, "title", `distance ${neighbor.distance.toFixed(4)}, on the unit sphere`)
  thumb.hidden = neighbor.tile == null || !data.atlas
  if (!thumb.hidden) placeTile(thumb, neighbor.tile, data.atlas)
  values.hidden = !neighbor.values
  drawValues(values, neighbor.values ?? [])
  paintChip(label.firstChild, data, neighbor.observed_label, neighbor.is_flipped)
  label.lastChild.hidden = !neighbor.is_flipped
  say(label.lastChild.lastChild, neighbor.clean_label)
  drawBars(bottom.firstChild, neighbor, peak, data)
  say(bottom.lastChild, percent(neighbor.share))
}

// Length is the weight, relative to the largest weight on the board.
function drawBars(list, neighbor, peak, data) {
  const bars = fit(list, neighbor.weights.length, () => make("i"))
  neighbor.weights.forEach((weight, h) => {
    bars[h].style.height = `${(100 * weight) / peak}%`
    set(bars[h], "title", `${data.heads[h].name}: ${percent(weight)}`)
  })
}

function describeNeighbor(neighbor, data) {
  const label = neighbor.is_flipped
    ? `label ${neighbor.observed_label}, flipped by noise, was ${neighbor.clean_label}`
    : `label ${neighbor.observed_label}`
  const heads = neighbor.weights.map((weight, h) => `${data.heads[h].name} ${percent(weight)}`).join(", ")
  return `Neighbor ${neighbor.rank}, ${neighbor.id}, distance ${neighbor.distance.toFixed(2)}, ${label}, share of the attention vote ${percent(neighbor.share)}; ${heads}`
}

function highestWeight(data) {
  return data.neighbors.reduce((peak, neighbor) => Math.max(peak, ...neighbor.weights), 1e-9)
}
