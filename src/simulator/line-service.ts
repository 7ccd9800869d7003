import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { countersToJson } from './counters.ts'
import type { Simulator } from './simulator.ts'

/**
 * Answers the input lines `counters` and `reset` with a line of JSON each, until the input ends.
 */
export async function answerLines(
  simulator: Simulator,
  input: Readable,
  writeLine: (line: string) => void,
): Promise<void> {
  for await (const line of createInterface({ input })) {
    if (line === 'counters') writeLine(countersToJson(simulator.counters()))
    else if (line === 'reset') {
      simulator.resetCounters()
      writeLine('{}')
    } else {
      const error = `Unknown command "${line}". Commands: counters, reset.`
      writeLine(JSON.stringify({ error }))
    }
  }
}
