import { fstatSync, readFileSync } from 'node:fs'
import { EvError } from '../../base/error.ts'
import { countersToJson } from '../../world/counters.ts'
import { answerLines } from '../../world/line-service.ts'
import { EXAMPLE_FILE } from '../../world/scenario/example.ts'
import { readScenario, type Scenario } from '../../world/scenario/scenario.ts'
import { startWorld, type World } from '../../world/world.ts'
import { farewell, welcome, whereabouts } from './print.ts'

export type WorldFlags = {
  readonly smtpPort?: string
  readonly dnsPort?: string
  readonly example?: boolean
  readonly json?: boolean
}

/** `ev world`: a mail world that runs until it is stopped. */
export async function worldCommand(file: string | undefined, flags: WorldFlags): Promise<number> {
  if (flags.example === true) {
    process.stdout.write(readFileSync(EXAMPLE_FILE, 'utf8'))
    return 0
  }
  const ports = portsOf(flags)
  const scenario = { ...readScenario(file ?? EXAMPLE_FILE), ...ports }
  const world = await startWorld(scenario)
  const stopped = untilStopped(flags.json === true ? world : null)
  if (flags.json === true) say(JSON.stringify(whereabouts(world, scenario)))
  else say(welcome(world, scenario))
  await stopped
  say(flags.json === true ? countersToJson(world.counters()) : farewell(world.counters()))
  await world.close()
  return 0
}

const say = (text: string) => process.stdout.write(`${text}\n`)

function portsOf({ smtpPort, dnsPort }: WorldFlags): Pick<Scenario, 'smtpPort' | 'dnsPort'> {
  return {
    ...(smtpPort !== undefined && { smtpPort: portOf('--smtp-port', smtpPort) }),
    ...(dnsPort !== undefined && { dnsPort: portOf('--dns-port', dnsPort) }),
  }
}

function portOf(flag: string, given: string): number {
  const port = Number(given)
  if (/^\d+$/.test(given) && port <= 65_535) return port
  const sentence = `${flag} is "${given}"; it takes a whole number from 0 to 65535 (0: a free one).`
  throw new EvError('usage', sentence)
}

/** Until a signal comes, or the program ends that gives us commands. */
async function untilStopped(commanded: World | null): Promise<void> {
  const signalled = new Promise<void>(resolve => {
    for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => resolve())
  })
  if (commanded === null) return signalled
  const said = answerLines(commanded, process.stdin, say)
  await (endsWithInput() ? Promise.race([signalled, said]) : signalled)
  process.stdin.destroy()
}

/** Whether somebody holds the other end of stdin: /dev/null ends too, but means nothing by it. */
function endsWithInput(): boolean {
  if (process.stdin.isTTY) return true
  const input = fstatSync(0)
  return input.isFIFO() || input.isSocket()
}
