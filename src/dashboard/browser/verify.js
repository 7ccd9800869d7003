// Verifies without leaving the page: each step is shown when it happens. The server makes the rows; here they are put in.

import { awaken } from './app.js'

const wish = /** @type {HTMLFormElement} */ (document.querySelector('#wish'))
const email = /** @type {HTMLInputElement} */ (document.querySelector('#email'))
const said = /** @type {HTMLElement} */ (document.querySelector('#said'))

/** Ends the verification that is under way; what is asked last counts. */
let underWay = new AbortController()

document.addEventListener('submit', event => {
  const form = event.target
  if (!(form instanceof HTMLFormElement) || !form.matches('form[data-verify]')) return
  event.preventDefault()
  underWay.abort()
  underWay = new AbortController()
  const asked = new FormData(form)
  showWish(asked)
  verify(asked, underWay.signal).catch(error => {
    if (error?.name !== 'AbortError') broken()
  })
})

/** The form says what is asked, also where another one asked it. */
function showWish(/** @type {FormData} */ asked) {
  email.value = String(asked.get('email') ?? '')
  for (const name of ['sandbox', 'again']) {
    const box = /** @type {HTMLInputElement} */ (document.getElementById(name))
    box.checked = asked.has(name)
  }
}

async function verify(/** @type {FormData} */ asked, /** @type {AbortSignal} */ signal) {
  const address = email.value
  said.textContent = `Verifying ${address}.`
  const fields = [...asked].map(([name, value]) => [name, String(value)])
  const answer = await fetch('/verify/steps', {
    ...{ method: 'POST', body: new URLSearchParams(fields), signal },
  })
  if (!answer.headers.get('Content-Type')?.includes('ndjson') || answer.body === null) {
    // Whatever stands in the way, such as a session that is over, is told as a page.
    return wish.submit()
  }
  for await (const change of changesOf(answer.body)) {
    // What was read before it was ended may still come.
    if (signal.aborted) return
    if (change.html !== undefined) put(change.html)
    if (change.line !== undefined) addLine(change.line)
    if (change.over !== undefined) return over(change.over, address)
  }
  broken()
}

/** @typedef {{ html?: string, line?: string, over?: string }} Change */

async function* changesOf(/** @type {ReadableStream<Uint8Array<ArrayBuffer>>} */ body) {
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

/** Puts a row that the server made in the place of the one that has its id. */
function put(/** @type {string} */ markup) {
  const row = new DOMParser().parseFromString(markup, 'text/html').body.firstElementChild
  if (row === null) return
  document.getElementById(row.id)?.replaceWith(row)
  awaken(row)
  showEnd()
}

function addLine(/** @type {string} */ line) {
  document.querySelector('pre.dialogue')?.append(`${line}\n`)
  showEnd()
}

/** The newest line of the dialogue is seen. */
function showEnd() {
  const dialogue = document.querySelector('pre.dialogue')
  if (dialogue !== null) dialogue.scrollTop = dialogue.scrollHeight
}

function over(/** @type {string} */ sentence, /** @type {string} */ address) {
  said.textContent = sentence
  // Who has gone on to something else is not called back.
  const { activeElement } = document
  const isElsewhere = activeElement?.matches('input, a, summary') && activeElement !== email
  if (!isElsewhere && email.value === address) document.getElementById('title-verdict')?.focus()
  document.body.dispatchEvent(new Event('verified'))
}

function broken() {
  const text = 'The connection broke off before there was a verdict. Verify the address again.'
  const row = document.querySelector('#step-verdict p')
  if (row !== null) row.textContent = text
  said.textContent = text
}
