// Loaded by every page: local times, copy buttons and menus.

/** Shows times in the local time zone; the tooltip keeps UTC. */
function localTimes(/** @type {ParentNode} */ root) {
  for (const time of root.querySelectorAll('time[datetime]')) {
    const at = new Date(time.getAttribute('datetime') ?? '')
    time.textContent = LOCAL.format(at)
  }
}

const LOCAL = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' })

/** Adds a Copy button to each copyable text. */
function copyButtons(/** @type {ParentNode} */ root) {
  for (const code of root.querySelectorAll('[data-copy]')) {
    code.removeAttribute('data-copy')
    const button = document.createElement('button')
    button.type = 'button'
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
    if (box.scrollWidth > box.clientWidth) box.setAttribute('tabindex', '0')
    else box.removeAttribute('tabindex')
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

/** Enhances newly inserted markup. */
export function enhance(/** @type {ParentNode} */ root) {
  localTimes(root)
  copyButtons(root)
  makeScrollable(root)
}

/** Removes an earlier error notice after a successful request. */
function clearError(/** @type {Event} */ event) {
  // htmx reports every swapped response as successful, errors included.
  if (/** @type {CustomEvent} */ (event).detail.xhr.status >= 400) return
  document.querySelector('#notes > .is-bad')?.remove()
}

enhance(document)
document.addEventListener('htmx:afterRequest', clearError)
document.addEventListener('htmx:load', event => enhance(/** @type {ParentNode} */ (event.target)))
window.addEventListener('resize', () => makeScrollable(document))
document.addEventListener('toggle', showConfirmation, true)
document.addEventListener('click', closeMenus)
document.addEventListener('keydown', closeMenus)
