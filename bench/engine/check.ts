import { askedTwice } from '../../src/simulator/counters.ts'
import { median, speed } from './figures.ts'
import type { Measured } from './measure.ts'
import type { Shape, ShapeName } from './scenario.ts'

/** Commands that a verifier may send. */
const COMMANDS = new Set(['EHLO', 'HELO', 'STARTTLS', 'MAIL', 'RCPT', 'RSET', 'QUIT', 'NOOP'])
/** Twenty addresses per connection are 0.05; the rest allows for partly filled connections. */
const CONNECTIONS_PER_ADDRESS_MAX = 0.06
/** Round-trip time at which latency decides and not the CPU. */
const HIGH_LATENCY_MS = 50
/** Minimum speed relative to the naive variant at that round-trip time. */
const SPEED_RATIO_MIN: Readonly<Partial<Record<ShapeName, number>>> = { hundred: 20, thousand: 1 }

/** Returns the failed checks of a run. */
export function faultsOf(run: Measured, shape: Shape): string[] {
  const { total, hosts } = run.counters
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
    ...(total.sessionsPeak > shape.concurrency
      ? [`${total.sessionsPeak} concurrent sessions in total`]
      : []),
    ...(run.variant === 'ours' ? faultsOfOurs(run, shape) : []),
  ]
  return faults.map(fault => `${shape.name}, ${run.variant}: ${fault}`)
}

/** Returns the failures of checks that only ev must pass. */
function faultsOfOurs({ counters: { total }, addresses }: Measured, shape: Shape): string[] {
  const twice = askedTwice(total).length
  const perAddress = total.connections / addresses
  const shared = shape.addresses > shape.domains
  return [
    ...(total.pregreet + total.outOfOrder + total.badLines > 0
      ? ['sent data out of sequence']
      : []),
    ...(twice > 0 ? [`${twice} addresses were probed twice`] : []),
    ...(shared && perAddress > CONNECTIONS_PER_ADDRESS_MAX
      ? [`${perAddress.toFixed(3)} connections per address`]
      : []),
  ]
}

/** Checks the speed relative to the naive variant. */
export function faultsOfRatio(
  name: ShapeName,
  roundTripMs: number,
  ours: readonly Measured[],
  naive: readonly Measured[],
): string[] {
  const wanted = roundTripMs === HIGH_LATENCY_MS ? SPEED_RATIO_MIN[name] : undefined
  const ratio = median(ours.map(speed)) / median(naive.map(speed))
  return wanted === undefined || ratio >= wanted
    ? []
    : [`${name} at ${roundTripMs} ms: ${ratio.toFixed(1)} times the naive variant, not ${wanted}`]
}
