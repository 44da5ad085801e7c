// The votes: stacked bars of classes, cut where one neighbor's share ends and the next one's begins.

const RACING = 3
const [NOBODY_IN_IT, SINK, AVERAGE] = [-1, -2, -3] // pieces that are no neighbor's

function makeRace(view) {
  return make(
    "div",
    "race",
    make("div", "title", make("i", "dot"), make("b", "name"), make("span", "number"), make("span", "chip"), makeMark()),
    make("div", "track", makeBar(view), make("i", "pin")),
    make("div", "groups"),
    make("p", "caption"),
  )
}

function makeBar(view) {
  const cuts = makeSvg("svg", "cuts")
  set(cuts, "viewBox", "0 0 100 1")
  set(cuts, "preserveAspectRatio", "none")
  cuts.append(makeSvg("path", ""))
  const bar = make("div", "bar", cuts, make("span", "faces"), make("i", "spot"))
  pointInto(bar, view, (x) => pieceAt(bar.pieces, x / view.raceWidth, view.data))
  return bar
}

function drawVotes(view) {
  const { data, root } = view
  const racing = data.votes.slice(0, RACING)
  const races = fit(root.querySelector(".races"), racing.length, () => makeRace(view))
  racing.forEach((vote, i) => drawRace(races[i], vote, data, view.raceWidth))
  drawOthers(root.querySelector(".others"), data.votes.slice(RACING), data)
  say(root.querySelector(".races").parentElement.querySelector(".count"), `${counted(data.neighbors.length, "neighbor")} · ${counted(data.classes.length, "class", "classes")}`)
}

function drawRace(race, vote, data, width) {
  const [title, track, groups, caption] = race.children
  const [dot, name, number, chip, mark] = title.children
  set(dot, "data-vote", vote.name)
  say(name, vote.title)
  say(number, percent(chance(data, vote, vote.predicted)))
  paintChip(chip, data, vote.predicted)
  paintMark(mark, vote.is_correct)
  mark.lastChild.classList.remove("unseen")
  const shares = classShares(vote, data)
  drawBar(track.firstChild, piecesOf(vote, shares), data, width)
  drawGroups(groups, vote, shares, data, width)
  set(track, "role", "img")
  describe(track, () => describeVote(vote, shares, data))
  drawCaption(caption, vote, data)
}

// Classes in the order of the bar: [{c, share, members}], most probable first, each with its
// neighbors, heaviest first.
function classShares(vote, data) {
  const groups = data.classes.map((_, c) => ({ c, share: 0, members: [] }))
  data.neighbors.forEach((neighbor, j) => {
    const group = groups[data.classes.indexOf(neighbor.observed_label)]
    if (!group || !vote.weights) return
    group.members.push(j)
    group.share += vote.weights[j]
  })
  vote.averages?.forEach((share, c) => (groups[c].share += share))
  if (!vote.weights) groups.forEach((group) => (group.share = vote.probabilities[group.c]))
  for (const group of groups) group.members.sort((a, b) => vote.weights[b] - vote.weights[a] || a - b)
  return groups
    .filter((group) => group.share > 0 || group.members.length)
    .sort((a, b) => vote.probabilities[b.c] - vote.probabilities[a.c] || a.c - b.c)
}

// What a bar is made of, from left to right: {c, j, share, start}.
function piecesOf(vote, shares) {
  const pieces = shares.flatMap(({ c, share, members }) => {
    if (!vote.weights) return [{ c, j: NOBODY_IN_IT, share }]
    const average = vote.averages ? [{ c, j: AVERAGE, share: vote.averages[c] }] : []
    return [...members.map((j) => ({ c, j, share: vote.weights[j] })), ...average]
  })
  if (vote.sink > 0) pieces.push({ c: -1, j: SINK, share: vote.sink })
  let start = 0
  for (const piece of pieces) {
    piece.start = start
    start += piece.share
  }
  return pieces
}

// One path cuts all pieces: an element for each would be hundreds. Colors are those of the groups below.
function drawBar(bar, pieces, data, width) {
  const [cuts, faces] = bar.children
  bar.pieces = pieces
  set(cuts.firstChild, "d", pieces.map(({ start, share }) => `M${(100 * (start + share)).toFixed(3)} 0v1`).join(""))
  const wide = pieces.filter((piece) => sizeOfFace(piece, width))
  const drawn = fit(faces, wide.length, () => make("i"))
  wide.forEach((piece, i) => drawFace(drawn[i], piece, sizeOfFace(piece, width), data))
}

function pieceAt(pieces, at, data) {
  const piece = pieces.findLast(({ start }) => start <= at) ?? pieces[0]
  return { j: piece.j >= 0 ? piece.j : undefined, words: describePiece(data, piece) }
}

function describePiece(data, { c, j, share }) {
  const neighbor = data.neighbors[j]
  if (neighbor) return `neighbor ${neighbor.rank}, label ${neighbor.observed_label}: ${percent(share)}`
  const whose = { [SINK]: "none of these", [AVERAGE]: `average of ${data.classes[c]}` }
  return `${whose[j] ?? data.classes[c]}: ${percent(share)}`
}

