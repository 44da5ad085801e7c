// Colors and the atlas, as style rules: written when the data or the theme brings others.

const HEX = /^#[0-9a-f]{6}$/i
const PICTURE = /^data:image\/(png|webp);base64,[A-Za-z0-9+/=]+$/
const LEVELS = 32

function writeSheet(view) {
  const { root, given: data } = view
  const style = getComputedStyle(root)
  set(root, "data-theme", luminance(readColor(style.getPropertyValue("--panel"))) < 0.4 ? "dark" : "light")
  const panel = readColor(style.getPropertyValue("--panel"))
  const full = readColor(style.getPropertyValue("--attention"))
  const rules = [...classRules(data.colors), tileRule(data.atlas)].join("\n")
  if (view.sheet.textContent !== rules) view.sheet.textContent = rules
  view.paints = {
    ramp: rampOf(panel, full),
    ink: style.color,
    soft: getComputedStyle(root.querySelector(".legend")).color,
    line: style.getPropertyValue("--line"),
    hatch: style.getPropertyValue("--hatch"),
    font: `${0.8 * parseFloat(style.fontSize)}px ${style.fontFamily}`,
  }
}

// Whole declarations instead of variables: the browser restyles hundreds of these per drag.
// A repeated color gets a pattern. A flipped label gets a hatch that moves away from the text's
// own color, so that it can only add contrast.
function classRules(colors) {
  const seen = new Map()
  return colors.flatMap((hex, c) => {
    if (!HEX.test(hex)) return []
    const repeat = seen.get(hex) ?? 0
    seen.set(hex, repeat + 1)
    const fill = readColor(hex)
    const text = textOn(fill)
    const away = `rgb(${mix(fill, text === "#000" ? [255, 255, 255] : [0, 0, 0], 0.36)})`
    return [
      `.board [data-class="${c}"] { background: ${patternOf(repeat, away)}${hex}; color: ${text} }`,
      `.board .flipped[data-class="${c}"] { background: repeating-linear-gradient(135deg, transparent 0 3px, ${away} 3px 5px), ${hex} }`,
    ]
  })
}

function patternOf(repeat, away) {
  if (!repeat) return ""
  const dots = `radial-gradient(${away} 1.2px, transparent 1.4px) 0 0 / 5px 5px, `
  return repeat % 2 ? dots : `repeating-linear-gradient(90deg, ${away} 0 1px, transparent 1px 5px), `
}

// Colors of weights, from none to the largest, and what can be read on them.
function rampOf(panel, full) {
  return Array.from({ length: LEVELS + 1 }, (_, level) => {
    const part = level ? 0.1 + (0.9 * level) / LEVELS : 0.04
    const color = mix(panel, full, part)
    return { color: `rgb(${color})`, text: textOn(color) }
  })
}

function tileRule(atlas) {
  if (!atlas || !PICTURE.test(atlas.url)) return ""
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

function mix(one, other, part) {
  return one.map((value, i) => Math.round(value + part * (other[i] - value)))
}

function luminance(color) {
  const [r, g, b] = color.map((c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4))
  return 0.2126 * r + 0.7152 * g + 0.0722 * b
}

function textOn(color) {
  return luminance(color) > 0.179 ? "#000" : "#fff"
}
