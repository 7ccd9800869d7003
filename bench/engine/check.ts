import { askedTwice } from '../../src/simulator/counters.ts'
import type { Measured } from './measure.ts'
import { LIMITS, type Shape } from './scenario.ts'

/** Commands that a verifier may send. */
const COMMANDS = new Set(['EHLO', 'HELO', 'STARTTLS', 'MAIL', 'RCPT', 'RSET', 'QUIT', 'NOOP'])

/**
 * After several rejections in a row, ev asks an accepted address again, to see whether the server
 * rejects everyone.
 */
const REPEATED_SHARE_MAX = 0.001

/** Returns the failed checks of a run. */
export function faultsOf(run: Measured, shape: Shape): string[] {
  const { total, hosts } = run.counters
  const tooBusy = Object.entries(hosts)
    .filter(([, host]) => host.sessionsPeak > LIMITS.sessionsPerHost)
    .map(([name, host]) => `${name} had ${host.sessionsPeak} sessions at once`)
  const forbidden = Object.keys(total.commands).filter(verb => !COMMANDS.has(verb))
  const twice = askedTwice(total).length
  const perAddress = total.connections / run.addresses
  const { connectionsPerAddressMax = Number.POSITIVE_INFINITY } = shape
  const faults = [
    ...tooBusy,
    ...(run.missing > 0 ? [`${run.missing} addresses had no result`] : []),
    ...(run.repeated > 0 ? [`${run.repeated} addresses had more than one result`] : []),
    ...(run.wrong > 0 ? [`${run.wrong} addresses had a wrong verdict`] : []),
    ...(forbidden.length > 0 ? [`forbidden commands: ${forbidden.join(', ')}`] : []),
    ...(total.sessionsPeak > LIMITS.concurrency
      ? [`${total.sessionsPeak} concurrent sessions in total`]
      : []),
    ...(total.pregreet + total.outOfOrder + total.badLines > 0
      ? ['sent data out of sequence']
      : []),
    ...(twice > run.addresses * REPEATED_SHARE_MAX ? [`${twice} addresses were probed twice`] : []),
    ...(perAddress > connectionsPerAddressMax
      ? [`${perAddress.toFixed(3)} connections per address`]
      : []),
  ]
  return faults.map(fault => `${shape.name}, ${run.program}: ${fault}`)
}
