import { setTimeout as sleep } from 'node:timers/promises'
import { median, percentile } from '../engine/figures.ts'
import type { Served } from './servers.ts'

/** Maximum number of addresses in one request. */
const BATCH = 50_000
const ACCEPTED_MAX_MS = 2_000
const SINGLES = 200
/** Single verifications per second. */
const SINGLES_PER_SECOND = 20
/** Maximum ratio of the p95 while a list is processed to the p95 without it. */
const P95_RATIO_MAX = 1.5
const MEMORY_MAX_MIB = 300

/** Measures single verifications while a batch is processed. Returns the failed checks. */
export async function compareLoad(served: Served, domains: number, print: (line: string) => void) {
  const faults: string[] = []
  const rate = { count: SINGLES, perSecond: SINGLES_PER_SECOND, domains }
  const idle = await singles(served, { ...rate, name: 'a' })
  const emails = Array.from({ length: BATCH }, (_, i) => `user${i}.list@d${i % domains}.example`)
  const started = performance.now()
  const { job_id } = await post(served, '/v1/verify/batch', { emails })
  const acceptedMs = performance.now() - started
  const busy = await singles(served, { ...rate, name: 'b' })
  const { status, progress } = await get(served, `/v1/jobs/${job_id}`)
  const p95 = { idle: percentile(idle, 0.95), busy: percentile(busy, 0.95) }
  const ratio = p95.busy / p95.idle
  const { peak } = served.memory()
  print(`A batch of ${BATCH.toLocaleString('en')} was accepted in ${acceptedMs.toFixed(0)} ms.`)
  print(
    `Singles, all uncached: median ${median(idle).toFixed(0)} ms and p95 ${p95.idle.toFixed(0)} ms idle; ` +
      `${median(busy).toFixed(0)} and ${p95.busy.toFixed(0)} ms during the batch (**${ratio.toFixed(2)}×**), which was then ${status} at ${progress} %.`,
  )
  print(`Peak memory of the service so far: ${peak.toFixed(0)} MiB.`)
  if (acceptedMs > ACCEPTED_MAX_MS)
    faults.push(`the batch was accepted in ${acceptedMs.toFixed(0)} ms`)
  if (status !== 'processing') faults.push(`the batch was ${status} while singles were measured`)
  if (ratio > P95_RATIO_MAX) faults.push(`p95 of singles grew ${ratio.toFixed(2)}×`)
  if (peak > MEMORY_MAX_MIB) faults.push(`the service took ${peak.toFixed(0)} MiB`)
  await post(served, `/v1/jobs/${job_id}/cancel`, {})
  return faults
}

type Rate = {
  readonly count: number
  readonly perSecond: number
  readonly domains: number
  readonly name: string
}

/** Returns the latencies, in ms, of single verifications of distinct addresses at a steady rate. */
export async function singles(served: Served, { count, perSecond, domains, name }: Rate) {
  const startedAt = performance.now()
  const taken: Promise<number>[] = []
  for (let i = 0; i < count; i++) {
    await sleep(Math.max(0, startedAt + (i * 1_000) / perSecond - performance.now()))
    const took = single(served, `user.${name}${i}@d${i % domains}.example`)
    // A failure is thrown at the end.
    took.catch(() => {})
    taken.push(took)
  }
  return Promise.all(taken)
}

async function single(served: Served, email: string): Promise<number> {
  const startedAt = performance.now()
  const { reason } = await post(served, '/v1/verify/single', { email })
  if (reason !== 'accepted_email') throw new Error(`${email} ended as ${reason}`)
  return performance.now() - startedAt
}

type Answer = Readonly<Record<string, string | number>>

export const post = (
  served: Served,
  path: string,
  body: unknown,
  headers: Record<string, string> = {},
) => ask(served, path, { method: 'POST', body: JSON.stringify(body), headers })

export const get = (served: Served, path: string) => ask(served, path, { headers: {} })

async function ask(
  { url, key }: Served,
  path: string,
  { headers, ...init }: RequestInit & { headers: Record<string, string> },
): Promise<Answer> {
  const response = await fetch(url + path, {
    ...init,
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...headers },
  })
  const answer = (await response.json()) as Answer
  if (!response.ok) throw new Error(`${path} answered ${response.status}: ${answer.error}`)
  return answer
}
