import { setTimeout } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { runEv } from '../support/ev-process.ts'
import { startChaosService } from './service.ts'

/** Use EV_OVERLOAD_SECONDS=60 before a release. */
const SECONDS = Number(process.env.EV_OVERLOAD_SECONDS ?? 5)
/** Limit of the flooding account; see `flooded` in the config of the workload. */
const ALLOWED_PER_MINUTE = 20
/** Requests that it keeps in flight. */
const CONNECTIONS = 50
const OVERLOAD = 10

/** Applies only to a test that hangs. */
const TIMEOUT_MS = 300_000 + SECONDS * 1_000

test('an account that sends ten times its limit gets 429, and other accounts are served as before', {
  timeout: TIMEOUT_MS,
}, async () => {
  const chaos = await startChaosService()
  const { service, home, dataDir } = chaos
  const cli = async (...args: string[]) => {
    const result = await runEv([...args, '--data-dir', dataDir, '--json'], { home })
    expect(result.code, result.stderr).toBe(0)
    return JSON.parse(result.stdout)
  }
  const account = await cli('accounts', 'create', '--name', 'flood', '--plan', 'flooded')
  const { key } = await cli('keys', 'create', '--name', 'flood', '--account', account.id)
  const workload = chaos.startWorkload()
  await workload.everyKind()

  const statuses = new Map<number, number>()
  const errors: string[] = []
  const [startedAt, count] = [performance.now(), (status: number) => statuses.get(status) ?? 0]
  const isDone = () =>
    performance.now() > startedAt + SECONDS * 1_000 && count(429) >= OVERLOAD * count(200)
  const flood = async (client: number) => {
    for (let n = 0; !isDone(); n++) {
      const email = `user.unkeyed.flood.${client}.${n}@d${client % 20}.test`
      const response = await fetch(`${service.url}/v1/verify/single`, {
        method: 'POST',
        headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' },
        body: JSON.stringify({ email }),
      })
      const { status, headers } = response
      const { reason } = (await response.json()) as { reason: string }
      statuses.set(status, count(status) + 1)
      if (status === 200) workload.acknowledged.singlesWithoutKey.set(email, reason)
      else if (status !== 429 || !(Number(headers.get('Retry-After')) >= 1))
        errors.push(`${status}`)
    }
  }
  const livez: number[] = []
  const watch = async () => {
    while (!isDone()) {
      livez.push((await fetch(`${service.url}/livez`)).status)
      await setTimeout(100)
    }
  }
  await Promise.all([watch(), ...Array.from({ length: CONNECTIONS }, (_, client) => flood(client))])
  const minutes = (performance.now() - startedAt) / 60_000
  await workload.everyKind()
  await workload.stop()

  console.log(`served: ${count(200)}, refused: ${count(429)}, in ${minutes * 60} s`)
  expect(errors).toEqual([])
  expect(new Set(livez)).toEqual(new Set([200]))
  expect(count(200)).toBeGreaterThan(0)
  // One window may end at the start of the test, and another may start at its end.
  expect(count(200)).toBeLessThanOrEqual((Math.ceil(minutes) + 1) * ALLOWED_PER_MINUTE)
  expect([...workload.refusals.keys()].filter(status => status !== 409)).toEqual([])
  await chaos.expectLedger(workload)
})
