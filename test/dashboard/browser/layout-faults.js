// Evaluated in a page: returns what users would see as faults of its layout and texts.
;(() => {
  const TARGET_MIN = 24
  /** Each focus takes a layout: of many controls with one style, the first are enough. */
  const ALIKE_MAX = 10
  const faults = []
  const { clientWidth, scrollWidth } = document.documentElement
  if (scrollWidth > clientWidth) faults.push(`the page is ${scrollWidth - clientWidth} px too wide`)

  const report = (what, element) =>
    faults.push(`${what}: ${element.outerHTML.replaceAll(/\s+/g, ' ').slice(0, 160)}`)
  const isShown = element =>
    element.checkVisibility({ visibilityProperty: true, contentVisibilityAuto: true }) &&
    element.closest('.unseen, .skip, svg') === null
  const all = [...document.querySelectorAll('body *')].filter(isShown)

  /** The part of the page in which an element can be seen, or scrolled to. */
  const clipOf = element => {
    const box = {
      left: 0,
      right: clientWidth,
      top: Number.NEGATIVE_INFINITY,
      bottom: Number.POSITIVE_INFINITY,
    }
    for (
      let parent = element;
      parent !== document.body && parent !== null;
      parent = parent.parentElement
    ) {
      const { overflowX, overflowY, textOverflow, position } = getComputedStyle(parent)
      if (overflowX === 'auto' || overflowX === 'scroll' || textOverflow === 'ellipsis') return null
      const rect = parent.getBoundingClientRect()
      if (overflowX !== 'visible')
        Object.assign(box, {
          left: Math.max(box.left, rect.left),
          right: Math.min(box.right, rect.right),
        })
      if (overflowY === 'hidden' || overflowY === 'clip')
        Object.assign(box, {
          top: Math.max(box.top, rect.top),
          bottom: Math.min(box.bottom, rect.bottom),
        })
      if (position === 'fixed') break
    }
    return box
  }
  const isCut = (rect, clip) =>
    clip !== null &&
    (rect.left < clip.left - 1 ||
      rect.right > clip.right + 1 ||
      rect.top < clip.top - 1 ||
      rect.bottom > clip.bottom + 1)

  // Each line of text is inside its element and inside what clips it.
  for (const element of all) {
    const texts = [...element.childNodes].filter(
      node => node.nodeType === Node.TEXT_NODE && node.data.trim() !== '',
    )
    if (texts.length === 0) continue
    const clip = clipOf(element)
    // The text of an inline element must be within the box that it is a part of.
    let box = element
    while (getComputedStyle(box).display === 'inline' && box.parentElement) box = box.parentElement
    const { textOverflow, overflowX } = getComputedStyle(box)
    const own = box.getBoundingClientRect()
    for (const text of texts) {
      const range = document.createRange()
      range.selectNodeContents(text)
      const lines = [...range.getClientRects()]
      if (lines.some(line => isCut(line, clip))) report('text is cut off', element)
      const isBox = overflowX === 'visible' && textOverflow !== 'ellipsis'
      if (isBox && lines.some(line => line.right > own.right + 1 || line.left < own.left - 1))
        report('text leaves its box', element)
    }
  }

  // Whatever takes clicks is large enough, except a link within a sentence (WCAG 2.5.8).
  const controls = all.filter(one =>
    one.matches('a[href], button, input, select, textarea, summary'),
  )
  for (const control of controls) {
    const label = control.matches('input[type="checkbox"], input[type="radio"]')
      ? control.closest('label')
      : null
    const { width, height } = (label ?? control).getBoundingClientRect()
    const text = (control.parentElement?.textContent ?? '').trim()
    const isInSentence =
      control.matches('a') &&
      getComputedStyle(control).display === 'inline' &&
      text !== control.textContent?.trim()
    // The click area of a link may be a pseudo-element that fills its row.
    const isRow = getComputedStyle(control, '::after').position === 'absolute'
    if ((width < TARGET_MIN || height < TARGET_MIN) && !isInSentence && !isRow)
      report(`a target of ${Math.round(width)} × ${Math.round(height)} px`, control)
    if (isCut(control.getBoundingClientRect(), clipOf(control.parentElement ?? control)))
      report('a control is cut off', control)
  }

  // Buttons and fields of one line have one height and stand on one line.
  for (const row of all.filter(one => one.matches('.actions, .head > .actions, .row > .actions'))) {
    const boxes = [...row.children]
      .flatMap(one =>
        one.matches('form, details')
          ? [...one.querySelectorAll(':scope > :is(button, summary)')]
          : [one],
      )
      .filter(one => isShown(one) && one.matches('button, .button, select'))
      .map(one => one.getBoundingClientRect())
    const lines = Map.groupBy(boxes, ({ top }) => Math.round(top / 20))
    for (const line of lines.values())
      if (
        new Set(line.map(({ top, height }) => `${Math.round(top)} ${Math.round(height)}`)).size > 1
      )
        report('buttons are not aligned', row)
  }

  // A choice of a few is on one line.
  for (const segment of all.filter(one => one.matches('.segment')))
    if (
      new Set(
        [...segment.children]
          .filter(isShown)
          .map(one => Math.round(one.getBoundingClientRect().top)),
      ).size > 1
    )
      report('a choice wraps', segment)

  const attributes = [
    ...document.querySelectorAll('body [title], body [aria-label], body [placeholder], body [alt]'),
  ].flatMap(one =>
    ['title', 'aria-label', 'placeholder', 'alt'].map(name => one.getAttribute(name) ?? ''),
  )
  // The reference of the API has null among its types and in its examples.
  const shown = location.pathname.startsWith('/docs/reference/') ? '' : document.body.innerText
  for (const text of [document.title, shown, ...attributes]) {
    const [wrong] =
      /[^\n]*(?:\bundefined\b|\bNaN\b|\[object|Invalid Date|\bnull\b(?! MX| sender))[^\n]*/.exec(
        text,
      ) ?? []
    if (wrong !== undefined) faults.push(`a text is broken: ${wrong}`)
    const [share] = /.{0,30}\d %.{0,20}/.exec(text) ?? []
    if (share !== undefined) faults.push(`a percentage has a space: ${share}`)
  }

  // The focus of the keyboard is visible: an outline that nothing clips.
  const before = document.activeElement
  const seen = new Map()
  const [scrollX, scrollY] = [window.scrollX, window.scrollY]
  for (const control of all.filter(one =>
    one.matches(
      'a[href], button, input:not([type="hidden"]), select, textarea, summary, [tabindex="0"]',
    ),
  )) {
    const kind = `${control.tagName} ${control.className}`
    seen.set(kind, (seen.get(kind) ?? 0) + 1)
    if (control.matches(':disabled') || (seen.get(kind) ?? 0) > ALIKE_MAX) continue
    control.focus({ preventScroll: true, focusVisible: true })
    if (document.activeElement !== control) continue
    const { outlineStyle, outlineWidth, outlineOffset } = getComputedStyle(control)
    if (outlineStyle === 'none' || Number.parseFloat(outlineWidth) < 2)
      report('no visible focus', control)
    const far = Number.parseFloat(outlineWidth) + Number.parseFloat(outlineOffset)
    const { left, right, top, bottom } = control.getBoundingClientRect()
    const ring = {
      left: left - far + 1,
      right: right + far - 1,
      top: top - far + 1,
      bottom: bottom + far - 1,
    }
    if (isCut(ring, clipOf(control.parentElement ?? control)))
      report('the focus is cut off', control)
  }
  document.activeElement?.blur()
  if (before !== document.body) before?.focus({ preventScroll: true })
  window.scrollTo(scrollX, scrollY)
  return [...new Set(faults)]
})()
