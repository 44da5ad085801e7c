// What would change a vote's mind: the smallest set of label flips, found when asked for, shown as cards.

function openMind(view) {
  const place = view.root.querySelector(".mind")
  const [vote, find, apply] = place.querySelectorAll("select, .find, .apply")
  find.onclick = () => {
    view.mind = { ...smallestFlips(view.live, view.setting, vote.value), vote: vote.value, key: mindKey(view) }
    drawMind(view)
  }
  vote.onchange = () => forgetMind(view)
  apply.onclick = () => change(view, { flips: { ...view.setting.flips, ...Object.fromEntries(view.mind.found.map(({ id, to }) => [id, to])) } })
}

// What was found holds for these settings alone.
const mindKey = (view) => JSON.stringify([view.given.query.id, { ...view.setting, neighbor: null, averages: null }])

function forgetMind(view) {
  view.mind = null
  drawMind(view)
}

function drawMind(view) {
  const { data, root } = view
  const place = root.querySelector(".mind")
  const [vote, , apply] = place.querySelectorAll("select, .find, .apply")
  if (!vote.childElementCount) {
    vote.replaceChildren(...view.given.votes.filter(({ name }) => name !== "baseline").map(({ name, title }) => new Option(title, name)))
    vote.value = "attention"
  }
  if (view.mind && view.mind.key !== mindKey(view)) view.mind = null
  const found = view.mind?.found ?? []
  say(place.querySelector(".found"), view.mind ? describeMind(view) : "")
  apply.hidden = !found.length
  const cards = fit(place.querySelector(".swaps"), found.length, () => make("div", "swap", make("div", "tile"), make("b", "rank"), make("span", "chip"), make("span", "", "→"), make("span", "chip")))
  found.forEach(({ id, from, to }, i) => {
    const [tile, rank, before, , after] = cards[i].children
    const neighbor = data.neighbors.find((one) => one.id === id)
    tile.hidden = neighbor.tile == null
    if (neighbor.tile != null) placeTile(tile, neighbor.tile, data.atlas)
    say(rank, String(neighbor.rank))
    paintChip(before, data, data.classes[from])
    paintChip(after, data, data.classes[to])
  })
}

function describeMind({ data, mind }) {
  const { title } = data.votes.find(({ name }) => name === mind.vote)
  const { found, at_least: least, is_exact: isExact } = mind
  const k = data.neighbors.length
  if (!found.length) return isExact ? `No flips of these ${counted(k, "label")} change what ${title} answers.` : `Found none; fewer than ${counted(least, "flip")} cannot change what ${title} answers.`
  const flips = `${counted(found.length, "flipped label")} ${found.length === 1 ? "makes" : "make"} ${title} answer “${data.classes[mind.predicted]}”`
  return isExact ? `${flips}; fewer cannot.` : `${flips}; whether ${least === found.length - 1 ? counted(least, "flip") : `${least} to ${found.length - 1} flips`} could is not known.`
}
