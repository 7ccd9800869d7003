import autocannon from 'autocannon'
import { median } from '../engine/figures.ts'
import { type Served, startBare } from './servers.ts'

/** A request to measure. */
type Variant = {
  readonly name: string
  readonly url: string
  readonly body: string
  readonly headers: Readonly<Record<string, string>>
}

type Figures = { readonly perSecond: number; readonly p99Ms: number }

const CONNECTIONS = 128
const SECONDS = 4
const ROUNDS = 3
const WARM_SECONDS = 2
/** Minimum ratio of requests per second to those of the bare handler. */
const RATIO_MIN = 0.5

/**
 * Measures requests per second and p99 of fast paths, alternating with the bare handler. Returns
 * the failed checks.
 */
export async function compareSpeed(served: Served, print: (line: string) => void) {
  const bare = await startBare('bare.ts')
  const json = { 'content-type': 'application/json' }
  const withKey = { ...json, authorization: `Bearer ${served.key}` }
  const single = `${served.url}/v1/verify/single`
  const variants: readonly Variant[] = [
    { name: 'bare handler', url: bare.url, body: '{"key":"key 7"}', headers: json },
    {
      name: 'sandbox single',
      url: single,
      body: '{"email":"valid@example.com"}',
      headers: { ...withKey, 'x-ev-sandbox': 'true' },
    },
    {
      name: 'cached single',
      url: single,
      body: '{"email":"user1@d0.example"}',
      headers: withKey,
    },
    {
      // Rejected after the checks of the key and its limits.
      name: 'key and limits alone',
      url: single,
      body: '{"email":"no address"}',
      headers: withKey,
    },
  ]
  try {
    const runs = new Map<Variant, Figures[]>(variants.map(variant => [variant, []]))
    for (const variant of variants) await run(variant, WARM_SECONDS)
    for (let round = 0; round < ROUNDS; round++) {
      for (const variant of variants) runs.get(variant)?.push(await run(variant, SECONDS))
    }
    const of = (variant: Variant, figure: keyof Figures) =>
      median((runs.get(variant) ?? []).map(figures => figures[figure]))
    const [first] = variants as [Variant]
    print('| path | requests/s | p99 ms | of the bare handler |')
    print('|---|---|---|---|')
    const faults: string[] = []
    for (const variant of variants) {
      const ratio = of(variant, 'perSecond') / of(first, 'perSecond')
      const speed = of(variant, 'perSecond').toLocaleString('en', { maximumFractionDigits: 0 })
      print(
        `| ${variant.name} | ${speed} | ${of(variant, 'p99Ms').toFixed(0)} | **${ratio.toFixed(2)}** |`,
      )
      if (ratio < RATIO_MIN)
        faults.push(
          `${variant.name} reaches ${ratio.toFixed(2)} of the bare handler, below ${RATIO_MIN}`,
        )
    }
    return faults
  } finally {
    await bare.close()
  }
}

async function run({ url, body, headers }: Variant, duration: number): Promise<Figures> {
  const result = await autocannon({
    ...{ url, body, headers, duration, method: 'POST', connections: CONNECTIONS },
  })
  if (result.errors > 0) throw new Error(`${result.errors} requests to ${url} failed`)
  return { perSecond: result.requests.average, p99Ms: result.latency.p99 }
}
