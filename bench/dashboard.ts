// How long pages take to be seen, and how large they are; with --minutes also what a browser needs while it watches a
// list: node bench/dashboard.ts [--minutes N]. Wants a build.
import { setTimeout } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { startChromium } from '../test/dashboard/browser/chromium.ts'
import { measurePages, openPage } from './dashboard/pages.ts'
import { watchMemory } from './dashboard/watching.ts'
import { machine } from './engine/figures.ts'
import { get, post } from './http/load.ts'
import { type Served, startService } from './http/servers.ts'

const DOMAINS = 20
/** Rows of the list that pages show. */
const ROWS = 10_000
/** Rows of the list that is watched: more than are done in the time. */
const LONG_ROWS = 50_000

async function main(): Promise<void> {
  const { values } = parseArgs({ options: { minutes: { type: 'string', default: '0' } } })
  const served = await startService(scenario())
  const browser = await startChromium()
  try {
    console.log(`Machine: ${machine()}.\n`)
    const page = await openPage(browser, served)
    const job = await finished(served, ROWS)
    // Else there is no chart of the days.
    await post(served, '/v1/verify/single', { email: 'user@d0.example' })
    const faults = await measurePages(page, job, console.log)
    const minutes = Number(values.minutes)
    if (minutes > 0) {
      const { job_id } = await submit(served, LONG_ROWS, false)
      const watching = await openPage(browser, served)
      faults.push(...(await watchMemory(watching, `${job_id}`, minutes, console.log)))
      await post(served, `/v1/jobs/${job_id}/cancel`, {})
    }
    console.log(
      faults.length === 0 ? '\nAll checks hold.' : `\nDoes not hold:\n- ${faults.join('\n- ')}`,
    )
    if (faults.length > 0) process.exitCode = 1
  } finally {
    await browser.close()
    await served.close()
  }
}

/** Servers that take their time, so that a list lasts. */
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

/** A list of the sandbox, whose results are of all kinds and there at once. */
async function finished(served: Served, rows: number): Promise<string> {
  const { job_id } = await submit(served, rows, true)
  while ((await get(served, `/v1/jobs/${job_id}`)).status !== 'completed') await setTimeout(200)
  return `${job_id}`
}

async function submit(served: Served, rows: number, isSandbox: boolean) {
  const emails = Array.from({ length: rows }, (_, i) => `user${i}@d${i % DOMAINS}.example`)
  const response = await fetch(`${served.url}/v1/verify/batch`, {
    method: 'POST',
    headers: {
      ...{ Authorization: `Bearer ${served.key}`, 'Content-Type': 'application/json' },
      ...(isSandbox && { 'X-EV-Sandbox': 'true' }),
    },
    body: JSON.stringify({ emails, name: 'Bench' }),
  })
  return (await response.json()) as { job_id: string }
}

await main()
