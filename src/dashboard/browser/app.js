// Loaded by every page: ages of times, copy buttons and menus.

/** Adds the local time to the tooltip of each time of the server, and shows the age of some. */
function showTimes(/** @type {ParentNode} */ root) {
  for (const time of root.querySelectorAll('time[datetime]')) {
    if (!(time instanceof HTMLElement)) continue
    const at = new Date(time.getAttribute('datetime') ?? '')
    // What the server wrote: this is called each minute.
    time.dataset.utc ??= time.title
    time.dataset.text ??= time.textContent
    time.title = `${time.dataset.utc} · ${LOCAL.format(at)}`
    if ('relative' in time.dataset) time.textContent = formatAge(at) ?? time.dataset.text
  }
}

/** `undefined` uses the locale of the browser, which may be one that `Intl` rejects. */
export const LOCALE = isSupported(navigator.language) ? undefined : 'en'
const LOCAL = new Intl.DateTimeFormat(LOCALE, { dateStyle: 'medium', timeStyle: 'long' })
const AGE = new Intl.RelativeTimeFormat('en', { numeric: 'auto' })
const MINUTE_MS = 60_000

function isSupported(/** @type {string} */ locale) {
  try {
    return Intl.getCanonicalLocales(locale).length > 0
  } catch {
    return false
  }
}

/** @type {readonly [unit: Intl.RelativeTimeFormatUnit, ms: number, below: number][]} */
const UNITS = [
  ['minute', MINUTE_MS, 60],
  ['hour', 60 * MINUTE_MS, 24],
  ['day', 24 * 60 * MINUTE_MS, 30],
]

/** Formats a time as "2 hours ago" or "in 5 minutes"; null if it is more than a month away. */
function formatAge(/** @type {Date} */ at) {
  const left = at.getTime() - Date.now()
  if (Math.abs(left) < MINUTE_MS) return left < 0 ? 'just now' : 'in a minute'
  for (const [unit, ms, below] of UNITS) {
    const count = Math.trunc(left / ms)
    if (Math.abs(count) < below) return AGE.format(count, unit)
  }
  return null
}

/** Adds a Copy button to each copyable text. */
function copyButtons(/** @type {ParentNode} */ root) {
  for (const code of root.querySelectorAll('[data-copy]')) {
    code.removeAttribute('data-copy')
    const button = document.createElement('button')
    button.type = 'button'
    button.className = 'is-small'
    button.textContent = 'Copy'
    button.addEventListener('click', async () => {
      await navigator.clipboard.writeText(code.textContent ?? '')
      button.textContent = 'Copied'
    })
    code.after(' ', button)
  }
}

/** Makes overflowing boxes focusable, so they can be scrolled by keyboard. */
function makeScrollable(/** @type {ParentNode} */ root) {
  for (const box of root.querySelectorAll('.scroll')) {
    const isScrollable = box.scrollWidth > box.clientWidth
    const name = box.querySelector('caption')?.textContent ?? 'Table'
    for (const [key, value] of [
      ['tabindex', '0'],
      ['role', 'region'],
      ['aria-label', name],
    ]) {
      if (isScrollable) box.setAttribute(key, value)
      else box.removeAttribute(key)
    }
  }
}

/** Closes open menus on Escape and on a click outside. */
function closeMenus(/** @type {Event} */ event) {
  const isEscape = event instanceof KeyboardEvent && event.key === 'Escape'
  if (event instanceof KeyboardEvent && !isEscape) return
  for (const menu of document.querySelectorAll('details.confirm[open], details.account[open]')) {
    if (isEscape || !menu.contains(/** @type {Node} */ (event.target))) menu.removeAttribute('open')
  }
}

/** Scrolls an opened confirmation into view. */
function showConfirmation(/** @type {Event} */ { target }) {
  if (!(target instanceof Element) || !target.matches('details.confirm[open]')) return
  target.querySelector('.menu')?.scrollIntoView({ block: 'nearest' })
}

