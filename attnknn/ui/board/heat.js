// Heads × neighbors: a row per head, a column per neighbor, and "none of these" at the end.

function drawHeat(view) {
  const { data, heat } = view
  const k = data.neighbors.length
  const peak = highestWeight(data)
  heat.style.setProperty("--k", k)
  set(heat, "data-size", k > 32 ? "many" : "few")
  sizeHeat(view)
  const hasRoom = heat.dataset.room === "numbers" // else they are said to those who cannot see
  const rows = fit(view.heatRows, data.heads.length + 1, () => setRole(make("div", "row"), "row"))
  drawHeatHeader(rows[0], data.neighbors)
  data.heads.forEach((head, h) => drawHeatRow(rows[h + 1], head, h, data.neighbors, peak, hasRoom))
  say(view.root.querySelector(".peak"), percent(peak))
}

function setRole(element, role) {
  element.setAttribute("role", role)
  return element
}

function drawHeatHeader(row, neighbors) {
  const cells = fit(row, neighbors.length + 3, () => setRole(make("span", "rank"), "columnheader"))
  say(cells[0], "head")
  say(cells[1], "effective")
  set(cells[1], "title", "effective neighbors: exp(entropy of the head's weights)")
  neighbors.forEach((neighbor, j) => {
    say(cells[j + 2], String(neighbor.rank))
    set(cells[j + 2], "data-j", j)
    cells[j + 2].classList.toggle("milestone", neighbor.rank % 8 === 0 && j < neighbors.length - 3)
  })
  const last = cells[neighbors.length + 2]
  last.removeAttribute("data-j")
  say(last, "none")
  set(last, "title", "none of these: weight that goes to every class in its share of the bank's observed labels")
  for (let i = 0; i < cells.length; i++) set(cells[i], "data-part", headerPart(i, cells.length))
}

function headerPart(i, n) {
  return i === 0 ? "name" : i === 1 ? "effective" : i === n - 1 ? "none" : "rank"
}

function drawHeatRow(row, head, h, neighbors, peak, hasRoom) {
  const k = neighbors.length
  const cells = fit(row, k + 3, (i) => setRole(make("span", "cell"), i ? "cell" : "rowheader"))
  drawHeadFacts(cells, head, k)
  neighbors.forEach((neighbor, j) => {
    const cell = cells[j + 2]
    const weight = neighbor.weights[h]
    set(cell, "data-j", j)
    set(cell, "class", `cell level-${Math.round((LEVELS * weight) / peak)}`)
    say(cell, hasRoom ? String(Math.round(100 * weight)) : "")
    describe(cell, () => String(Math.round(100 * weight)))
    hint(cell, () => `${head.name} gives neighbor ${neighbor.rank} (${neighbor.observed_label}) ${percent(weight)}`)
  })
}

function drawHeadFacts(cells, head, k) {
  cells[0].className = "name"
  cells[1].className = "effective"
  const [button] = fit(cells[0], 1, () => make("button", "mute"))
  say(button, head.name)
  set(button, "data-mute", head.name)
  set(button, "aria-pressed", head.isMuted)
  set(button, "title", `${head.isMuted ? "muted; click to hear it again" : "click to mute"}: ${head.why}`)
  cells[0].parentElement.classList.toggle("muted", head.isMuted)
  say(cells[1], head.effective.toFixed(1))
  hint(cells[1], () => `${head.effective.toFixed(2)} effective neighbors of ${k}`)
  const sink = cells[k + 2]
  sink.className = "sink"
  sink.removeAttribute("data-j")
  say(sink, String(Math.round(100 * head.sink)))
  hint(sink, () => `none of these: ${percent(head.sink)} of ${head.name}`)
}

// Numbers in the cells and all ranks above them, where there is room.
function sizeHeat(view) {
  const columns = view.data.neighbors.length + 1
  const width = (view.heatWidth - 130) / columns
  set(view.heat, "data-room", width >= 25 ? "numbers" : width >= 17 ? "ranks" : "colors")
}

function markHeat(view, j) {
  const cells = view.heatRows.firstChild?.children ?? []
  view.heatColumn.hidden = j < 0
  view.heatColumn.style.gridColumn = `${j + 3} / ${j + 4}`
  for (const cell of cells) cell.classList.toggle("hot", cell.dataset.j === String(j))
}
