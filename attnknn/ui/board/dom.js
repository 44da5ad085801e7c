// Make elements once; change them only when what they say has changed.

const SVG = "http://www.w3.org/2000/svg"

function make(tag, className = "", ...children) {
  const element = document.createElement(tag)
  if (className) element.className = className
  element.append(...children)
  return element
}

function makeSvg(tag, className) {
  const element = document.createElementNS(SVG, tag)
  element.setAttribute("class", className)
  return element
}

// Grow or shrink an element to `count` children.
function fit(parent, count, create) {
  while (parent.childElementCount > count) parent.lastElementChild.remove()
  while (parent.childElementCount < count) parent.append(create(parent.childElementCount))
  return parent.children
}

function say(element, text) {
  if (element.textContent !== text) element.textContent = text
}

function set(element, name, value) {
  const text = String(value)
  if (element.getAttribute(name) !== text) element.setAttribute(name, text)
}

// What the pointer is told where it rests; thousands of these would take longer to write than a frame has.
function hint(element, words) {
  element.words = words
}

function tellHints(event) {
  for (let part = event.target; part && part !== event.currentTarget; part = part.parentElement) if (part.words) set(part, "title", part.words())
}

// What is said to those who cannot see: once things stand still, not in every frame of a drag.
const unsaid = new Map()

function describe(element, words) {
  unsaid.set(element, words)
}

function sayUnsaid() {
  for (const [element, words] of unsaid) set(element, "aria-label", words())
  unsaid.clear()
}

// A sentence of plain and **strong** parts: sentence(p, "never ", ["44 %"], " · ").
function sentence(element, ...parts) {
  element.replaceChildren(...parts.map((part) => (Array.isArray(part) ? make("b", "", ...part) : part)))
}

function paintChip(chip, data, label, isFlipped = false) {
  say(chip, label)
  set(chip, "data-class", data.classes.indexOf(label))
  set(chip, "title", label)
  chip.classList.toggle("flipped", isFlipped)
}

function makeMark() {
  return make("span", "mark", make("span", "glyph"), make("span", "word unseen"))
}

function paintMark(mark, isCorrect) {
  mark.hidden = isCorrect == null
  mark.classList.toggle("right", Boolean(isCorrect))
  say(mark.firstChild, isCorrect ? "✓" : "✗")
  mark.firstChild.ariaHidden = "true"
  say(mark.lastChild, isCorrect ? "right" : "wrong")
}

function placeTile(element, tile, atlas) {
  const along = (place, n) => (n > 1 ? (100 * place) / (n - 1) : 0)
  const x = along(tile % atlas.columns, atlas.columns)
  const y = along(Math.floor(tile / atlas.columns), atlas.rows)
  element.style.backgroundPosition = `${x}% ${y}%`
}

const NO_BREAK = "\u00a0"

function percent(share) {
  if (share > 0 && share < 0.005) return `<1${NO_BREAK}%`
  return `${Math.round(100 * share)}${NO_BREAK}%`
}

function precise(share) {
  if (share > 0 && share < 0.0005) return `<0.1${NO_BREAK}%`
  return `${(100 * share).toFixed(1)}${NO_BREAK}%`
}

function signed(number, digits = 2) {
  const size = Math.abs(number).toFixed(digits)
  return Number(size) === 0 ? size : `${number < 0 ? "−" : "+"}${size}`
}

function counted(n, one, many = `${one}s`) {
  return `${n}${NO_BREAK}${n === 1 ? one : many}`
}

function clamp(number, low, high) {
  return Math.min(high, Math.max(low, number))
}
