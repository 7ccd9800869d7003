// Measures the size and first paint of the dashboard pages, and with --minutes the browser load
// while it shows a running list. Needs a build.
// node bench/dashboard.ts [--minutes N]
import { setTimeout } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { startChromium } from '../test/dashboard/browser/chromium.ts'
import { measurePages, openPage } from './dashboard/pages.ts'
import { watchMemory } from './dashboard/watching.ts'
import { machine } from './engine/figures.ts'
import { get, post } from './http/load.ts'
import { type Served, startService } from './http/servers.ts'

const DOMAINS = 20
/** Rows of the list on the pages. */
const ROWS = 10_000
/** Rows of the running list: more than can be processed during the measurement. */
const LONG_ROWS = 50_000

async function main(): Promise<void> {
  const { values } = parseArgs({ options: { minutes: { type: 'string', default: '0' } } })
  const served = await startService(scenario())
  const browser = await startChromium()
  try {
    console.log(`Machine: ${machine()}.\n`)
    const page = await openPage(browser, served)
    const job = await completeJob(served, ROWS)
    // Makes the usage page show its chart.
    await post(served, '/v1/verify/single', { email: 'user@d0.example' })
    const faults = await measurePages(page, job, console.log)
    const minutes = Number(values.minutes)
    if (minutes > 0) {
      const { job_id } = await submit(served, LONG_ROWS, false)
      const runningPage = await openPage(browser, served)
      faults.push(...(await watchMemory(runningPage, `${job_id}`, minutes, console.log)))
      await post(served, `/v1/jobs/${job_id}/cancel`, {})
    }
    console.log(
      faults.length === 0 ? '\nAll checks passed.' : `\nFailed checks:\n- ${faults.join('\n- ')}`,
    )
    if (faults.length > 0) process.exitCode = 1
  } finally {
    await browser.close()
    await served.close()
  }
}

/** Slow servers, so that the list keeps running. */
function scenario() {
  const names = Array.from({ length: DOMAINS }, (_, i) => i)
  return {
    domains: Object.fromEntries(
      names.map(i => [`d${i}.example`, { mx: [[10, `mx${i}.test`] as const] }]),
    ),
    hosts: Object.fromEntries(
      names.map(i => [`mx${i}.test`, { behavior: 'slow' as const, ms: 400, mailboxes: ['*'] }]),
    ),
  }
}

/** Completes a simulated list with results of every class. */
async function completeJob(served: Served, rows: number): Promise<string> {
  const { job_id } = await submit(served, rows, true)
  while ((await get(served, `/v1/jobs/${job_id}`)).status !== 'completed') await setTimeout(200)
  return `${job_id}`
}

async function submit(served: Served, rows: number, isSandbox: boolean) {
  const emails = Array.from({ length: rows }, (_, i) => `user${i}@d${i % DOMAINS}.example`)
  const response = await fetch(`${served.url}/v1/verify/batch`, {
    method: 'POST',
    headers: {
      Authorization: `Bearer ${served.key}`,
      'Content-Type': 'application/json',
      ...(isSandbox && { 'X-EV-Sandbox': 'true' }),
    },
    body: JSON.stringify({ emails, name: 'Bench' }),
  })
  return (await response.json()) as { job_id: string }
}

await main()
