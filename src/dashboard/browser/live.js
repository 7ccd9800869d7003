// Updates the progress of an active list in place and loads the results when it ends.

import { showConnectionLost } from './app.js'

/**
 * @typedef {{ status: string, total_emails: number, processed_emails: number,
 *   classes: Record<string, number>, rate_per_second: number | null,
 *   seconds_left: number | null, waiting_for?: Wait[] }} Progress
 * @typedef {{ reason: string, detail: string, until: string | null }} Wait
 */

import { enhance } from './app.js'

/** Delay before reconnecting after the service rejected the stream, as when too many are open. */
const RETRY_MS = 10_000

/** Longest time between a change and the next request for the counts of the reasons. */
const REASONS_MS = 10_000
/** The same while the number of results doubles in that time, as at the start of a list. */
const GROWING_REASONS_MS = 1_000
let reasonsTimer = 0

/** Minimum time between two requests for the page of rows. */
const ROWS_MS = 2_000
let rowsRequestedAt = 0

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
      const progress = /** @type {Progress} */ (JSON.parse(data))
      show(live, progress)
      announce(progress)
      refreshRows()
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
  refreshReasons(live)
}

function show(/** @type {HTMLElement} */ live, /** @type {Progress} */ progress) {
  const { processed_emails: done, total_emails: total, rate_per_second: rate } = progress
  const bar = live.querySelector('progress')
  if (bar !== null) bar.value = done
  showClasses(live, progress)
  put('percent', `${Math.floor((100 * done) / total)}%`)
  put('done', NUMBER.format(done))
  put('rate', rate === null ? '–' : formatRate(rate))
  put(
    'left',
    progress.seconds_left === null ? '–' : `about ${formatSeconds(progress.seconds_left)}`,
  )
  showWaits(live, progress.waiting_for ?? [])
}

/** Updates the counts of the classes, the stacked bar and the donut. */
function showClasses(/** @type {HTMLElement} */ live, /** @type {Progress} */ progress) {
  const { processed_emails: done, total_emails: total } = progress
  let before = 0
  for (const [kind, count] of Object.entries(progress.classes)) {
    const share = (100 * count) / Math.max(1, done)
    put(kind, NUMBER.format(count))
    put(`${kind}-share`, formatShare(share))
    set(live.querySelector(`[data-live-bar] .fill-${kind}`), {
      x: (100 * before) / total,
      width: (100 * count) / total,
    })
    set(document.querySelector(`.donut circle.fill-${kind}`), {
      'stroke-dasharray': `${share} ${100 - share}`,
      'stroke-dashoffset': 25 - (100 * before) / Math.max(1, done),
    })
    before += count
  }
}

function set(
  /** @type {Element | null} */ element,
  /** @type {Record<string, string | number>} */ attributes,
) {
  for (const [name, value] of Object.entries(attributes)) element?.setAttribute(name, `${value}`)
}

/** Lists what the list waits for and until when. */
function showWaits(/** @type {HTMLElement} */ live, /** @type {Wait[]} */ waits) {
  const list = live.querySelector('[data-live-waits]')
  if (!(list instanceof HTMLElement)) return
  const { liveWaits: idle = '', healthFor = '' } = list.dataset
  const items = waits.map(wait => createWait(wait, healthFor.split(' ').includes(wait.reason)))
  list.replaceChildren(...(items.length > 0 ? items : [createItem(idle)]))
  enhance(list)
}

function createWait(/** @type {Wait} */ { detail, until }, /** @type {boolean} */ hasLink) {
  const item = createItem()
  if (until !== null && detail.includes(until)) {
    const time = document.createElement('time')
    time.setAttribute('datetime', until)
    const [before = '', after = ''] = detail.split(until)
    item.append(before, time, after)
  } else item.append(detail)
  if (hasLink) {
    const link = document.createElement('a')
    link.href = '/doctor'
    link.textContent = 'Health'
    item.append(' See ', link, '.')
  }
  return item
}

function createItem(text = '') {
  const item = document.createElement('li')
  item.textContent = text
  return item
}

const NUMBER = new Intl.NumberFormat('en', { maximumFractionDigits: 1 })

/** Sets the text of all elements that show this value. */
function put(/** @type {string} */ what, /** @type {string} */ text) {
  for (const element of document.querySelectorAll(`[data-live="${what}"]`))
    if (element.textContent !== text) element.textContent = text
}

/** Formats a percentage as `formatPercent` of the server does. */
function formatShare(/** @type {number} */ share) {
  if (share === 0 || share === 100) return `${share}%`
  return share < 0.05 ? '< 0.1%' : `${Math.min(share, 99.9).toFixed(1)}%`
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

/** Announces the progress to screen readers in steps of 10%. */
function createAnnouncer() {
  let announced = 0
  return (/** @type {Progress} */ { processed_emails: done, total_emails: total }) => {
    const tenth = Math.floor((10 * done) / total)
    if (tenth > announced) put('said', `${tenth * 10}% of the rows have a result.`)
    announced = tenth
  }
}

/**
 * Requests the counts of the reasons after a change: not while the page is hidden, and not while the keyboard
 * focus is on a reason, which would lose it.
 */
function refreshReasons(/** @type {HTMLElement} */ live) {
  const reasons = document.querySelector('#live-reasons')
  const bar = live.querySelector('progress')
  if (reasons === null || bar === null) return
  let counted = bar.value
  let requestedAt = Date.now()
  const refresh = () => {
    if (!live.isConnected) return
    reasonsTimer = setTimeout(refresh, GROWING_REASONS_MS)
    if (document.hidden || bar.value === counted || reasons.querySelector(':focus')) return
    if (bar.value < 2 * counted && Date.now() - requestedAt < REASONS_MS) return
    counted = bar.value
    requestedAt = Date.now()
    reasons.dispatchEvent(new Event('refresh'))
  }
  clearTimeout(reasonsTimer)
  reasonsTimer = setTimeout(refresh, GROWING_REASONS_MS)
}

/** Replaces the pending rows of the page of rows that have a result now; CSS keeps their height. */
async function refreshRows() {
  const isPending = document.querySelector('#rows tr[data-pending]') !== null
  if (!isPending || document.hidden || Date.now() - rowsRequestedAt < ROWS_MS) return
  rowsRequestedAt = Date.now()
  const headers = { 'HX-Request': 'true', 'HX-Target': 'rows' }
  // The next event of progress tries again.
  const text = await fetch(location.pathname + location.search, { headers })
    .then(response => (response.ok ? response.text() : ''))
    .catch(() => '')
  const { body } = new DOMParser().parseFromString(text, 'text/html')
  for (const row of body.querySelectorAll('#rows tr[id]:not([data-pending])')) {
    // The user may have opened another page of rows meanwhile.
    const shown = document.querySelector(`#${row.id}[data-pending]`)
    if (shown === null) continue
    shown.replaceWith(row)
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
  const part = target.closest('.donut circle, [data-live-bar] rect')
  const kind = /^fill-(\w+)$/.exec(part?.classList.value ?? '')?.[1]
  const link = document.querySelector(`.donut .legend li:has(.is-${kind}) a`)
  if (link instanceof HTMLElement) link.click()
})

watchLive(document)
// Close the stream when the page enters the back/forward cache, and reopen it on return.
addEventListener('pagehide', () => events?.close())
addEventListener('pageshow', event => {
  if (event.persisted) watchLive(document)
})
