// Colors and the atlas, as style rules: written when the data or the theme brings others.

const HEX = /^#[0-9a-f]{6}$/i
const PNG = /^data:image\/png;base64,[A-Za-z0-9+/=]+$/
const LEVELS = 32

function writeSheet(view) {
  const { root, data } = view
  const style = getComputedStyle(root)
  set(root, "data-theme", luminance(readColor(style.getPropertyValue("--panel"))) < 0.4 ? "dark" : "light")
  const panel = readColor(style.getPropertyValue("--panel"))
  const full = readColor(style.getPropertyValue("--attention"))
  const rules = [...classRules(data.colors), ...rampRules(panel, full), tileRule(data.atlas)].join("\n")
  if (view.sheet.textContent !== rules) view.sheet.textContent = rules
}

function classRules(colors) {
  const seen = new Map()
  return colors.map((color, c) => {
    if (!HEX.test(color)) return ""
    const repeat = seen.get(color) ?? 0
    seen.set(color, repeat + 1)
    const text = textOn(readColor(color))
    const [shade, anti] = text === "#000" ? ["light", "#fff"] : ["dark", "#000"]
    const dots = repeat ? `; --dots: var(--dots-${1 + ((repeat - 1) % 2)}-${shade})` : ""
    return `[data-class="${c}"] { --fill: ${color}; --text: ${text}; --anti: ${anti}${dots} }`
  })
}

function rampRules(panel, full) {
  return Array.from({ length: LEVELS + 1 }, (_, level) => {
    const part = level ? 0.1 + (0.9 * level) / LEVELS : 0.04
    const color = panel.map((low, i) => Math.round(low + part * (full[i] - low)))
    return `.heat [data-level="${level}"] { background: rgb(${color}); color: ${textOn(color)} }`
  })
}

function tileRule(atlas) {
  if (!atlas || !PNG.test(atlas.url)) return ""
  return `.tile { background-image: url("${atlas.url}"); background-size: ${100 * atlas.columns}% ${100 * atlas.rows}% }`
}

function readColor(text) {
  const word = text.trim()
  if (word.startsWith("#")) {
    const digits = word.length < 7 ? [...word.slice(1, 4)].map((d) => d + d) : word.slice(1, 7).match(/../g)
    return digits.map((pair) => parseInt(pair, 16))
  }
  return (word.match(/[\d.]+/g) ?? [255, 255, 255]).slice(0, 3).map(Number)
}

function luminance(color) {
  const [r, g, b] = color.map((c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4))
  return 0.2126 * r + 0.7152 * g + 0.0722 * b
}

function textOn(color) {
  return luminance(color) > 0.179 ? "#000" : "#fff"
}
