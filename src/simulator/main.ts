import { errorMessage } from '../platform/error.ts'
import { answerLines } from './line-service.ts'
import { readScenario } from './scenario.ts'
import { startSimulator } from './simulator.ts'

/**
 * Runs the simulator as a process: `node src/simulator/main.ts scenario.json`. Prints its endpoints
 * as a line of JSON, answers the input lines `counters` and `reset`, and exits at the end of stdin.
 */
async function main(file: string | undefined): Promise<void> {
  if (file === undefined) throw new Error('Usage: main.ts scenario.json')
  const simulator = await startSimulator(readScenario(file))
  const { dnsAddress, smtpPort } = simulator
  writeLine(JSON.stringify({ dnsAddress, smtpPort, pid: process.pid }))
  await answerLines(simulator, process.stdin, writeLine)
  await simulator.close()
}

const writeLine = (line: string) => process.stdout.write(`${line}\n`)

main(process.argv[2]).catch(error => {
  process.stderr.write(`${errorMessage(error)}\n`)
  process.exitCode = 1
})
