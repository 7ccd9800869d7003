// Compares the service with a bare handler in the same run:
// node bench/http.ts [--speed] [--load] [--lists [--seconds 60]] [--download] [--flood] [--root
// DIR]
import { parseArgs } from 'node:util'
import { machine } from './engine/figures.ts'
import { compareDownload } from './http/download.ts'
import { compareFlood } from './http/flood.ts'
import { compareLists } from './http/lists.ts'
import { compareLoad } from './http/load.ts'
import { DOMAINS, ROUND_TRIP_MS, scenarioAt } from './http/scenario.ts'
import { type Served, startService } from './http/servers.ts'
import { compareSpeed } from './http/speed.ts'

const print = (line: string) => console.log(line)

const { values } = parseArgs({
  options: {
    speed: { type: 'boolean' },
    load: { type: 'boolean' },
    lists: { type: 'boolean' },
    download: { type: 'boolean' },
    flood: { type: 'boolean' },
    // Duration of the steady part of --lists.
    seconds: { type: 'string', default: '60' },
    // The root directory of another built copy of ev to measure.
    root: { type: 'string' },
  },
})

const start = (roundTripMs: number) => startService(scenarioAt(roundTripMs), values.root)

/** Runs a part against a separate service. */
const served = (part: (served: Served) => Promise<string[]>) => async () => {
  const one = await start(ROUND_TRIP_MS)
  try {
    return await part(one)
  } finally {
    await one.close()
  }
}

const PARTS = {
  speed: served(one => compareSpeed(one, print)),
  load: served(one => compareLoad(one, DOMAINS, print)),
  lists: () => compareLists(() => start(0), DOMAINS, Number(values.seconds), print),
  download: served(one => compareDownload(one, print)),
  flood: served(one => compareFlood(one, DOMAINS, print)),
}

async function main(): Promise<void> {
  const names = Object.keys(PARTS) as (keyof typeof PARTS)[]
  const wanted = names.filter(name => values[name])
  print(`Machine: ${machine()}.\n`)
  const faults: string[] = []
  for (const name of wanted.length > 0 ? wanted : names) {
    faults.push(...(await PARTS[name]()))
    print('')
  }
  print(faults.length === 0 ? 'All checks passed.' : `Failed checks:\n- ${faults.join('\n- ')}`)
  if (faults.length > 0) process.exitCode = 1
}

await main()
