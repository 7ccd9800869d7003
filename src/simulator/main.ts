import { errorMessage } from '../platform/error.ts'
import { answerLines } from './line-service.ts'
import { readScenario } from './check.ts'
import { startSimulator } from './simulator.ts'

/**
 * A mail world in a process of its own: `node src/simulator/main.ts scenario.json`. Says in one line of
 * JSON where it listens; answers the lines `counters` and `reset`; ends with its standard input.
 */
async function main(file: string | undefined): Promise<void> {
  if (file === undefined) throw new Error('Usage: main.ts scenario.json')
  const world = await startSimulator(readScenario(file))
  const { dnsAddress, smtpPort } = world
  say(JSON.stringify({ dnsAddress, smtpPort, pid: process.pid }))
  await answerLines(world, process.stdin, say)
  await world.close()
}

const say = (line: string) => process.stdout.write(`${line}\n`)

main(process.argv[2]).catch(error => {
  process.stderr.write(`${errorMessage(error)}\n`)
  process.exitCode = 1
})
