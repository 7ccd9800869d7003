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

/** The medians of a path. */
export type PathSpeed = {
  readonly name: string
  readonly perSecond: number
  readonly p99Ms: number
  /** Requests per second, divided by those of the bare handler. */
  readonly ratio: number
}

type Figures = Pick<PathSpeed, 'perSecond' | 'p99Ms'>

const CONNECTIONS = 128
const SECONDS = 4
const ROUNDS = 3
const WARM_SECONDS = 2

/** Prints requests per second and p99 of fast paths. `npm run bench -- --check` checks them. */
export async function compareSpeed(
  served: Served,
  print: (line: string) => void,
): Promise<string[]> {
  for (const line of formatSpeeds(await measureSpeeds(served))) print(line)
  return []
}

/** Formats the paths as the lines of a table. */
export function formatSpeeds(speeds: readonly PathSpeed[]): string[] {
  return [
    '| path | requests/s | p99 ms | of the bare handler |',
    '|---|---|---|---|',
    ...speeds.map(({ name, perSecond, p99Ms, ratio }) => {
      const speed = perSecond.toLocaleString('en', { maximumFractionDigits: 0 })
      return `| ${name} | ${speed} | ${p99Ms.toFixed(0)} | **${ratio.toFixed(2)}** |`
    }),
  ]
}

/** Measures fast paths, alternating with the bare handler, which comes first. */
export async function measureSpeeds(served: Served): Promise<PathSpeed[]> {
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
    return variants.map(variant => ({
      name: variant.name,
      perSecond: of(variant, 'perSecond'),
      p99Ms: of(variant, 'p99Ms'),
      ratio: of(variant, 'perSecond') / of(first, 'perSecond'),
    }))
  } finally {
    await bare.close()
  }
}

async function run({ url, body, headers }: Variant, duration: number): Promise<Figures> {
  const result = await autocannon({
    url,
    body,
    headers,
    duration,
    method: 'POST',
    connections: CONNECTIONS,
  })
  if (result.errors > 0) throw new Error(`${result.errors} requests to ${url} failed`)
  return { perSecond: result.requests.average, p99Ms: result.latency.p99 }
}
