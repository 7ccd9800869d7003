import { createInterface } from 'node:readline'
import { messageOf } from '../base/error.ts'
import { countersToJson } from './counters.ts'
import { readScenario } from './scenario.ts'
import { startWorld } from './world.ts'

/**
 * A mail world in a process of its own: `node src/world/main.ts scenario.json`. Says in one line of
 * JSON where it listens; answers the lines `counters` and `reset`; ends with its standard input.
 */
async function main(file: string | undefined): Promise<void> {
  if (file === undefined) throw new Error('Usage: main.ts scenario.json')
  const world = await startWorld(readScenario(file))
  const { dnsAddress, smtpPort } = world
  say(JSON.stringify({ dnsAddress, smtpPort, pid: process.pid }))
  for await (const line of createInterface({ input: process.stdin })) {
    if (line === 'counters') say(countersToJson(world.counters()))
    else if (line === 'reset') {
      world.resetCounters()
      say('{}')
    } else say(JSON.stringify({ error: `Unknown command "${line}": counters, reset` }))
  }
  await world.close()
}

const say = (line: string) => process.stdout.write(`${line}\n`)

main(process.argv[2]).catch(error => {
  process.stderr.write(`${messageOf(error)}\n`)
  process.exitCode = 1
})
