import { fstatSync, readFileSync } from 'node:fs'
import { EvError } from '../platform/error.ts'
import { sanitizeText } from '../platform/text.ts'
import { countersToJson, type HostCounters, type SimulatorCounters } from '../simulator/counters.ts'
import { answerLines } from '../simulator/line-service.ts'
import { type DomainPlan, EXAMPLE_FILE, type Scenario } from '../simulator/scenario.ts'
import { readScenario } from '../simulator/check.ts'
import { type Simulator, startSimulator } from '../simulator/simulator.ts'
import { type CliContext, type CliInput, inCwd } from './context.ts'
import { table } from './table.ts'

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

/** Where the world listens and how ev meets it, for programs. */
function printEndpoints(world: Simulator, scenario: Scenario) {
  const { dnsAddress, smtpPort, addresses } = world
  const allowRanges = rangesOf(world)
  return {
    dnsAddress,
    smtpPort,
    pid: process.pid,
    addresses: Object.fromEntries(addresses),
    /** What `createEngine` takes. */
    options: { dns: [dnsAddress], smtpPort, allowRanges, specialDomains: true },
    /** What `ev verify` and `ev bulk` take. */
    arguments: argumentsFor(world),
    try: addressOf(scenario),
  }
}

/** The same for people. */
function welcome(world: Simulator, scenario: Scenario): string {
  const { dnsAddress, smtpPort, addresses } = world
  const domains = Object.entries(scenario.domains)
  const rows = domains
    .slice(0, DOMAINS_SHOWN_MAX)
    .map(([name, plan]) => [sanitizeText(name), exchangersOf(name, plan, scenario, addresses)])
  const more = domains.length - rows.length
  return [
    'A mail world is up, on this machine alone. Ctrl-C ends it.\n',
    `  DNS   ${dnsAddress}`,
    `  SMTP  port ${smtpPort}, each server at an address of its own\n`,
    table([{ title: 'domain' }, { title: 'mail servers' }], rows).trimEnd(),
    ...(more > 0 ? [`… and ${more} more`] : []),
    '\nTry it:\n',
    `  ev verify ${[...argumentsFor(world), addressOf(scenario)].join(' ')}\n`,
  ].join('\n')
}

/** What the world saw, for people. */
function farewell({ total, hosts, dns }: SimulatorCounters): string {
  const visited = Object.entries(hosts).filter(([, host]) => host.connections > 0)
  const shown = visited.slice(0, DOMAINS_SHOWN_MAX)
  const left = visited.length - shown.length
  const rows = [...shown, ['all', total] as const].map(([name, host]) => [
    sanitizeText(name),
    ...figuresOf(host),
  ])
  const columns = ['connections', 'at once', 'recipients', 'asked again', 'out of turn']
  return [
    '\nWhat it saw:\n',
    table(
      [{ title: 'mail server' }, ...columns.map(title => ({ title, align: 'right' }) as const)],
      rows,
    ).trimEnd(),
    ...(left > 0 ? [`(${left} more mail servers were visited)`] : []),
    `\nDNS questions: ${dns.total}`,
  ].join('\n')
}

/** As much as a person reads. */
const DOMAINS_SHOWN_MAX = 40

function figuresOf(host: HostCounters): string[] {
  const times = [...host.recipients.values()]
  const again = times.filter(each => each > 1).length
  const unruly = host.pregreet + host.outOfOrder + host.badLines
  return [host.connections, host.sessionsPeak, times.length, again, unruly].map(String)
}

const argumentsFor = (world: Simulator): string[] => [
  ...['--dns', world.dnsAddress],
  ...['--smtp-port', String(world.smtpPort)],
  ...['--allow-ranges', rangesOf(world).join(',')],
  '--special-domains',
]

const rangesOf = ({ addresses }: Simulator): string[] =>
  [...addresses.values()].flat().includes('::1') ? ['127.0.0.0/8', '::1/128'] : ['127.0.0.0/8']

/** Somebody who most likely lives in this world. */
function addressOf({ domains, hosts, mailboxes }: Scenario): string {
  const names = Object.keys(domains)
  const served = names.find(name => hosts[firstExchanger(name, domains[name])] !== undefined)
  const domain = served ?? names[0] ?? 'example.test'
  const residents = hosts[firstExchanger(domain, domains[domain])]?.mailboxes ?? mailboxes ?? []
  const resident = residents.find(pattern => /^[\w.+*-]+$/.test(pattern)) ?? 'user1'
  return sanitizeText(`${resident.replaceAll('*', '1')}@${domain}`)
}

const firstExchanger = (name: string, plan: DomainPlan | undefined): string =>
  (typeof plan?.mx === 'object' ? plan.mx[0]?.[1] : undefined) ?? name

function exchangersOf(
  name: string,
  { mx, fault }: DomainPlan,
  { hosts }: Scenario,
  addresses: Simulator['addresses'],
): string {
  if (fault !== undefined) return `(DNS: ${fault})`
  if (mx === 'null') return '(takes no mail: null MX)'
  const known = (host: string) => {
    const facts = [hosts[host]?.behavior ?? 'no address', ...(addresses.get(host) ?? [])]
    return `${sanitizeText(host)} (${facts.join(', ')})`
  }
  if (typeof mx === 'object') return mx.map(([, host]) => known(host)).join(', ')
  return hosts[name] === undefined ? '(no MX)' : known(name)
}
