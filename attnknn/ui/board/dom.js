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

// Grow or shrink an element to `count` children. Those that go are kept: while a slider is dragged they come back.
function fit(parent, count, create) {
  const spare = (parent.spare ??= [])
  while (parent.childElementCount > count) {
    spare.push(parent.lastElementChild)
    parent.lastElementChild.remove()
  }
  while (parent.childElementCount < count) parent.append(spare.pop() ?? create(parent.childElementCount))
  return parent.children
}

// Writing into the text that is there already costs the browser less than another text.
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

// A picture of many neighbors says whom the pointer is on: `find(x, y)` → { j, words }, in pixels from its corner.
function pointInto(picture, view, find) {
  picture.onpointerover = picture.onpointermove = (event) => {
    const { left, top } = picture.getBoundingClientRect()
    const { j, words } = find(event.clientX - left, event.clientY - top)
    set(picture, "title", words)
    if (j === undefined) picture.removeAttribute("data-j")
    else set(picture, "data-j", j)
    if (j !== undefined && j !== view.hot) mark(view, j)
  }
}

// A canvas that is as fine as the screen, measured in pixels of the page. What is painted is shown once it is done:
// words that are painted straight into the page make the browser lay it out.
function paint(canvas, { width, height, font }, act) {
  const fine = devicePixelRatio
  const shape = [width, height, fine, font].join()
  if (canvas.shape !== shape) {
    Object.assign(canvas, { shape, width: Math.round(width * fine), height: Math.round(height * fine) })
    Object.assign(canvas.style, { width: `${width}px`, height: `${height}px` })
    canvas.draft = new OffscreenCanvas(canvas.width, canvas.height)
    const brush = canvas.draft.getContext("2d")
    Object.assign(brush, { font, textAlign: "center", textBaseline: "middle" })
    brush.scale(fine, fine)
  }
  act(canvas.draft.getContext("2d"))
  canvas.getContext("bitmaprenderer").transferFromImageBitmap(canvas.draft.transferToImageBitmap())
}

// What is said to those who cannot see: once things stand still, not in every frame of a drag.
const unsaid = new Map()

function later(element, act) {
  unsaid.set(element, act)
}

function describe(element, words) {
  later(element, () => set(element, "aria-label", words()))
}

function sayUnsaid() {
  for (const act of unsaid.values()) act()
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
