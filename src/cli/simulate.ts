import { fstatSync, readFileSync } from 'node:fs'
import { EvError } from '../platform/error.ts'
import { countersToJson } from '../simulator/counters.ts'
import { answerLines } from '../simulator/line-service.ts'
import { EXAMPLE_FILE } from '../simulator/scenario/example.ts'
import { readScenario, type Scenario } from '../simulator/scenario/scenario.ts'
import { type Simulator, startSimulator } from '../simulator/simulator.ts'
import { type CliContext, type CliInput, inCwd } from './context.ts'
import { farewell, printEndpoints, welcome } from './simulate-output.ts'

export type SimulateFlags = {
  readonly smtpPort?: string
  readonly dnsPort?: string
  readonly example?: boolean
  readonly json?: boolean
}

/** `ev simulate`: a mail world that runs until it is stopped. */
export async function simulateCommand(
  context: CliContext,
  file: string | undefined,
  flags: SimulateFlags,
): Promise<number> {
  if (flags.example === true) {
    context.stdout.write(readFileSync(EXAMPLE_FILE, 'utf8'))
    return 0
  }
  const say = (text: string) => void context.stdout.write(`${text}\n`)
  const ports = portsOf(flags)
  const scenario = {
    ...readScenario(file === undefined ? EXAMPLE_FILE : inCwd(context, file)),
    ...ports,
  }
  const world = await startSimulator(scenario)
  const stopped = untilStopped(context, flags.json === true ? world : null)
  if (flags.json === true) say(JSON.stringify(printEndpoints(world, scenario)))
  else say(welcome(world, scenario))
  await stopped.promise
  say(flags.json === true ? countersToJson(world.counters()) : farewell(world.counters()))
  await world.close()
  stopped.dispose()
  return 0
}

function portsOf({ smtpPort, dnsPort }: SimulateFlags): Pick<Scenario, 'smtpPort' | 'dnsPort'> {
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

type Stopped = { readonly promise: Promise<void>; readonly dispose: () => void }

const SIGNALS = ['SIGINT', 'SIGTERM'] as const

/** Until a signal comes, or the program ends that gives us commands. */
function untilStopped(context: CliContext, commanded: Simulator | null): Stopped {
  const { promise: signalled, resolve } = Promise.withResolvers<void>()
  const onSignal = () => resolve()
  for (const signal of SIGNALS) context.signals.once(signal, onSignal)
  const dispose = () => {
    for (const signal of SIGNALS) context.signals.off(signal, onSignal)
  }
  if (commanded === null) return { promise: signalled, dispose }
  return { promise: endOfCommands(context, commanded, signalled), dispose }
}

async function endOfCommands(
  { stdin, stdout }: CliContext,
  commanded: Simulator,
  signalled: Promise<void>,
): Promise<void> {
  const said = answerLines(commanded, stdin, line => void stdout.write(`${line}\n`))
  await (endsWithInput(stdin) ? Promise.race([signalled, said]) : signalled)
  stdin.destroy()
}

/** Whether a program holds the other end of stdin: /dev/null ends too, but means nothing by it. */
function endsWithInput({ isTTY, fd }: CliInput): boolean {
  if (isTTY === true || fd === undefined) return true
  const input = fstatSync(fd)
  return input.isFIFO() || input.isSocket()
}
