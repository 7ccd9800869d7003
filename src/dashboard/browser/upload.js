// Previews a list as soon as it is chosen, dropped, pasted or typed, and shows the upload progress.
// htmx sends the file twice: once for the preview and once to start the list.

const form = /** @type {HTMLFormElement} */ (document.querySelector('#upload'))
const sending = /** @type {HTMLElement} */ (document.querySelector('#sending'))
const preview = /** @type {HTMLElement} */ (document.querySelector('#preview'))
const file = /** @type {HTMLInputElement} */ (form.elements.namedItem('file'))
const rows = /** @type {HTMLTextAreaElement} */ (form.elements.namedItem('rows'))
const sizeMax = Number(form.dataset.max)

const INTERRUPTED = 'The upload was interrupted. Try again.'

/** A pause in typing after which the rows are previewed. */
const TYPING_MS = 600

/** Whether the next preview is that of another list, which the page then scrolls to. */
let isOtherList = false
let timer = 0

form.addEventListener('htmx:beforeRequest', event => {
  const error = validate(file.files?.[0])
  if (error === null) {
    enableStart(false)
    return showBar()
  }
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
  const isFailed = xhr.status === 0 || xhr.status >= 400
  enableStart(true)
  if (xhr.status === 0) showError(INTERRUPTED)
  // An error notice has replaced the progress bar, or is above the page.
  else if (!isFailed || sending.querySelector('.notice') === null) sending.replaceChildren()
  if (isFailed) return showRetry(xhr.status)
  if (isOtherList) preview.scrollIntoView({ block: 'nearest' })
  isOtherList = false
})

/** A change of the list clears its preview; a change of an option keeps it until the next one. */
form.addEventListener('input', event => {
  const { target } = event
  if (target === file || target === rows) {
    const { inputType } = /** @type {InputEvent} */ (event)
    const isTyped = target === rows && !/^insertFrom(Paste|Drop)$/.test(inputType)
    showOther(isTyped ? TYPING_MS : 0)
  } else if (target instanceof Element && target.matches('[data-option]')) {
    if (hasList()) form.requestSubmit()
  }
})

/** Accepts a file dropped anywhere on the page. */
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
  showOther(0)
})

const hasList = () => (file.files?.length ?? 0) > 0 || rows.value.trim() !== ''

/** Clears the preview and requests that of the list after a pause. */
function showOther(/** @type {number} */ pauseMs) {
  preview.querySelector('.step')?.remove()
  sending.replaceChildren()
  isOtherList = true
  clearTimeout(timer)
  timer = setTimeout(() => {
    if (hasList()) form.requestSubmit()
  }, pauseMs)
}

/** A preview replaces the button: a click on it in that moment would be lost. */
function enableStart(/** @type {boolean} */ isEnabled) {
  const start = preview.querySelector('button')
  if (start !== null) start.disabled = !isEnabled
}

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

/** After a failed preview there is no other button; that of a list at fault fails each time. */
function showRetry(/** @type {number} */ status) {
  const isListAtFault = status === 400 || status === 413
  if (!isListAtFault && preview.querySelector('.step') === null) {
    const button = document.createElement('button')
    button.textContent = 'Try again'
    sending.append(button)
  }
  sending.scrollIntoView({ block: 'nearest' })
}

function showBar() {
  const bar = document.createElement('progress')
  bar.setAttribute('aria-label', 'Uploaded')
  sending.replaceChildren('Uploading …', bar)
}
