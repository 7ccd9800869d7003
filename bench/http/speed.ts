import autocannon from 'autocannon'
import { median } from '../engine/figures.ts'
import { type Served, startBare } from './servers.ts'

/** What is asked, and of whom. */
type Way = {
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
/** The least that ours may reach of the bare handler's requests a second. */
const RATIO_MIN = 0.5

/** Requests a second and p99 of the quick paths, in turns with the bare handler; gives what does not hold. */
export async function compareSpeed(served: Served, say: (line: string) => void) {
  const bare = await startBare()
  const json = { 'content-type': 'application/json' }
  const ours = { ...json, authorization: `Bearer ${served.key}` }
  const single = `${served.url}/v1/verify/single`
  const ways: readonly Way[] = [
    { name: 'bare handler', url: bare.url, body: '{"key":"key 7"}', headers: json },
    {
      name: 'sandbox single',
      url: single,
      body: '{"email":"valid@example.com"}',
      headers: { ...ours, 'x-ev-sandbox': 'true' },
    },
    {
      name: 'cached single',
      url: single,
      body: '{"email":"user1@d0.example"}',
      headers: ours,
    },
    {
      // Refused as soon as it is known who asks and how often.
      name: 'key and limits alone',
      url: single,
      body: '{"email":"no address"}',
      headers: ours,
    },
  ]
  try {
    const runs = new Map<Way, Figures[]>(ways.map(way => [way, []]))
    for (const way of ways) await run(way, WARM_SECONDS)
    for (let round = 0; round < ROUNDS; round++) {
      for (const way of ways) runs.get(way)?.push(await run(way, SECONDS))
    }
    const of = (way: Way, figure: keyof Figures) =>
      median((runs.get(way) ?? []).map(one => one[figure]))
    const [first] = ways as [Way]
    say('| path | requests/s | p99 ms | of the bare handler |')
    say('|---|---|---|---|')
    const faults: string[] = []
    for (const way of ways) {
      const ratio = of(way, 'perSecond') / of(first, 'perSecond')
      const speed = of(way, 'perSecond').toLocaleString('en', { maximumFractionDigits: 0 })
      say(`| ${way.name} | ${speed} | ${of(way, 'p99Ms').toFixed(0)} | **${ratio.toFixed(2)}** |`)
      if (ratio < RATIO_MIN)
        faults.push(
          `${way.name} reaches ${ratio.toFixed(2)} of the bare handler, below ${RATIO_MIN}`,
        )
    }
    return faults
  } finally {
    await bare.close()
  }
}

async function run({ url, body, headers }: Way, duration: number): Promise<Figures> {
  const result = await autocannon({
    ...{ url, body, headers, duration, method: 'POST', connections: CONNECTIONS },
  })
  if (result.errors > 0) throw new Error(`${result.errors} requests to ${url} failed`)
  return { perSecond: result.requests.average, p99Ms: result.latency.p99 }
}
