// Updates the progress of an active list in place and loads the results when it ends.

import { showConnectionLost } from './app.js'

/**
 * @typedef {{ status: string, total_emails: number, processed_emails: number,
 *   classes: Record<string, number>, rate_per_second: number | null,
 *   seconds_left: number | null }} Progress
 */

/** Delay before reconnecting after the service rejected the stream, as when too many are open. */
const RETRY_MS = 10_000

/** The only open stream. */
let events = /** @type {EventSource | null} */ (null)

function watch(/** @type {HTMLElement} */ live) {
  // At the end, load the page of rows that is shown now, not the initial one.
  live.addEventListener('htmx:configRequest', event => {
    const { detail } = /** @type {CustomEvent} */ (event)
    detail.path = location.pathname + location.search
  })
  const announce = createAnnouncer(live)
  function connect() {
    events?.close()
    events = new EventSource(live.dataset.events ?? '')
    events.addEventListener('progress', ({ data }) => {
      const progress = /** @type {Progress} */ (JSON.parse(data))
      show(live, progress)
      announce(progress)
    })
    events.addEventListener('end', ({ data }) => {
      events?.close()
      show(live, JSON.parse(data))
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

function show(/** @type {HTMLElement} */ live, /** @type {Progress} */ progress) {
  const { processed_emails: done, rate_per_second: rate, seconds_left: left } = progress
  const bar = live.querySelector('progress')
  if (bar !== null) bar.value = done
  put(live, 'done', NUMBER.format(done))
  put(live, 'rate', rate === null ? '–' : `${formatRate(rate)} rows per second`)
  put(live, 'left', left === null ? '–' : `about ${formatSeconds(left)}`)
  for (const [kind, count] of Object.entries(progress.classes))
    put(live, kind, NUMBER.format(count))
}

const NUMBER = new Intl.NumberFormat('en', { maximumFractionDigits: 1 })

function put(
  /** @type {HTMLElement} */ live,
  /** @type {string} */ what,
  /** @type {string} */ text,
) {
  const element = live.querySelector(`[data-live="${what}"]`)
  if (element !== null && element.textContent !== text) element.textContent = text
}

/** Shows one decimal below 10 rows per second. */
const formatRate = (/** @type {number} */ rate) =>
  NUMBER.format(rate < 10 ? rate : Math.round(rate))

/** Rounds the duration coarsely, so that it does not flicker. */
function formatSeconds(/** @type {number} */ seconds) {
  if (seconds < 60) return `${Math.max(5, Math.ceil(seconds / 5) * 5)} s`
  const minutes = Math.ceil(seconds / 60)
  if (minutes < 120) return `${minutes} min`
  return `${Math.ceil(minutes / 30) / 2} h`
}

/** Announces the progress to screen readers in steps of 10 %. */
function createAnnouncer(/** @type {HTMLElement} */ live) {
  let announced = 0
  return (/** @type {Progress} */ { processed_emails: done, total_emails: total }) => {
    const tenth = Math.floor((10 * done) / total)
    if (tenth > announced) put(live, 'said', `${tenth * 10} % of the rows are done.`)
    announced = tenth
  }
}

/** Starts watching if the page shows an active list. */
function watchLive(/** @type {ParentNode} */ root) {
  const live = root.querySelector('#live')
  if (live instanceof HTMLElement) watch(live)
}

watchLive(document)
// Close the stream when the page enters the back/forward cache, and reopen it on return.
addEventListener('pagehide', () => events?.close())
addEventListener('pageshow', event => {
  if (event.persisted) watchLive(document)
})
