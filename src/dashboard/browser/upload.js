// Sends a list as its bare bytes, and shows how much of it was sent. Without this the form does the same, silently.

const form = /** @type {HTMLFormElement} */ (document.querySelector('#upload'))
const sending = /** @type {HTMLElement} */ (document.querySelector('#sending'))
const file = /** @type {HTMLInputElement} */ (form.elements.namedItem('file'))
const rows = /** @type {HTMLTextAreaElement} */ (form.elements.namedItem('rows'))
const name = /** @type {HTMLInputElement} */ (form.elements.namedItem('name'))
const sandbox = /** @type {HTMLInputElement} */ (form.elements.namedItem('sandbox'))
const sizeMax = Number(form.dataset.max)
const csrf = document.querySelector('meta[name="csrf"]')?.getAttribute('content') ?? ''

form.addEventListener('submit', event => {
  event.preventDefault()
  const [chosen] = file.files ?? []
  if (chosen !== undefined && rows.value.trim() !== '') {
    return say('Both a file and rows are given. Take one of them away.', true)
  }
  send(chosen ?? new Blob([rows.value]), chosen?.name ?? '')
})

/** What is dropped anywhere on the page is sent as it is. */
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
  if (dropped.length > 1) return say('Several files were dropped. Drop one of them.', true)
  send(/** @type {File} */ (dropped[0]), dropped[0]?.name ?? '')
})

/** One list at a time. */
let isSending = false

function send(/** @type {Blob} */ list, /** @type {string} */ fileName) {
  if (isSending) return
  if (list.size === 0)
    return say('There is nothing in this list. Choose a file, or paste rows.', true)
  if (list.size > sizeMax) {
    return say(
      `The file has more than ${sizeMax / 2 ** 20} MiB, which is the most a list may have. Divide it.`,
      true,
    )
  }
  isSending = true
  const request = new XMLHttpRequest()
  const bar = showBar(list.size)
  request.upload.addEventListener('progress', ({ loaded }) => {
    bar.value = loaded
  })
  request.upload.addEventListener('load', () => say('It is sent, and is being read …', false))
  request.addEventListener('load', () => answered(request))
  request.addEventListener('error', () => failed(BROKEN))
  request.open('POST', form.action)
  request.setRequestHeader('Content-Type', 'application/octet-stream')
  request.setRequestHeader('X-CSRF-Token', csrf)
  // A session that is over is answered in short, not as a page.
  request.setRequestHeader('HX-Request', 'true')
  request.setRequestHeader('X-File-Name', encodeURIComponent(fileName.toWellFormed()))
  request.setRequestHeader('X-List-Name', encodeURIComponent(name.value.toWellFormed()))
  request.setRequestHeader('X-List-Sandbox', String(sandbox.checked))
  request.send(list)
}

const BROKEN = 'The connection broke off while the list was sent. Send it again.'

function answered(/** @type {XMLHttpRequest} */ request) {
  if (request.status === 401) return location.assign('/sign-in?next=/lists/new')
  const { path, error } = bodyOf(request)
  if (path === undefined) return failed(error ?? BROKEN)
  // Whoever goes back finds a form that can be sent.
  isSending = false
  location.assign(path)
}

/** @returns {{ path?: string, error?: string }} */
function bodyOf(/** @type {XMLHttpRequest} */ { responseText }) {
  try {
    return JSON.parse(responseText)
  } catch {
    return {}
  }
}

function failed(/** @type {string} */ sentence) {
  isSending = false
  say(sentence, true)
}

function say(/** @type {string} */ sentence, /** @type {boolean} */ isFault) {
  const box = document.createElement('p')
  box.className = isFault ? 'notice is-bad' : ''
  box.textContent = sentence
  sending.replaceChildren(box)
  if (isFault) box.scrollIntoView({ block: 'nearest' })
}

function showBar(/** @type {number} */ size) {
  const bar = document.createElement('progress')
  bar.max = size
  bar.value = 0
  bar.setAttribute('aria-label', 'Sent')
  sending.replaceChildren('Sending …', bar)
  return bar
}
