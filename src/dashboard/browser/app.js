// What every page has: times as the reader has them, and buttons that copy.

/** Shows times in the reader's own zone; the title keeps UTC. */
function localTimes(/** @type {ParentNode} */ root) {
  for (const time of root.querySelectorAll('time[datetime]')) {
    const at = new Date(time.getAttribute('datetime') ?? '')
    time.textContent = LOCAL.format(at)
  }
}

const LOCAL = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' })

/** Puts a button beside what is there to be copied. */
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

/** Who has no mouse must be able to scroll what is wider than its place. */
function reachScrolled(/** @type {ParentNode} */ root) {
  for (const box of root.querySelectorAll('.scroll')) {
    if (box.scrollWidth > box.clientWidth) box.setAttribute('tabindex', '0')
    else box.removeAttribute('tabindex')
  }
}

/** An open menu is closed by Escape, and by a click elsewhere. */
function closeMenus(/** @type {Event} */ event) {
  const isEscape = event instanceof KeyboardEvent && event.key === 'Escape'
  if (event instanceof KeyboardEvent && !isEscape) return
  for (const menu of document.querySelectorAll('details.confirm[open], details.account[open]')) {
    if (isEscape || !menu.contains(/** @type {Node} */ (event.target))) menu.removeAttribute('open')
  }
}

/** What a button asks back is seen whole. */
function showQuestion(/** @type {Event} */ { target }) {
  if (!(target instanceof Element) || !target.matches('details.confirm[open]')) return
  target.querySelector('.menu')?.scrollIntoView({ block: 'nearest' })
}

/** A part of the page that is new. */
export function awaken(/** @type {ParentNode} */ root) {
  localTimes(root)
  copyButtons(root)
  reachScrolled(root)
}

/** What went wrong a moment ago goes well again. */
function clearFault(/** @type {Event} */ event) {
  // htmx calls every answer successful that is put into the page, a refusal too.
  if (/** @type {CustomEvent} */ (event).detail.xhr.status >= 400) return
  document.querySelector('#notes > .is-bad')?.remove()
}

awaken(document)
document.addEventListener('htmx:afterRequest', clearFault)
document.addEventListener('htmx:load', event => awaken(/** @type {ParentNode} */ (event.target)))
window.addEventListener('resize', () => reachScrolled(document))
document.addEventListener('toggle', showQuestion, true)
document.addEventListener('click', closeMenus)
document.addEventListener('keydown', closeMenus)
