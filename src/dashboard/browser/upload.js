// Shows the upload progress, accepts dropped files, and clears a preview that no longer matches the
// form. htmx sends the file twice: once for the preview and once to start the list.

const form = /** @type {HTMLFormElement} */ (document.querySelector('#upload'))
const sending = /** @type {HTMLElement} */ (document.querySelector('#sending'))
const preview = /** @type {HTMLElement} */ (document.querySelector('#preview'))
const file = /** @type {HTMLInputElement} */ (form.elements.namedItem('file'))
const rows = /** @type {HTMLTextAreaElement} */ (form.elements.namedItem('rows'))
const sizeMax = Number(form.dataset.max)

const INTERRUPTED = 'The upload was interrupted. Try again.'

form.addEventListener('htmx:beforeRequest', event => {
  const error = validate(file.files?.[0])
  if (error === null) return showBar()
  event.preventDefault()
  showError(error)
})
form.addEventListener('htmx:xhr:progress', event => {
  const { loaded, total } = /** @type {CustomEvent} */ (event).detail
  const bar = sending.querySelector('progress')
  if (bar === null) return
  if (loaded === total) return sending.replaceChildren('Upload complete. Reading the list …')
  bar.max = total
  bar.value = loaded
})
form.addEventListener('htmx:afterRequest', event => {
  const { xhr } = /** @type {CustomEvent} */ (event).detail
  if (xhr.status === 0) return showError(INTERRUPTED)
  // An error notice has replaced the progress bar.
  const error = sending.querySelector('.notice')
  if (error === null) sending.replaceChildren()
  else error.scrollIntoView({ block: 'nearest' })
})

/** Clears the preview when the list or an option changes. */
form.addEventListener('input', ({ target }) => {
  const isInput = target instanceof Element && target.matches('#file, #rows, [data-option]')
  if (isInput) preview.replaceChildren()
})

/** Accepts a file dropped anywhere on the page and previews it. */
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
  if (dropped.length > 1) return showError('Drop only one file at a time.')
  file.files = /** @type {FileList} */ (dropped)
  preview.replaceChildren()
  form.requestSubmit()
})

function validate(/** @type {File | undefined} */ chosen) {
  if (chosen === undefined) return null
  if (rows.value.trim() !== '') return 'Choose a file or paste rows, not both.'
  if (chosen.size <= sizeMax) return null
  return `The file is larger than ${sizeMax / 2 ** 20} MiB, the maximum size of a list. Split it.`
}

function showError(/** @type {string} */ sentence) {
  const box = document.createElement('p')
  box.className = 'notice is-bad'
  box.textContent = sentence
  sending.replaceChildren(box)
  box.scrollIntoView({ block: 'nearest' })
}

function showBar() {
  const bar = document.createElement('progress')
  bar.setAttribute('aria-label', 'Uploaded')
  sending.replaceChildren('Uploading …', bar)
}
