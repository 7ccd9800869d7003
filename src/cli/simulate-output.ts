import { sanitizeText } from '../platform/text.ts'
import type { HostCounters, SimulatorCounters } from '../simulator/counters.ts'
import type { DomainPlan, Scenario } from '../simulator/scenario/scenario.ts'
import type { Simulator } from '../simulator/simulator.ts'
import { table } from './table.ts'

/** Where the world listens and how ev meets it, for programs. */
export function printEndpoints(world: Simulator, scenario: Scenario) {
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
export function welcome(world: Simulator, scenario: Scenario): string {
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
export function farewell({ total, hosts, dns }: SimulatorCounters): string {
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
