import { fstatSync, readFileSync } from 'node:fs'
import type { Command } from 'commander'
import { formatNumber, pluralize } from '../platform/format.ts'
import { sanitizeText } from '../platform/text.ts'
import { countersToJson, type HostCounters, type SimulatorCounters } from '../simulator/counters.ts'
import type { DomainPlan, Scenario } from '../simulator/scenario.ts'
import type { Simulator } from '../simulator/simulator.ts'
import { type CliContext, type CliInput, inCwd } from './context.ts'
import { worksWithoutData } from './ev-command.ts'
import { parsePort } from './flag-values.ts'
import { table } from './table.ts'
import { widthOf } from './width.ts'

const EXAMPLES = `
Examples:
  ev simulate --example > scenario.json
  ev simulate scenario.json --smtp-port 2525 --dns-port 5353
  ev simulate scenario.json --json

The simulator listens on loopback addresses only, so other machines cannot reach it, and it sends no mail. Each mail
server has its own address in 127.0.0.0/8; Linux needs no setup for that. Press Ctrl-C to stop it and print the
counters. With --json, it reads the commands "counters" and "reset" from stdin, one per line.`

export function defineSimulate(simulate: Command, context: CliContext): void {
  worksWithoutData(simulate)
  simulate
    .argument('[scenario]', 'scenario file, JSON (default: the example)')
    .option('--smtp-port <n>', 'port of all mail servers (default: a free port)')
    .option('--dns-port <n>', 'port of the DNS server (default: a free port)')
    .option('--example', 'print an example scenario')
    .option('--json', 'print JSON: the endpoints, and the counters at the end')
    .option('--debug', 'print stack traces')
    .addHelpText('after', EXAMPLES)
    .action((scenario: string | undefined, flags) => simulateCommand(context, scenario, flags))
}

type SimulateFlags = {
  readonly smtpPort?: string
  readonly dnsPort?: string
  readonly example?: boolean
  readonly json?: boolean
}

/** Runs the simulator until it is stopped. */
async function simulateCommand(
  context: CliContext,
  file: string | undefined,
  flags: SimulateFlags,
): Promise<void> {
  const { EXAMPLE_FILE, readScenario } = await import('../simulator/scenario.ts')
  if (flags.example === true) {
    context.stdout.write(readFileSync(EXAMPLE_FILE, 'utf8'))
    return
  }
  const say = (text: string) => void context.stdout.write(`${text}\n`)
  const width = widthOf(context, context.stdout)
  const ports = portsOf(flags)
  const scenario = {
    ...readScenario(file === undefined ? EXAMPLE_FILE : inCwd(context, file)),
    ...ports,
  }
  const { startSimulator } = await import('../simulator/simulator.ts')
  const simulator = await startSimulator(scenario)
  const stopped = untilStopped(context, flags.json === true ? simulator : null)
  if (flags.json === true) say(JSON.stringify(endpointsObject(simulator, scenario)))
  else say(endpointsText(simulator, scenario, width))
  await stopped.promise
  say(
    flags.json === true
      ? countersToJson(simulator.counters())
      : countersText(simulator.counters(), width),
  )
  await simulator.close()
  stopped.dispose()
}

function portsOf({ smtpPort, dnsPort }: SimulateFlags): Pick<Scenario, 'smtpPort' | 'dnsPort'> {
  return {
    ...(smtpPort !== undefined && { smtpPort: parsePort('--smtp-port', smtpPort) }),
    ...(dnsPort !== undefined && { dnsPort: parsePort('--dns-port', dnsPort) }),
  }
}

type Stopped = { readonly promise: Promise<void>; readonly dispose: () => void }

const SIGNALS = ['SIGINT', 'SIGTERM'] as const

/** Resolves with a signal, or at the end of stdin if a simulator reads commands from there. */
function untilStopped(context: CliContext, simulator: Simulator | null): Stopped {
  const { promise: signalled, resolve } = Promise.withResolvers<void>()
  const onSignal = () => resolve()
  for (const signal of SIGNALS) context.signals.once(signal, onSignal)
  const dispose = () => {
    for (const signal of SIGNALS) context.signals.off(signal, onSignal)
  }
  if (simulator === null) return { promise: signalled, dispose }
  return { promise: serveCommands(context, simulator, signalled), dispose }
}

async function serveCommands(
  { stdin, stdout }: CliContext,
  simulator: Simulator,
  signalled: Promise<void>,
): Promise<void> {
  const { answerLines } = await import('../simulator/line-service.ts')
  const inputEnded = answerLines(simulator, stdin, line => void stdout.write(`${line}\n`))
  await (isProgramInput(stdin) ? Promise.race([signalled, inputEnded]) : signalled)
  stdin.destroy()
}

