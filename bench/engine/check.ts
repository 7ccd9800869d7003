import { askedTwice } from '../../src/simulator/counters.ts'
import { median, speed } from './figures.ts'
import type { Measured } from './measure.ts'
import type { Shape, ShapeName } from './scenario.ts'

/** What a verifier may say to a mail server. */
const COMMANDS = new Set(['EHLO', 'HELO', 'STARTTLS', 'MAIL', 'RCPT', 'RSET', 'QUIT', 'NOOP'])
/** Twenty addresses in a connection are 0.05; the rest is for what does not come out even. */
const CONNECTIONS_PER_ADDRESS_MAX = 0.06
/** At this distance round trips decide, and not the processor of the machine. */
const FAR_MS = 50
/** How many times as quick as the naive way we must be at that distance. */
const FASTER_MIN: Readonly<Partial<Record<ShapeName, number>>> = { hundred: 20, thousand: 1 }

/** What is wrong with one run, in sentences. */
export function faultsOf(run: Measured, shape: Shape): string[] {
  const { total, hosts } = run.seen
  const tooBusy = Object.entries(hosts)
    .filter(([, host]) => host.sessionsPeak > shape.sessionsPerHost)
    .map(([name, host]) => `${name} had ${host.sessionsPeak} sessions at once`)
  const forbidden = Object.keys(total.commands).filter(verb => !COMMANDS.has(verb))
  const faults = [
    ...tooBusy,
    ...(run.missing > 0 ? [`${run.missing} addresses had no result`] : []),
    ...(run.repeated > 0 ? [`${run.repeated} addresses had more than one result`] : []),
    ...(run.wrong > 0 ? [`${run.wrong} addresses had a wrong verdict`] : []),
    ...(forbidden.length > 0 ? [`forbidden commands: ${forbidden.join(', ')}`] : []),
    ...(total.sessionsPeak > shape.concurrency ? [`${total.sessionsPeak} sessions in all`] : []),
    ...(run.way === 'ours' ? faultsOfOurs(run, shape) : []),
  ]
  return faults.map(fault => `${shape.name}, ${run.way}: ${fault}`)
}

/** What the naive way is not held to. */
function faultsOfOurs({ seen: { total }, addresses }: Measured, shape: Shape): string[] {
  const twice = askedTwice(total).length
  const perAddress = total.connections / addresses
  const shared = shape.addresses > shape.domains
  return [
    ...(total.pregreet + total.outOfOrder + total.badLines > 0 ? ['spoke out of turn'] : []),
    ...(twice > 0 ? [`${twice} addresses were asked twice`] : []),
    ...(shared && perAddress > CONNECTIONS_PER_ADDRESS_MAX
      ? [`${perAddress.toFixed(3)} connections per address`]
      : []),
  ]
}

/** Whether the naive way was left behind as far as it must be. */
export function faultsOfRatio(
  name: ShapeName,
  roundTripMs: number,
  ours: readonly Measured[],
  naive: readonly Measured[],
): string[] {
  const wanted = roundTripMs === FAR_MS ? FASTER_MIN[name] : undefined
  const ratio = median(ours.map(speed)) / median(naive.map(speed))
  return wanted === undefined || ratio >= wanted
    ? []
    : [`${name} at ${roundTripMs} ms: ${ratio.toFixed(1)} times the naive way, not ${wanted}`]
}
