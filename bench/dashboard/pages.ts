import type { Browser, Page } from 'playwright-core'
import { median } from '../engine/figures.ts'
import type { Served } from '../http/servers.ts'

const FIRST_PAINT_MAX_MS = 100
const PAGE_BYTES_MAX = 150_000
/** How often each page is opened; the first time its files are not yet there. */
const TURNS = 7

const LATE_MS = 500

/** A page of somebody who signed in. */
export async function openPage(browser: Browser, served: Served): Promise<Page> {
  const context = await browser.newContext({ baseURL: served.url })
  const page = await context.newPage()
  await page.goto('/sign-in')
  await page.getByLabel('API key').fill(served.key)
  await page.keyboard.press('Enter')
  await page.waitForURL('**/verify')
  return page
}

type Opened = {
  /** Bytes of the page and of all that it needs, as they are when unpacked; and as they came. */
  readonly size: number
  readonly sent: number
  /** Until its first byte was there, and until something was seen. */
  readonly answeredMs: number
  readonly paintedMs: number
}

/** A table of all pages; gives what does not hold. */
export async function measurePages(page: Page, job: string, say: (line: string) => void) {
  const faults: string[] = []
  say('| page | size, all files | as sent the first time | answered | first paint |')
  say('|---|---|---|---|---|')
  for (const path of paths(job)) {
    // Who is signed in is led on from there.
    if (path === '/sign-in') await page.context().clearCookies()
    const first = await open(page, path, true)
    const again: Opened[] = []
    for (let turn = 1; turn < TURNS; turn++) again.push(await open(page, path, false))
    const [answered, painted] = [
      median(again.map(one => one.answeredMs)),
      median(again.map(one => one.paintedMs)),
    ]
    const name = path.replace(job, '…')
    say(
      `| ${name} | ${kilobytes(first.size)} | ${kilobytes(first.sent)} | ${answered.toFixed(0)} ms | ${painted.toFixed(0)} ms |`,
    )
    if (painted > FIRST_PAINT_MAX_MS)
      faults.push(`${name} is painted after ${painted.toFixed(0)} ms`)
    if (first.size > PAGE_BYTES_MAX) faults.push(`${name} is ${kilobytes(first.size)}`)
  }
  return faults
}

const paths = (job: string) => [
  ...['/verify', '/lists', '/lists/new', `/lists/${job}`, '/keys', '/keys/new'],
  ...['/webhooks', '/webhooks/new', '/usage', '/doctor', '/sessions', '/sign-in'],
]

const kilobytes = (bytes: number) => `${(bytes / 1_000).toFixed(1)} KB`

async function open(page: Page, path: string, isFirst: boolean): Promise<Opened> {
  const session = await page.context().newCDPSession(page)
  if (isFirst) await session.send('Network.clearBrowserCache')
  await page.goto(path, { waitUntil: 'load' })
  // Some files are asked for only then, such as those of the chart.
  if (isFirst) await page.waitForTimeout(LATE_MS)
  // The paint comes with a frame, which may be after the load.
  const opened = await page.evaluate<Opened>(TIMES)
  await session.detach()
  return opened
}

const TIMES = `new Promise(resolve => {
  const look = () => {
    const paint = performance.getEntriesByName('first-contentful-paint')[0]
    if (paint === undefined) return requestAnimationFrame(look)
    const [page] = performance.getEntriesByType('navigation')
    const files = performance.getEntriesByType('resource')
    const sum = name => files.reduce((all, file) => all + file[name], page[name])
    resolve({
      size: sum('decodedBodySize'),
      sent: sum('transferSize'),
      answeredMs: page.responseStart,
      paintedMs: paint.startTime,
    })
  }
  look()
})`
