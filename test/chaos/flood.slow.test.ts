import { readFileSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { VERIFYING_MAX } from '../../src/api/middleware/admission.ts'
import { runEv } from '../support/ev-process.ts'
import { chaosService } from './service.ts'

/** EV_OVERLOAD_SECONDS=60 is for releases. */
const SECONDS = Number(process.env.EV_OVERLOAD_SECONDS ?? 5)
/** So many requests for each that was served before. */
const OVERLOAD = 10
/** Half as many more as the service lets in: each asks again as soon as it is answered. */
const CLIENTS = 1.5 * VERIFYING_MAX
/** Clients that measure what it serves. */
const QUIET_CLIENTS = 50
/** Plans by account; the last one may ask 20 times a minute. */
const PLANS = ['team', 'team', 'team', 'flooded']
/** The service took 400 MiB; each request that is not given up takes more for as long as the flood lasts. */
const MEMORY_MAX_MIB = 800

/** Only ends what hangs. */
const TIMEOUT_MS = 300_000 + SECONDS * 10_000

test('ten times as many requests as it served before: refused with 429 and 503, nothing is lost or reset', {
  timeout: TIMEOUT_MS,
}, async () => {
  const chaos = await chaosService({ args: ['--sessions-per-second', '1000'] })
  const { service, home, dataDir } = chaos
  const cli = async (...args: string[]) => {
    const ran = await runEv([...args, '--data-dir', dataDir, '--json'], { home })
    expect(ran.code, ran.stderr).toBe(0)
    return JSON.parse(ran.stdout)
  }
  const keys: string[] = []
  for (const [n, plan] of PLANS.entries()) {
    const account = await cli('accounts', 'create', '--name', `flood ${n}`, '--plan', plan)
    keys.push((await cli('keys', 'create', '--name', 'flood', '--account', account.id)).key)
  }
  const workload = chaos.startWorkload()
  await workload.everyKind()
  await workload.stop()

  const statuses = new Map<number, number>()
  const faults: string[] = []
  const count = (status: number) => statuses.get(status) ?? 0
  const ask = async (client: number, n: number) => {
    const email = `user.unkeyed.flood.${client}.${n}@d${client % 20}.test`
    const response = await fetch(`${service.url}/v1/verify/single`, {
      method: 'POST',
      headers: {
        Authorization: `Bearer ${keys[client % keys.length]}`,
        'Content-Type': 'application/json',
      },
      body: JSON.stringify({ email }),
    })
    const { status, headers } = response
    const { reason } = (await response.json()) as { reason: string }
    statuses.set(status, count(status) + 1)
    if (status === 200) workload.acknowledged.singlesWithoutKey.set(email, reason)
    else if (![429, 503].includes(status) || !(Number(headers.get('Retry-After')) >= 1))
      faults.push(`${status}`)
    return status
  }
  // No answer: the connection was reset or refused.
  const note = (error: Error & { cause?: { code?: string } }) =>
    void faults.push(error.cause?.code ?? error.message)
  const clients = (number: number, work: (client: number) => Promise<void>) =>
    Promise.all(Array.from({ length: number }, (_, client) => work(client)))

  let asked = 0
  const quietUntil = performance.now() + SECONDS * 1_000
  await clients(QUIET_CLIENTS, async client => {
    while (performance.now() < quietUntil) await ask(client, asked++).catch(note)
  })
  const served = count(200)
  expect([...statuses.keys()].toSorted()).toEqual([200, 429])

  let left = OVERLOAD * served
  const livez: number[] = []
  const watch = async () => {
    while (left > 0) {
      livez.push((await fetch(`${service.url}/livez`)).status)
      await setTimeout(100)
    }
  }
  const startedAt = performance.now()
  const flood = clients(CLIENTS, async client => {
    while (left-- > 0) await ask(client, asked++).catch(note)
  })
  await Promise.all([watch(), flood])
  const seconds = (performance.now() - startedAt) / 1_000
  const endedAt = performance.now()
  expect(await ask(0, asked)).toBe(200)
  const answeredMs = performance.now() - endedAt
  const memory = peakMiB(service.child.pid)

  console.log(
    `${served} served in ${SECONDS} s, then ${OVERLOAD} times as many requests in ${seconds.toFixed(1)} s: ${[...statuses].map(one => one.join(': ')).join(', ')}; ` +
      `then answered after ${answeredMs.toFixed(0)} ms; at most ${memory.toFixed(0)} MiB`,
  )
  expect(faults).toEqual([])
  expect(new Set(livez)).toEqual(new Set([200]))
  expect([...statuses.keys()].toSorted()).toEqual([200, 429, 503])
  expect(memory).toBeLessThan(MEMORY_MAX_MIB)
  await chaos.expectLedger(workload)
})

function peakMiB(pid: number | undefined): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  return Number(/VmHWM:\s+(\d+)/.exec(status)?.[1]) / 1_024
}
