// One card per neighbor: who it is, what its label says, and how much each head listened.

const MOST_AVERAGES = 12

function makeCard() {
  const card = make(
    "div",
    "card",
    make("div", "top", make("b", "rank"), make("span", "distance")),
    make("div", "thumb tile"),
    make("dl", "values"),
    make("div", "label", make("span", "chip"), make("span", "was", make("span", "word", "was "), make("s"))),
    make("div", "bottom", makeBars(), make("span", "share")),
  )
  set(card, "role", "option")
  return card
}

function drawCards(view) {
  const { data, root } = view
  const cards = fit(view.cards, data.neighbors.length, makeCard)
  data.neighbors.forEach((neighbor, j) => drawCard(cards[j], neighbor, j, data))
  const n = data.neighbors.length
  say(view.cards.parentElement.querySelector(".count"), `${counted(n, "neighbor")} · ${counted(data.heads.length, "head")}`)
  set(view.cards, "data-size", n > 32 ? "many" : "few")
  view.cards.style.setProperty("--values", data.neighbors[0]?.values?.length ?? 0)
  view.cards.style.setProperty("--heads", data.heads.length)
}

function drawCard(card, neighbor, j, data) {
  const [top, thumb, values, label, bottom] = card.children
  set(card, "data-j", j)
  describe(card, () => describeNeighbor(neighbor, data))
  say(top.firstChild, String(neighbor.rank))
  say(top.lastChild, neighbor.distance.toFixed(2))
  hint(top.lastChild, () => `distance ${neighbor.distance.toFixed(4)}, on the unit sphere`)
  thumb.hidden = neighbor.tile == null || !data.atlas
  if (!thumb.hidden) placeTile(thumb, neighbor.tile, data.atlas)
  values.hidden = !neighbor.values
  drawValues(values, neighbor.values ?? [])
  paintChip(label.firstChild, data, neighbor.observed_label, neighbor.is_flipped)
  label.classList.toggle("hand", neighbor.is_by_hand)
  label.lastChild.hidden = !neighbor.is_flipped
  say(label.lastChild.lastChild, neighbor.clean_label)
  say(bottom.lastChild, percent(neighbor.share))
}

// Two paths for all bars of a card, those that stand out and the others: elements would be hundreds.
function makeBars() {
  const bars = makeSvg("svg", "bars")
  set(bars, "preserveAspectRatio", "none")
  set(bars, "aria-hidden", "true")
  bars.append(makeSvg("path", ""), makeSvg("path", "dim"))
  return bars
}

// Length is the weight, relative to the largest weight on the board. Heads that are muted or not picked are dim.
function drawBars(view) {
  const { data, head: picked } = view
  const isDim = data.heads.map(({ isMuted }, h) => isMuted || (picked !== ALL && picked !== h))
  const gap = data.heads.length > 6 ? 0 : 0.14
  data.neighbors.forEach(({ weights }, j) => {
    const bars = view.cards.children[j].lastElementChild.firstElementChild
    const paths = ["", ""]
    weights.forEach((weight, h) => (paths[Number(isDim[h])] += `M${h + gap / 2} 24v${-Math.max(1, (24 * weight) / data.peak).toFixed(2)}h${1 - gap}V24z`))
    set(bars, "viewBox", `0 0 ${weights.length} 24`)
    paths.forEach((path, i) => set(bars.children[i], "d", path))
    hint(bars.parentElement, () => weights.map((weight, h) => `${data.heads[h].name}: ${percent(weight)}`).join("\n"))
  })
}

function describeNeighbor(neighbor, data) {
  const label = neighbor.is_flipped
    ? `label ${neighbor.observed_label}, flipped by ${neighbor.is_by_hand ? "hand" : "noise"}, was ${neighbor.clean_label}`
    : `label ${neighbor.observed_label}`
  const heads = neighbor.weights.map((weight, h) => `${data.heads[h].name} ${percent(weight)}`).join(", ")
  return `Neighbor ${neighbor.rank}, ${neighbor.id}, distance ${neighbor.distance.toFixed(2)}, ${label}, share of the attention vote ${percent(neighbor.share)}; ${heads}`
}

// The class averages, where they sit at the table: those with most to say, where there are many.
function drawAverages(view) {
  const { data, root } = view
  const shares = data.votes[RACING - 1].averages
  const place = root.querySelector(".averages")
  place.hidden = !shares
  if (!shares) return
  const order = data.classes.map((_, c) => c)
  if (order.length > MOST_AVERAGES) order.sort((a, b) => shares[b] - shares[a]).splice(MOST_AVERAGES)
  const cards = fit(place.lastElementChild, order.length, () => setRole(make("div", "mean", make("div", "tile"), make("span", "chip"), make("span", "share")), "img"))
  order.forEach((c, i) => {
    const [tile, chip, share] = cards[i].children
    tile.hidden = !data.atlas
    if (data.atlas) placeTile(tile, averageTile(data, c), data.atlas)
    paintChip(chip, data, data.classes[c])
    say(share, percent(shares[c]))
    describe(cards[i], () => `Average of ${data.classes[c]}: ${percent(shares[c])} of the vote`)
  })
}

// Mean pictures lie in the atlas behind the query and all its neighbors.
function averageTile(data, c) {
  return data.atlas ? 1 + data.live.ids.length + c : null
}
