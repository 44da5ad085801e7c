// The strip: draws the look that somebody chose, or the latest one.

const HEX = /^#[0-9a-f]{6}$/i
const PNG = /^data:image\/png;base64,[A-Za-z0-9+/=]+$/
const strips = new WeakMap()

export default function ({ data, parentElement }) {
  const root = parentElement.querySelector(".strip")
  if (!root || !data) return
  if (!strips.has(root)) strips.set(root, openStrip(root))
  const view = strips.get(root)
  view.data = JSON.parse(new TextDecoder().decode(data))
  draw(view)
}

function openStrip(root) {
  const find = (name) => root.querySelector(name)
  const view = { root, items: find(".items"), range: find("input"), when: find(".when") }
  Object.assign(view, { sentence: find(".sentence"), follow: find(".follow"), data: null, epoch: null })
  view.range.oninput = () => {
    const place = Number(view.range.value)
    const looks = view.data.looks
    view.epoch = place === looks.length - 1 ? null : looks[place].epoch // the last place follows the run
    draw(view)
  }
  view.follow.onclick = () => {
    view.epoch = null
    draw(view)
  }
  return view
}

function draw(view) {
  const { looks } = view.data
  const chosen = looks.findIndex((look) => look.epoch === view.epoch)
  const place = chosen < 0 ? looks.length - 1 : chosen
  const look = looks[place]
  const before = new Set(place > 0 ? looks[place - 1].shown.map((one) => one.id) : look.shown.map((one) => one.id))
  view.root.dataset.kind = view.data.atlas ? "image" : "table"
  view.range.max = String(looks.length - 1)
  view.range.value = String(place)
  view.range.disabled = looks.length < 2
  view.range.setAttribute("aria-valuetext", `after epoch ${look.epoch}`)
  view.follow.disabled = place === looks.length - 1
  say(view.when, `epoch ${look.epoch}`)
  drawSentence(view.sentence, look)
  while (view.items.childElementCount > look.shown.length) view.items.lastElementChild.remove()
  while (view.items.childElementCount < look.shown.length) view.items.append(makeItem())
  look.shown.forEach((one, i) => drawItem(view, view.items.children[i], one, i, !before.has(one.id)))
}

function drawSentence(element, look) {
  const [query, ...near] = look.shown
  const fellows = near.filter((one) => one.class === query.class).length
  const parts = [make("b", "", `${fellows} of ${near.length}`), " nearest entries of ", make("b", "", query.id)]
  element.replaceChildren(...parts, ` carry its label, ${query.label}, after epoch ${look.epoch}.`)
}

function makeItem() {
  const place = make("div", "place", make("span", "rank"), make("span", "new", "new"))
  const label = make("div", "label", make("span", "chip"), make("span", "mark"))
  return make("li", "item", place, make("div", "thumb"), make("div", "values"), label)
}

function drawItem(view, element, one, i, isNew) {
  const query = view.data.looks[0].shown[0]
  element.title = one.id
  element.classList.toggle("is-new", i > 0 && isNew)
  say(element.querySelector(".rank"), i === 0 ? "query" : String(i))
  const chip = element.querySelector(".chip")
  const color = view.data.colors[one.class]
  say(chip, one.label)
  chip.style.background = HEX.test(color) ? color : ""
  chip.style.color = HEX.test(color) ? textOn(color) : ""
  const mark = element.querySelector(".mark")
  say(mark, i === 0 ? "" : one.class === query.class ? "✓" : "✗")
  mark.title = i === 0 ? "" : one.class === query.class ? "the query's label" : "another label"
  mark.ariaLabel = mark.title
  drawTile(element.querySelector(".thumb"), one.tile, view.data.atlas)
  const rows = one.values.map(([name, value]) => make("div", "", make("span", "", name), make("b", "", value)))
  element.querySelector(".values").replaceChildren(...rows)
}

function drawTile(element, tile, atlas) {
  if (tile == null || !atlas || !PNG.test(atlas.url)) return void (element.style.backgroundImage = "")
  const along = (place, n) => (n > 1 ? (100 * place) / (n - 1) : 0)
  const x = along(tile % atlas.columns, atlas.columns)
  const y = along(Math.floor(tile / atlas.columns), atlas.rows)
  const image = `url("${atlas.url}")`
  if (element.style.backgroundImage !== image) element.style.backgroundImage = image
  element.style.backgroundSize = `${100 * atlas.columns}% ${100 * atlas.rows}%`
  element.style.backgroundPosition = `${x}% ${y}%`
}

function make(tag, className = "", ...children) {
  const element = document.createElement(tag)
  if (className) element.className = className
  element.append(...children)
  return element
}

function say(element, text) {
  if (element.textContent !== text) element.textContent = text
}

function textOn(hex) {
  const linear = [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16) / 255)
  const [r, g, b] = linear.map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.179 ? "#000" : "#fff"
}
