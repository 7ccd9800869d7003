// Updates the progress of an active list in place and loads the results when it ends.

import { replacePart, showConnectionLost } from './app.js'

/** @typedef {{ percent: number, parts: string[] }} Update */

/** Delay before reconnecting after the service rejected the stream, as when too many are open. */
const RETRY_MS = 10_000

/** Minimum time between two requests for the page of rows. */
const ROWS_MS = 2_000
/** A sorted or searched page of a long list takes seconds: it is read for a tenth of the time. */
const ROWS_PAUSE_FACTOR = 10
let rowsDueAt = 0

/** The only open stream. */
let events = /** @type {EventSource | null} */ (null)

function watch(/** @type {HTMLElement} */ live) {
  // At the end, load the page of rows that is shown now, not the initial one.
  live.addEventListener('htmx:configRequest', event => {
    const { detail } = /** @type {CustomEvent} */ (event)
    detail.path = location.pathname + location.search
  })
  const announce = createAnnouncer()
  function connect() {
    events?.close()
    events = new EventSource(live.dataset.events ?? '')
    events.addEventListener('progress', ({ data }) => {
      const update = /** @type {Update} */ (JSON.parse(data))
      show(update.parts)
      announce(update.percent)
      refreshRows()
    })
    events.addEventListener('end', ({ data }) => {
      events?.close()
      show(/** @type {Update} */ (JSON.parse(data)).parts)
      live.dispatchEvent(new Event('ended'))
    })
    events.addEventListener('error', () => {
      showConnectionLost()
      // The browser reconnects by itself unless the stream was rejected.
      if (events?.readyState === EventSource.CLOSED) setTimeout(reconnect, RETRY_MS)
    })
  }
  const reconnect = () => {
    if (live.isConnected) connect()
  }
  connect()
}

/** The parts as the server sent them last: scripts have added local times to those of the page. */
const shown = /** @type {Map<string, string>} */ (new Map())

/** Inserts the parts that have changed; one with the keyboard focus waits for its next change. */
function show(/** @type {string[]} */ parts) {
  for (const markup of parts) {
    const [, id = ''] = / id="([^"]+)"/.exec(markup) ?? []
    const before = document.getElementById(id)
    if (before === null || before.contains(document.activeElement)) continue
    if (shown.get(id) === markup) continue
    shown.set(id, markup)
    keepHeight(before)
    const part = replacePart(markup)
    if (part !== null) htmxOf(window).process(part)
  }
}

/** What is below the waits moves only when there are more of them than before. */
function keepHeight(/** @type {HTMLElement} */ part) {
  const box = part.closest('.waits')
  if (box instanceof HTMLElement) box.style.minHeight = `${box.offsetHeight}px`
}

/** Announces the progress to screen readers in steps of 10%. */
function createAnnouncer() {
  let announced = 0
  return (/** @type {number} */ percent) => {
    const tenth = Math.floor(percent / 10)
    const element = document.querySelector('#live-said')
    if (tenth > announced && element !== null)
      element.textContent = `${tenth * 10}% of the rows have a result.`
    announced = tenth
  }
}

/**
 * Replaces the pending rows of the page of rows that have a result now, with the rows that the server
 * renders for a page. An event of the stream causes the request, but the stream does not carry the
 * rows: which rows are shown is in the URL of the page, which changes with each page, filter and typed
 * letter while the stream stays open. A stream of rows would have to be reopened for each of them, and
 * an account can open 20. Only the page knows whether it is visible and still has pending rows, so
 * that nothing is read for a hidden page, and how long its rows took to read.
 */
async function refreshRows() {
  const isPending = document.querySelector('#rows tr[data-pending]') !== null
  const startedAt = Date.now()
  if (!isPending || document.hidden || startedAt < rowsDueAt) return
  rowsDueAt = Number.POSITIVE_INFINITY
  const headers = { 'HX-Request': 'true', 'HX-Target': 'rows' }
  // The next event of progress tries again.
  const text = await fetch(location.pathname + location.search, { headers })
    .then(response => (response.ok ? response.text() : ''))
    .catch(() => '')
  rowsDueAt = startedAt + Math.max(ROWS_MS, ROWS_PAUSE_FACTOR * (Date.now() - startedAt))
  const { body } = new DOMParser().parseFromString(text, 'text/html')
  for (const row of body.querySelectorAll('#rows tr[id]:not([data-pending])')) {
    // The user may have opened another page of rows in the meantime.
    const pending = document.querySelector(`#${row.id}[data-pending]`)
    if (pending === null || pending.contains(document.activeElement)) continue
    pending.replaceWith(row)
    htmxOf(window).process(row)
  }
}

const htmxOf = (/** @type {object} */ global) =>
  /** @type {{ htmx: { process(element: Element): void } }} */ (global).htmx

/** Starts watching if the page shows an active list. */
function watchLive(/** @type {ParentNode} */ root) {
  const live = root.querySelector('#live')
  if (live instanceof HTMLElement) watch(live)
}

/** A click on a class in the donut or the bar of progress follows its link in the legend. */
document.addEventListener('click', ({ target }) => {
  if (!(target instanceof Element)) return
  const part = target.closest('.donut circle, #live-bar rect')
  const kind = /^fill-(\w+)$/.exec(part?.classList.value ?? '')?.[1]
  const link = document.querySelector(`.donut .legend li:has(.is-${kind}) a`)
  if (link instanceof HTMLElement) link.click()
})

// htmx adds its listeners at this event, before this script: without them the end of a list is missed.
document.addEventListener('DOMContentLoaded', () => watchLive(document))
// Close the stream when the page enters the back/forward cache, and reopen it on return.
addEventListener('pagehide', () => events?.close())
addEventListener('pageshow', event => {
  if (event.persisted) watchLive(document)
})