/** Adds a Dismiss button to each warning; a dismissed warning stays hidden in this tab. */
function dismissible(/** @type {ParentNode} */ root) {
  for (const notice of root.querySelectorAll('.alerts > .notice')) {
    // Counts in the text may change; the link and the start do not.
    const marks = [...notice.querySelectorAll('a, time')].map(
      one => one.getAttribute('href') ?? one.getAttribute('datetime'),
    )
    const key = `dismissed ${marks.join(' ') || notice.textContent}`
    if (sessionStorage.getItem(key) !== null) {
      notice.remove()
      continue
    }
    const button = document.createElement('button')
    button.type = 'button'
    button.className = 'quiet is-icon'
    button.textContent = '×'
    button.setAttribute('aria-label', 'Dismiss')
    button.addEventListener('click', () => {
      sessionStorage.setItem(key, '')
      notice.remove()
    })
    notice.append(button)
  }
}

/** Interval of the checks while the service cannot be reached. */
const RECONNECT_MS = 3_000

let toast = /** @type {HTMLElement | null} */ (null)

/** Returns whether the service responds. */
const isReachable = () =>
  fetch(import.meta.url, { method: 'HEAD', cache: 'no-store' }).then(
    () => true,
    () => false,
  )

/** Shows that the service cannot be reached, until it responds again. */
export async function showConnectionLost() {
  if (toast !== null) return
  toast = document.createElement('div')
  toast.className = 'toast'
  toast.setAttribute('role', 'alert')
  toast.textContent = 'Connection lost. Reconnecting …'
  document.body.append(toast)
  while (!(await isReachable())) await new Promise(done => setTimeout(done, RECONNECT_MS))
  toast.remove()
  toast = null
}

/** The form that is checked or sent. */
let sending = /** @type {HTMLFormElement | null} */ (null)

/** Keeps the page and its form if the service cannot be reached: navigating away would lose it. */
async function submitIfReachable(/** @type {SubmitEvent} */ event) {
  const form = event.target
  if (!(form instanceof HTMLFormElement) || form.method !== 'post' || form === sending) return
  if (event.defaultPrevented || form.matches('[hx-post], [data-verify]')) return
  event.preventDefault()
  if (!(await isReachable())) return showConnectionLost()
  sending = form
  form.requestSubmit(event.submitter)
  sending = null
}

/** Enhances newly inserted markup. */
export function enhance(/** @type {ParentNode} */ root) {
  showTimes(root)
  copyButtons(root)
  makeScrollable(root)
}

/** Replaces the element with the same ID by markup of the server; returns the new element. */
export function replacePart(/** @type {string} */ markup) {
  const part = new DOMParser().parseFromString(markup, 'text/html').body.firstElementChild
  if (part === null) return null
  document.getElementById(part.id)?.replaceWith(part)
  enhance(part)
  return part
}

/** Removes an earlier error notice after a successful request. */
function clearError(/** @type {Event} */ event) {
  // htmx reports every swapped response as successful, errors included.
  if (/** @type {CustomEvent} */ (event).detail.xhr.status >= 400) return
  document.querySelector('#notes > .is-bad')?.remove()
}

/** Loads a classic script, which defines a global. */
export function loadScript(/** @type {string} */ name) {
  const src = new URL(name, import.meta.url).href
  return loaded(Object.assign(document.createElement('script'), { src }))
}

/** Resolves when an element with a file is loaded. */
export function loaded(/** @type {HTMLElement} */ element) {
  return new Promise((resolve, reject) => {
    element.addEventListener('load', resolve)
    element.addEventListener('error', () =>
      reject(new Error('A file of the page could not be loaded.')),
    )
    document.head.append(element)
  })
}

enhance(document)
dismissible(document)
document.addEventListener('htmx:sendError', showConnectionLost)
document.addEventListener('submit', submitIfReachable)
document.addEventListener('htmx:afterRequest', clearError)
document.addEventListener('htmx:load', event => enhance(/** @type {ParentNode} */ (event.target)))
setInterval(() => showTimes(document), MINUTE_MS)
window.addEventListener('resize', () => makeScrollable(document))
document.addEventListener('toggle', showConfirmation, true)
document.addEventListener('click', closeMenus)
document.addEventListener('keydown', closeMenus)
