// Watches a list that is under way: the numbers change in their places, and at its end the results are put in.

/** @typedef {{ status: string, total_emails: number, processed_emails: number, classes: Record<string, number>,
 *   rate_per_second: number | null, seconds_left: number | null }} Progress */

/** After so long somebody asks again whom the service turned away, as where too many watch at the same time. */
const AGAIN_MS = 10_000

/** One at a time. */
let events = /** @type {EventSource | null} */ (null)

function watch(/** @type {HTMLElement} */ live) {
  // Another page of rows may have been chosen meanwhile: that one is to be seen at the end too.
  live.addEventListener('htmx:configRequest', event => {
    const { detail } = /** @type {CustomEvent} */ (event)
    detail.path = location.pathname + location.search
  })
  const said = sayer(live)
  function listen() {
    events?.close()
    events = new EventSource(live.dataset.events ?? '')
    events.addEventListener('progress', ({ data }) => {
      const progress = /** @type {Progress} */ (JSON.parse(data))
      show(live, progress)
      said(progress)
    })
    events.addEventListener('end', ({ data }) => {
      events?.close()
      show(live, JSON.parse(data))
      live.dispatchEvent(new Event('ended'))
    })
    events.addEventListener('error', () => {
      // What is only interrupted is taken up again by the browser.
      if (events?.readyState === EventSource.CLOSED) setTimeout(listenIfShown, AGAIN_MS)
    })
  }
  const listenIfShown = () => {
    if (live.isConnected) listen()
  }
  listen()
}

function show(/** @type {HTMLElement} */ live, /** @type {Progress} */ progress) {
  const { processed_emails: done, rate_per_second: rate, seconds_left: left } = progress
  const bar = live.querySelector('progress')
  if (bar !== null) bar.value = done
  put(live, 'done', NUMBER.format(done))
  put(live, 'rate', rate === null ? '–' : `${rateInWords(rate)} rows a second`)
  put(live, 'left', left === null ? '–' : `about ${inWords(left)}`)
  for (const [kind, count] of Object.entries(progress.classes))
    put(live, kind, NUMBER.format(count))
}

const NUMBER = new Intl.NumberFormat('en', { maximumFractionDigits: 1 })

function put(
  /** @type {HTMLElement} */ live,
  /** @type {string} */ what,
  /** @type {string} */ text,
) {
  const place = live.querySelector(`[data-live="${what}"]`)
  if (place !== null && place.textContent !== text) place.textContent = text
}

/** A tenth matters where it is slow. */
const rateInWords = (/** @type {number} */ rate) =>
  NUMBER.format(rate < 10 ? rate : Math.round(rate))

/** Rounded, so that it does not flicker. */
function inWords(/** @type {number} */ seconds) {
  if (seconds < 60) return `${Math.max(5, Math.ceil(seconds / 5) * 5)} s`
  const minutes = Math.ceil(seconds / 60)
  if (minutes < 120) return `${minutes} min`
  return `${Math.ceil(minutes / 30) / 2} h`
}

/** Tells who listens rather than looks how far it is, every tenth of the way. */
function sayer(/** @type {HTMLElement} */ live) {
  let told = 0
  return (/** @type {Progress} */ { processed_emails: done, total_emails: total }) => {
    const tenth = Math.floor((10 * done) / total)
    if (tenth > told) put(live, 'said', `${tenth * 10} % of the rows are done.`)
    told = tenth
  }
}

/** A list that was resumed is watched as one that was there from the start. */
function look(/** @type {ParentNode} */ root) {
  const live = root.querySelector('#live')
  if (live instanceof HTMLElement) watch(live)
}

look(document)
// A page that is left keeps no connection open: browsers may keep it to go back to.
addEventListener('pagehide', () => events?.close())
addEventListener('pageshow', event => {
  if (event.persisted) look(document)
})
