// Shows how much of a list was sent, takes one that is dropped, and lets go of a preview that is no longer that of the
// form. The file stays with the browser: htmx sends it once to look at it, and once to start it.

const form = /** @type {HTMLFormElement} */ (document.querySelector('#upload'))
const sending = /** @type {HTMLElement} */ (document.querySelector('#sending'))
const preview = /** @type {HTMLElement} */ (document.querySelector('#preview'))
const file = /** @type {HTMLInputElement} */ (form.elements.namedItem('file'))
const rows = /** @type {HTMLTextAreaElement} */ (form.elements.namedItem('rows'))
const sizeMax = Number(form.dataset.max)

const BROKEN = 'The connection broke off while the list was sent. Send it again.'

form.addEventListener('htmx:beforeRequest', event => {
  const fault = faultOf(file.files?.[0])
  if (fault === null) return showBar()
  event.preventDefault()
  say(fault)
})
form.addEventListener('htmx:xhr:progress', event => {
  const { loaded, total } = /** @type {CustomEvent} */ (event).detail
  const bar = sending.querySelector('progress')
  if (bar === null) return
  if (loaded === total) return sending.replaceChildren('It is sent, and is being read …')
  bar.max = total
  bar.value = loaded
})
form.addEventListener('htmx:afterRequest', event => {
  const { xhr } = /** @type {CustomEvent} */ (event).detail
  if (xhr.status === 0) return say(BROKEN)
  // A refusal has taken the place of the bar.
  const refusal = sending.querySelector('.notice')
  if (refusal === null) sending.replaceChildren()
  else refusal.scrollIntoView({ block: 'nearest' })
})

/** What was found holds for the list that was sent. */
form.addEventListener('input', ({ target }) => {
  const isOfList = target instanceof Element && target.matches('#file, #rows, [name="sandbox"]')
  if (isOfList) preview.replaceChildren()
})

/** What is dropped anywhere on the page is looked at. */
document.addEventListener('dragover', event => {
  if (!event.dataTransfer?.types.includes('Files')) return
  event.preventDefault()
  document.body.classList.add('is-dropping')
})
document.addEventListener('dragleave', event => {
  if (event.relatedTarget === null) document.body.classList.remove('is-dropping')
})
document.addEventListener('drop', event => {
  document.body.classList.remove('is-dropping')
  const dropped = event.dataTransfer?.files ?? []
  if (dropped.length === 0) return
  event.preventDefault()
  if (dropped.length > 1) return say('Several files were dropped. Drop one of them.')
  file.files = /** @type {FileList} */ (dropped)
  preview.replaceChildren()
  form.requestSubmit()
})

function faultOf(/** @type {File | undefined} */ chosen) {
  if (chosen === undefined) return null
  if (rows.value.trim() !== '') return 'Both a file and rows are given. Take one of them away.'
  if (chosen.size <= sizeMax) return null
  return `The file has more than ${sizeMax / 2 ** 20} MiB, which is the most a list may have. Divide it.`
}

function say(/** @type {string} */ sentence) {
  const box = document.createElement('p')
  box.className = 'notice is-bad'
  box.textContent = sentence
  sending.replaceChildren(box)
  box.scrollIntoView({ block: 'nearest' })
}

function showBar() {
  const bar = document.createElement('progress')
  bar.setAttribute('aria-label', 'Sent')
  sending.replaceChildren('Sending …', bar)
}
