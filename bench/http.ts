// What the service costs, beside a bare handler in the same run: node bench/http.ts [--speed] [--load] [--download] [--flood] [--root DIR]
import { parseArgs } from 'node:util'
import type { Scenario } from '../src/world/scenario/scenario.ts'
import { machine } from './engine/figures.ts'
import { compareDownload } from './http/download.ts'
import { compareFlood } from './http/flood.ts'
import { compareLoad } from './http/load.ts'
import { type Served, startService } from './http/servers.ts'
import { compareSpeed } from './http/speed.ts'

const DOMAINS = 500
const ROUND_TRIP_MS = 50

/** Polite hosts of many domains, a round trip away. */
const SCENARIO = {
  roundTripMs: ROUND_TRIP_MS,
  mailboxes: ['user*'],
  hosts: Object.fromEntries(each(at => [`mx${at}.example`, { temper: 'polite' }])),
  domains: Object.fromEntries(each(at => [`d${at}.example`, { mx: [[10, `mx${at}.example`]] }])),
} as Scenario

function each<T>(make: (at: number) => T): T[] {
  return Array.from({ length: DOMAINS }, (_, at) => make(at))
}

const say = (line: string) => console.log(line)

const PARTS: Record<string, (served: Served) => Promise<string[]>> = {
  speed: served => compareSpeed(served, say),
  load: served => compareLoad(served, DOMAINS, say),
  download: served => compareDownload(served, say),
  flood: served => compareFlood(served, DOMAINS, say),
}

async function main(): Promise<void> {
  const options = Object.fromEntries(
    Object.keys(PARTS).map(name => [name, { type: 'boolean' as const }]),
  )
  const { values } = parseArgs({ options: { ...options, root: { type: 'string' } } })
  // Another built copy of ev, to be held beside this one.
  const { root } = values
  const wanted = Object.keys(PARTS).filter(name => name in values)
  say(`Machine: ${machine()}.\n`)
  const faults: string[] = []
  for (const name of wanted.length > 0 ? wanted : Object.keys(PARTS)) {
    const served = await startService(SCENARIO, root)
    try {
      faults.push(...((await PARTS[name]?.(served)) ?? []))
    } finally {
      await served.close()
    }
    say('')
  }
  say(faults.length === 0 ? 'All checks hold.' : `Does not hold:\n- ${faults.join('\n- ')}`)
  if (faults.length > 0) process.exitCode = 1
}

await main()
