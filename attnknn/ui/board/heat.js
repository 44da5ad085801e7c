// Heads × neighbors: one picture, a row per head, a column per neighbor, and "none of these" at the end. Its numbers
// are a table for those who cannot see it, written once things stand still.

const [HEADER, ROW, GAP] = [17, 22, 2] // pixels
const NONE = 30 // the least width of "none of these"
const HATCH = 7.8 // from line to line

function drawHeat(view) {
  const { data, heat } = view
  const rows = fit(view.heatRows, data.heads.length + 1, makeHeatRow)
  nameColumns(rows[0])
  data.heads.forEach((head, h) => drawHeadFacts(rows[h + 1], head, data.neighbors.length))
  const picture = (view.heatPicture ??= openPicture(view))
  picture.style.gridRowEnd = `span ${data.heads.length + 1}`
  picture.style.minWidth = `${data.neighbors.length * 7 + NONE}px`
  say(view.root.querySelector(".peak"), percent(data.peak))
  paintHeat(view)
  later(heat, () => writeTable(rows, data))
}

function setRole(element, role) {
  element.setAttribute("role", role)
  return element
}

function makeHeatRow(r) {
  const [name, cell] = r ? ["rowheader", "cell"] : ["columnheader", "columnheader"]
  return setRole(make("div", "row", setRole(make("span", "name"), name), setRole(make("span", "effective"), cell), make("span", "cells")), "row")
}

function nameColumns(row) {
  say(row.children[0], "head")
  say(row.children[1], "effective")
  set(row.children[1], "title", "effective neighbors: exp(entropy of the head's weights)")
}

function drawHeadFacts(row, head, k) {
  const [name, effective] = row.children
  const [button] = fit(name, 1, () => make("button", "mute"))
  say(button, head.name)
  set(button, "data-mute", head.name)
  set(button, "aria-pressed", head.isMuted)
  set(button, "title", `${head.isMuted ? "muted; click to hear it again" : "click to mute"}: ${head.why}`)
  row.classList.toggle("muted", head.isMuted)
  say(effective, head.effective.toFixed(1))
  hint(effective, () => `${head.effective.toFixed(2)} effective neighbors of ${k}`)
}

function writeTable(rows, { heads, neighbors }) {
  const whole = (share) => String(Math.round(100 * share))
  writeRow(rows[0], "columnheader", "rank", [...neighbors.map(({ rank }) => String(rank)), "none"])
  heads.forEach(({ sink }, h) => writeRow(rows[h + 1], "cell", "cell", [...neighbors.map(({ weights }) => whole(weights[h])), whole(sink)]))
}

function writeRow(row, role, kind, words) {
  const cells = fit(row.lastElementChild, words.length, () => setRole(make("span"), role))
  words.forEach((word, i) => {
    say(cells[i], word)
    set(cells[i], "class", i < words.length - 1 ? kind : "sink")
  })
}

// ---- The picture

function openPicture(view) {
  const picture = make("div", "picture", make("canvas"), view.heatColumn)
  picture.ariaHidden = "true"
  view.heatColumn.append(make("b", "rank hot"))
  view.heat.append(picture)
  view.observer.observe(picture) // its width is known before it is shown
  document.fonts.ready.then(() => paintHeat(view)) // its words, as those around it
  pointInto(picture, view, (x, y) => cellAt(view, x, y))
  return picture
}

// Where columns start and how wide they are, in pixels; the last is "none of these".
function columnsOf({ data, heatWidth }) {
  const k = data.neighbors.length
  const gap = k > 32 ? 1 : GAP
  const none = Math.max(NONE, (heatWidth - gap * k) / (k + 1))
  const step = (heatWidth - none) / k
  return Array.from({ length: k + 1 }, (_, j) => ({ left: j * step, width: j < k ? step - gap : none }))
}

const topOf = (h) => HEADER + GAP + h * (ROW + GAP)

function paintHeat(view) {
  const { data, heatWidth, heatPicture, paints } = view
  if (!heatWidth) return
  const columns = columnsOf(view)
  paint(heatPicture.firstChild, { width: heatWidth, height: topOf(data.heads.length) - GAP, font: paints.font }, (brush) => {
    paintRanks(brush, view, columns)
    data.heads.forEach((head, h) => {
      brush.globalAlpha = head.isMuted ? 0.3 : 1
      data.neighbors.forEach(({ weights }, j) => paintCell(brush, columns[j], topOf(h), weights[h], data.peak, paints))
      paintSink(brush, columns.at(-1), topOf(h), head.sink, paints)
    })
    brush.globalAlpha = 1
  })
}

// All ranks where there is room, or else every eighth.
function paintRanks(brush, { data, paints }, columns) {
  data.neighbors.forEach(({ rank }, j) => {
    if (columns[j].width >= 15 || (rank % 8 === 0 && j < data.neighbors.length - 3)) paintWord(brush, rank, columns[j], HEADER / 2, paints.soft)
  })
  paintWord(brush, "none", columns.at(-1), HEADER / 2, paints.soft)
}

// Its weight in color, and as a number where there is room.
function paintCell(brush, column, top, weight, peak, { ramp }) {
  const { color, text } = ramp[Math.round((LEVELS * weight) / peak)]
  brush.fillStyle = color
  brush.beginPath()
  brush.roundRect(column.left, top, column.width, ROW, 3)
  brush.fill()
  if (column.width >= 23) paintWord(brush, Math.round(100 * weight), column, top + ROW / 2, text)
}

// Hatched, as "none of these" is everywhere on the board.
function paintSink(brush, { left, width }, top, sink, { line, hatch, ink }) {
  brush.save()
  brush.beginPath()
  brush.roundRect(left + 0.5, top + 0.5, width - 1, ROW - 1, 3)
  brush.strokeStyle = line
  brush.stroke()
  brush.clip()
  brush.beginPath()
  for (let x = left - ROW; x < left + width; x += HATCH) brush.moveTo(x, top + ROW), brush.lineTo(x + ROW, top)
  Object.assign(brush, { strokeStyle: hatch, lineWidth: 1.5 })
  brush.stroke()
  brush.restore()
  paintWord(brush, Math.round(100 * sink), { left, width }, top + ROW / 2, ink)
}

function paintWord(brush, word, { left, width }, middle, color) {
  brush.fillStyle = color
  brush.fillText(word, left + width / 2, middle)
}

function cellAt(view, x, y) {
  const { heads, neighbors } = view.data
  const j = columnsOf(view).findLastIndex(({ left }) => left <= x)
  const head = heads[Math.floor((y - topOf(0)) / (ROW + GAP))]
  const neighbor = neighbors[j]
  if (neighbor) return { j, words: head ? `${head.name} gives neighbor ${neighbor.rank} (${neighbor.observed_label}) ${percent(neighbor.weights[heads.indexOf(head)])}` : "" }
  if (head) return { words: `none of these: ${percent(head.sink)} of ${head.name}` }
  return { words: "none of these: weight that goes to every class in its share of the bank's observed labels" }
}

function markHeat(view, j) {
  const { heatColumn, heatWidth } = view
  heatColumn.hidden = j < 0 || !heatWidth
  if (heatColumn.hidden) return
  const { left, width } = columnsOf(view)[j]
  heatColumn.style.left = `${left - 2}px`
  heatColumn.style.width = `${width + 4}px`
  say(heatColumn.firstChild, String(view.data.neighbors[j].rank))
}
