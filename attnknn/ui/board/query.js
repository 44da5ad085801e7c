// The query: what was asked about, what it truly is, and what each vote answers.

function drawQuery(view) {
  const { data, root } = view
  const { query } = data
  const portrait = root.querySelector(".portrait")
  portrait.hidden = data.kind !== "image" || !data.atlas
  if (!portrait.hidden) placeTile(portrait, query.tile, data.atlas)
  describe(portrait, () => `The query ${query.id}, true label ${query.label ?? "unknown"}`)
  const facts = root.querySelector(".facts")
  facts.hidden = !query.values
  drawValues(facts, query.values ?? [])
  say(root.querySelector(".query .id"), query.id)
  drawTruth(root.querySelector(".truth"), data)
  drawAnswers(root.querySelector(".answers"), data)
  drawKey(root, data)
}

// The true label; of a picture that nobody has labelled, that it is shown as the embedder sees it.
function drawTruth(line, data) {
  const { label } = data.query
  const [name, chip] = line.children
  say(name, label == null ? "label unknown; shown as the embedder sees it" : "true label")
  chip.hidden = label == null
  paintChip(chip, data, label ?? "")
}

// Feature values as name, value, name, value, ...
function drawValues(list, values) {
  const rows = fit(list, values.length, () => make("div", "", make("dt"), make("dd")))
  values.forEach(([name, value], i) => {
    say(rows[i].firstChild, name)
    set(rows[i].firstChild, "title", name)
    say(rows[i].lastChild, value)
  })
}

function drawAnswers(list, data) {
  const rows = fit(list, data.votes.length, () =>
    make("li", "answer", make("i", "dot"), make("span", "name"), make("span", "number"), make("span", "chip"), makeMark()),
  )
  data.votes.forEach((vote, i) => {
    const [dot, name, number, chip, mark] = rows[i].children
    set(dot, "data-vote", vote.name)
    say(name, vote.title)
    set(name, "title", vote.title)
    say(number, percent(vote.sure))
    paintChip(chip, data, vote.predicted)
    paintMark(mark, vote.is_correct)
  })
}

function chance(data, vote, label) {
  return vote.probabilities[data.classes.indexOf(label)] ?? 0
}

function drawKey(root, data) {
  const jobs = fit(root.querySelector(".jobs"), data.heads.length, () => make("div", "", make("dt"), make("dd")))
  data.heads.forEach((head, h) => {
    say(jobs[h].firstChild, head.name)
    say(jobs[h].lastChild, head.why)
  })
  say(root.querySelector(".highest"), percent(data.peak))
}
