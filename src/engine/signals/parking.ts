import type { MxOperator } from '../dns/operators.ts'
import type { Signal } from '../verdict/verdict.ts'
import { SIGNAL_SHIFTS } from './signal.ts'

/**
 * Exchangers that are no mail servers of the domain, with the reason. Services with hosts of their
 * own are in the table of operators, as `parked`.
 */
const SINK_HOSTS: Readonly<Record<string, string>> = {
  // L. Atkins, "Identifying domains that don't accept or send email", Word to the Wise, 2019.
  localhost: 'names the sender itself, as many domains for sale do',
  'localhost.localdomain': 'names the sender itself, as many domains for sale do',
  // RFC 6761 §6.4: never a host.
  invalid: 'is a reserved name without a host',
  // RFC 2606 §3: reserved for documentation; found in templates of DNS providers.
  'example.com': 'is a reserved name of documentation',
  'example.net': 'is a reserved name of documentation',
  'example.org': 'is a reserved name of documentation',
}

/** Whether the mail of a domain goes to a parking service, a trap or a host that is none. */
export function findParkingSignals(
  hosts: readonly string[],
  operator: MxOperator | null,
): Signal[] {
  const found = (detail: string): Signal[] => [
    { name: 'parking', shift: SIGNAL_SHIFTS.parking, detail },
  ]
  if (operator?.truth === 'parked') {
    return found(`The mail exchanger belongs to a service for parked domains: ${operator.title}.`)
  }
  const reasons = hosts.map(sinkReason)
  const [reason] = reasons
  return reason !== undefined && reason !== null && !reasons.includes(null)
    ? found(`The mail exchanger ${hosts[0]} ${reason}.`)
    : []
}

function sinkReason(host: string): string | null {
  const suffix = Object.keys(SINK_HOSTS).find(one => host === one || host.endsWith(`.${one}`))
  return suffix === undefined ? null : (SINK_HOSTS[suffix] ?? null)
}
