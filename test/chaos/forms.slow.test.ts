import { expect, test } from 'vitest'
import { IP_LIMITS } from '../../src/accounts/plan.ts'
import { EvClient } from '../../src/client/client.ts'
import { startChaosService } from './service.ts'

const REQUESTS = Number(process.env.EV_FORM_REQUESTS ?? 3_000)
/** Requests in flight. */
const CONNECTIONS = 50
const VISITORS = 20
const KEY_LIMIT = 100
const SITE = 'https://shop.example.com'

type Answer = { readonly visitor: string; readonly status: number; readonly resetAt: number }

test('under load exactly the requests of the limits of forms pass, of each visitor and of a key', {
  timeout: 300_000,
}, async () => {
  const chaos = await startChaosService({ args: ['--trust-proxy', '127.0.0.0/8'] })
  const client = new EvClient({ apiKey: chaos.key, baseUrl: chaos.service.url })
  const createKey = async (limit: number | null) => {
    const created = await client.keys.create({
      name: 'form',
      publishable: true,
      allowed_domains: ['example.com'],
      rate_limit_per_minute: limit,
    })
    return created.key
  }

  const visitors = await send(await createKey(null), n => `198.51.100.${n % VISITORS}`)
  for (const one of Map.groupBy(visitors, ({ visitor }) => visitor).values()) {
    expectLimit(one, IP_LIMITS.formPerMinute)
  }
  const others = await send(await createKey(KEY_LIMIT), n => `203.0.113.${n % 250}`)
  expectLimit(others, KEY_LIMIT)

  /** Sends requests of forms, and returns how each was answered. */
  async function send(key: string, visitorOf: (n: number) => string): Promise<Answer[]> {
    const answers: Answer[] = []
    const tookMs: number[] = []
    let next = 0
    const startedAt = performance.now()
    const connect = async () => {
      while (next < REQUESTS) {
        const n = next++
        const visitor = visitorOf(n)
        const sentAt = performance.now()
        const response = await fetch(`${chaos.service.url}/v1/verify/form`, {
          method: 'POST',
          headers: {
            Authorization: `Bearer ${key}`,
            'Content-Type': 'application/json',
            Origin: SITE,
            'X-Forwarded-For': visitor,
            'X-Forwarded-Proto': 'https',
          },
          body: JSON.stringify({ email: `user.form.${n}@d${n % 20}.test` }),
        })
        await response.arrayBuffer()
        tookMs.push(performance.now() - sentAt)
        const resetAt = Number(response.headers.get('X-RateLimit-Reset'))
        answers.push({ visitor, status: response.status, resetAt })
      }
    }
    await Promise.all(Array.from({ length: CONNECTIONS }, connect))
    const seconds = (performance.now() - startedAt) / 1_000
    const passed = answers.filter(({ status }) => status === 200).length
    const p99 = tookMs.sort((a, b) => a - b)[Math.floor(tookMs.length * 0.99)]
    console.log(
      `${passed} of ${REQUESTS} passed in ${seconds.toFixed(1)} s, p99 ${p99?.toFixed(0)} ms`,
    )
    return answers
  }
})

/** Asserts that in each window in which a request was refused, exactly `limit` passed. */
function expectLimit(answers: readonly Answer[], limit: number): void {
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200, 429]))
  for (const window of toWindows(answers)) {
    const passed = window.filter(({ status }) => status === 200).length
    if (passed < window.length) expect(passed).toBe(limit)
    else expect(passed).toBeLessThanOrEqual(limit)
  }
}

/**
 * The end of a window in whole seconds, which is calculated for each response from the time that is
 * left, differs by a second if it is close to a full second. The next window ends a minute later.
 */
const ROUNDING_S = 2

function toWindows(answers: readonly Answer[]): Answer[][] {
  const windows: Answer[][] = []
  for (const answer of answers.toSorted((a, b) => a.resetAt - b.resetAt)) {
    const window = windows.at(-1)
    const endsAt = window?.[0]?.resetAt ?? Number.NEGATIVE_INFINITY
    if (window === undefined || answer.resetAt - endsAt > ROUNDING_S) windows.push([answer])
    else window.push(answer)
  }
  return windows
}