// Pixels of the face of a neighbor or of an average; none where its piece is too narrow.
function sizeOfFace({ j, share }, width) {
  const size = Math.min(24, Math.floor(share * width) - 3)
  return (j >= 0 || j === AVERAGE) && size >= 14 ? size : 0
}

// A thumbnail, or the rank where there is none.
function drawFace(face, { c, j, start, share }, size, data) {
  const neighbor = data.neighbors[j]
  const tile = j === AVERAGE ? averageTile(data, c) : neighbor.tile
  const isImage = Boolean(data.atlas && tile != null)
  set(face, "class", isImage ? "face tile" : "face")
  set(face, "data-class", isImage ? "" : c)
  face.style.left = `${100 * (start + share / 2)}%`
  face.style.width = face.style.height = isImage ? `${size}px` : ""
  say(face, isImage ? "" : neighbor ? String(neighbor.rank) : "∅")
  if (isImage) placeTile(face, tile, data.atlas)
}

function drawGroups(strip, vote, shares, data, width) {
  const groups = fit(strip, shares.length + 1, () => make("span", "group"))
  shares.forEach(({ c, share, members }, i) => {
    groups[i].style.width = `${100 * share}%`
    set(groups[i], "data-class", c)
    hint(groups[i], () => `${data.classes[c]}: ${counted(members.length, "neighbor")}, ${percent(share)}`)
    say(groups[i], fitting([`${data.classes[c]} · ${percent(share)}`, data.classes[c]], share * width))
    groups[i].classList.remove("sink")
  })
  const none = groups[shares.length]
  none.classList.add("sink")
  none.removeAttribute("data-class")
  none.style.width = `${100 * vote.sink}%`
  hint(none, () => `none of these: ${percent(vote.sink)}, spread over all classes`)
  say(none, fitting([percent(vote.sink)], vote.sink * width))
}

// The first of some texts that fits into a width in pixels; none where none does.
function fitting(texts, pixels) {
  return texts.find((text) => 7.3 * text.length + 8 <= pixels) ?? ""
}

function drawCaption(caption, vote, data) {
  const second = runnerUp(vote, data)
  const margin = Math.round(100 * (chance(data, vote, vote.predicted) - second.probability))
  const effective = vote.effective == null ? "" : ` · ${vote.effective.toFixed(1)} effective neighbors`
  say(caption, `${counted(margin, "point")} ahead of “${second.label}”${effective}`)
  hint(caption, () => caption.textContent)
}

function runnerUp(vote, data) {
  let best = { label: "", probability: -1 }
  data.classes.forEach((label, c) => {
    if (label !== vote.predicted && vote.probabilities[c] > best.probability) best = { label, probability: vote.probabilities[c] }
  })
  return best
}

function drawOthers(list, votes, data) {
  list.hidden = !votes.length
  const rows = fit(list, votes.length, () =>
    make("li", "other", make("i", "dot"), make("span", "name"), make("span", "mini"), make("span", "number"), make("span", "chip"), makeMark()),
  )
  votes.forEach((vote, i) => {
    const [dot, name, mini, number, chip, mark] = rows[i].children
    set(dot, "data-vote", vote.name)
    say(name, vote.title)
    set(name, "title", vote.title)
    drawMini(mini, vote, data)
    say(number, percent(chance(data, vote, vote.predicted)))
    paintChip(chip, data, vote.predicted)
    paintMark(mark, vote.is_correct)
  })
}

function drawMini(mini, vote, data) {
  const order = data.classes.map((_, c) => c).sort((a, b) => vote.probabilities[b] - vote.probabilities[a] || a - b)
  const parts = fit(mini, order.length, () => make("i"))
  set(mini, "role", "img")
  describe(mini, () => describeProbabilities(vote, data))
  hint(mini, () => describeProbabilities(vote, data))
  order.forEach((c, i) => {
    parts[i].style.width = `${100 * vote.probabilities[c]}%`
    set(parts[i], "data-class", c)
  })
}

function describeProbabilities(vote, data) {
  const order = data.classes.map((_, c) => c).sort((a, b) => vote.probabilities[b] - vote.probabilities[a])
  return order.slice(0, 3).map((c) => `${data.classes[c]} ${percent(vote.probabilities[c])}`).join(", ")
}

function describeVote(vote, shares, data) {
  const groups = shares.map(({ c, share, members }) => `${data.classes[c]} ${percent(share)} from ${counted(members.length, "neighbor")}`)
  const sink = vote.sink > 0 ? `, none of these ${percent(vote.sink)}` : ""
  const mark = vote.is_correct == null ? "" : vote.is_correct ? ", right" : ", wrong"
  return `${vote.title} answers ${vote.predicted}${mark}, with ${percent(chance(data, vote, vote.predicted))}: ${groups.join(", ")}${sink}`
}

function markVotes(view, j) {
  for (const race of view.root.querySelector(".races").children) {
    const [bar, pin] = race.children[1].children
    const spot = bar.lastElementChild
    const piece = bar.pieces.find((one) => one.j === j)
    spot.hidden = pin.hidden = !piece
    if (!piece) continue
    spot.style.left = `${100 * piece.start}%`
    spot.style.width = `${100 * piece.share}%`
    pin.style.left = `${100 * (piece.start + piece.share / 2)}%`
  }
}
