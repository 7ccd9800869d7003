import { setTimeout as sleep } from 'node:timers/promises'
import pLimit from 'p-limit'
import { median, percentile } from '../engine/figures.ts'
import { get, post, singles } from './load.ts'
import type { Served } from './servers.ts'

/** Maximum number of addresses in one request. */
const ROWS = 50_000
const SINGLES = 500
const SINGLES_PER_SECOND = 25
/** Wait after the import of the list, before single verifications are measured. */
const AHEAD_MS = 2_000
/** Maximum ratio of the p95 while a list is processed to the p95 without it. */
const P95_RATIO_MAX = 1.5

/** Number of large lists that are processed at the same time. */
const LISTS = 8
/** How many large lists an account may submit at the same time. */
const SUBMITTED_MAX = 5
/** Time for which the memory is sampled while the lists are processed. */
const LISTS_SECONDS = 30
const LISTS_MAX_MIB = 400

const STEADY_SINGLES_PER_SECOND = 200
const STEADY_ROWS = 5_000
const STEADY_EVERY_MS = 20_000
const STEADY_MAX_MIB = 300
/** Interval between two memory samples. */
const POLL_MS = 100

type Start = () => Promise<Served>
type Say = (line: string) => void

/**
 * Measures single verifications and memory while large lists are processed. Returns the failed
 * checks.
 */
export async function compareLists(start: Start, domains: number, seconds: number, print: Say) {
  const parts = [compareSingles, compareMemory, compareSteady]
  const faults: string[] = []
  for (const part of parts) {
    const served = await start()
    try {
      faults.push(...(await part(served, domains, print, seconds)))
    } finally {
      await served.close()
    }
  }
  return faults
}

async function compareSingles(served: Served, domains: number, print: Say): Promise<string[]> {
  const rate = { count: SINGLES, perSecond: SINGLES_PER_SECOND, domains }
  await singles(served, { ...rate, name: 'warm' })
  await loopDelayMs(served)
  const idle = await singles(served, { ...rate, name: 'idle' })
  const idleDelayMs = await loopDelayMs(served)
  const { job_id } = await submit(served, ROWS, domains, 'parallel')
  const importDelayMs = await loopDelayMs(served)
  await sleep(AHEAD_MS)
  const busy = await singles(served, { ...rate, name: 'busy' })
  const busyDelayMs = await loopDelayMs(served)
  const { status, progress } = await get(served, `/v1/jobs/${job_id}`)
  await post(served, `/v1/jobs/${job_id}/cancel`, {}).catch(() => {})
  const ratio = percentile(busy, 0.95) / percentile(idle, 0.95)
  print(
    `${SINGLES_PER_SECOND} singles per second: ${latencyText(idle)} alone, ${latencyText(busy)} during a list of ` +
      `${ROWS.toLocaleString('en')}, which was then ${status} at ${progress} % (p95 **${ratio.toFixed(2)}×**).`,
  )
  print(
    `Longest pause of the event loop: ${idleDelayMs.toFixed(0)} ms alone, ${importDelayMs.toFixed(0)} ms while the list ` +
      `was accepted, ${busyDelayMs.toFixed(0)} ms while it was processed.`,
  )
  return ratio > P95_RATIO_MAX ? [`p95 of singles grew ${ratio.toFixed(2)}×`] : []
}

async function compareMemory(served: Served, domains: number, print: Say): Promise<string[]> {
  await loopDelayMs(served)
  const before = served.memory().now
  const started = performance.now()
  const limit = pLimit(SUBMITTED_MAX)
  const names = Array.from({ length: LISTS }, (_, at) => `list${at}`)
  await Promise.all(names.map(name => limit(() => submit(served, ROWS, domains, name))))
  const takenMs = performance.now() - started
  const { peak: taken } = served.memory()
  const delayMs = await loopDelayMs(served)
  await sleep(LISTS_SECONDS * 1_000)
  const { now, peak } = served.memory()
  print(
    `${LISTS} lists of ${ROWS.toLocaleString('en')} at once were accepted in ${(takenMs / 1_000).toFixed(1)} s, with pauses ` +
      `of at most ${delayMs.toFixed(0)} ms; memory went from ${before.toFixed(0)} to ${taken.toFixed(0)} MiB, ` +
      `${peak.toFixed(0)} MiB at most and ${now.toFixed(0)} MiB after ${LISTS_SECONDS} s of processing.`,
  )
  return peak > LISTS_MAX_MIB ? [`${LISTS} lists took ${peak.toFixed(0)} MiB`] : []
}

async function compareSteady(
  served: Served,
  domains: number,
  print: Say,
  seconds: number,
): Promise<string[]> {
  await loopDelayMs(served)
  const samples: number[] = []
  const sampling = setInterval(() => samples.push(served.memory().now), POLL_MS)
  const count = STEADY_SINGLES_PER_SECOND * seconds
  const answered = singles(served, {
    count,
    perSecond: STEADY_SINGLES_PER_SECOND,
    domains,
    name: 'steady',
  })
  for (let at = 0; at * STEADY_EVERY_MS < seconds * 1_000; at++) {
    await submit(served, STEADY_ROWS, domains, `steady${at}`)
    await sleep(Math.min(STEADY_EVERY_MS, seconds * 1_000 - at * STEADY_EVERY_MS))
  }
  const took = await answered
  clearInterval(sampling)
  const last = median(samples.slice(-STEADY_EVERY_MS / POLL_MS))
  const { peak } = served.memory()
  print(
    `${STEADY_SINGLES_PER_SECOND} singles per second and ${STEADY_ROWS.toLocaleString('en')} rows every ` +
      `${STEADY_EVERY_MS / 1_000} s for ${seconds} s: ${latencyText(took)}; memory ${last.toFixed(0)} MiB in the last ` +
      `${STEADY_EVERY_MS / 1_000} s, ${peak.toFixed(0)} MiB at most; longest pause ${(await loopDelayMs(served)).toFixed(0)} ms.`,
  )
  return last > STEADY_MAX_MIB ? [`the steady load takes ${last.toFixed(0)} MiB`] : []
}

const latencyText = (tookMs: readonly number[]) =>
  `median ${median(tookMs).toFixed(0)}, p95 ${percentile(tookMs, 0.95).toFixed(0)}, p99 ${percentile(tookMs, 0.99).toFixed(0)} ms`

function submit(served: Served, rows: number, domains: number, name: string) {
  const emails = Array.from({ length: rows }, (_, i) => `user${i}.${name}@d${i % domains}.example`)
  return post(served, '/v1/verify/batch', { emails })
}

/** Returns the longest delay of the event loop since the last call. */
async function loopDelayMs({ url }: Served): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text()
  return Number(/^nodejs_eventloop_lag_max_seconds ([\d.e+-]+)$/m.exec(text)?.[1]) * 1_000
}
