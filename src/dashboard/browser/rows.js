// Shows the details of a row as a dialog over its list.

/** Makes the panel that the server rendered as open a modal dialog. */
function showPanel() {
  const panel = findPanel()
  if (panel === null || !panel.open || panel.matches(':modal')) return
  // A dialog that is open cannot become modal.
  panel.removeAttribute('open')
  panel.showModal()
}

function findPanel() {
  const panel = document.querySelector('#panel')
  return panel instanceof HTMLDialogElement ? panel : null
}

/** After Escape or Close: the URL is that of the list again, and the focus returns to the row. */
function leavePanel(/** @type {Event} */ { target }) {
  const panel = findPanel()
  const link = panel?.querySelector('a[data-close]')
  if (panel === null || target !== panel || !(link instanceof HTMLAnchorElement)) return
  history.replaceState(history.state, '', link.href.replace(/#.*/, ''))
  document.getElementById(panel.dataset.opener ?? '')?.focus()
}

/** Closes the panel by its link, or by a click beside it. */
function closePanel(/** @type {MouseEvent} */ event) {
  const { target } = event
  const panel = findPanel()
  if (!(target instanceof Element) || panel === null || !panel.open) return
  if (target.closest('[data-close]') === null && target !== panel) return
  event.preventDefault()
  panel.close()
}

/** A click on a row opens its details, unless it follows another link or selects text. */
function openRow(/** @type {MouseEvent} */ { target }) {
  if (!(target instanceof Element) || `${getSelection()}` !== '') return
  if (target.closest('a, button, summary') !== null) return
  const link = target.closest('#rows tbody tr')?.querySelector('th a')
  if (link instanceof HTMLElement) link.click()
}

/** Shows the result of a verification in the panel, which it may be too long for. */
function showCheck(/** @type {Event} */ { target }) {
  if (target instanceof Element && target.matches('.panel .is-new')) {
    target.querySelector('h3')?.focus({ preventScroll: true })
    target.scrollIntoView({ block: 'nearest' })
  }
}

showPanel()
document.addEventListener('htmx:load', showPanel)
document.addEventListener('htmx:load', showCheck)
document.addEventListener('click', closePanel)
document.addEventListener('click', openRow)
// The event does not bubble.
document.addEventListener('close', leavePanel, true)
