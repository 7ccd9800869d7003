import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { countersToJson } from './counters.ts'
import type { Simulator } from './simulator.ts'

/** Answers each line of the input with a line of JSON: `counters`, `reset`. Ends with the input. */
export async function answerLines(
  world: Simulator,
  input: Readable,
  say: (line: string) => void,
): Promise<void> {
  for await (const line of createInterface({ input })) {
    if (line === 'counters') say(countersToJson(world.counters()))
    else if (line === 'reset') {
      world.resetCounters()
      say('{}')
    } else say(JSON.stringify({ error: `Unknown command "${line}": counters, reset` }))
  }
}