/** Whether a program writes to stdin. The end of /dev/null must not stop the simulator. */
function isProgramInput({ isTTY, fd }: CliInput): boolean {
  if (isTTY === true || fd === undefined) return true
  const input = fstatSync(fd)
  return input.isFIFO() || input.isSocket()
}

/** Returns the endpoints of the simulator and the options to use it, as JSON. */
function endpointsObject(simulator: Simulator, scenario: Scenario) {
  const { dnsAddress, smtpPort, addresses } = simulator
  const allowRanges = rangesOf(simulator)
  return {
    dnsAddress,
    smtpPort,
    pid: process.pid,
    addresses: Object.fromEntries(addresses),
    /** Options for `createEngine` to use the simulator. */
    options: { dns: [dnsAddress], smtpPort, allowRanges, specialDomains: true },
    /** Arguments for `ev verify` and `ev bulk` to use the simulator. */
    arguments: argumentsFor(simulator),
    try: addressOf(scenario),
  }
}

/** Formats the endpoints of the simulator and an example command. */
function endpointsText(simulator: Simulator, scenario: Scenario, width: number | null): string {
  const { dnsAddress, smtpPort, addresses } = simulator
  const domains = Object.entries(scenario.domains)
  const rows = domains
    .slice(0, DOMAINS_SHOWN_MAX)
    .map(([name, plan]) => [sanitizeText(name), exchangersOf(name, plan, scenario, addresses)])
  const more = domains.length - rows.length
  return [
    'The simulator is running on this machine. Press Ctrl-C to stop.\n',
    `  DNS   ${dnsAddress}`,
    `  SMTP  port ${smtpPort}, each server on its own address\n`,
    table([{ title: 'domain' }, { title: 'mail servers' }], rows, width).trimEnd(),
    ...(more > 0 ? [`… and ${formatNumber(more)} more`] : []),
    '\nTry it:\n',
    `  ev verify ${[...argumentsFor(simulator), addressOf(scenario)].join(' ')}\n`,
  ].join('\n')
}

/** Formats the counters of a run. */
function countersText({ total, hosts, dns }: SimulatorCounters, width: number | null): string {
  const used = Object.entries(hosts).filter(([, host]) => host.connections > 0)
  const shown = used.slice(0, DOMAINS_SHOWN_MAX)
  const left = used.length - shown.length
  const rows = [...shown, ['all', total] as const].map(([name, host]) => [
    sanitizeText(name),
    ...figuresOf(host),
  ])
  const columns = ['connections', 'peak', 'recipients', 'repeated', 'violations']
  return [
    '\nCounters:\n',
    table(
      [{ title: 'mail server' }, ...columns.map(title => ({ title, align: 'right' }) as const)],
      rows,
      width,
    ).trimEnd(),
    ...(left > 0 ? [`(${pluralize(left, 'more mail server')} had connections)`] : []),
    `\nDNS queries: ${formatNumber(dns.total)}`,
  ].join('\n')
}

/** Maximum number of rows in a table. */
const DOMAINS_SHOWN_MAX = 40

function figuresOf(host: HostCounters): string[] {
  const times = [...host.recipients.values()]
  const repeated = times.filter(each => each > 1).length
  const violations = host.pregreet + host.outOfOrder + host.badLines
  return [host.connections, host.sessionsPeak, times.length, repeated, violations].map(formatNumber)
}

const argumentsFor = (simulator: Simulator): string[] => [
  ...['--dns', simulator.dnsAddress],
  ...['--smtp-port', String(simulator.smtpPort)],
  ...['--allow-ranges', rangesOf(simulator).join(',')],
  '--special-domains',
]

const rangesOf = ({ addresses }: Simulator): string[] =>
  [...addresses.values()].flat().includes('::1') ? ['127.0.0.0/8', '::1/128'] : ['127.0.0.0/8']

/** Returns an address for the example command, which most likely exists in the scenario. */
function addressOf({ domains, hosts, mailboxes }: Scenario): string {
  const names = Object.keys(domains)
  const served = names.find(name => hosts[firstExchanger(name, domains[name])] !== undefined)
  const domain = served ?? names[0] ?? 'example.test'
  const patterns = hosts[firstExchanger(domain, domains[domain])]?.mailboxes ?? mailboxes ?? []
  const mailbox = patterns.find(pattern => /^[\w.+*-]+$/.test(pattern)) ?? 'user1'
  return sanitizeText(`${mailbox.replaceAll('*', '1')}@${domain}`)
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
  if (mx === 'null') return '(accepts no mail: null MX)'
  const known = (host: string) => {
    const facts = [hosts[host]?.behavior ?? 'no address', ...(addresses.get(host) ?? [])]
    return `${sanitizeText(host)} (${facts.join(', ')})`
  }
  if (typeof mx === 'object') return mx.map(([, host]) => known(host)).join(', ')
  return hosts[name] === undefined ? '(no MX)' : known(name)
}
