// Another query: by its id, or by what is wanted of it.

function openPicker(view) {
  const place = view.root.querySelector(".picker")
  view.picker = place
  const [input, list, finders] = place.children
  input.onkeydown = (event) => {
    if (event.key === "Enter") pick(view, input)
  }
  input.oninput = (event) => {
    if (event.inputType !== "insertText" && isListed(list, input.value)) pick(view, input)
  }
  finders.onclick = (event) => {
    if (event.target.value) seek(view, { trail: [], finder: event.target.value })
  }
}

// Chosen from the list, or pasted; who types digits/test/1 may want digits/test/12.
function isListed(list, id) {
  return [...list.children].some(({ value }) => value === id)
}

function pick(view, input) {
  const id = input.value.trim()
  input.value = ""
  if (id) seek(view, { trail: [], asked: id })
}

// What it offers is new only with new data.
function drawPicker(view) {
  const [, list, finders, words] = view.picker.children
  const { picker } = view.given
  const options = fit(list, picker.ids.length, () => make("option"))
  picker.ids.forEach((id, i) => set(options[i], "value", id))
  const buttons = fit(finders, picker.finders.length, () => make("button"))
  picker.finders.forEach((finder, i) => {
    say(buttons[i], finder)
    buttons[i].value = finder
  })
  say(words, picker.words)
}
