// The lowest contrast between the text of some elements and the ground it stands on.
;(selectors) => {
  const root = document.querySelector("div").shadowRoot
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true })

  function rgba(color) {
    canvas.clearRect(0, 0, 1, 1)
    canvas.fillStyle = color
    canvas.fillRect(0, 0, 1, 1)
    return [...canvas.getImageData(0, 0, 1, 1).data]
  }

  function luminance(color) {
    const linear = (c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4)
    const [r, g, b] = rgba(color).map(linear)
    return 0.2126 * r + 0.7152 * g + 0.0722 * b
  }

  function ground(element) {
    for (let at = element; at; at = at.parentElement ?? at.getRootNode().host) {
      const color = getComputedStyle(at).backgroundColor
      if (rgba(color)[3] > 250) return color
    }
    return "#fff"
  }

  function contrast(element) {
    const [light, dark] = [getComputedStyle(element).color, ground(element)].map(luminance).sort((a, b) => b - a)
    return (light + 0.05) / (dark + 0.05)
  }

  const isSeen = (element) => element.textContent.trim() && !element.closest("[hidden]") && rgba(getComputedStyle(element).color)[3] > 0
  return Math.min(...selectors.flatMap((selector) => [...root.querySelectorAll(selector)].filter(isSeen).map(contrast)))
}
