import type { Browser, Page } from 'playwright-core'
import { median } from '../engine/figures.ts'
import type { Served } from '../http/servers.ts'

const FIRST_PAINT_MAX_MS = 100
const PAGE_BYTES_MAX = 150_000
/** Number of loads of each page; the first one has an empty cache. */
const LOADS = 7

const LATE_MS = 500

/** Opens a signed-in page. */
export async function openPage(browser: Browser, served: Served): Promise<Page> {
  const context = await browser.newContext({ baseURL: served.url })
  const page = await context.newPage()
  await page.goto('/sign-in')
  await page.getByLabel('API key').fill(served.key)
  await page.keyboard.press('Enter')
  await page.waitForURL('**/verify')
  return page
}

type PageLoad = {
  /** Bytes of the page and its files, decoded. */
  readonly size: number
  readonly sent: number
  /** Time to the first byte. */
  readonly answeredMs: number
  readonly paintedMs: number
}

/** Prints a table of all pages. Returns the failed checks. */
export async function measurePages(page: Page, job: string, print: (line: string) => void) {
  const faults: string[] = []
  print('| page | size, all files | as sent the first time | answered | first paint |')
  print('|---|---|---|---|---|')
  for (const path of paths(job)) {
    // A signed-in user is redirected from the sign-in page.
    if (path === '/sign-in') await page.context().clearCookies()
    const first = await open(page, path, true)
    const again: PageLoad[] = []
    for (let load = 1; load < LOADS; load++) again.push(await open(page, path, false))
    const [answered, painted] = [
      median(again.map(one => one.answeredMs)),
      median(again.map(one => one.paintedMs)),
    ]
    const name = path.replace(job, '…')
    print(
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

async function open(page: Page, path: string, isFirst: boolean): Promise<PageLoad> {
  const session = await page.context().newCDPSession(page)
  if (isFirst) await session.send('Network.clearBrowserCache')
  await page.goto(path, { waitUntil: 'load' })
  // Some files, such as those of the chart, are requested after the load.
  if (isFirst) await page.waitForTimeout(LATE_MS)
  // The paint may follow the load.
  const opened = await page.evaluate<PageLoad>(TIMES)
  await session.detach()
  return opened
}

const TIMES = `new Promise(resolve => {
  const poll = () => {
    const paint = performance.getEntriesByName('first-contentful-paint')[0]
    if (paint === undefined) return requestAnimationFrame(poll)
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
  poll()
})`
