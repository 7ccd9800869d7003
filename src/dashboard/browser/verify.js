// Streams a verification into the page. The server renders the parts; this script inserts them.

import { replacePart } from './app.js'

const options = /** @type {HTMLFormElement} */ (document.querySelector('#options'))
const email = /** @type {HTMLInputElement} */ (document.querySelector('#email'))
const outcome = /** @type {HTMLElement} */ (document.querySelector('#outcome'))
const announcement = /** @type {HTMLElement} */ (document.querySelector('#said'))

/** Aborts the current verification when a new one starts. */
let current = new AbortController()

document.addEventListener('submit', event => {
  const form = event.target
  if (!(form instanceof HTMLFormElement) || !form.matches('form[data-verify]')) return
  event.preventDefault()
  current.abort()
  current = new AbortController()
  const data = new FormData(form)
  showOptions(data)
  verify(data, current.signal).catch(error => {
    if (error?.name !== 'AbortError') showInterrupted()
  })
})

/** Copies the submitted values to the main form, as another form may have submitted them. */
function showOptions(/** @type {FormData} */ data) {
  email.value = String(data.get('email') ?? '')
  for (const name of ['sandbox', 'again']) {
    const box = /** @type {HTMLInputElement} */ (document.getElementById(name))
    if (!box.disabled) box.checked = data.has(name)
  }
}

async function verify(/** @type {FormData} */ data, /** @type {AbortSignal} */ signal) {
  const address = email.value
  // At once: a later change of the layout would move what the user looks at.
  outcome.hidden = false
  const title = document.getElementById('verdict-title')
  // A verdict of another address stays until this one has its first step.
  if (title?.textContent === '') title.textContent = address
  announcement.textContent = `Verifying ${address}.`
  const fields = [...data].map(([name, value]) => [name, String(value)])
  const response = await fetch('/verify/steps', {
    method: 'POST',
    body: new URLSearchParams(fields),
    signal,
  })
  if (!response.headers.get('Content-Type')?.includes('ndjson') || response.body === null) {
    // Submit the form normally, which shows the error page or the sign-in page.
    return options.submit()
  }
  for await (const change of readChanges(response.body)) {
    // Changes read before the abort may still arrive.
    if (signal.aborted) return
    if (change.html !== undefined) {
      replacePart(change.html)
      scrollToEnd()
    }
    if (change.line !== undefined) addLine(change.line)
    if (change.over !== undefined) return finish(change.over, address)
  }
  showInterrupted()
}

/** @typedef {{ html?: string, line?: string, over?: string }} Change */

async function* readChanges(/** @type {ReadableStream<Uint8Array<ArrayBuffer>>} */ body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader()
  let rest = ''
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return
    const lines = (rest + value).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) yield/** @type {Change} */ (JSON.parse(line))
  }
}

function addLine(/** @type {string} */ line) {
  document.querySelector('pre.dialogue')?.append(`${line}\n`)
  scrollToEnd()
}

/** Scrolls the dialogue to its last line. */
function scrollToEnd() {
  const dialogue = document.querySelector('pre.dialogue')
  if (dialogue !== null) dialogue.scrollTop = dialogue.scrollHeight
}

function finish(/** @type {string} */ sentence, /** @type {string} */ address) {
  announcement.textContent = sentence
  // Do not move the focus if the user has moved on to another element.
  const { activeElement } = document
  const isBusy = activeElement?.matches('input, a, summary') && activeElement !== email
  if (!isBusy && email.value === address)
    document.getElementById('verdict-title')?.focus({ preventScroll: true })
  document.body.dispatchEvent(new Event('verified'))
}

function showInterrupted() {
  const text = 'The connection was interrupted before the verdict. Try again.'
  const sentence = document.querySelector('#verdict p')
  if (sentence !== null) sentence.textContent = text
  announcement.textContent = text
}
